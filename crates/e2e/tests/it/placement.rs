//! Where rooms go: every decision that the placement policy's document shows, out of the running system, and a fleet over
//! three regions that keeps its distribution.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use maestro_e2e::checks::{by_region, settled};
use maestro_e2e::{Maestro, Operation};
use serde_json::{Value, json};

const NO_REGION: &str = "No region is found usable.";
const NO_PLAN: &str = "There is no feasible plan to handle all nodes.";

fn error(reason: &str) -> Value {
    json!({"status": "ERROR", "reason": reason})
}

fn creation(count: u32, regions: &Value) -> Value {
    json!({"status": "OK", "creation": {"count": count, "regions": regions}})
}

fn deletion(count: u32, regions: &Value) -> Value {
    json!({"status": "OK", "deletion": {"count": count, "regions": regions}})
}

/// A server over these regions, and an empty fleet with this placement.
fn arena(regions: &str, placement: &Value) -> anyhow::Result<Maestro> {
    let mut maestro = Maestro::new(&[])?;
    maestro.set_file(&format!("regions: {regions}"))?;
    maestro.start()?;
    let mut recipe = maestro.recipe("arena", 0)?.json();
    recipe["placement"] = json!({"regions": placement});
    maestro.api().create(&recipe)?.expect(200)?;
    Ok(maestro)
}

/// Asks for something, and waits for what becomes of it.
fn ask(maestro: &Maestro, action: &str, body: &Value) -> anyhow::Result<Operation> {
    let answer = maestro.api().post(&format!("/schedulers/arena/{action}"), "ann", &body.to_string())?;
    let id = answer.expect(200)?.operation_id()?;
    maestro.until(action, || {
        let operation = maestro.api().operation("arena", &id)?;
        ensure!(operation.is_final(), "{}", operation.to_text());
        Ok(operation)
    })
}

fn check_decided(maestro: &Maestro, action: &str, body: &Value, data: &Value) -> anyhow::Result<()> {
    let operation = ask(maestro, action, body)?;
    ensure!(operation.status == "finished", "{}", operation.to_text());
    assert_eq!(&operation.data, data, "{action} {body}");
    Ok(())
}

/// It ends as an error with Senlin's words, and the fleet is as big as it was.
fn check_refused(
    maestro: &Maestro,
    action: &str,
    body: &Value,
    reason: &str,
    why: &str,
) -> anyhow::Result<()> {
    let size = || -> anyhow::Result<u32> {
        let infos = maestro.api().fleet_infos()?;
        Ok(infos.first().context("no fleet")?.rooms_replicas)
    };
    let before = size()?;
    let operation = ask(maestro, action, body)?;
    assert_eq!(operation.status, "error", "{}", operation.to_text());
    assert_eq!(operation.data, error(reason));
    assert!(operation.story().contains(reason), "{}", operation.to_text());
    assert!(operation.story().contains(why), "{why} in {}", operation.to_text());
    assert_eq!(size()?, before, "{action} {body}");
    Ok(())
}

fn stands<const N: usize>(maestro: &Maestro, expected: [(&str, usize); N]) -> anyhow::Result<()> {
    let expected = BTreeMap::from(expected);
    maestro.until(&format!("{expected:?}"), || {
        let rooms = settled(maestro, "arena", expected.values().sum())?;
        ensure!(by_region(&rooms) == expected, "{:?}", by_region(&rooms));
        Ok(())
    })
}

fn order(maestro: &Maestro, region: &str, order: &str) -> anyhow::Result<()> {
    let path = format!("/regions/{region}/{order}?reason=a%20test");
    maestro.api().post(&path, "ann", "{}")?.expect(200)?;
    Ok(())
}

/// S1, S2 and S4 of the document.
#[test]
fn additions_and_removals_are_decided_as_the_document_shows() -> anyhow::Result<()> {
    let placement = json!([{"name": "RegionOne", "weight": 1}, {"name": "RegionTwo", "weight": 2, "cap": 4}]);
    let maestro = arena("{RegionOne: {}, RegionTwo: {}}", &placement)?;
    let add = |amount| json!({"amount": amount});

    let three = creation(3, &json!({"RegionOne": 1, "RegionTwo": 2}));
    check_decided(&maestro, "add-rooms", &add(3), &three)?;
    stands(&maestro, [("RegionOne", 1), ("RegionTwo", 2)])?;

    // Who names a region chooses among that one alone.
    let in_one = json!({"region": "RegionOne"});
    for _ in 0..2 {
        check_decided(&maestro, "rooms", &in_one, &creation(1, &json!({"RegionOne": 1})))?;
    }
    check_decided(&maestro, "rooms", &json!({}), &creation(1, &json!({"RegionTwo": 1})))?;
    stands(&maestro, [("RegionOne", 3), ("RegionTwo", 3)])?;

    let three = deletion(3, &json!({"RegionOne": 2, "RegionTwo": 1}));
    check_decided(&maestro, "remove-rooms", &add(3), &three)?;
    stands(&maestro, [("RegionOne", 1), ("RegionTwo", 2)])?;

    check_decided(&maestro, "remove-rooms", &json!({}), &deletion(1, &json!({"RegionTwo": 1})))?;
    check_decided(&maestro, "add-rooms", &json!({}), &creation(1, &json!({"RegionTwo": 1})))?;

    order(&maestro, "RegionOne", "cordon")?;
    let why =
        "regions have capacity for only 2: RegionOne is cordoned by ann: a test; RegionTwo has a cap of 4";
    check_refused(&maestro, "add-rooms", &add(3), NO_PLAN, why)?;
    order(&maestro, "RegionTwo", "cordon")?;
    let why = "no region may have new rooms: RegionOne is cordoned by ann: a test; \
               RegionTwo is cordoned by ann: a test";
    check_refused(&maestro, "add-rooms", &add(3), NO_REGION, why)?;
    check_refused(&maestro, "rooms", &json!({}), NO_REGION, why)?;
    stands(&maestro, [("RegionOne", 1), ("RegionTwo", 2)])
}

/// S3 of the document, and that the command line shows what was decided.
#[test]
fn resizes_are_decided_as_the_document_shows() -> anyhow::Result<()> {
    let placement = json!([
        {"name": "RegionOne", "weight": 1, "cap": 3}, {"name": "RegionTwo", "weight": 2, "cap": 4},
    ]);
    let maestro = arena("{RegionOne: {}, RegionTwo: {}}", &placement)?;
    let exact = |number| json!({"adjustment_type": "EXACT_CAPACITY", "number": number});
    let one_and_two = json!({"RegionOne": 1, "RegionTwo": 2});

    check_decided(&maestro, "resize", &exact(3), &creation(3, &one_and_two))?;
    let by_percent = json!({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 66.7, "min_step": 3});
    check_decided(&maestro, "resize", &by_percent, &creation(3, &one_and_two))?;
    stands(&maestro, [("RegionOne", 2), ("RegionTwo", 4)])?;

    let too_big = json!({"adjustment_type": "EXACT_CAPACITY", "number": 9, "max_size": 7});
    let message = "The target capacity (9) is greater than the specified max_size (7).";
    check_refused(&maestro, "resize", &too_big, message, "")?;
    let why = "regions have capacity for only 1: RegionOne has a cap of 3; RegionTwo has a cap of 4";
    check_refused(&maestro, "resize", &exact(8), NO_PLAN, why)?;

    let output = maestro.cli(&["scheduler", "resize", "arena", "-50%", "--wait", "-o", "json"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ended: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(ended["operation"]["data"], deletion(3, &one_and_two));
    let id = ended["operation"]["id"].as_str().context("no id")?;
    let shown = String::from_utf8(maestro.cli(&["operation", "get", "arena", id])?.stdout)?;
    assert!(shown.contains("-3: RegionOne 1, RegionTwo 2"), "{shown}");
    stands(&maestro, [("RegionOne", 1), ("RegionTwo", 2)])
}

const US: &str = "us-east";
const EU: &str = "eu-west";
const AP: &str = "ap-south";

#[test]
fn three_regions_keep_their_shares() -> anyhow::Result<()> {
    let placement = json!([
        {"name": US, "weight": 3, "cap": 5}, {"name": EU, "weight": 2}, {"name": AP, "weight": 1},
    ]);
    let maestro = arena(&format!("{{{US}: {{}}, {EU}: {{}}, {AP}: {{}}}}"), &placement)?;
    let resize = |number: u32| -> anyhow::Result<()> {
        let operation =
            ask(&maestro, "resize", &json!({"adjustment_type": "EXACT_CAPACITY", "number": number}))?;
        ensure!(operation.status == "finished", "{}", operation.to_text());
        Ok(())
    };

    // 6, 4 and 2 are the shares; what the cap leaves goes to the next.
    resize(12)?;
    stands(&maestro, [(US, 5), (EU, 5), (AP, 2)])?;
    resize(6)?;
    stands(&maestro, [(US, 3), (EU, 2), (AP, 1)])?;

    let mut next = maestro.recipe("arena", 6)?.with("ROOM_START_DELAY_MS", 1).json();
    next["placement"] = json!({"regions": placement});
    maestro.api().new_version("arena", &next)?.expect(200)?;
    maestro.until("the rollout", || {
        let versions = maestro.api().versions("arena")?;
        let latest = versions.last().context("no versions")?;
        ensure!((&*latest.version, &*latest.status) == ("v2.0.0", "deployed"), "{versions:?}");
        Ok(())
    })?;
    stands(&maestro, [(US, 3), (EU, 2), (AP, 1)])?;

    order(&maestro, AP, "cordon")?;
    order(&maestro, EU, "drain")?;
    stands(&maestro, [(US, 5), (AP, 1)])?;
    order(&maestro, AP, "uncordon")?;
    order(&maestro, EU, "uncordon")?;
    resize(9)?;
    stands(&maestro, [(US, 5), (EU, 3), (AP, 1)])
}
