//! What is dropped when the logs of a scheduler are more than they may be.

use std::time::SystemTime;

/// A log file that may be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogFile {
    pub(super) room: String,
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) written_at: SystemTime,
    /// Its room still writes.
    pub(super) is_live: bool,
    /// The older half.
    pub(super) is_older: bool,
}

/// The files to drop until the rest is within the limit: those of ended rooms first, the oldest of them first; then
/// older halves, then what is being written, from the largest on. Nothing while it is within the limit.
pub(super) fn to_drop(mut files: Vec<LogFile>, limit_bytes: u64) -> Vec<LogFile> {
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    if total <= limit_bytes {
        return Vec::new();
    }
    files.sort_by(|one, other| {
        let class = |file: &LogFile| (file.is_live, file.is_live && !file.is_older);
        class(one).cmp(&class(other)).then_with(|| {
            if one.is_live { other.bytes.cmp(&one.bytes) } else { one.written_at.cmp(&other.written_at) }
        })
    });
    let mut dropped = Vec::new();
    for file in files.into_iter().filter(|file| file.bytes > 0) {
        // A tenth more than needed is dropped of ended rooms, so that the directory is not looked through for every
        // line; of logs that are being written, no more than needed.
        let enough = if file.is_live { limit_bytes } else { limit_bytes - limit_bytes / 10 };
        if total <= enough {
            break;
        }
        total -= file.bytes;
        dropped.push(file);
    }
    dropped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// `ended-3 50`: written at 3. `live 50`, `live.1 50`.
    fn file(text: &str) -> LogFile {
        let (name, bytes) = text.split_once(' ').unwrap();
        let at = name.strip_prefix("ended-").map_or(0, |at| at.parse().unwrap());
        LogFile {
            room: name.into(),
            name: name.into(),
            bytes: bytes.parse().unwrap(),
            written_at: SystemTime::UNIX_EPOCH + Duration::from_secs(at),
            is_live: name.starts_with("live"),
            is_older: name.ends_with(".1"),
        }
    }

    #[test]
    fn ended_rooms_first_then_older_halves_then_the_largest() {
        for (files, limit, expected) in [
            (vec![], 100, vec![]),
            (vec!["ended-1 50", "live 50"], 100, vec![]),
            (vec!["ended-2 30", "ended-1 30", "live 50"], 100, vec!["ended-1"]),
            (vec!["ended-2 5", "ended-1 5", "live 95"], 100, vec!["ended-1", "ended-2"]),
            (
                vec!["ended-1 10", "live-a.1 30", "live-b.1 60", "live-b 80"],
                100,
                vec!["ended-1", "live-b.1", "live-a.1"],
            ),
            (vec!["live-a 60", "live-b 70", "live-c 10"], 100, vec!["live-b"]),
            (vec!["ended-1 0", "live-a 200"], 100, vec!["live-a"]),
        ] {
            let dropped = to_drop(files.iter().map(|text| file(text)).collect(), limit);
            let names: Vec<&str> = dropped.iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names, expected, "{files:?}");
        }
    }
}
