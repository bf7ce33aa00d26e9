//! create_scheduler: prepares every runtime for the scheduler's rooms. The recipe was checked when it was submitted; no room
//! is tried. Rolled back, nothing of the scheduler is left but events that wait for receivers. A region that does not
//! answer is prepared when it is adopted again.

use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::operation::{Definition, OperationId, Origin};
use maestro_core::scheduler::VersionStatus;

use crate::ports::Runtime;
use crate::ports::store::{Change, SchedulerRecord, SchedulerState, SchedulerUpdate};
use crate::rooms::{recovery, stopping};

use super::{Executor, Next, Result, Step, Work, delete_scheduler};

pub(super) struct CreateScheduler;

#[async_trait]
impl Executor for CreateScheduler {
    async fn step(&self, work: &Work) -> Result<Step> {
        if work.scheduler.state == SchedulerState::Deleting {
            return Ok(left_to_deletion());
        }
        let scheduler = &work.scheduler.name;
        for runtime in reachable(work) {
            runtime.create_scheduler(scheduler).await?;
        }
        // It has no rooms yet, which is not the same as that nobody knows which.
        recovery::rebuild(&work.engine, scheduler, || work.still_owner()).await?;
        // The fleet is looked at right away: nobody who creates a scheduler wants to wait for the next period.
        let mut first_cycle =
            work.engine.new_operation(scheduler, Definition::HealthController, Origin::Engine);
        first_cycle.reason = "the scheduler was just created".into();
        let changes = vec![
            Change::UpdateScheduler(SchedulerUpdate {
                state: Some(SchedulerState::InSync),
                ..work.scheduler.update()
            }),
            Change::SetVersionStatus {
                scheduler: scheduler.clone(),
                version: work.scheduler.active_version,
                status: VersionStatus::Deployed,
                cause: String::new(),
            },
            Change::Enqueue(first_cycle),
        ];
        Ok(Step { changes, next: Next::Done { took_action: true }, ..Step::default() })
    }

    async fn undo(&self, work: &Work) -> Result<Step> {
        if work.scheduler.state == SchedulerState::Deleting {
            return Ok(left_to_deletion());
        }
        let scheduler = &work.scheduler.name;
        let reachable: Vec<_> = reachable(work).collect();
        // An earlier scheduler of this name was deleted by force, while its rooms were out of reach.
        stopping::stop_unknown(work, &reachable).await?;
        for runtime in reachable {
            runtime.delete_scheduler(scheduler).await?;
        }
        work.engine.ports.table.remove_scheduler(scheduler).await?;
        let keep = work.operation.id;
        let mut step = Step::done();
        step.changes.extend(forget_unless_deleting(&work.scheduler, keep));
        Ok(step)
    }
}

/// A deletion that was asked for meanwhile takes everything away itself, and stays to be read.
pub(crate) fn forget_unless_deleting(record: &SchedulerRecord, keep: OperationId) -> [Change; 3] {
    let [orphan_events, delete] = delete_scheduler::forget(record, keep);
    [Change::UpdateScheduler(record.update()), orphan_events, delete]
}

/// The others make the place when they are adopted, or when the first room is started there.
fn reachable(work: &Work) -> impl Iterator<Item = &Arc<dyn Runtime>> {
    let runtimes = work.engine.ports.runtimes.iter();
    runtimes.filter(|(region, _)| work.engine.regions.is_reachable(region)).map(|(_, runtime)| runtime)
}

/// Someone asked for its deletion meanwhile: that operation takes everything away, and must itself stay to be read.
fn left_to_deletion() -> Step {
    Step::done().with_history("the scheduler is being deleted")
}
