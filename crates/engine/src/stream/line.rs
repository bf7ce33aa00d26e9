//! The order in which commits are told of.

use std::collections::VecDeque;

use maestro_core::stream::StreamEvent;
use parking_lot::Mutex;

/// As long as there are commits under way, and no longer.
#[derive(Default)]
pub(super) struct Line(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// The number of the first of the slots.
    first: u64,
    slots: VecDeque<Slot>,
    /// Something was lost that no ring knows of.
    lost: bool,
}

enum Slot {
    UnderWay,
    Told(Vec<StreamEvent>),
    Lost,
}

/// One place in the line. Dropped without a word (a caller hangs up, a task is ended), what it was for is lost.
pub(super) struct Place<'a> {
    line: &'a Line,
    number: u64,
    is_settled: bool,
}

/// What can be told now.
pub(super) struct Ready {
    pub(super) events: Vec<StreamEvent>,
    /// Other events, before these, were lost.
    pub(super) after_loss: bool,
}

impl Line {
    pub(super) fn take_place(&self) -> Place<'_> {
        let mut waiting = self.0.lock();
        let number = waiting.first + waiting.slots.len() as u64;
        waiting.slots.push_back(Slot::UnderWay);
        Place { line: self, number, is_settled: false }
    }

    /// Everything before the first commit that is still under way. It counts as lost until [`Line::told`] is called.
    pub(super) fn take_ready(&self) -> Option<Ready> {
        let mut waiting = self.0.lock();
        let mut ready = Ready { events: Vec::new(), after_loss: waiting.lost };
        while let Some(slot) = waiting.slots.pop_front_if(|slot| !matches!(slot, Slot::UnderWay)) {
            waiting.first += 1;
            match slot {
                Slot::Told(events) => ready.events.extend(events),
                Slot::Lost => {
                    ready.events.clear();
                    ready.after_loss = true;
                }
                Slot::UnderWay => {}
            }
        }
        let is_something = ready.after_loss || !ready.events.is_empty();
        waiting.lost = is_something;
        is_something.then_some(ready)
    }

    pub(super) fn told(&self) {
        self.0.lock().lost = false;
    }

    fn settle(&self, number: u64, outcome: Slot) {
        let mut waiting = self.0.lock();
        let index = (number - waiting.first) as usize;
        waiting.slots[index] = outcome;
    }
}

impl Place<'_> {
    pub(super) fn tell(mut self, events: Vec<StreamEvent>) {
        self.is_settled = true;
        self.line.settle(self.number, Slot::Told(events));
    }

    /// Nobody knows what has happened.
    pub(super) fn lose(self) {
        drop(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.line.settle(self.number, Slot::Lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use maestro_core::region::Region;
    use maestro_core::stream::Happened;
    use maestro_core::time::Timestamp;

    use super::*;

    fn event(second: i64) -> StreamEvent {
        let what =
            Happened::RegionReached { region: Region::default_region(), reachable: true, why: "".into() };
        StreamEvent { at: Timestamp::from_second(second).unwrap(), scheduler: None, what }
    }

    /// The seconds of the events that can be told, and whether others were lost.
    fn ready(line: &Line) -> Option<(Vec<i64>, bool)> {
        let ready = line.take_ready()?;
        Some((ready.events.iter().map(|event| event.at.as_second()).collect(), ready.after_loss))
    }

    #[test]
    fn what_is_done_first_waits_for_what_began_before() {
        let line = Line::default();
        let [first, second, third] = [(); 3].map(|()| line.take_place());
        second.tell(vec![event(2)]);
        assert_eq!(ready(&line), None);
        first.tell(vec![event(1)]);
        assert_eq!(ready(&line), Some((vec![1, 2], false)));
        line.told();
        third.tell(Vec::new());
        assert_eq!(ready(&line), None, "a commit that was refused");
        line.take_place().tell(vec![event(4)]);
        assert_eq!(ready(&line), Some((vec![4], false)));
    }

    #[test]
    fn what_is_lost_is_known() {
        let line = Line::default();
        let [first, second] = [(); 2].map(|()| line.take_place());
        line.take_place().tell(vec![event(3)]);
        first.tell(vec![event(1)]);
        drop(second);
        assert_eq!(ready(&line), Some((vec![3], true)), "the first is of the ring that ends");
        // It could not be told.
        assert_eq!(ready(&line), Some((vec![], true)));
        line.told();
        assert_eq!(ready(&line), None);
    }
}
