//! Which processes a room consists of: what a handle's `detail` says.

use maestro_engine::ports::runtime::Handle;
use serde::{Deserialize, Serialize};

/// One process, for as long as the machine is up: a pid alone may be given to another one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// In clock ticks since boot.
    pub(crate) start_time: u64,
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
