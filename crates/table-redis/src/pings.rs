//! Pings that are on their way at the same time share a round trip.
//!
//! While a batch of a scheduler is in flight, later pings of that scheduler wait, and go together when it is back. So a
//! quiet fleet's pings go one by one, at once, and the busier it is the more a round trip carries. Each ping is answered by
//! itself, in the order in which they came.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use maestro_core::room::RoomStatus;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{Ping, PingError, Pinged};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::record::{NEVER, word};
use crate::scripts::{PING_REFUSED, PING_TAKEN};
use crate::table::Table;

/// A script that takes so many is over after a millisecond or two.
const BATCH_MAX: usize = 256;

/// Large metadata goes in smaller batches.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// What waits beyond this would be answered too late anyway.
const WAITING_MAX: usize = 10_000;

/// Where a batch of a scheduler is in flight, and what waits for the next one.
#[derive(Default)]
pub(crate) struct Pings(Mutex<HashMap<SchedulerName, VecDeque<Job>>>);

struct Job {
    packed: Vec<u8>,
    answer: oneshot::Sender<Result<Answered, Failure>>,
}

/// What came of it, the status before and after, whether the room was heard again, what it is for, whether holds have ended.
type Answered = [u8; 6];

impl Table {
    pub(crate) async fn ping_in_batch(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        ping: &Ping<'_>,
        at: Timestamp,
    ) -> Result<Pinged, PingError> {
        let (answer, answered) = oneshot::channel();
        self.enqueue(scheduler, Job { packed: packed(ping, at)?, answer })?;
        let deadline = self.deadline;
        let in_time = tokio::time::timeout(deadline, answered).await;
        let late = || Failure::Unavailable(format!("no answer to a ping within {deadline:?}"));
        pinged(in_time.map_err(|_| late())?.map_err(|_| late())??)
    }

    fn enqueue(self: &Arc<Self>, scheduler: &SchedulerName, job: Job) -> Result<(), Failure> {
        let mut queues = self.pings.0.lock();
        if let Some(waiting) = queues.get_mut(scheduler) {
            if waiting.len() >= WAITING_MAX {
                return Err(Failure::Unavailable(format!("{WAITING_MAX} pings of {scheduler} wait already")));
            }
            waiting.push_back(job);
            return Ok(());
        }
        queues.insert(scheduler.clone(), VecDeque::from([job]));
        drop(queues);
        tokio::spawn(self.clone().send_all(scheduler.clone()));
        Ok(())
    }

    /// Until none waits.
    async fn send_all(self: Arc<Self>, scheduler: SchedulerName) {
        while let Some(jobs) = self.next_batch(&scheduler) {
            let answers = match batch(jobs.iter().map(|job| &job.packed)) {
                Ok(asked) => self.run_packed::<Vec<Answered>>(&self.scripts.ping, &scheduler, &asked).await,
                Err(failure) => Err(failure),
            };
            let mut answers = answers.map(Vec::into_iter);
            for Job { answer, .. } in jobs {
                let missing = || Err(Failure::unreadable("the answer to a ping", "it is missing"));
                let each = answers.as_mut().map_err(|failure| failure.clone());
                // Fails if nobody waits any more.
                let _ = answer.send(each.and_then(|answers| answers.next().map_or_else(missing, Ok)));
            }
        }
    }

    /// `None`: there are no more, and the next one starts anew.
    fn next_batch(&self, scheduler: &SchedulerName) -> Option<Vec<Job>> {
        let mut queues = self.pings.0.lock();
        let waiting = queues.get_mut(scheduler)?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(job) = waiting.pop_front_if(|job| {
            batch.is_empty() || (batch.len() < BATCH_MAX && bytes + job.packed.len() <= BATCH_BYTES_MAX)
        }) {
            // Nobody waits any more for what was given up.
            if !job.answer.is_closed() {
                bytes += job.packed.len();
                batch.push(job);
            }
        }
        if batch.is_empty() {
            queues.remove(scheduler);
        }
        Some(batch).filter(|batch| !batch.is_empty())
    }
}

/// What is asked of the script: an array of pings.
pub(crate) fn batch<'a>(
    pings: impl IntoIterator<Item = &'a Vec<u8>, IntoIter: ExactSizeIterator>,
) -> Result<Vec<u8>, Failure> {
    let pings = pings.into_iter();
    let length = u32::try_from(pings.len()).unwrap_or(u32::MAX);
    let mut asked = Vec::new();
    rmp::encode::write_array_len(&mut asked, length)
        .map_err(|error| Failure::Unavailable(error.to_string()))?;
    pings.for_each(|ping| asked.extend_from_slice(ping));
    Ok(asked)
}

/// As ping.lua reads it.
pub(crate) fn packed(ping: &Ping<'_>, at: Timestamp) -> Result<Vec<u8>, Failure> {
    // Seconds that a double holds exactly. A room's clock that is further off says nothing.
    let exact = |seconds: i64| seconds.clamp(NEVER + 1, -NEVER);
    let begun: Vec<String> = ping.begun.iter().map(ToString::to_string).collect();
    let fields = (
        ping.room,
        ping.status as u8,
        ping.matches,
        ping.metadata.unwrap_or_default(),
        ping.sent_at.map_or(NEVER, exact),
        exact(ping.late_max),
        at.as_millisecond(),
        begun,
    );
    rmp_serde::to_vec(&fields).map_err(|error| Failure::Unavailable(error.to_string()))
}

fn pinged([kind, before, after, heard_again, purpose, ended_holds]: Answered) -> Result<Pinged, PingError> {
    let status = |place| word::<RoomStatus>(place).map_err(PingError::from);
    match kind {
        PING_TAKEN => Ok(Pinged {
            before: status(before)?,
            after: status(after)?,
            heard_again: heard_again == 1,
            purpose: word(purpose).map_err(PingError::from)?,
            ended_holds: ended_holds == 1,
        }),
        PING_REFUSED => Err(PingError::Refused { from: status(before)?, to: status(after)? }),
        _ => Err(PingError::UnknownRoom),
    }
}
