//! Reading logs of rooms: the end, without reading all of it. Links are not followed: whoever may read a room's log may
//! not therefore read every file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The most that is read of one container's log to find its last lines.
const TAIL_BYTES_MAX: u64 = 1 << 20;

/// The last lines of all containers; with several, each line says whose it is. `None`: there is nothing of this room.
/// Blocking.
pub(crate) fn tail(room: &Path, lines_max: usize) -> io::Result<Option<String>> {
    let mut logs = match room.read_dir() {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    logs = logs.iter().filter_map(|path| log_of(path)).collect();
    logs.sort();
    logs.dedup();
    let texts = logs.iter().map(|log| end_of(log)).collect::<io::Result<Vec<String>>>()?;
    let counts: Vec<usize> = texts.iter().map(|text| text.lines().count()).collect();
    let shares = shares(&counts, lines_max);
    let mut tail = String::new();
    for (index, log) in logs.iter().enumerate() {
        let container = log.file_stem().unwrap_or_default().to_string_lossy();
        for line in texts[index].lines().skip(counts[index] - shares[index]) {
            if logs.len() > 1 {
                tail.push_str(&container);
                tail.push_str(": ");
            }
            tail.push_str(line);
            tail.push('\n');
        }
    }
    Ok(Some(tail))
}

/// Neither follows a link nor waits for the other end of a pipe.
fn open(file: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    File::options().read(true).custom_flags(flags.bits().cast_signed()).open(file)
}

/// The log that a file is a half of. Between two halves, a log may have only its older one.
fn log_of(file: &Path) -> Option<PathBuf> {
    let log = if file.extension()? == "1" { file.with_extension("") } else { file.to_owned() };
    (log.extension()? == "log").then_some(log)
}

fn older(log: &Path) -> PathBuf {
    log.with_extension("log.1")
}

/// The end of a log, whole lines only, going back into its older part if the newer is short.
fn end_of(log: &Path) -> io::Result<String> {
    let newer = last_bytes(log, TAIL_BYTES_MAX)?;
    let mut end = last_bytes(&older(log), TAIL_BYTES_MAX - newer.len() as u64)?;
    end.extend(newer);
    Ok(String::from_utf8_lossy(&end).into_owned())
}

/// A first line that is not whole is left out.
fn last_bytes(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = match open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Vec::new());
    }
    let skipped = metadata.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    if skipped > 0 {
        let line_end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..line_end);
    }
    Ok(bytes)
}

/// How many of so many lines each gets: an equal share, and what the short ones leave goes to the long ones.
fn shares(counts: &[usize], lines_max: usize) -> Vec<usize> {
    let mut shares = vec![0; counts.len()];
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|index| counts[*index]);
    let mut left = lines_max;
    for (done, index) in order.iter().enumerate() {
        let share = left / (counts.len() - done);
        shares[*index] = counts[*index].min(share);
        left -= shares[*index];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shared_fairly() {
        for (counts, max, expected) in [
            (vec![], 10, vec![]),
            (vec![5], 10, vec![5]),
            (vec![50], 10, vec![10]),
            (vec![50, 50], 10, vec![5, 5]),
            (vec![50, 2], 10, vec![8, 2]),
            (vec![1, 50, 50], 10, vec![1, 4, 5]),
            (vec![50, 50], 1, vec![0, 1]),
            (vec![50, 50], 0, vec![0, 0]),
        ] {
            assert_eq!(shares(&counts, max), expected, "{counts:?} of {max}");
        }
    }

    #[test]
    fn links_are_not_read() {
        let room = tempfile::tempdir().unwrap();
        let (log, precious) = (room.path().join("game.log"), room.path().join("precious"));
        std::fs::write(&precious, "precious\n").unwrap();
        std::os::unix::fs::symlink(&precious, &log).unwrap();
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "");
        std::fs::remove_file(&log).unwrap();
        std::fs::write(&log, "of the room\n").unwrap();
        std::os::unix::fs::symlink(&precious, older(&log)).unwrap();
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "of the room\n");
    }

    #[test]
    fn a_log_whose_newer_half_is_not_there_yet_is_shown_once() {
        let room = tempfile::tempdir().unwrap();
        std::fs::write(room.path().join("game.log.1"), "first\nsecond\n").unwrap();
        std::fs::write(room.path().join("other.1"), "no log\n").unwrap();
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "first\nsecond\n");
        std::fs::write(room.path().join("game.log"), "third\n").unwrap();
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "first\nsecond\nthird\n");
    }

    #[test]
    fn a_huge_log_is_not_read_whole() {
        let room = tempfile::tempdir().unwrap();
        let log = File::create(room.path().join("game.log")).unwrap();
        log.set_len(1 << 40).unwrap();
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "", "one endless line");
    }

    #[test]
    fn what_is_not_there_and_what_is_not_text() {
        let room = tempfile::tempdir().unwrap();
        assert_eq!(tail(&room.path().join("none"), 10).unwrap(), None);
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "");
        std::fs::write(room.path().join("a.log"), b"\xff\xfe\nno line break").unwrap();
        std::fs::write(room.path().join("b.log"), "second\n").unwrap();
        std::fs::write(room.path().join("room.json"), "{}").unwrap();
        let text = tail(room.path(), 10).unwrap().unwrap();
        assert_eq!(text, "a: \u{fffd}\u{fffd}\na: no line break\nb: second\n");
    }
}
