//! Which transactions a store has carried out lately, for stores of one process. Where nobody else writes, an answer is lost
//! only between two tasks, and whoever sends the transaction again does so at once: the last few thousand are enough.

use std::collections::BTreeSet;

use super::change::TransactionId;

const REMEMBERED_MAX: usize = 16_384;

/// In the order of their ids, which is that of time.
#[derive(Debug, Default)]
pub struct CarriedOut(BTreeSet<TransactionId>);

impl CarriedOut {
    /// A transaction without an id is always new.
    pub fn includes(&self, id: Option<TransactionId>) -> bool {
        id.is_some_and(|id| self.0.contains(&id))
    }

    pub fn remember(&mut self, id: Option<TransactionId>) {
        self.0.extend(id);
        while self.0.len() > REMEMBERED_MAX {
            self.0.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered() {
        let mut carried_out = CarriedOut::default();
        carried_out.remember(None);
        assert!(!carried_out.includes(None));
        let id = |number: usize| Some(TransactionId(number as u128));
        (0..REMEMBERED_MAX + 1).for_each(|number| carried_out.remember(id(number)));
        assert!(!carried_out.includes(id(0)));
        assert!(carried_out.includes(id(1)) && carried_out.includes(id(REMEMBERED_MAX)));
        assert!(!carried_out.includes(id(REMEMBERED_MAX + 1)));
    }
}
