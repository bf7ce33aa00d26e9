//! The user that rooms run as: `adapters.runtime.process.user`.

use std::path::Path;

use anyhow::{Context, bail};
use maestro_runtime_process::RoomUser;
use nix::unistd::User;

use crate::config::Config;

/// `None`: Maestro's own user.
pub(super) fn room_user(config: &Config) -> anyhow::Result<Option<RoomUser>> {
    let settings = &config.process_runtime;
    let Some(name) = &settings.user else { return Ok(None) };
    let data_dirs =
        config.regions.iter().map(|(region, own)| own.directory(region, &config.storage.data_dir));
    let data_dirs: Vec<_> = data_dirs.chain([config.storage.data_dir.clone()]).collect();
    check(name, settings.rooms_dir.as_deref(), &data_dirs, rustix::process::geteuid().is_root())?;
    let found = User::from_name(name).with_context(|| format!("looking up user {name}"))?;
    let Some(user) = found else {
        bail!("adapters.runtime.process.user: this machine has no user {name}");
    };
    Ok(Some(RoomUser { name: user.name, user_id: user.uid.as_raw(), group_id: user.gid.as_raw() }))
}

fn check(
    name: &str,
    rooms_dir: Option<&Path>,
    data_dirs: &[impl AsRef<Path>],
    is_root: bool,
) -> anyhow::Result<()> {
    if !is_root {
        bail!(
            "adapters.runtime.process.user: only root can run rooms as {name}; run Maestro as root, or unset it"
        );
    }
    let Some(rooms_dir) = rooms_dir else {
        bail!(
            "adapters.runtime.process.roomsDir: must be set to a directory outside the data directory when rooms run \
             as another user ({name}), who may not enter the data directory"
        );
    };
    for data_dir in data_dirs {
        let data_dir = std::path::absolute(data_dir.as_ref())?;
        if std::path::absolute(rooms_dir)?.starts_with(&data_dir) {
            bail!(
                "adapters.runtime.process.roomsDir: {} is in the data directory {}, which user {name} may not enter; \
                 choose another one",
                rooms_dir.display(),
                data_dir.display()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_needs_root_and_a_directory_that_it_can_enter() {
        for (rooms_dir, is_root, expected) in [
            (Some("/srv/rooms"), true, None),
            (Some("/srv/rooms"), false, Some("only root can run rooms as game")),
            (None, true, Some("roomsDir: must be set to a directory outside the data directory")),
            (Some("/var/lib/maestro/rooms"), true, Some("is in the data directory /var/lib/maestro")),
            (Some("/var/lib/maestro-rooms"), true, None),
        ] {
            let checked = check("game", rooms_dir.map(Path::new), &["/var/lib/maestro"], is_root);
            match (checked, expected) {
                (Ok(()), None) => {}
                (Err(error), Some(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                (checked, expected) => panic!("{checked:?}, and not {expected:?}"),
            }
        }
    }
}
