//! What all parts of the table share: keys, scripts, and how a script of a scheduler is run.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use maestro_core::scheduler::SchedulerName;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::carrying::Carrying;
use crate::failure::Failure;
use crate::holding::KnownGroups;
use crate::pings::Pings;
use crate::scripts::{Script, Scripts};
use crate::server::{Answer, ScriptFailure, Server};
use crate::watching::Watching;

/// So many parts of one answer are asked for at the same time.
pub(crate) const AT_ONCE: usize = 16;

pub(crate) struct Table {
    pub(crate) server: Server,
    pub(crate) scripts: Scripts,
    pub(crate) deadline: Duration,
    prefix: String,
    pub(crate) pings: Pings,
    pub(crate) groups: Mutex<HashMap<SchedulerName, Arc<KnownGroups>>>,
    /// Whose changes of status are not in the ring of events yet.
    pub(crate) untold: Mutex<BTreeSet<SchedulerName>>,
    pub(crate) carrying: Carrying,
    pub(crate) watching: Watching,
}

impl Table {
    pub(crate) fn new(server: Server, prefix: String, deadline: Duration) -> Self {
        Self {
            server,
            scripts: Scripts::new(),
            deadline,
            prefix,
            pings: Pings::default(),
            groups: Mutex::default(),
            untold: Mutex::default(),
            carrying: Carrying::default(),
            watching: Watching::default(),
        }
    }

    /// What the keys of a scheduler begin with. Those of one scheduler are in one slot of a cluster.
    fn keys(&self, scheduler: &SchedulerName) -> String {
        format!("{}:{{{scheduler}}}:", self.prefix)
    }

    /// Keys that belong to no scheduler: no scheduler has such a name.
    pub(crate) fn shared_keys(&self, of: &str) -> String {
        format!("{}:{{.{of}}}:", self.prefix)
    }

    pub(crate) async fn run<T: DeserializeOwned>(
        self: &Arc<Self>,
        script: &Script,
        scheduler: &SchedulerName,
        asked: &impl Serialize,
    ) -> Result<T, Failure> {
        let packed = rmp_serde::to_vec(asked).map_err(|error| Failure::Unavailable(error.to_string()))?;
        self.run_packed(script, scheduler, &packed).await
    }

    pub(crate) async fn run_packed<T: DeserializeOwned>(
        self: &Arc<Self>,
        script: &Script,
        scheduler: &SchedulerName,
        asked: &[u8],
    ) -> Result<T, Failure> {
        match self.server.run(script, &self.keys(scheduler), asked).await {
            Ok(Answer { value, has_told }) => {
                if has_told {
                    self.carry_later(scheduler);
                }
                Ok(value)
            }
            Err(ScriptFailure::Lost) => Err(Failure::Lost(scheduler.clone())),
            Err(ScriptFailure::Other(failure)) => Err(failure),
        }
    }

    /// A script that is of no scheduler.
    pub(crate) async fn run_shared<T: DeserializeOwned>(
        &self,
        script: &Script,
        of: &str,
        asked: &impl Serialize,
    ) -> Result<T, Failure> {
        let packed = rmp_serde::to_vec(asked).map_err(|error| Failure::Unavailable(error.to_string()))?;
        self.run_shared_packed(script, of, &packed).await
    }

    pub(crate) async fn run_shared_packed<T: DeserializeOwned>(
        &self,
        script: &Script,
        of: &str,
        asked: &[u8],
    ) -> Result<T, Failure> {
        match self.server.run(script, &self.shared_keys(of), asked).await {
            Ok(answer) => Ok(answer.value),
            Err(ScriptFailure::Lost) => Err(Failure::unreadable("a shared key", "no script loses one")),
            Err(ScriptFailure::Other(failure)) => Err(failure),
        }
    }
}
