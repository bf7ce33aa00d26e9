//! The environment of a room's container: what its recipe says, what Maestro tells every room, and from Maestro's own
//! environment only what belongs to the machine: where programs are, its language and its time zone. Maestro's settings and
//! credentials, and the home of its user, are not passed on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;

use crate::directory::Directory;
use crate::options::Options;
use crate::plan::{ContainerPlan, PortPlan, VariableValue};

pub(crate) const SCHEDULER_NAME: &str = "MAESTRO_SCHEDULER_NAME";
pub(crate) const ROOM_ID: &str = "MAESTRO_ROOM_ID";
pub(crate) const STORE_ID: &str = "MAESTRO_STORE_ID";
pub(crate) const CONTAINER_NAME: &str = "MAESTRO_CONTAINER_NAME";
const ROOMS_API_URL: &str = "MAESTRO_ROOMS_API_URL";
pub(crate) const REGION: &str = "MAESTRO_REGION";
const HOST_PORT_PREFIX: &str = "MAESTRO_HOST_PORT_";

/// Tells whose room it is if its store was copied.
pub(crate) const DATA_DIRECTORY: &str = "MAESTRO_DATA_DIRECTORY";

const PASSED_ON: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// The fields of a room that exist without Kubernetes.
const FIELDS: &str = "metadata.name, metadata.namespace, status.hostIP, status.podIP and spec.nodeName";

pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// What Maestro tells a room.
pub(crate) struct Surroundings<'a> {
    pub(crate) options: &'a Options,
    pub(crate) directory: &'a Directory,
    pub(crate) scheduler: &'a SchedulerName,
    pub(crate) room: &'a RoomId,
    pub(crate) ports: &'a [PortPlan],
    /// The room's own directory.
    pub(crate) home: &'a Path,
}

/// The whole environment of a container, or which variable cannot be had and why. Blocking.
pub(crate) fn of_container(
    container: &ContainerPlan,
    surroundings: &Surroundings<'_>,
) -> Result<Environment, String> {
    let options = surroundings.options;
    let mut environment = passed_on();
    environment.insert("HOME".into(), surroundings.home.into());
    for name in ["USER", "LOGNAME"] {
        environment.extend(options.user.as_ref().map(|user| (name.into(), user.name.clone().into())));
    }
    for variable in &container.environment {
        let value = surroundings
            .value(&variable.value)
            .map_err(|why| format!("environment {}: {why}", variable.name))?;
        environment.insert(variable.name.clone().into(), value.into());
    }
    // Last, so that no recipe can pretend to be another room.
    environment.insert(DATA_DIRECTORY.into(), surroundings.directory.data().into());
    let mut tell = |name: &str, value: &str| environment.insert(name.into(), value.into());
    tell(SCHEDULER_NAME, surroundings.scheduler.as_str());
    tell(ROOM_ID, surroundings.room.as_str());
    tell(STORE_ID, &options.store_id);
    tell(CONTAINER_NAME, &container.name);
    tell(ROOMS_API_URL, &options.rooms_api_url);
    tell(REGION, options.region.as_str());
    for port in surroundings.ports {
        tell(&host_port_variable(&port.name), &port.host_port.to_string());
    }
    Ok(environment)
}

fn passed_on() -> Environment {
    PASSED_ON.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
}

fn host_port_variable(port: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
    };
    HOST_PORT_PREFIX.chars().chain(port.chars().map(letter)).collect()
}

impl Surroundings<'_> {
    fn value(&self, value: &VariableValue) -> Result<String, String> {
        match value {
            VariableValue::Text(text) => Ok(text.clone()),
            VariableValue::Field(path) => self.field(path),
            VariableValue::Secret { name, key } => self.secret(name, key),
        }
    }

    fn field(&self, path: &str) -> Result<String, String> {
        Ok(match path {
            "metadata.name" => self.room.to_string(),
            "metadata.namespace" => self.scheduler.to_string(),
            "status.hostIP" | "status.podIP" => self.options.host.clone(),
            "spec.nodeName" => {
                host_name().map_err(|error| format!("the host's name cannot be read: {error}"))?
            }
            _ => {
                return Err(format!("a room that is a process has no field {path:?}; it has {FIELDS}"));
            }
        })
    }

    fn secret(&self, name: &str, key: &str) -> Result<String, String> {
        let (file, shown) = self
            .directory
            .secret(name, key)
            .ok_or_else(|| format!("secret {name:?}, key {key:?}: these are not names of files"))?;
        let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("secret {name:?}: there is no file {shown} in the data directory")
            }
            _ => format!("secret {name:?}: {shown} in the data directory: {error}"),
        })?;
        // Editors and `echo` end a file with a line break, which is part of no password.
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

fn host_name() -> io::Result<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    Ok(name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Variable;

    struct World {
        data: tempfile::TempDir,
        scheduler: SchedulerName,
    }

    impl World {
        fn new() -> Self {
            Self { data: tempfile::tempdir().unwrap(), scheduler: SchedulerName::parse("arena").unwrap() }
        }

        fn environment(&self, variables: &[(&str, VariableValue)]) -> Result<Environment, String> {
            let variable = |(name, value): &(&str, VariableValue)| Variable {
                name: (*name).into(),
                value: value.clone(),
            };
            let container = ContainerPlan {
                name: "game".into(),
                command: vec![],
                environment: variables.iter().map(variable).collect(),
            };
            let port = |name: &str, host_port| PortPlan { name: name.into(), host_port };
            let options = crate::options::tests::options(self.data.path());
            let surroundings = Surroundings {
                scheduler: &self.scheduler,
                room: &RoomId::new("arena-1"),
                options: &options,
                ports: &[port("game", 7000), port("voice-chat.2", 7001)],
                directory: &Directory::new(self.data.path(), self.data.path(), None),
                home: Path::new("/home/of/the/room"),
            };
            of_container(&container, &surroundings)
        }
    }

    #[test]
    fn maestro_tells_who_the_room_is() {
        let pretended = [(STORE_ID, VariableValue::Text("another".into()))];
        let environment = World::new().environment(&pretended).unwrap();
        for (name, value) in [
            ("MAESTRO_SCHEDULER_NAME", "arena"),
            ("MAESTRO_ROOM_ID", "arena-1"),
            ("MAESTRO_STORE_ID", "s1"),
            ("MAESTRO_CONTAINER_NAME", "game"),
            ("MAESTRO_ROOMS_API_URL", "http://127.0.0.1:8070"),
            ("MAESTRO_REGION", "default"),
            ("MAESTRO_HOST_PORT_GAME", "7000"),
            ("MAESTRO_HOST_PORT_VOICE_CHAT_2", "7001"),
            ("HOME", "/home/of/the/room"),
        ] {
            assert_eq!(environment[&OsString::from(name)], value, "{name}");
        }
        let ours = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with("MAESTRO_"));
        let foreign: Vec<_> = environment.keys().filter(|name| !ours(name) && *name != "HOME").collect();
        assert!(foreign.iter().all(|name| PASSED_ON.contains(&name.to_str().unwrap())), "{foreign:?}");
    }

    #[test]
    fn fields_of_the_room() {
        let world = World::new();
        let field = |path: &str| {
            let environment = world.environment(&[("X", VariableValue::Field(path.into()))])?;
            Ok::<_, String>(environment[&OsString::from("X")].clone())
        };
        assert_eq!(field("metadata.name").unwrap(), "arena-1");
        assert_eq!(field("metadata.namespace").unwrap(), "arena");
        assert_eq!(field("status.hostIP").unwrap(), "192.0.2.1");
        assert_eq!(field("status.podIP").unwrap(), "192.0.2.1");
        assert!(!field("spec.nodeName").unwrap().is_empty());
        assert_eq!(
            field("metadata.uid").unwrap_err(),
            "environment X: a room that is a process has no field \"metadata.uid\"; it has metadata.name, \
             metadata.namespace, status.hostIP, status.podIP and spec.nodeName"
        );
    }

    #[test]
    fn secrets_are_files() {
        let world = World::new();
        let secret = |name: &str, key: &str| {
            let value = VariableValue::Secret { name: name.into(), key: key.into() };
            let environment = world.environment(&[("X", value)])?;
            Ok::<_, String>(environment[&OsString::from("X")].clone())
        };
        assert_eq!(
            secret("db", "password").unwrap_err(),
            "environment X: secret \"db\": there is no file secrets/db/password in the data directory"
        );
        std::fs::create_dir_all(world.data.path().join("secrets/db")).unwrap();
        std::fs::write(world.data.path().join("secrets/db/password"), "pass word\n").unwrap();
        assert_eq!(secret("db", "password").unwrap(), "pass word");
        std::fs::write(world.data.path().join("key"), "not a secret").unwrap();
        secret("..", "key").unwrap_err();
        secret("db", "../../key").unwrap_err();
    }
}
