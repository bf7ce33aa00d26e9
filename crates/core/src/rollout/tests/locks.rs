//! A rollout takes the locks that it needs, or waits in line behind others who have them.

use expect_test::expect;

use super::super::*;
use super::scene::*;
use super::transitions::switched;
use crate::lock::{Locks, Waiter};
use crate::operation::DefinitionKind;

#[test]
fn locks_that_others_have() {
    use LockKind::{Config, Downscaling};
    let removal = operation(DefinitionKind::RemoveRooms);
    let waits = |kind, holder| Waiter { kind, holder, since: at(0), until: at(200) };
    let locks = |held: &[(LockKind, Holder)], waiters: &[(LockKind, Holder)]| Locks {
        held: held.iter().map(|(kind, holder)| lock(*kind, *holder)).collect(),
        waiters: waiters.iter().map(|(kind, holder)| waits(*kind, *holder)).collect(),
    };
    let (v2, cycles) = (Holder::Rollout(version(2)), Holder::HealthController);
    let begun = |locks: Locks| happens(None, switched(2, true)(None), &locks);
    let paused = rollout(RolloutState::Paused, 2, "paused by bob");
    let resumed = |locks: Locks| happens(Some(&paused), RolloutEvent::Resumed, &locks);
    let superseded = |locks: Locks| {
        let rolling = rollout(RolloutState::Rolling, 2, "");
        happens(Some(&rolling), switched(3, true)(Some(&rolling)), &locks)
    };
    let table = [
        ("begins beside a removal", begun(locks(&[(Config, switch()), (Downscaling, removal)], &[]))),
        ("begins before a cycle that waits", begun(locks(&[(Config, switch())], &[(Downscaling, cycles)]))),
        ("begins after a removal that waits", begun(locks(&[(Config, switch())], &[(Downscaling, removal)]))),
        (
            "resumed while someone has both",
            resumed(locks(&[(Config, switch()), (Downscaling, removal)], &[])),
        ),
        (
            "superseded while it waits",
            superseded(locks(&[(Config, v2), (Downscaling, removal)], &[(Downscaling, v2)])),
        ),
    ]
    .map(|(case, is)| format!("{case}: {is}\n"));
    expect![[r#"
        begins beside a removal: rolling v2.0.0 since now, never took players | v2.0.0 rolling | +config (from switch_active_version) awaits downscaling | says so
        begins before a cycle that waits: rolling v2.0.0 since now, never took players | v2.0.0 rolling | +config (from switch_active_version) +downscaling | says so
        begins after a removal that waits: rolling v2.0.0 since now, never took players | v2.0.0 rolling | +config (from switch_active_version) awaits downscaling | says so
        resumed while someone has both: rolling v2.0.0 since now | v2.0.0 rolling | awaits downscaling
        superseded while it waits: rolling v3.0.0 since now | v2.0.0 superseded: superseded by v3.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | v3.0.0 rolling | +config (from v2.0.0) no place for downscaling (v2.0.0) awaits downscaling | "supersedes the rollout of v2.0.0" | says so
    "#]].assert_eq(&table.concat());
}
