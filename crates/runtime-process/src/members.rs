//! Which processes a room consists of: what a handle's `detail` says.

use std::io;

use maestro_engine::ports::runtime::Handle;
use serde::{Deserialize, Serialize};

use crate::process_table::{self, Stat};

/// One process, for as long as the machine is up: a pid alone may be given to another one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// In clock ticks since boot.
    pub(crate) start_time: u64,
}

impl ProcessId {
    /// The process that has this pid now.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, start_time: process_table::stat(pid)?.start_time })
    }

    /// What is known of this very process, zombie or alive. `None`: it is gone, whoever has its pid.
    pub(crate) fn stat(self) -> Option<Stat> {
        process_table::stat(self.pid).ok().filter(|stat| stat.start_time == self.start_time)
    }

    /// Whether it is more than a zombie.
    pub(crate) fn is_running(self) -> bool {
        self.stat().is_some_and(|stat| !stat.is_zombie)
    }
}

/// A container of a room and the process that it runs as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) container: String,
    #[serde(flatten)]
    pub(crate) process: ProcessId,
}

pub(crate) fn to_handle(host: &str, members: &[Member]) -> Handle {
    Handle {
        host: host.to_owned(),
        pids: members.iter().map(|member| member.process.pid).collect(),
        detail: serde_json::to_value(members).unwrap_or_default(),
    }
}

/// A handle that this runtime did not write names no process here.
pub(crate) fn from_handle(handle: &Handle) -> Vec<Member> {
    serde_json::from_value(handle.detail.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_handle_is_durable() {
        let members =
            vec![Member { container: "game".into(), process: ProcessId { pid: 42, start_time: 7 } }];
        let handle = to_handle("127.0.0.1", &members);
        let stored = json!([{"container": "game", "pid": 42, "startTime": 7}]);
        assert_eq!(handle.detail, stored, "handles are stored: this must stay readable");
        assert_eq!(handle.pids, [42]);
        assert_eq!(from_handle(&handle), members);
    }

    #[test]
    fn a_foreign_handle_names_nothing() {
        for detail in [json!(null), json!({"pod": "x"}), json!([{"pid": -1}])] {
            let handle = Handle { host: String::new(), pids: vec![1], detail };
            assert_eq!(from_handle(&handle), []);
        }
    }
}
