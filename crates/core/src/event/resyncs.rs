//! Resyncs of one room that wait to be sent to one receiver. Only those are kept that still say something new.

use crate::room::PingStatus;

/// The newest of each status that a room can say.
pub const RESYNCS_WAITING_MAX: usize = PingStatus::SAID.len();

/// In the order in which the room said them. `T`: what comes with a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingResyncs<T>(Vec<(PingStatus, T)>);

impl<T> Default for WaitingResyncs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> WaitingResyncs<T> {
    /// Replaces one of the same status that waits. It takes the last position, not the one of what it replaces: what a
    /// receiver gets last must be what the room said last.
    pub fn push(&mut self, status: PingStatus, content: T) {
        self.0.retain(|(waiting, _)| *waiting != status);
        self.0.push((status, content));
        // Only if a room could say more words than there are.
        let surplus = self.0.len().saturating_sub(RESYNCS_WAITING_MAX);
        self.0.drain(..surplus);
    }

    /// The one that was said first.
    pub fn pop(&mut self) -> Option<(PingStatus, T)> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    pub fn append(&mut self, later: Self) {
        later.0.into_iter().for_each(|(status, content)| self.push(status, content));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn left(said: &[PingStatus]) -> Vec<(PingStatus, usize)> {
        let mut waiting = WaitingResyncs::default();
        said.iter().enumerate().for_each(|(number, status)| waiting.push(*status, number));
        std::iter::from_fn(|| waiting.pop()).collect()
    }

    #[test]
    fn the_newest_of_each_status_waits_in_the_order_of_what_was_said() {
        use PingStatus::{Occupied, Ready, Terminating};
        assert_eq!(left(&[]), []);
        assert_eq!(left(&[Ready, Ready, Ready]), [(Ready, 2)]);
        assert_eq!(left(&[Ready, Occupied, Ready]), [(Occupied, 1), (Ready, 2)]);
        assert_eq!(left(&[Ready, Occupied, Terminating]), [(Ready, 0), (Occupied, 1), (Terminating, 2)]);
    }

    proptest! {
        #[test]
        fn the_last_word_is_the_rooms_last_and_order_holds(said in prop::collection::vec(select(&PingStatus::SAID), 1..50)) {
            let left = left(&said);
            prop_assert!(left.len() <= RESYNCS_WAITING_MAX);
            prop_assert_eq!(left.last().map(|(status, number)| (*status, *number)), said.last().map(|last| (*last, said.len() - 1)));
            prop_assert!(left.windows(2).all(|pair| pair[0].1 < pair[1].1));
        }

        /// Handing over in two parts comes to the same.
        #[test]
        fn appended_is_as_said_at_once(said in prop::collection::vec(select(&PingStatus::SAID), 0..20), at in 0_usize..20) {
            let waiting = |part: &[PingStatus], from: usize| {
                let mut waiting = WaitingResyncs::default();
                part.iter().enumerate().for_each(|(number, status)| waiting.push(*status, from + number));
                waiting
            };
            let at = at.min(said.len());
            let mut parts = waiting(&said[..at], 0);
            parts.append(waiting(&said[at..], at));
            prop_assert_eq!(parts, waiting(&said, 0));
        }
    }
}
