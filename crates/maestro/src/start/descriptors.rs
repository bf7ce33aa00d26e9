//! File descriptors: as many as possible, and not all of them for connections. The store, the log and the rooms that are
//! started need some too, and a server that cannot accept a connection receives no ping.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More connections than this many would rather be a leak; each costs some memory too.
const CONNECTIONS_MAX: u64 = 65_536;

/// What the store, the log, the listeners and a few rooms need, whatever the limit is.
const RESERVED_MIN: u64 = 128;

/// The most connections of each listener.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) management: usize,
    pub(super) rooms: usize,
    pub(super) internal: usize,
}

/// Takes as many descriptors as one may have: every room costs one or two. The limit that counts now.
pub(super) fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limit.current
        }
    };
    current.unwrap_or(u64::MAX)
}

impl Shares {
    /// `wanted` is what the configuration says of all connections together, `limit` that of descriptors.
    pub(super) fn of(limit: u64, wanted: Option<u32>) -> Self {
        let reserved = (limit / 4).max(RESERVED_MIN).min(limit / 2);
        let all = wanted.map_or(CONNECTIONS_MAX, u64::from).min(limit - reserved);
        let internal = (all / 16).clamp(4, 256);
        let management = (all / 4).clamp(4, 4096);
        let rooms = all.saturating_sub(internal + management).max(4);
        let share = |connections: u64| usize::try_from(connections).unwrap_or(usize::MAX);
        Self { management: share(management), rooms: share(rooms), internal: share(internal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gets_how_many() {
        for (limit, wanted, [management, rooms, internal]) in [
            (u64::MAX, None, [4096, 61184, 256]),
            (1_048_576, None, [4096, 61184, 256]),
            (1_048_576, Some(100_000), [4096, 95648, 256]),
            (1024, None, [192, 528, 48]),
            (1024, Some(64), [16, 44, 4]),
            (256, None, [32, 88, 8]),
            (64, None, [8, 20, 4]),
        ] {
            let shares = Shares::of(limit, wanted);
            assert_eq!(shares, Shares { management, rooms, internal }, "{limit} {wanted:?}");
            assert!(((management + rooms + internal) as u64) < limit);
        }
    }
}
