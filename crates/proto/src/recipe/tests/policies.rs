use expect_test::{Expect, expect};
use maestro_core::policy::{Criteria, DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};
use maestro_core::room::Region;
use maestro_core::scheduler::Recipe;
use serde_json::{Value, json};

use super::{check, sample};
use crate::v1::{self, CreateSchedulerRequest};

fn document(policy: &Value) -> v1::Policy {
    v1::Policy {
        r#type: policy["type"].as_str().unwrap_or_default().to_owned(),
        version: Some(policy["version"].clone().into()),
        properties: policy["properties"].as_object().cloned().map(Into::into),
    }
}

fn with_documents(wire: &mut CreateSchedulerRequest, documents: &[Value]) {
    wire.placement = None;
    wire.deletion = None;
    wire.policies = documents.iter().map(document).collect();
}

fn check_documents(documents: &[Value], expected: Expect) {
    check(|wire| with_documents(wire, documents), expected);
}

fn region(name: &str, weight: u32, cap: Option<u32>) -> PlacementRegion {
    PlacementRegion { name: Region::parse(name).unwrap(), weight, cap }
}

#[test]
fn senlins_documents() {
    let mut wire = sample();
    with_documents(
        &mut wire,
        &[
            json!({"type": "senlin.policy.deletion", "version": 1.1, "properties": {
                "criteria": "YOUNGEST_FIRST", "destroy_after_deletion": true, "grace_period": 60,
                "reduce_desired_capacity": false, "hooks": {}}}),
            json!({"type": "senlin.policy.region_placement", "version": "1.0", "properties": {"regions": [
                {"name": "RegionOne", "weight": 100, "cap": 150}, {"name": "RegionTwo"},
                {"name": "RegionThree", "weight": "7", "cap": -1}]}}),
        ],
    );
    let recipe = Recipe::try_from(&wire).unwrap();
    let regions = vec![
        region("RegionOne", 100, Some(150)),
        region("RegionTwo", 100, None),
        region("RegionThree", 7, None),
    ];
    let placement = Some(PlacementPolicy { regions });
    let deletion = Some(DeletionPolicy { criteria: Criteria::YoungestFirst });
    assert_eq!(recipe.policies, Policies { placement, deletion });

    let short = CreateSchedulerRequest::from(&recipe);
    assert_eq!(short.policies, []);
    assert_eq!(Recipe::try_from(&short).unwrap(), recipe);
}

#[test]
fn versions_as_yaml_and_json_have_them() {
    let of = |version: Value| json!({"type": "senlin.policy.deletion", "version": version, "properties": {}});
    for version in [json!("1.0"), json!(1.0), json!(1), json!("1.1"), json!(1.1)] {
        check_documents(&[of(version)], expect!["ok"]);
    }
    check_documents(&[of(json!("2.0"))], expect!["policies[0].version: 2.0 is not 1.0 or 1.1"]);
    check_documents(&[of(json!(null))], expect!["policies[0].version: is missing; 1.0 or 1.1 is needed"]);
    check_documents(&[of(json!([1]))], expect!["policies[0].version: [1] is not 1.0 or 1.1"]);
    let placement = json!({"type": "senlin.policy.region_placement", "version": 1.1, "properties": {}});
    check_documents(&[placement], expect!["policies[0].version: 1.1 is not 1.0"]);
}

#[test]
fn types_nobody_knows() {
    let of = |name: &str| json!({"type": name, "version": "1.0", "properties": {}});
    check_documents(
        &[of("senlin.policy.health"), of(""), of("senlin.policy.scaling")],
        expect![[r#"
            policies[0].type: "senlin.policy.health" is not one of senlin.policy.region_placement, senlin.policy.deletion
            policies[1].type: is missing; one of senlin.policy.region_placement, senlin.policy.deletion is needed
            policies[2].type: scaling is what the recipe's autoscaling block is for"#]],
    );
}

#[test]
fn everything_wrong_with_a_document() {
    let of = |name: &str, properties: Value| json!({"type": format!("senlin.policy.{name}"), "version": "1.0", "properties": properties});
    check_documents(
        &[of(
            "region_placement",
            json!({"colour": "red", "regions": [
            {"name": "a", "weight": -5, "cap": "many"}, {"name": 5, "weight": 1.5, "cap": -2},
            {"name": "a", "weight": 2_147_483_648_u32, "size": 3}, "b", {"weight": null, "cap": null}]}),
        )],
        expect![[r#"
            policies[0].properties.colour: is not known; there is regions
            policies[0].properties.regions[0].weight: -5 is not at least 0
            policies[0].properties.regions[0].cap: "many" is not a whole number up to 2147483647
            policies[0].properties.regions[1].name: 5 is not a text
            policies[0].properties.regions[1].weight: 1.5 is not a whole number up to 2147483647
            policies[0].properties.regions[1].cap: -2 is not at least 0; -1 means no limit
            policies[0].properties.regions[2].size: is not known; there is name, weight, cap
            policies[0].properties.regions[2].weight: 2147483648 is not a whole number up to 2147483647
            policies[0].properties.regions[3]: "b" is not an object with a name
            policies[0].properties.regions[4].name: is missing; the name of a region is needed
            policies[0].properties.regions[2].name: "a" is there twice"#]],
    );
    check_documents(
        &[of(
            "deletion",
            json!({"criteria": "OLDEST", "destroy_after_deletion": false, "grace_period": -1,
            "reduce_desired_capacity": 7, "hooks": {"type": "zaqar"}, "count": 1}),
        )],
        expect![[r#"
            policies[0].properties.count: is not known; there is criteria, destroy_after_deletion, grace_period, reduce_desired_capacity, hooks
            policies[0].properties.criteria: "OLDEST" is not one of OLDEST_FIRST, OLDEST_PROFILE_FIRST, YOUNGEST_FIRST, RANDOM
            policies[0].properties.destroy_after_deletion: false is not possible: a room that leaves its fleet ends
            policies[0].properties.grace_period: -1 is not at least 0
            policies[0].properties.reduce_desired_capacity: 7 is not true or false
            policies[0].properties.hooks: is not possible: nobody is asked before a room ends"#]],
    );
    check_documents(
        &[of("region_placement", json!({})), of("deletion", json!({"criteria": 1}))],
        expect![[r#"
            policies[0].properties.regions: is missing; a list of regions is needed
            policies[1].properties.criteria: 1 is not a text"#]],
    );
    check_documents(
        &[of("region_placement", json!({"regions": {"name": "a"}}))],
        expect![[r#"policies[0].properties.regions: {"name":"a"} is not a list"#]],
    );
}

#[test]
fn in_short() {
    check(|wire| wire.region(0).weight = Some(0), expect!["ok"]);
    check(|wire| wire.region(0).cap = Some(0), expect!["ok"]);
    check(|wire| wire.deletion = Some(v1::Deletion::default()), expect!["ok"]);
    check(
        |wire| {
            *wire.region(0) = v1::PlacementRegion { name: String::new(), weight: Some(-1), cap: Some(-2) };
            wire.deletion = Some(v1::Deletion { criteria: Some("oldest".into()) });
            wire.spec().region = Some("a b".into());
        },
        expect![[r#"
            spec.region: "a b" is not a name of a region: use 1 to 63 letters, digits, -, _ and ., with a letter or digit at both ends
            placement.regions[0].name: is missing; the name of a region is needed
            placement.regions[0].weight: -1 is not at least 0
            placement.regions[0].cap: -2 is not at least 0; -1 means no limit
            deletion.criteria: "oldest" is not one of OLDEST_FIRST, OLDEST_PROFILE_FIRST, YOUNGEST_FIRST, RANDOM"#]],
    );
    check(
        |wire| wire.placement = Some(v1::Placement::default()),
        expect!["placement.regions: is empty; name at least one region"],
    );
    check(
        |wire| (wire.region(0).weight, wire.region(1).weight) = (Some(0), Some(0)),
        expect![
            "placement.regions: all weights are 0, so no region could ever get a room; give one a weight"
        ],
    );
    check(
        |wire| wire.region(1).name = "us-east".into(),
        expect![[r#"placement.regions[1].name: "us-east" is there twice"#]],
    );
    check(
        |wire| {
            let region =
                |index| v1::PlacementRegion { name: format!("r{index}"), ..v1::PlacementRegion::default() };
            wire.placement = Some(v1::Placement { regions: (0..257).map(region).collect() });
        },
        expect!["placement.regions: has 257 regions; at most 256 can be"],
    );
}

#[test]
fn one_of_a_kind() {
    let deletion = json!({"type": "senlin.policy.deletion", "version": "1.0", "properties": {}});
    check(
        |wire| wire.policies = vec![document(&deletion)],
        expect!["policies[0]: there is a deletion policy already, deletion; only one can be"],
    );
    check_documents(
        &[deletion.clone(), deletion],
        expect!["policies[1]: there is a deletion policy already, policies[0]; only one can be"],
    );
}
