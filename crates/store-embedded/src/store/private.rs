//! File modes: nobody but Maestro's user may read a data directory, because recipes hold secrets.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::error::OpenError;

const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// Makes the data directory if it is not there, and takes it and its files away from everybody else. Directories in it
/// belong to others, who look after them.
pub(crate) fn make_directory(directory: &Path) -> Result<(), OpenError> {
    let failed = OpenError::io("make the data directory", directory);
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(directory).map_err(failed)?;
    tighten(directory, DIRECTORY);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            tighten(&entry.path(), FILE);
        }
    }
    Ok(())
}

/// An empty file that nobody else can open: SQLite fills it and gives its companions the same mode.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE).open(path)
}

/// Like `create_file`, for one that may be there already.
pub(crate) fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

/// On a volume that belongs to somebody else this may not be possible. Who mounted it so is told, and served.
fn tighten(path: &Path, mode: u32) {
    let tightened = std::fs::symlink_metadata(path).and_then(|metadata| {
        if metadata.mode() & 0o777 & !mode == 0 {
            return Ok(());
        }
        std::fs::set_permissions(path, Permissions::from_mode(metadata.mode() & 0o7000 | mode))
    });
    if let Err(error) = tightened {
        tracing::warn!(path = %path.display(), %error, "others may read what is in the data directory");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_there_is_tightened_and_never_loosened() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("data");
        std::fs::create_dir(&directory).unwrap();
        std::fs::create_dir(directory.join("rooms")).unwrap();
        std::fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        let files = [("open", 0o666, 0o600), ("read-only", 0o400, 0o400), ("program", 0o755, 0o600)];
        for (name, before, _) in files {
            std::fs::write(directory.join(name), name).unwrap();
            std::fs::set_permissions(directory.join(name), Permissions::from_mode(before)).unwrap();
        }
        let rooms = mode(&directory.join("rooms"));
        make_directory(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        for (name, _, after) in files {
            assert_eq!(mode(&directory.join(name)), after, "{name}");
        }
        assert_eq!(mode(&directory.join("rooms")), rooms);
    }
}
