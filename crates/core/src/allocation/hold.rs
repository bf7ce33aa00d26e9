//! Holds: what the room table keeps of the allocations of a room.
//!
//! A hold is *provisional* from the claim until its row is durable, then *firm*. When a match begins, the matchmaker gives
//! the room back or its time is over, the hold is *marked* with its end. The end is written to the row, and only then is
//! the slot free again: a crash in between leaves a row that is still open, never a slot that two matchmakers have.

use std::sync::Arc;

use crate::time::{Millis, Timestamp, after};

use super::{AllocationId, ClaimNumber};

/// How long a claim may wait for its row. After that, any process may settle it.
pub const PROVISIONAL_FOR: Millis = Millis::from_seconds(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub allocation: AllocationId,
    pub number: ClaimNumber,
    pub expires_at: Timestamp,
    pub stage: HoldStage,
    /// What the matchmaker wants the room to know: a JSON object.
    pub metadata: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldStage {
    /// Its row may or may not be there yet. It does not expire.
    Provisional {
        since: Timestamp,
    },
    Firm,
    /// It is over; its row does not say so yet.
    Marked(HoldEnd),
}

/// How a hold ends while its room lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEnd {
    Begun,
    Returned,
    Expired,
}

impl Hold {
    /// The hold of a row that is there.
    pub fn firm(allocation: AllocationId, number: ClaimNumber, expires_at: Timestamp) -> Self {
        Self { allocation, number, expires_at, stage: HoldStage::Firm, metadata: None }
    }

    /// When it has to be settled. A firm one normally ends with a ping; a room that does not ping any more is given
    /// the ping timeout after its time is over.
    pub fn due_at(&self, ping_timeout: Millis) -> Timestamp {
        match self.stage {
            HoldStage::Provisional { since } => after(since, PROVISIONAL_FOR),
            HoldStage::Firm => after(self.expires_at, ping_timeout),
            HoldStage::Marked(_) => Timestamp::MIN,
        }
    }

    fn is_firm(&self) -> bool {
        self.stage == HoldStage::Firm
    }
}

/// What a ping says of the matches of its room.
#[derive(Debug, Clone, Copy)]
pub struct MatchReport<'a> {
    /// The room holds several matches at a time: how many run decides, not whether it says `occupied`.
    pub has_slots: bool,
    /// It says that it is occupied.
    pub occupied: bool,
    /// How many more matches run than at the ping before; 0 if that is not known.
    pub newly_running: u32,
    /// The allocations whose matches it says have begun. If it names any, only those begin.
    pub begun: &'a [AllocationId],
    pub at: Timestamp,
}

/// The holds of one room, in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holds(Vec<Hold>);

impl Holds {
    pub fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.0.iter()
    }

    /// All that take a slot, marked ones too.
    pub fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those whose players are still to come.
    pub fn open(&self) -> u32 {
        let open = self.0.iter().filter(|hold| hold.stage != HoldStage::Marked(HoldEnd::Begun)).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    pub fn get(&self, number: ClaimNumber) -> Option<&Hold> {
        self.0.iter().find(|hold| hold.number == number)
    }

    /// Adds a hold, unless one of that number is there.
    pub fn add(&mut self, hold: Hold) {
        if let Err(place) = self.0.binary_search_by_key(&hold.number, |hold| hold.number) {
            self.0.insert(place, hold);
        }
    }

    /// The row is there. `None`: there is no such hold; otherwise the stage that it has now.
    pub fn confirm(&mut self, number: ClaimNumber) -> Option<HoldStage> {
        let hold = self.0.iter_mut().find(|hold| hold.number == number)?;
        if let HoldStage::Provisional { .. } = hold.stage {
            hold.stage = HoldStage::Firm;
        }
        Some(hold.stage)
    }

    /// Marks a hold as over, unless it was before: the first end counts. `None`: there is no such hold.
    pub fn mark(&mut self, number: ClaimNumber, end: HoldEnd) -> Option<HoldEnd> {
        let hold = self.0.iter_mut().find(|hold| hold.number == number)?;
        Some(match hold.stage {
            HoldStage::Marked(first) => first,
            HoldStage::Provisional { .. } | HoldStage::Firm => {
                hold.stage = HoldStage::Marked(end);
                end
            }
        })
    }

    /// Its slot is free. False: there was no such hold.
    pub fn release(&mut self, number: ClaimNumber) -> bool {
        let before = self.0.len();
        self.0.retain(|hold| hold.number != number);
        self.0.len() < before
    }

    /// Marks the holds that a ping ends, and returns how many.
    pub fn end_by_ping(&mut self, report: &MatchReport<'_>) -> usize {
        let begun = self.begun_by(report);
        let mut marked = 0;
        for hold in self.0.iter_mut().filter(|hold| hold.is_firm()) {
            let end = match begun.contains(&hold.number) {
                true => HoldEnd::Begun,
                false if hold.expires_at <= report.at => HoldEnd::Expired,
                false => continue,
            };
            hold.stage = HoldStage::Marked(end);
            marked += 1;
        }
        marked
    }

    fn begun_by(&self, report: &MatchReport<'_>) -> Vec<ClaimNumber> {
        let mut firm: Vec<&Hold> = self.0.iter().filter(|hold| hold.is_firm()).collect();
        let begun = if !report.begun.is_empty() {
            firm.retain(|hold| report.begun.contains(&hold.allocation));
            firm.len()
        } else if report.has_slots {
            firm.sort_by_key(|hold| (hold.expires_at, hold.number));
            usize::try_from(report.newly_running).unwrap_or(usize::MAX)
        } else {
            if report.occupied { firm.len() } else { 0 }
        };
        firm.into_iter().take(begun).map(|hold| hold.number).collect()
    }
}

impl FromIterator<Hold> for Holds {
    fn from_iter<T: IntoIterator<Item = Hold>>(holds: T) -> Self {
        let mut all = Self::default();
        holds.into_iter().for_each(|hold| all.add(hold));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Firm holds 1, 2, …, which expire at these times.
    fn firm(expiries: &[i64]) -> Holds {
        let hold = |(index, expires): (usize, &i64)| {
            Hold::firm(id(index as u128 + 1), ClaimNumber(index as u64 + 1), at(*expires))
        };
        expiries.iter().enumerate().map(hold).collect()
    }

    fn id(number: u128) -> AllocationId {
        AllocationId::from_u128(number)
    }

    fn stages(holds: &Holds) -> String {
        let word = |hold: &Hold| match hold.stage {
            HoldStage::Provisional { .. } => "provisional",
            HoldStage::Firm => "firm",
            HoldStage::Marked(HoldEnd::Begun) => "begun",
            HoldStage::Marked(HoldEnd::Returned) => "returned",
            HoldStage::Marked(HoldEnd::Expired) => "expired",
        };
        holds.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_ping_ends() {
        let quiet =
            MatchReport { has_slots: false, occupied: false, newly_running: 0, begun: &[], at: at(10) };
        let several = MatchReport { has_slots: true, ..quiet };
        let named = [id(3)];
        let unknown = [id(9)];
        for (expiries, report, expected) in [
            (&[60][..], quiet, "firm"),
            (&[60], MatchReport { occupied: true, ..quiet }, "begun"),
            (&[10], quiet, "expired"),
            (&[10], MatchReport { occupied: true, ..quiet }, "begun"),
            (&[60, 50, 70], several, "firm firm firm"),
            (&[60, 50, 70], MatchReport { occupied: true, ..several }, "firm firm firm"),
            (&[60, 50, 70], MatchReport { newly_running: 1, ..several }, "firm begun firm"),
            (&[60, 50, 70], MatchReport { newly_running: 2, ..several }, "begun begun firm"),
            (&[60, 50, 70], MatchReport { newly_running: 9, ..several }, "begun begun begun"),
            (&[60, 5, 70], MatchReport { newly_running: 1, ..several }, "firm begun firm"),
            (&[60, 5, 7], MatchReport { newly_running: 1, ..several }, "firm begun expired"),
            (&[60, 50, 70], MatchReport { newly_running: 2, begun: &named, ..several }, "firm firm begun"),
            (&[60, 50, 70], MatchReport { newly_running: 2, begun: &unknown, ..several }, "firm firm firm"),
        ] {
            let mut holds = firm(expiries);
            let marked = holds.end_by_ping(&report);
            assert_eq!(stages(&holds), expected, "{expiries:?} {report:?}");
            assert_eq!(marked, expected.split(' ').filter(|stage| *stage != "firm").count());
        }
    }

    #[test]
    fn a_provisional_hold_neither_begins_nor_expires_by_a_ping() {
        let mut holds = Holds::default();
        let stage = HoldStage::Provisional { since: at(0) };
        holds.add(Hold { stage, ..Hold::firm(id(1), ClaimNumber(1), at(5)) });
        let report =
            MatchReport { has_slots: false, occupied: true, newly_running: 1, begun: &[id(1)], at: at(10) };
        assert_eq!(holds.end_by_ping(&report), 0);
        assert_eq!(stages(&holds), "provisional");
        assert_eq!(holds.confirm(ClaimNumber(1)), Some(HoldStage::Firm));
        assert_eq!(holds.confirm(ClaimNumber(2)), None);
        assert_eq!(holds.end_by_ping(&report), 1);
        assert_eq!(stages(&holds), "begun");
    }

    #[test]
    fn the_first_end_counts_and_takes_the_slot_until_it_is_released() {
        let mut holds = firm(&[60]);
        assert_eq!(holds.mark(ClaimNumber(1), HoldEnd::Returned), Some(HoldEnd::Returned));
        assert_eq!(holds.mark(ClaimNumber(1), HoldEnd::Expired), Some(HoldEnd::Returned));
        assert_eq!(holds.mark(ClaimNumber(2), HoldEnd::Expired), None);
        assert_eq!(holds.confirm(ClaimNumber(1)), Some(HoldStage::Marked(HoldEnd::Returned)));
        assert_eq!(holds.len(), 1);
        assert!(holds.release(ClaimNumber(1)));
        assert!(!holds.release(ClaimNumber(1)));
        assert!(holds.is_empty());
    }

    #[test]
    fn a_match_that_has_begun_is_not_expected_any_more() {
        let mut holds = firm(&[60, 70]);
        assert_eq!(holds.open(), 2);
        holds.mark(ClaimNumber(1), HoldEnd::Begun);
        holds.mark(ClaimNumber(2), HoldEnd::Returned);
        assert_eq!((holds.open(), holds.len()), (1, 2));
    }

    #[test]
    fn when_somebody_has_to_look() {
        let hold = Hold::firm(id(1), ClaimNumber(1), at(60));
        let of = |stage| Hold { stage, ..hold.clone() }.due_at(Millis::from_seconds(30));
        assert_eq!(of(HoldStage::Provisional { since: at(5) }), at(15));
        assert_eq!(of(HoldStage::Firm), at(90));
        assert_eq!(of(HoldStage::Marked(HoldEnd::Begun)), Timestamp::MIN);
    }
}
