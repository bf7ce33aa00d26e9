//! A cgroup per room, where this process may make some (cgroup v2). Everything that a room starts is in it, whatever
//! group, session or environment it gives itself.

use std::io;
use std::path::{Path, PathBuf};

use maestro_core::room::{Region, RoomId};

/// The cgroups of a region's rooms. All of it is blocking.
#[derive(Debug, Clone)]
pub(crate) struct Cgroups {
    directory: PathBuf,
}

impl Cgroups {
    /// `None`: there is no cgroup v2 here, or none may be made.
    pub(crate) fn open(name: &str, region: &Region) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let base = mount_point(&mounts)?.join(own.trim_start_matches('/'));
        let directory = base.join(format!("maestro-{name}-{region}"));
        std::fs::create_dir_all(&directory).ok()?;
        // Older kernels cannot end a whole cgroup.
        let can_end = directory.join("cgroup.kill").exists();
        let cgroups = Self { directory };
        cgroups.remove_if_empty();
        can_end.then_some(cgroups)
    }

    /// Moves a container that was just started. What it started before that carries the marks of the room.
    pub(crate) fn add(&self, room: &RoomId, pid: u32) -> io::Result<()> {
        let directory = self.room(room);
        // Another room's end may just have removed what is above it.
        std::fs::create_dir_all(&directory).or_else(|_| std::fs::create_dir_all(&directory))?;
        std::fs::write(directory.join("cgroup.procs"), pid.to_string())
    }

    /// Kills everything in it, and removes it when that is gone. How many processes are left.
    pub(crate) fn end(&self, room: &RoomId) -> usize {
        let directory = self.room(room);
        let Ok(processes) = std::fs::read_to_string(directory.join("cgroup.procs")) else { return 0 };
        let left = processes.lines().count();
        let ended = if left > 0 {
            std::fs::write(directory.join("cgroup.kill"), "1")
        } else {
            std::fs::remove_dir(&directory)
        };
        if let Err(error) = ended {
            tracing::debug!(%room, %error, "the cgroup of a room that ended stays");
        }
        self.remove_if_empty();
        left
    }

    /// Where rooms are in it, it stays.
    fn remove_if_empty(&self) {
        let _ = std::fs::remove_dir(&self.directory);
    }

    /// Ids are names of files.
    fn room(&self, room: &RoomId) -> PathBuf {
        self.directory.join(room.as_str())
    }
}

/// `36 35 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw`: the fifth field, of the type behind the dash.
fn mount_point(mounts: &str) -> Option<&Path> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4).map(Path::new))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_cgroups_are() {
        let hybrid = "25 23 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      26 23 0:23 / /sys/fs/cgroup/unified rw,relatime shared:7 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(hybrid), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("25 23 0:22 / / rw - ext4 /dev/sda rw\n"), None);
    }
}
