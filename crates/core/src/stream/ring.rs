//! The latest events, in the order in which they happened, bounded by age and by size.

use std::collections::VecDeque;

use super::{RingId, StreamId};
use crate::time::{Millis, Timestamp, age};

/// Whoever was away for longer reads the lists again: that is less than an hour of events.
pub const KEPT_FOR: Millis = Millis::from_seconds(60 * 60);

/// With the bound on bytes, what a ring costs at the most. A fleet of 10,000 rooms with matches of ten minutes makes some
/// 30 events a second, so that this is most of an hour.
pub const EVENTS_MAX: usize = 100_000;
pub const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Events that are shared with readers are cheap to clone.
#[derive(Debug)]
pub struct Ring<E> {
    id: RingId,
    /// The number of the last event; 0 if there was none yet.
    last: u64,
    events: VecDeque<Kept<E>>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept<E> {
    at: Timestamp,
    bytes: usize,
    event: E,
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// It has seen nothing, and wants to hear of what happens from now on.
    Now,
    /// It wants all that is there.
    Oldest,
    /// It has seen everything up to this one.
    After(StreamId),
}

/// What a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read<E> {
    /// In their order; none: nothing has happened since. `next`: where to go on.
    Events { events: Vec<(StreamId, E)>, next: StreamId },
    /// It cannot go on from there. What it reads from the lists from now on has in it what happened up to `seen`, from
    /// which it can go on.
    Reset { seen: StreamId, at: Option<Timestamp>, cause: ResetCause },
}

/// Why a reader has to begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetCause {
    /// It begins.
    Begins,
    /// Its events were in a ring that is there no more, or never were.
    OtherRing,
    /// There are so many since, or it was so long ago, that they are gone.
    Gone,
}

impl ResetCause {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Begins => "the stream begins here",
            Self::OtherRing => "the events before this one are lost: the server was started anew",
            Self::Gone => "the events after the last one that was read are not kept any more",
        }
    }
}

impl<E: Clone> Ring<E> {
    pub fn new(id: RingId) -> Self {
        Self { id, last: 0, events: VecDeque::new(), bytes: 0 }
    }

    /// The last event, as the place where a reader who knows everything up to now goes on.
    pub fn last(&self) -> StreamId {
        self.at(self.last)
    }

    /// `bytes`: about how much memory it takes. `at`: when it happened.
    pub fn push(&mut self, event: E, bytes: usize, at: Timestamp, now: Timestamp) {
        self.last += 1;
        self.bytes += bytes;
        self.events.push_back(Kept { at, bytes, event });
        self.forget(now);
    }

    pub fn read(&mut self, from: ReadFrom, events_max: usize, now: Timestamp) -> Read<E> {
        self.forget(now);
        let first = self.last - self.events.len() as u64;
        let seen = match from {
            ReadFrom::Now => return self.reset(ResetCause::Begins),
            ReadFrom::Oldest => first,
            ReadFrom::After(id) if id.ring != self.id || id.number > self.last => {
                return self.reset(ResetCause::OtherRing);
            }
            ReadFrom::After(id) if id.number < first => return self.reset(ResetCause::Gone),
            ReadFrom::After(id) => id.number,
        };
        // Both are within what is kept.
        let events = self.events.iter().skip((seen - first) as usize).take(events_max);
        let numbered = events.zip(seen + 1..).map(|(kept, number)| (self.at(number), kept.event.clone()));
        let events: Vec<_> = numbered.collect();
        let next = self.at(seen + events.len() as u64);
        Read::Events { events, next }
    }

    fn reset(&self, cause: ResetCause) -> Read<E> {
        Read::Reset { seen: self.last(), at: self.events.back().map(|kept| kept.at), cause }
    }

    fn at(&self, number: u64) -> StreamId {
        StreamId { ring: self.id, number }
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some(oldest) = self.events.front() {
            let is_full = self.events.len() > EVENTS_MAX || self.bytes > KEPT_BYTES_MAX;
            if !is_full && age(now, oldest.at) < KEPT_FOR {
                return;
            }
            self.bytes -= oldest.bytes;
            self.events.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::after;

    fn ring_id(number: u64) -> RingId {
        RingId::new(Timestamp::UNIX_EPOCH, number)
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// With events 1 to `count`, one a second, each as large as it says.
    fn ring(count: u64, bytes: usize) -> Ring<u64> {
        let mut ring = Ring::new(ring_id(1));
        for number in 1..=count {
            ring.push(number, bytes, at(number as i64), at(number as i64));
        }
        ring
    }

    fn id(number: u64) -> StreamId {
        StreamId { ring: ring_id(1), number }
    }

    fn numbers(read: Read<u64>) -> Result<Vec<u64>, ResetCause> {
        match read {
            Read::Events { events, next } => {
                assert!(events.iter().all(|(id, event)| id.number == *event));
                assert!(events.last().is_none_or(|(id, _)| *id == next));
                Ok(events.into_iter().map(|(_, event)| event).collect())
            }
            Read::Reset { cause, .. } => Err(cause),
        }
    }

    #[test]
    fn events_come_in_their_order_from_where_a_reader_was() {
        let mut ring = ring(5, 1);
        let mut read = |from, max| numbers(ring.read(from, max, at(5)));
        assert_eq!(read(ReadFrom::Oldest, 10), Ok(vec![1, 2, 3, 4, 5]));
        assert_eq!(read(ReadFrom::Oldest, 2), Ok(vec![1, 2]));
        assert_eq!(read(ReadFrom::After(id(0)), 1), Ok(vec![1]));
        assert_eq!(read(ReadFrom::After(id(3)), 10), Ok(vec![4, 5]));
        assert_eq!(read(ReadFrom::After(id(5)), 10), Ok(vec![]));
        assert_eq!(read(ReadFrom::Now, 10), Err(ResetCause::Begins));
    }

    #[test]
    fn what_was_never_given_or_is_of_another_ring_is_no_place_to_go_on() {
        let mut ring = ring(5, 1);
        let other = StreamId { ring: ring_id(2), number: 3 };
        for from in [other, id(6)] {
            let read = ring.read(ReadFrom::After(from), 10, at(5));
            assert_eq!(read, Read::Reset { seen: id(5), at: Some(at(5)), cause: ResetCause::OtherRing });
        }
    }

    #[test]
    fn what_is_older_than_an_hour_is_gone() {
        let mut ring = ring(5, 1);
        let now = after(at(3), KEPT_FOR);
        assert_eq!(numbers(ring.read(ReadFrom::Oldest, 10, now)), Ok(vec![4, 5]));
        assert_eq!(numbers(ring.read(ReadFrom::After(id(3)), 10, now)), Ok(vec![4, 5]));
        assert_eq!(numbers(ring.read(ReadFrom::After(id(2)), 10, now)), Err(ResetCause::Gone));
        // Empty, it still knows where it was.
        let now = after(at(9), KEPT_FOR);
        assert_eq!(numbers(ring.read(ReadFrom::After(id(5)), 10, now)), Ok(vec![]));
        assert_eq!(numbers(ring.read(ReadFrom::After(id(4)), 10, now)), Err(ResetCause::Gone));
        ring.push(6, 1, now, now);
        assert_eq!(numbers(ring.read(ReadFrom::After(id(5)), 10, now)), Ok(vec![6]));
    }

    #[test]
    fn there_are_never_too_many_and_never_too_large_ones() {
        let mut many = Ring::new(ring_id(1));
        (1..=EVENTS_MAX as u64 + 10).for_each(|number| many.push(number, 0, at(0), at(0)));
        assert_eq!(numbers(many.read(ReadFrom::Oldest, 1, at(0))), Ok(vec![11]));
        let mut large = ring(5, KEPT_BYTES_MAX / 2);
        assert_eq!(numbers(large.read(ReadFrom::Oldest, 10, at(5))), Ok(vec![4, 5]));
        large.push(6, KEPT_BYTES_MAX + 1, at(6), at(6));
        assert_eq!(numbers(large.read(ReadFrom::Oldest, 10, at(6))), Ok(vec![]));
        assert_eq!(large.last(), id(6));
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_nothing() {
        let mut ring = ring(5, 1);
        assert_eq!(numbers(ring.read(ReadFrom::Oldest, 10, at(-1_000_000))).unwrap().len(), 5);
    }

    proptest! {
        /// However it reads, a reader gets every event once and in order, or is told that it did not.
        #[test]
        fn nobody_misses_an_event_without_being_told(
            steps in proptest::collection::vec((0_u64..40, 1_usize..9, 0_usize..KEPT_BYTES_MAX / 8), 1..60)
        ) {
            let mut ring = Ring::new(ring_id(1));
            let (mut from, mut expected, mut number) = (ReadFrom::Oldest, 1, 0);
            for (pushes, reads, bytes) in steps {
                for _ in 0..pushes {
                    number += 1;
                    ring.push(number, bytes, at(0), at(0));
                }
                match ring.read(from, reads, at(0)) {
                    Read::Events { events, next } => {
                        for (_, event) in events {
                            prop_assert!(event == expected || (from == ReadFrom::Oldest && event > expected));
                            expected = event + 1;
                        }
                        from = ReadFrom::After(next);
                    }
                    Read::Reset { seen, cause, .. } => {
                        prop_assert_eq!(cause, ResetCause::Gone);
                        expected = seen.number + 1;
                        from = ReadFrom::After(seen);
                    }
                }
            }
        }
    }
}
