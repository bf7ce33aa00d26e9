use super::*;
use crate::scheduler::draft::{DeletionDraft, PortRangeDraft, RecipeDraft, RolloutDraft};
use crate::scheduler::testing;

/// Edits the sample; `expected` is the change and then the paths, `Minor: game, maxSurge`.
fn check(edit: impl FnOnce(&mut RecipeDraft), expected: &str) {
    let old = testing::draft();
    let mut new = old.clone();
    edit(&mut new);
    let [old, new] = [old, new].map(|draft| Recipe::parse(&draft).unwrap());
    let difference = Difference::between(&old, &new);
    let paths: Vec<_> = difference.fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(format!("{:?}: {}", difference.change(), paths.join(", ")), expected);
    assert_eq!(Change::between(&new, &old), difference.change());
}

#[test]
fn nothing() {
    check(|_| {}, "None: ");
    // Shown again, never used.
    check(|draft| draft.container(0).ports[0].host_port = 7777, "None: ");
}

#[test]
fn minor() {
    const PARAMETERS: &str = "autoscaling.policy.parameters";
    check(|draft| draft.name = "other".into(), "Minor: name");
    check(|draft| draft.game = "chess".into(), "Minor: game");
    check(|draft| draft.max_surge = "10".into(), "Minor: maxSurge");
    check(|draft| draft.rooms_replicas += 1, "Minor: roomsReplicas");
    check(|draft| draft.autoscaling = None, "Minor: autoscaling");
    check(|draft| draft.autoscaling().enabled = false, "Minor: autoscaling.enabled");
    check(|draft| draft.autoscaling().min = 2, "Minor: autoscaling.min");
    check(|draft| draft.autoscaling().max = -1, "Minor: autoscaling.max");
    check(|draft| draft.autoscaling().cooldown = 0, "Minor: autoscaling.cooldown");
    check(|draft| draft.policy().policy_type = "fixedBuffer".into(), "Minor: autoscaling.policy.type");
    check(
        |draft| draft.room_occupancy().ready_target = "0.25".into(),
        &format!("Minor: {PARAMETERS}.roomOccupancy.readyTarget"),
    );
    check(
        |draft| draft.room_occupancy().down_threshold = None,
        &format!("Minor: {PARAMETERS}.roomOccupancy.downThreshold"),
    );
    check(|draft| draft.parameters().fixed_buffer = None, &format!("Minor: {PARAMETERS}.fixedBuffer"));
    check(|draft| draft.panic().enabled = None, "Minor: autoscaling.panic.enabled");
    check(|draft| draft.panic().limit = Some(50), "Minor: autoscaling.panic.limit");
    check(
        |draft| draft.autoscaling().panic = None,
        "Minor: autoscaling.panic.enabled, autoscaling.panic.limit, autoscaling.panic.delta, \
         autoscaling.panic.timeout",
    );
    check(|draft| draft.forwarders[0].enable = false, "Minor: forwarders[0]");
    check(|draft| draft.forwarders.clear(), "Minor: forwarders[0]");
    check(|draft| draft.match_allocation = None, "Minor: matchAllocation.maxMatches");
    check(|draft| draft.rollout().max_unavailable = None, "Minor: rollout.maxUnavailable");
    check(|draft| draft.rollout().match_end_deadline = None, "Minor: rollout.matchEndDeadline");
    check(
        |draft| draft.rollout = None,
        "Minor: rollout.maxUnavailable, rollout.occupied, rollout.onFailure, rollout.maxFailures, \
         rollout.timeout, rollout.matchEndDeadline, rollout.rejoinGrace, \
         rollout.occupiedInterval",
    );
    check(|draft| draft.region(0).weight = Some(9), "Minor: placement.regions[0].weight");
    check(|draft| draft.region(1).cap = Some(9), "Minor: placement.regions[1].cap");
    check(|draft| draft.region(1).name = "ap-south".into(), "Minor: placement.regions[1].name");
    check(|draft| draft.placement = None, "Minor: placement");
    check(|draft| draft.deletion = Some(DeletionDraft::default()), "Minor: deletion.criteria");
    check(|draft| draft.deletion = None, "Minor: deletion");
}

#[test]
fn major() {
    const ROOM: &str = "spec.containers[0]";
    check(|draft| draft.spec().region = None, "Major: spec.region");
    check(
        |draft| draft.spec().termination_grace_period.as_mut().unwrap().seconds += 1,
        "Major: spec.terminationGracePeriod",
    );
    check(|draft| draft.spec().toleration.clear(), "Major: spec.toleration");
    check(|draft| draft.spec().affinity.clear(), "Major: spec.affinity");
    check(|draft| draft.spec().restart_policy = None, "Major: spec.restartPolicy");
    check(|draft| draft.container(0).name.push('x'), &format!("Major: {ROOM}.name"));
    check(|draft| draft.container(0).image.push('x'), &format!("Major: {ROOM}.image"));
    check(|draft| draft.container(0).command.clear(), &format!("Major: {ROOM}.command"));
    check(|draft| draft.container(0).environment[0].value = None, &format!("Major: {ROOM}.environment[0]"));
    check(
        |draft| draft.container(0).limits.as_mut().unwrap().cpu = "2".into(),
        &format!("Major: {ROOM}.limits.cpu"),
    );
    check(|draft| draft.container(0).ports[0].port += 1, &format!("Major: {ROOM}.ports[0].port"));
    check(|draft| draft.port_range = Some(PortRangeDraft { start: 1, end: 2 }), "Major: portRange");
    check(|draft| draft.annotations.clear(), "Major: annotations.owner");
    check(|draft| drop(draft.labels.insert("team".into(), "b".into())), "Major: labels.team");
    check(
        |draft| drop(draft.labels.insert("example.com/team".into(), "b".into())),
        r#"Major: labels["example.com/team"]"#,
    );
}

#[test]
fn several() {
    // v10 called the removal of a port minor and left the old rooms running.
    check(|draft| drop(draft.container(0).ports.pop()), "Major: spec.containers[0].ports[1]");
    check(|draft| drop(draft.spec().containers.pop()), "Major: spec.containers[1]");
    check(
        |draft| {
            draft.container(0).image.push('x');
            draft.rooms_replicas += 1;
        },
        "Major: roomsReplicas, spec.containers[0].image",
    );
}

#[test]
fn a_default_that_is_written_down_changes_nothing() {
    let mut draft = testing::draft();
    draft.rollout = None;
    let without = Recipe::parse(&draft).unwrap();
    draft.rollout = Some(RolloutDraft::default());
    let with = Recipe::parse(&draft).unwrap();
    assert_eq!(Change::between(&without, &with), Change::None);
}
