//! What a room runs, kept beside its logs as `room.json`: a Maestro that adopts the room can then end it with its own
//! grace period and restart its containers. Secrets are in it by name only, and read when a container is started.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use maestro_core::scheduler::{Container, EnvironmentValue, RestartPolicy};
use maestro_engine::ports::runtime::RoomToStart;
use serde::{Deserialize, Serialize};

use crate::process::Exit;

/// The name of the file, in the directory of the room.
const FILE: &str = "room.json";

/// The grace period of a room whose plan cannot be read; Kubernetes' default.
const GRACE_PERIOD_MS: u64 = 30_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    pub(crate) restart: Restart,
    pub(crate) grace_period_ms: u64,
    pub(crate) containers: Vec<ContainerPlan>,
    pub(crate) ports: Vec<PortPlan>,
}

/// Which ends of a container are followed by a new start. A container that ends for good ends its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Restart {
    Never,
    OnFailure,
    Always,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerPlan {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<Variable>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: VariableValue,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum VariableValue {
    Text(String),
    Field(String),
    Secret { name: String, key: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PortPlan {
    pub(crate) name: String,
    pub(crate) host_port: u16,
}

impl Plan {
    pub(crate) fn of(room: &RoomToStart) -> Self {
        let spec = &room.recipe.spec;
        let port = |port: &maestro_core::room::HostPort| PortPlan {
            name: port.name.clone(),
            host_port: port.host_port,
        };
        Self {
            restart: match spec.restart_policy {
                RestartPolicy::Never => Restart::Never,
                RestartPolicy::OnFailure => Restart::OnFailure,
                RestartPolicy::Always => Restart::Always,
            },
            grace_period_ms: u64::try_from(spec.termination_grace_period.as_millis()).unwrap_or(u64::MAX),
            containers: spec.containers.iter().map(ContainerPlan::of).collect(),
            ports: room.ports.iter().map(port).collect(),
        }
    }

    /// What is assumed of a room whose plan cannot be read: it is never restarted.
    pub(crate) fn unknown() -> Self {
        Self {
            restart: Restart::Never,
            grace_period_ms: GRACE_PERIOD_MS,
            containers: Vec::new(),
            ports: Vec::new(),
        }
    }

    pub(crate) fn grace_period(&self) -> Duration {
        Duration::from_millis(self.grace_period_ms)
    }

    /// Written beside and renamed, so that a reader sees all of it or nothing.
    pub(crate) fn write(&self, room: &Path) -> io::Result<()> {
        let beside = room.join(FILE).with_extension("json.new");
        let mut new = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        new.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&beside, room.join(FILE))
    }

    /// `None`: it was never written, or cannot be read.
    pub(crate) fn read(room: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(room.join(FILE)).ok()?).ok()
    }
}

impl ContainerPlan {
    fn of(container: &Container) -> Self {
        let variable = |variable: &maestro_core::scheduler::EnvironmentVariable| Variable {
            name: variable.name.clone(),
            value: match &variable.value {
                EnvironmentValue::Text(text) => VariableValue::Text(text.clone()),
                EnvironmentValue::Field { path } => VariableValue::Field(path.clone()),
                EnvironmentValue::Secret { name, key } => {
                    VariableValue::Secret { name: name.clone(), key: key.clone() }
                }
            },
        };
        Self {
            name: container.name.clone(),
            command: container.command.clone(),
            environment: container.environment.iter().map(variable).collect(),
        }
    }
}

impl Restart {
    /// An end that nobody saw counts as a failure: better one start too many than a room that is half there.
    pub(crate) fn follows(self, exit: Exit) -> bool {
        match self {
            Self::Never => false,
            Self::OnFailure => exit != Exit::Code(0),
            Self::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rooms outlive the Maestro that wrote it.
    #[test]
    fn a_plan_of_an_earlier_build_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let room = directory.path();
        let stored = r#"{"restart":"onFailure","gracePeriodMs":5000,"ports":[{"name":"game","hostPort":7000}],
            "containers":[{"name":"game","command":["./room"],"environment":[
                {"name":"TOKEN","value":{"secret":{"name":"api","key":"token"}}}]}],"output":"pipe"}"#;
        std::fs::write(room.join("room.json"), stored).unwrap();
        let plan = Plan::read(room).unwrap();
        assert_eq!((plan.restart, plan.grace_period()), (Restart::OnFailure, Duration::from_secs(5)));
        plan.write(room).unwrap();
        assert_eq!(Plan::read(room), Some(plan));
    }
}
