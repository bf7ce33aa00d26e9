//! What is due of a scheduler by itself: its health cycles, on schedule and early, and its clean-ups.

use std::time::Duration;

use maestro_core::operation::{Definition, DefinitionKind, Operation, OperationId, Origin};
use maestro_core::scheduler::SchedulerName;
use maestro_core::stagger;
use maestro_core::time::{Timestamp, age};
use serde_json::Value;
use tokio::time::Instant;

use crate::operations::{Finding, PlannedCycle, Result, decided, nothing_to_clean_up, scheduled};
use crate::ports::store::{Change, NewOperation, NoAction, Routine, SchedulerRecord, SchedulerState};
use crate::rooms::comparing;

use super::settled::SettledLook;
use super::{DEBOUNCE, IDLE_MAX, SchedulerLoop};

/// While rooms change all the time and nothing comes of it, checks keep this distance: each reads the whole fleet. A plan is
/// good for as long.
const CHECK_GAP: Duration = Duration::from_millis(500);
/// Early cycles keep at least this distance: what cannot be mended must not make a loop spin.
const EARLY_CYCLE_GAP: Duration = Duration::from_secs(1);
/// Why the engine does what it does again and again.
const ON_SCHEDULE: &str = "scheduled";

impl SchedulerLoop {
    /// Enqueues the engine's own operations when it is time for them. True: the queue is another one now.
    pub(super) async fn enqueue_due(
        &mut self,
        record: &SchedulerRecord,
        unfinished: &[Operation],
    ) -> Result<bool> {
        if record.state != SchedulerState::InSync {
            return Ok(false);
        }
        let now = Instant::now();
        let waits = |kind| {
            let same = |operation: &&Operation| operation.definition.kind() == kind;
            unfinished.iter().any(|operation| same(&operation))
        };
        // Each is due until it is enqueued: a store that fails must not cost a whole period.
        if now >= self.next_clean_up {
            let enqueued = !waits(DefinitionKind::StorageCleanUp) && !self.quiet_clean_up(unfinished).await?;
            if enqueued {
                self.enqueue(Definition::StorageCleanUp, ON_SCHEDULE, Value::Null).await?;
            }
            self.next_clean_up = now + self.engine.settings.storage_clean_up_interval;
            if enqueued {
                return Ok(true);
            }
        }
        let cycle_waits = waits(DefinitionKind::HealthController);
        if now >= self.next_cycle {
            self.cycle_is_owed |= cycle_waits;
            let enqueued = !cycle_waits && self.scheduled_cycle(unfinished).await?;
            let period = self.engine.settings.health_controller_interval;
            self.next_cycle = now
                + match std::mem::replace(&mut self.has_begun, true) {
                    true => period,
                    false => turn_in(&self.scheduler, period),
                };
            if enqueued {
                return Ok(true);
            }
        }
        if cycle_waits {
            // That one sees all that an early one would, and a timer that has passed would have this loop spin.
            self.next_check = None;
            return Ok(false);
        }
        self.plan_early(record, unfinished).await
    }

    /// False: it found nothing to do, and was written down as a whole, together with those of others.
    async fn scheduled_cycle(&mut self, unfinished: &[Operation]) -> Result<bool> {
        let engine = self.engine.clone();
        let may_plan = is_quiet(unfinished) && comparing::nothing_differs(&engine, &self.scheduler).await;
        let planned = match may_plan {
            true => {
                // It sees all that an early check would. Taken before: what changes meanwhile is for the next check.
                self.bell.take_plan_may_differ();
                Some(self.look(true).await?)
            }
            false => None,
        };
        if let Some(planned) = planned.as_ref().filter(|planned| planned.is_quiet(&engine)) {
            self.found_nothing(planned);
            let (data, events) = decided(&engine, &planned.scheduler, &planned.fleet, &planned.plan);
            self.record(Routine::HealthController, data, events);
            return Ok(false);
        }
        self.enqueue_cycle(ON_SCHEDULE, scheduled(), planned).await?;
        Ok(true)
    }

    async fn quiet_clean_up(&self, unfinished: &[Operation]) -> Result<bool> {
        let is_quiet = is_quiet(unfinished) && nothing_to_clean_up(&self.engine, &self.scheduler).await?;
        if is_quiet {
            self.record(Routine::StorageCleanUp, Value::Null, Vec::new());
        }
        Ok(is_quiet)
    }

    fn record(&self, routine: Routine, data: Value, mut events: Vec<String>) {
        events.push("Operation finished".into());
        let at = self.engine.now();
        let record = NoAction {
            id: self.engine.ports.random.operation_id(at),
            scheduler: self.scheduler.clone(),
            routine,
            reason: ON_SCHEDULE.into(),
            data,
            events,
            at,
        };
        self.stepper.count_quiet(&record);
        self.engine.record_no_action(self.guard.clone(), record);
    }

    /// Between two cycles: if the plan has changed, a cycle begins early.
    async fn plan_early(&mut self, record: &SchedulerRecord, unfinished: &[Operation]) -> Result<bool> {
        if !self.engine.settings.early_wake_up {
            return Ok(false);
        }
        if self.bell.take_plan_may_differ() {
            let rests_until = self.last_check.map(|last| last + CHECK_GAP);
            let rest = rests_until.map(|until| until.saturating_duration_since(Instant::now()));
            self.check_in(DEBOUNCE.max(rest.unwrap_or_default()));
        }
        if self.next_check.is_none_or(|at| at > Instant::now()) {
            return Ok(false);
        }
        if self.is_still_settled(record, unfinished).await? {
            return Ok(false);
        }
        let planned = self.look(false).await?;
        let gap = match planned.finding(&self.engine) {
            Finding::Nothing => {
                self.last_check = Some(Instant::now());
                self.found_nothing(&planned);
                return Ok(false);
            }
            // Each cycle of a rollout that led to something may be followed by the next at once.
            Finding::Something | Finding::Removals
                if record.rollout.is_some() && self.stepper.made_progress =>
            {
                Duration::ZERO
            }
            Finding::Something => EARLY_CYCLE_GAP,
            Finding::Removals => self.gap_of_removals(),
        };
        let now = Instant::now();
        if let Some(soonest) = self.last_early_cycle.map(|last| last + gap).filter(|soonest| now < *soonest) {
            self.next_check = Some(soonest);
            return Ok(false);
        }
        self.enqueue_cycle("room state changed", Value::Null, Some(planned)).await?;
        self.stepper.made_progress = false;
        self.next_check = None;
        self.last_early_cycle = Some(now);
        Ok(true)
    }

    /// Whether only players came and went since the last look, which found nothing.
    async fn is_still_settled(&mut self, record: &SchedulerRecord, unfinished: &[Operation]) -> Result<bool> {
        if self.bell.take_regions_changed() {
            self.settled = None;
        }
        let Some(settled) = &self.settled else { return Ok(false) };
        let look_again_at = settled.look_again_at();
        let still_holds = settled.still_holds(&self.engine, record, unfinished).await?;
        if still_holds {
            self.last_check = Some(Instant::now());
            self.check_again_at(look_again_at);
        }
        Ok(still_holds)
    }

    /// What changes from here on is for the next look.
    async fn look(&mut self, is_scheduled: bool) -> Result<PlannedCycle> {
        self.settled = None;
        self.bell.take_regions_changed();
        PlannedCycle::prepare(&self.engine, &self.scheduler, is_scheduled).await
    }

    fn found_nothing(&mut self, planned: &PlannedCycle) {
        self.settled = SettledLook::of(planned);
        self.check_again_at(planned.plan.look_again_at);
    }

    /// Longer each time that the controller asked in vain, and never longer than until it is time anyway. What adds rooms
    /// has a back-off of its own, and those who need them do not wait for what others are refused.
    fn gap_of_removals(&self) -> Duration {
        let factor = 2_u32.saturating_pow(self.stepper.removals_failed);
        let most = self.engine.settings.health_controller_interval.max(EARLY_CYCLE_GAP);
        EARLY_CYCLE_GAP.saturating_mul(factor).min(most)
    }

    /// Nothing is to be done now, and perhaps then, without anything happening before.
    fn check_again_at(&mut self, until: Option<Timestamp>) {
        self.next_check = None;
        if let Some(at) = until {
            self.check_in(age(at, self.engine.now()).as_duration() + DEBOUNCE);
        }
    }

    pub(super) fn check_in(&mut self, wait: Duration) {
        if !self.engine.settings.early_wake_up {
            return;
        }
        let at = Instant::now() + wait.min(IDLE_MAX);
        self.next_check = Some(self.next_check.map_or(at, |next| next.min(at)));
    }

    async fn enqueue_cycle(
        &mut self,
        reason: &str,
        progress: Value,
        planned: Option<PlannedCycle>,
    ) -> Result {
        let id = self.enqueue(Definition::HealthController, reason, progress).await?;
        self.planned = planned.map(|planned| (id, Instant::now(), planned));
        Ok(())
    }

    async fn enqueue(&self, definition: Definition, reason: &str, progress: Value) -> Result<OperationId> {
        let operation = self.engine.new_operation(&self.scheduler, definition, Origin::Engine);
        let (id, reason) = (operation.id, reason.into());
        let operation = NewOperation { reason, progress, ..operation };
        self.commit("enqueue own", vec![Change::Enqueue(operation)]).await?;
        Ok(id)
    }

    /// The plan that led to this cycle, if it did not have to wait and nothing has changed since. Otherwise the cycle plans
    /// anew.
    pub(super) fn handed_cycle(
        &mut self,
        record: &SchedulerRecord,
        unfinished: &[Operation],
        cycle: OperationId,
    ) -> Option<PlannedCycle> {
        let (_, at, planned) = self.planned.take_if(|(id, ..)| *id == cycle)?;
        let others = unfinished.iter().filter(|operation| operation.id != cycle);
        let others = others.map(|operation| Operation { history: Vec::new(), ..operation.clone() });
        let is_same = planned.scheduler == *record && planned.fleet.unfinished.iter().cloned().eq(others);
        (is_same && at.elapsed() < CHECK_GAP).then_some(planned)
    }
}

/// Nothing is at work, and nothing is about to begin.
fn is_quiet(unfinished: &[Operation]) -> bool {
    unfinished.iter().all(|operation| operation.is_parked() && !operation.keeps_others_out())
}

/// When it is the scheduler's turn for the first time, in a period that begins now.
pub(super) fn turn_in(scheduler: &SchedulerName, period: Duration) -> Duration {
    period - stagger::offset(scheduler, period)
}
