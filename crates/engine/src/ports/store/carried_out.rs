//! Which transactions a store has carried out lately, for stores of one process. Where nobody else writes, an answer is lost
//! only between two tasks, and whoever sends the transaction again does so at once: the last few thousand are enough.

use std::collections::{BTreeSet, VecDeque};

use super::change::TransactionId;

const REMEMBERED_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub struct CarriedOut {
    ids: BTreeSet<TransactionId>,
    /// In the order in which they were carried out. That of the ids is another one if the store's clock was set back.
    order: VecDeque<TransactionId>,
}

impl CarriedOut {
    /// A transaction without an id is always new.
    pub fn includes(&self, id: Option<TransactionId>) -> bool {
        id.is_some_and(|id| self.ids.contains(&id))
    }

    pub fn remember(&mut self, id: Option<TransactionId>) {
        let Some(id) = id.filter(|id| self.ids.insert(*id)) else { return };
        self.order.push_back(id);
        while self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
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
        // The clock was set back.
        carried_out.remember(id(0));
        carried_out.remember(id(0));
        assert!(carried_out.includes(id(0)) && carried_out.includes(id(2)) && !carried_out.includes(id(1)));
    }
}
