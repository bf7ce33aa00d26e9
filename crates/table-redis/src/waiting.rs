//! How many slots are waited for. What follows from reports is decided by the core's [`WaitingDemand`]: it is read,
//! changed, and written if nobody has changed it meanwhile.

use std::sync::Arc;

use maestro_core::allocation::{WaitingDemand, WaitingParts};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::record::time;
use crate::table::Table;

/// More processes than report in the same moment.
const ATTEMPTS_MAX: usize = 100;

#[derive(Serialize, Deserialize)]
struct Stored {
    processes: Vec<(String, u32, i64)>,
    peaks: Vec<(u32, i64)>,
}

impl Table {
    pub(crate) async fn change_waiting<T>(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        change: impl Fn(&mut WaitingDemand) -> T,
    ) -> Result<T, Failure> {
        for _ in 0..ATTEMPTS_MAX {
            let before: String = self.run(&self.scripts.read, scheduler, &("waiting", "")).await?;
            let mut waiting = parse(&before)?;
            let answer = change(&mut waiting);
            let after = write(waiting)?;
            if before == after {
                return Ok(answer);
            }
            let asked = ("waiting", before, after);
            if self.run::<u8>(&self.scripts.write, scheduler, &asked).await? == 1 {
                return Ok(answer);
            }
        }
        Err(Failure::Unavailable(format!("others changed what is waited for {ATTEMPTS_MAX} times")))
    }
}

fn parse(text: &str) -> Result<WaitingDemand, Failure> {
    if text.is_empty() {
        return Ok(WaitingDemand::default());
    }
    let Stored { processes, peaks } =
        serde_json::from_str(text).map_err(|error| Failure::unreadable("what is waited for", error))?;
    let processes =
        processes.into_iter().map(|(process, slots, said)| (process, slots, time(said))).collect();
    let peaks = peaks.into_iter().map(|(slots, until)| (slots, time(until))).collect();
    Ok(WaitingDemand::of_parts(WaitingParts { processes, peaks }))
}

fn write(waiting: WaitingDemand) -> Result<String, Failure> {
    let WaitingParts { processes, peaks } = waiting.into_parts();
    if processes.is_empty() && peaks.is_empty() {
        return Ok(String::new());
    }
    let millis = |at: Timestamp| at.as_millisecond();
    let stored = Stored {
        processes: processes
            .into_iter()
            .map(|(process, slots, said)| (process, slots, millis(said)))
            .collect(),
        peaks: peaks.into_iter().map(|(slots, until)| (slots, millis(until))).collect(),
    };
    serde_json::to_string(&stored).map_err(|error| Failure::Unavailable(error.to_string()))
}
