use super::*;
use crate::policy::Criteria;
use crate::room::Region;
use crate::scheduler::tests::{recipe, room_occupancy};
use crate::scheduler::{
    EnvironmentValue, FixedBuffer, MaxSurge, OtherParameters, PortRange, RestartPolicy, ScalingPolicy,
};

/// Edits the sample; `expected` is the change and then the paths, `Minor: game, maxSurge`.
fn check(edit: impl FnOnce(&mut Recipe), expected: &str) {
    let old = recipe();
    let mut new = old.clone();
    edit(&mut new);
    let difference = Difference::between(&old, &new);
    let paths: Vec<_> = difference.fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(format!("{:?}: {}", difference.change(), paths.join(", ")), expected);
    assert_eq!(RecipeChange::between(&new, &old), difference.change());
}

fn autoscaling(recipe: &mut Recipe) -> &mut Autoscaling {
    recipe.autoscaling.as_mut().unwrap()
}

fn panic_scale(recipe: &mut Recipe) -> &mut PanicScale {
    autoscaling(recipe).panic.as_mut().unwrap()
}

fn rollout(recipe: &mut Recipe) -> &mut Rollout {
    recipe.rollout_rules.as_mut().unwrap()
}

fn region(recipe: &mut Recipe, index: usize) -> &mut PlacementRegion {
    &mut recipe.policies.placement.as_mut().unwrap().regions[index]
}

fn room(recipe: &mut Recipe) -> &mut Container {
    &mut recipe.spec.containers[0]
}

#[test]
fn nothing() {
    check(|_| {}, "None: ");
    // Shown again, never used.
    check(|recipe| room(recipe).ports[0].host_port = 7777, "None: ");
}

#[test]
fn minor() {
    check(|recipe| recipe.name = crate::scheduler::SchedulerName::parse("other").unwrap(), "Minor: name");
    check(|recipe| recipe.game = "chess".into(), "Minor: game");
    check(|recipe| recipe.max_surge = MaxSurge::Rooms(10), "Minor: maxSurge");
    check(|recipe| recipe.rooms_replicas += 1, "Minor: roomsReplicas");
    check(|recipe| recipe.forwarders[0].enabled = false, "Minor: forwarders[0]");
    check(|recipe| recipe.forwarders.clear(), "Minor: forwarders[0]");
    check(|recipe| recipe.match_allocation.max_matches = 1, "Minor: matchAllocation.maxMatches");
    check(|recipe| rollout(recipe).max_unavailable = 0, "Minor: rollout.maxUnavailable");
    check(|recipe| rollout(recipe).match_end_deadline = None, "Minor: rollout.matchEndDeadline");
    check(
        |recipe| recipe.rollout_rules = None,
        "Minor: rollout.maxUnavailable, rollout.occupied, rollout.onFailure, rollout.maxFailures, \
         rollout.timeout, rollout.matchEndDeadline, rollout.rejoinGrace, \
         rollout.occupiedInterval",
    );
    check(|recipe| region(recipe, 0).weight = 9, "Minor: placement.regions[0].weight");
    check(|recipe| region(recipe, 1).cap = Some(9), "Minor: placement.regions[1].cap");
    check(
        |recipe| region(recipe, 1).name = Region::parse("ap-south").unwrap(),
        "Minor: placement.regions[1].name",
    );
    check(|recipe| recipe.policies.placement = None, "Minor: placement");
    check(
        |recipe| recipe.policies.deletion = Some(DeletionPolicy { criteria: Criteria::Random }),
        "Minor: deletion.criteria",
    );
    check(|recipe| recipe.policies.deletion = None, "Minor: deletion");
}

#[test]
fn autoscaling_is_minor() {
    const PARAMETERS: &str = "autoscaling.policy.parameters";
    check(|recipe| recipe.autoscaling = None, "Minor: autoscaling");
    check(|recipe| autoscaling(recipe).enabled = false, "Minor: autoscaling.enabled");
    check(|recipe| autoscaling(recipe).min = 2, "Minor: autoscaling.min");
    check(|recipe| autoscaling(recipe).max = None, "Minor: autoscaling.max");
    check(|recipe| autoscaling(recipe).cooldown_seconds = 0, "Minor: autoscaling.cooldown");
    check(
        |recipe| {
            let occupancy = autoscaling(recipe).room_occupancy();
            autoscaling(recipe).policy = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 10 });
            autoscaling(recipe).other_parameters =
                OtherParameters { room_occupancy: occupancy, fixed_buffer: None };
        },
        "Minor: autoscaling.policy.type",
    );
    let occupies = |ready_target, down_threshold| {
        move |recipe: &mut Recipe| {
            let occupancy = room_occupancy(ready_target, down_threshold);
            autoscaling(recipe).policy = ScalingPolicy::RoomOccupancy(occupancy);
        }
    };
    check(occupies("0.25", Some("0.95")), &format!("Minor: {PARAMETERS}.roomOccupancy.readyTarget"));
    check(occupies("0.8", None), &format!("Minor: {PARAMETERS}.roomOccupancy.downThreshold"));
    check(
        |recipe| autoscaling(recipe).other_parameters.fixed_buffer = None,
        &format!("Minor: {PARAMETERS}.fixedBuffer"),
    );
    check(|recipe| panic_scale(recipe).enabled = false, "Minor: autoscaling.panic.enabled");
    check(|recipe| panic_scale(recipe).limit = 50, "Minor: autoscaling.panic.limit");
    check(
        |recipe| autoscaling(recipe).panic = None,
        "Minor: autoscaling.panic.enabled, autoscaling.panic.limit, autoscaling.panic.delta, \
         autoscaling.panic.timeout",
    );
}

#[test]
fn major() {
    const ROOM: &str = "spec.containers[0]";
    check(|recipe| recipe.spec.region = None, "Major: spec.region");
    check(
        |recipe| recipe.spec.termination_grace_period += std::time::Duration::from_secs(1),
        "Major: spec.terminationGracePeriod",
    );
    check(|recipe| recipe.spec.toleration.clear(), "Major: spec.toleration");
    check(|recipe| recipe.spec.affinity.clear(), "Major: spec.affinity");
    check(|recipe| recipe.spec.restart_policy = RestartPolicy::Never, "Major: spec.restartPolicy");
    check(|recipe| room(recipe).name.push('x'), &format!("Major: {ROOM}.name"));
    check(|recipe| room(recipe).image.push('x'), &format!("Major: {ROOM}.image"));
    check(|recipe| room(recipe).command.clear(), &format!("Major: {ROOM}.command"));
    check(
        |recipe| room(recipe).environment[0].value = EnvironmentValue::Text(String::new()),
        &format!("Major: {ROOM}.environment[0]"),
    );
    check(|recipe| room(recipe).limits.cpu = "2".into(), &format!("Major: {ROOM}.limits.cpu"));
    check(|recipe| room(recipe).ports[0].port += 1, &format!("Major: {ROOM}.ports[0].port"));
    check(|recipe| recipe.port_range = Some(PortRange { start: 1, end: 2 }), "Major: portRange");
    check(|recipe| recipe.annotations.clear(), "Major: annotations.owner");
    check(|recipe| drop(recipe.labels.insert("team".into(), "b".into())), "Major: labels.team");
    check(
        |recipe| drop(recipe.labels.insert("example.com/team".into(), "b".into())),
        r#"Major: labels["example.com/team"]"#,
    );
}

#[test]
fn several() {
    // v10 called the removal of a port minor and left the old rooms running.
    check(|recipe| drop(room(recipe).ports.pop()), "Major: spec.containers[0].ports[1]");
    check(|recipe| drop(recipe.spec.containers.pop()), "Major: spec.containers[1]");
    check(
        |recipe| {
            room(recipe).image.push('x');
            recipe.rooms_replicas += 1;
        },
        "Major: roomsReplicas, spec.containers[0].image",
    );
}

#[test]
fn a_default_that_is_written_down_changes_nothing() {
    let without = Recipe { rollout_rules: None, ..recipe() };
    let with = Recipe { rollout_rules: Some(Rollout::default()), ..recipe() };
    assert_eq!(RecipeChange::between(&without, &with), RecipeChange::None);
}
