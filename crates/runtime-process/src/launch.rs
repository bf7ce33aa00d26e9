//! Starting the process of a container.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use maestro_engine::ports::runtime::{Result, RuntimeError};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, kill_process_group, waitpid};

use crate::directory;
use crate::environment::{self, Environment, Surroundings};
use crate::log_keeper::{Output, Source};
use crate::members::{Member, ProcessId};
use crate::options::RoomUser;
use crate::plan::ContainerPlan;
use crate::process::to_pid;

/// A container, looked at from all sides: what can be known to be wrong is refused before any process runs.
#[derive(Debug)]
pub(crate) struct Launch {
    /// As the recipe has it: programs look at it, and people know it.
    command: Vec<String>,
    program: PathBuf,
    environment: Environment,
    home: PathBuf,
    user: Option<RoomUser>,
    source: Source,
    pipe: PathBuf,
}

/// A container that runs, and what it writes.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) member: Member,
    pub(crate) source: Source,
    pub(crate) output: OwnedFd,
}

impl Launch {
    /// Blocking.
    pub(crate) fn prepare(container: &ContainerPlan, surroundings: &Surroundings<'_>) -> Result<Self> {
        let refused = |why: String| RuntimeError::Refused(format!("container {:?}: {why}", container.name));
        let Some(command) = container.command.first() else {
            return Err(refused(
                "it has no command; a room that is a process needs one (the image is not used)".into(),
            ));
        };
        let room = surroundings.directory.room(surroundings.scheduler, surroundings.room);
        let pipe = room
            .and_then(|room| directory::pipe(&room, &container.name))
            .ok_or_else(|| refused("its name or its room's is not the name of a file".into()))?;
        let environment = environment::of_container(container, surroundings).map_err(refused)?;
        let working_directory = &surroundings.options.working_directory;
        // Looked at before the start, which could not say whether the program or the directory is missing.
        if !working_directory.is_dir() {
            let shown = working_directory.display();
            return Err(refused(format!("working directory {shown}: there is no such directory")));
        }
        let path = environment.get(OsStr::new("PATH"));
        let program = find_program(command, working_directory, path)
            .map_err(|why| refused(format!("command {command:?}: {why}")))?;
        Ok(Self {
            command: container.command.clone(),
            program,
            environment,
            home: surroundings.home.to_owned(),
            user: surroundings.options.user.clone(),
            source: Source {
                scheduler: surroundings.scheduler.as_str().to_owned(),
                room: surroundings.room.as_str().to_owned(),
                container: container.name.clone(),
            },
            pipe,
        })
    }

    /// Blocking. The process is our child, and nobody waits for it yet.
    pub(crate) fn run(&self) -> Result<Launched> {
        // Not the recipe's fault: a full disk, a limit on open files.
        let no_output = |error: io::Error| {
            RuntimeError::Unavailable(format!("the output of container {:?}: {error}", self.source.container))
        };
        let Output { reader, writer } = Output::open(&self.pipe).map_err(no_output)?;
        let error = writer.try_clone().map_err(no_output)?;
        let mut command = Command::new(&self.program);
        if let Some(RoomUser { user_id, group_id, .. }) = self.user {
            // So that it can open `/dev/stdout`.
            std::os::unix::fs::fchown(&writer, Some(user_id), Some(group_id)).map_err(no_output)?;
            // Without the groups of our own user: the standard library sees to that.
            command.uid(user_id).gid(group_id);
        }
        let child = command
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(error)
            .process_group(0)
            .spawn()
            .map_err(|error| self.not_started(&error))?;
        let pid = child.id();
        // Nobody else reaps our children: whatever has become of it by now, its entry is there.
        let process = ProcessId::of(pid).map_err(|error| {
            abandon(pid);
            RuntimeError::Unavailable(error.to_string())
        })?;
        let member = Member { container: self.source.container.clone(), process };
        Ok(Launched { member, source: self.source.clone(), output: reader })
    }

    fn not_started(&self, error: &io::Error) -> RuntimeError {
        let text = format!(
            "container {:?}: command {:?} cannot be started: {error}",
            self.source.container, self.command[0]
        );
        if is_permanent(error) { RuntimeError::Refused(text) } else { RuntimeError::Unavailable(text) }
    }
}

/// Starts all containers, or none. Blocking.
pub(crate) fn run_all(launches: &[Launch]) -> Result<Vec<Launched>> {
    let mut started = Vec::with_capacity(launches.len());
    for launch in launches {
        match launch.run() {
            Ok(launched) => started.push(launched),
            Err(error) => {
                abandon_all(&started);
                return Err(error);
            }
        }
    }
    Ok(started)
}

/// Kills and reaps children that nobody watches yet. Blocking, for as long as a killed process needs to go.
pub(crate) fn abandon_all(launched: &[Launched]) {
    for Launched { member, .. } in launched {
        abandon(member.process.pid);
    }
}

/// The pid of a child that was not reaped is its own, so it is enough to name it.
fn abandon(pid: u32) {
    let Some(pid) = to_pid(pid) else { return };
    let killed =
        kill_process_group(pid, Signal::KILL).and_then(|()| waitpid(Some(pid), WaitOptions::empty()));
    if let Err(error) = killed {
        tracing::warn!(pid = pid.as_raw_nonzero(), %error, "a container of a failed start could not be killed");
    }
}

/// Whether the next attempt would end in the same way. What else can fail is the machine's: processes, memory, files.
fn is_permanent(error: &io::Error) -> bool {
    let of_the_command = [
        Errno::NOENT,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOEXEC,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::LOOP,
        Errno::NAMETOOLONG,
        Errno::TOOBIG,
        Errno::INVAL,
    ];
    // A zero byte in an argument is found by the standard library and has no number.
    error.raw_os_error().map_or(error.kind() == io::ErrorKind::InvalidInput, |code| {
        of_the_command.contains(&Errno::from_raw_os_error(code))
    })
}

/// Where a command is: with a slash, from the working directory on; without, in the room's own `PATH`, and not in
/// Maestro's.
fn find_program(command: &str, working_directory: &Path, path: Option<&OsString>) -> Result<PathBuf, String> {
    if command.contains('/') {
        return Ok(working_directory.join(command));
    }
    let Some(path) = path else {
        return Err("there is no PATH to look it up in; write it with its directory".into());
    };
    std::env::split_paths(path)
        .map(|directory| working_directory.join(directory).join(command))
        .find(|file| is_executable(file))
        .ok_or_else(|| format!("no such program in PATH ({})", path.display()))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
