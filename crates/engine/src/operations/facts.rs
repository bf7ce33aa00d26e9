//! From rows, views and records to the facts that a plan is made from.

use maestro_core::operation::{Definition, OperationStatus, RemovalReason, Stage};
use maestro_core::plan::{EndedFact, RoomFact};
use maestro_core::rollout::OccupiedPace;
use maestro_core::room::{EndCause, RoomStatus};
use maestro_core::scheduler::Version;

use crate::Engine;
use crate::ports::room_table::RoomView;
use crate::ports::store::{Intent, PageRequest, RoomRecord, SchedulerRecord};
use crate::regions::Contact;

use super::{Result, placing};

/// Operations that a plan looks back at; a longer row of failures does not make the wait longer.
const OPERATIONS_SEEN: u32 = 12;

/// Adds that failed before they had rooms to fail with (no free port, say): they are attempts too.
pub(super) async fn failed_adds(engine: &Engine, scheduler: &SchedulerRecord) -> Result<Vec<EndedFact>> {
    let latest = PageRequest::newest(OPERATIONS_SEEN, false);
    let page = engine.ports.store.operations(&scheduler.name, Stage::Final, latest).await?;
    let mut failed = Vec::new();
    for operation in page.operations {
        let Definition::AddRooms { amount } = operation.definition else {
            continue;
        };
        // What a policy refused says nothing about rooms.
        let refused = placing::is_refused(&operation.data);
        if operation.status != OperationStatus::Error || operation.origin.is_person() || refused {
            continue;
        }
        if !engine.ports.store.rooms_made_by(&scheduler.name, operation.id).await?.is_empty() {
            continue;
        }
        failed.push(EndedFact {
            rooms: amount,
            operation: operation.id,
            old: false,
            created_at: operation.created_at,
            ended_at: operation.ended_at.unwrap_or(operation.created_at),
            cause: EndCause::Failed,
            was_ready: false,
        });
    }
    Ok(failed)
}

pub(crate) fn occupied_pace(engine: &Engine, scheduler: &SchedulerRecord) -> OccupiedPace {
    OccupiedPace {
        interval: scheduler.recipe.rollout().occupied_interval,
        period: engine.settings.health_controller_interval.into(),
        last: scheduler.rollout.as_ref().and_then(|rollout| rollout.occupied_at),
    }
}

pub(super) fn fact(
    engine: &Engine,
    row: &RoomRecord,
    view: Option<&RoomView>,
    contact: Option<&Contact>,
) -> RoomFact {
    let (reachable, reachable_since) = match contact {
        Some(Contact::Reachable { since }) => (true, *since),
        Some(Contact::Unsettled { .. }) => (true, None),
        Some(Contact::Unreachable { .. }) | None => (false, None),
    };
    let reachable_since = reachable_since.max(engine.listening.since(engine.now()));
    // Nobody has looked yet whether it runs.
    let unsettled = matches!(contact, Some(Contact::Unsettled { .. }));
    let base = RoomFact {
        id: row.id.clone(),
        region: row.region.clone(),
        status: RoomStatus::Pending,
        version: row.version,
        old: false,
        draining: false,
        matches: 0,
        held: row.holds > 0,
        created_at: row.created_at,
        // A room that has a handle and is not in the table waits for being put back there; it is not silent.
        heard_at: Some(engine.now()),
        known: row.handle.is_none(),
        was_ready: false,
        leaving: row.intent != Intent::Run,
        reachable,
        reachable_since,
        spared_until: None,
    };
    match view {
        None => base,
        Some(view) => RoomFact {
            status: view.status,
            // Those who are on their way need a place as much as those who play.
            matches: view.matches.saturating_add(view.expected),
            held: base.held || view.expected > 0,
            // A room that only repeats that it is terminating is not getting anywhere.
            heard_at: view
                .terminating_since
                .or(view.last_ping_at)
                .or((!view.known).then_some(view.listened_since)),
            known: view.known && !unsettled,
            was_ready: view.was_ready,
            leaving: base.leaving || view.claimed_by.is_some(),
            // It may have been written down long before it was started, or adopted again.
            reachable_since: base.reachable_since.max(Some(view.listened_since)),
            ..base
        },
    }
}

pub(super) fn ended_fact(row: &RoomRecord, old: &[Version]) -> Option<EndedFact> {
    let ended = row.ended.as_ref()?;
    Some(EndedFact {
        rooms: 1,
        operation: row.operation,
        old: old.contains(&row.version),
        created_at: row.created_at,
        ended_at: ended.at,
        cause: if took_too_long(row) && !ended.was_ready { EndCause::Failed } else { ended.cause },
        was_ready: ended.was_ready,
    })
}

/// It was asked to go because it was not ready, or silent, for too long, although it had been started.
pub(super) fn took_too_long(row: &RoomRecord) -> bool {
    let expired = Some(RemovalReason::ExpiredRoom);
    let timed_out = matches!(&row.intent, Intent::Stop(stop) if stop.cause == expired);
    timed_out && row.handle.is_some()
}
