//! Reading logs of rooms: the end, without reading all of it. Links are not followed: whoever may read a room's log may
//! not therefore read every file.
//!
//! Also cuts the logs of rooms that a Maestro without a log keeper started, and that write to their files themselves.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::time::{MissedTickBehavior, interval};

use crate::plan::OutputPlan;
use crate::runtime::Shared;

/// A room that writes without end is over its limit for so long at most.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// The most that is read of one container's log to find its last lines.
const TAIL_BYTES_MAX: u64 = 1 << 20;

/// Of rooms that a Maestro without a log keeper started: nobody else bounds what they write.
pub(crate) async fn sweep(shared: Arc<Shared>) {
    let limit_bytes = shared.options.log_limit_bytes;
    let mut turn = interval(SWEEP_EVERY);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turn.tick().await;
        let direct = shared.rooms_that(|room| room.plan.output == OutputPlan::File);
        let logs = direct.iter().flat_map(|room| shared.logs_of(room)).collect::<Vec<_>>();
        if logs.is_empty() {
            continue;
        }
        shared.blocking.run(move || logs.iter().for_each(|log| keep_within(log, limit_bytes))).await;
    }
}

/// Cuts a log that is over its limit: the newer half moves to `<container>.log.1`, in place of what was there, and the
/// file begins anew. What is written between the copy and the cut is lost: a few lines at most, the price for not
/// standing between a room and its file. The writer appends, so it goes on at the new end. Blocking.
pub(crate) fn keep_within(log: &Path, limit_bytes: u64) {
    if !log.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > limit_bytes) {
        return;
    }
    if let Err(error) = copy_end(log, limit_bytes / 2) {
        // The disk may be full: then cutting is all the more needed.
        tracing::warn!(log = %log.display(), %error, "the end of a log could not be kept");
    }
    if let Err(error) = open(log, File::options().write(true)).and_then(|file| file.set_len(0)) {
        tracing::warn!(log = %log.display(), %error, "a log could not be cut");
    }
}

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

fn copy_end(log: &Path, bytes: u64) -> io::Result<()> {
    let mut file = open(log, File::options().read(true))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let older = older(log);
    // A link that is in its place is removed, not followed.
    if older.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        std::fs::remove_file(&older)?;
    }
    let mut kept = open(&older, File::options().write(true).create(true).truncate(true).mode(0o600))?;
    // Bounded by what was there: a room that writes faster than this copies must not keep it busy for ever.
    io::copy(&mut file.take(2 * bytes), &mut kept)?;
    Ok(())
}

/// Neither follows a link nor waits for the other end of a pipe.
fn open(file: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(file)
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
    let mut file = match open(file, File::options().read(true)) {
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
    use std::io::Write;

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
    fn a_long_log_keeps_its_newer_half_and_its_writer() {
        let room = tempfile::tempdir().unwrap();
        let log = room.path().join("game.log");
        let mut writer = File::options().append(true).create(true).open(&log).unwrap();
        for line in 0..1000 {
            writeln!(writer, "{line:09}").unwrap();
        }
        keep_within(&log, 20_000);
        assert_eq!(log.metadata().unwrap().len(), 10_000, "within its limit it is left alone");
        keep_within(&log, 8_000);
        assert_eq!(log.metadata().unwrap().len(), 0);
        assert_eq!(older(&log).metadata().unwrap().len(), 4_000);
        writeln!(writer, "after").unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "after\n");
        assert_eq!(tail(room.path(), 3).unwrap().unwrap(), "000000998\n000000999\nafter\n");
    }

    #[test]
    fn links_are_neither_cut_nor_read() {
        let room = tempfile::tempdir().unwrap();
        let (log, precious) = (room.path().join("game.log"), room.path().join("precious"));
        std::fs::write(&precious, "precious\n").unwrap();
        std::os::unix::fs::symlink(&precious, &log).unwrap();
        keep_within(&log, 1);
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "");
        std::fs::remove_file(&log).unwrap();
        std::fs::write(&log, "of the room\n").unwrap();
        std::os::unix::fs::symlink(&precious, older(&log)).unwrap();
        assert_eq!(tail(room.path(), 10).unwrap().unwrap(), "of the room\n");
        keep_within(&log, 1);
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious\n");
        assert_eq!(log.metadata().unwrap().len(), 0);
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
