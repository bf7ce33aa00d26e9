//! Many rooms of a region that fall silent together: it is more likely that their pings do not get through than that all of
//! them hang at once. They do not count as dead then.

use std::collections::BTreeMap;
use std::fmt;

use crate::room::Region;
use crate::time::{Millis, Timestamp, after, age};

use super::RoomFact;
use super::counted::is_spared;

/// Fewer may well hang at once.
const ROOMS_MIN: usize = 5;

/// A room of a region, of whatever scheduler, that runs and has pinged, or did before a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenedRoom {
    pub created_at: Timestamp,
    /// Its last ping, or since when one could have been heard.
    pub heard_at: Timestamp,
}

/// Rooms that fell silent together: those that were last heard in this time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MassSilence {
    pub from: Timestamp,
    pub to: Timestamp,
    pub rooms: usize,
    /// How many there were.
    pub of: usize,
}

impl MassSilence {
    pub fn includes(&self, room: &ListenedRoom) -> bool {
        (self.from..=self.to).contains(&room.heard_at)
    }
}

/// Rooms of a region that fell silent together, and when the first of them are taken for dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentRooms {
    pub region: Region,
    pub rooms: u32,
    pub until: Timestamp,
}

impl SilentRooms {
    /// Of these rooms, those that are silent and do not leave.
    pub fn among<'a>(rooms: impl IntoIterator<Item = &'a RoomFact>, now: Timestamp) -> Vec<Self> {
        let is_silent = |room: &&RoomFact| room.reachable && !room.leaving && is_spared(room, now);
        let silent = rooms.into_iter().filter(is_silent);
        Self::by_region(silent.filter_map(|room| Some((&room.region, room.spared_until?))))
    }

    /// From the region of each of them, and until when it is spared.
    pub fn by_region<'a>(silent: impl IntoIterator<Item = (&'a Region, Timestamp)>) -> Vec<Self> {
        let mut regions: BTreeMap<&Region, (u32, Timestamp)> = BTreeMap::new();
        for (region, until) in silent {
            let (rooms, first) = regions.entry(region).or_insert((0, until));
            *rooms += 1;
            *first = until.min(*first);
        }
        let of = |(region, (rooms, until)): (&Region, (u32, Timestamp))| Self {
            region: region.clone(),
            rooms,
            until,
        };
        regions.into_iter().map(of).collect()
    }
}

impl fmt::Display for SilentRooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { region, rooms, .. } = self;
        let s = if *rooms == 1 { "" } else { "s" };
        write!(f, "{rooms} room{s} in region {region} that stopped pinging together")
    }
}

/// After how long without a ping a room counts as silent together with others: the first of them to reach its timeout
/// must not be removed while the others are still within theirs.
pub fn silent_after(ping_timeout: Millis) -> Millis {
    Millis(ping_timeout.0 / 2)
}

/// The largest mass silence among these rooms, if there is any: at least five rooms, and more than half of those that
/// were there, fell silent within one ping timeout.
/// Rooms that were made since then (to replace them, say) do not count.
pub fn mass_silence(rooms: &[ListenedRoom], now: Timestamp, ping_timeout: Millis) -> Option<MassSilence> {
    let is_silent = |room: &&ListenedRoom| age(now, room.heard_at) >= silent_after(ping_timeout);
    let mut heard: Vec<Timestamp> = rooms.iter().filter(is_silent).map(|room| room.heard_at).collect();
    let mut made: Vec<Timestamp> = rooms.iter().map(|room| room.created_at).collect();
    heard.sort_unstable();
    made.sort_unstable();
    let silence = |first: usize| {
        let from = heard[first];
        let end = heard.partition_point(|at| *at <= after(from, ping_timeout));
        let to = heard[end - 1];
        let of = made.partition_point(|at| *at <= to);
        MassSilence { from, to, rooms: end - first, of }
    };
    let is_mass = |silence: &MassSilence| silence.rooms >= ROOMS_MIN && silence.rooms * 2 > silence.of;
    (0..heard.len()).map(silence).filter(is_mass).max_by_key(|silence| silence.rooms)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TIMEOUT: Millis = Millis::from_seconds(100);

    fn at(second: u64) -> Timestamp {
        Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
    }

    fn room((created_at, heard_at): (u64, u64)) -> ListenedRoom {
        ListenedRoom { created_at: at(created_at), heard_at: at(heard_at) }
    }

    /// Rooms as (made, last heard); how many of how many are silent together at 1,000.
    fn check(rooms: &[(u64, u64)], expected: Option<(usize, usize)>) {
        let rooms: Vec<_> = rooms.iter().copied().map(room).collect();
        let found = mass_silence(&rooms, at(1_000), TIMEOUT);
        assert_eq!(found.map(|silence| (silence.rooms, silence.of)), expected, "{rooms:?}");
    }

    #[test]
    fn the_rule() {
        let silent = |rooms: usize| vec![(0, 900); rooms];
        let with = |mut rooms: Vec<(u64, u64)>, others: &[(u64, u64)]| {
            rooms.extend_from_slice(others);
            rooms
        };
        check(&[], None);
        check(&silent(4), None);
        check(&silent(5), Some((5, 5)));
        // More than half, not half.
        check(&with(silent(5), &[(0, 999); 5]), None);
        check(&with(silent(6), &[(0, 999); 5]), Some((6, 11)));
        // Those that are not there yet for their timeout, but for half of it.
        check(&[(0, 900), (0, 910), (0, 920), (0, 930), (0, 950)], Some((5, 5)));
        check(&[(0, 900), (0, 910), (0, 920), (0, 930), (0, 951)], None);
        // One after another is not together.
        check(&[(0, 500), (0, 601), (0, 702), (0, 803), (0, 904)], None);
        check(&[(0, 100), (0, 810), (0, 850), (0, 850), (0, 900), (0, 910)], Some((5, 6)));
        // What came since does not speak against it: rooms that replace them.
        check(&with(silent(5), &[(901, 999); 20]), Some((5, 5)));
        check(&with(silent(5), &[(899, 999); 20]), None);
    }

    #[test]
    fn by_region() {
        let (eu, us) = (Region("eu".into()), Region("us".into()));
        let silent = SilentRooms::by_region([(&us, at(30)), (&eu, at(20)), (&us, at(10))]);
        let shown: Vec<_> = silent.iter().map(|silent| (silent.to_string(), silent.until)).collect();
        let expected = [
            ("1 room in region eu that stopped pinging together".to_owned(), at(20)),
            ("2 rooms in region us that stopped pinging together".to_owned(), at(10)),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn whom_it_includes() {
        let rooms = [(0, 100), (0, 810), (0, 850), (0, 850), (0, 900), (0, 910), (0, 999)].map(room);
        let silence = mass_silence(&rooms, at(1_000), TIMEOUT).unwrap();
        let included: Vec<bool> = rooms.iter().map(|room| silence.includes(room)).collect();
        assert_eq!(included, [false, true, true, true, true, true, false]);
    }

    proptest! {
        /// Whatever is found is what the rule says, counted the simple way.
        #[test]
        fn found_is_right(rooms in prop::collection::vec((0u64..1_000, 0u64..=1_000), 0..40)) {
            let rooms: Vec<_> = rooms.into_iter().map(|(a, b)| room((a.min(b), b))).collect();
            if let Some(found) = mass_silence(&rooms, at(1_000), TIMEOUT) {
                let silent = |room: &&ListenedRoom| room.heard_at <= at(950);
                let members = rooms.iter().filter(silent).filter(|room| found.includes(room)).count();
                prop_assert_eq!(members, found.rooms);
                prop_assert!(age(found.to, found.from) <= TIMEOUT);
                prop_assert!(found.rooms >= 5 && found.rooms * 2 > found.of);
            }
        }
    }
}
