//! An ordered map that can be taken back to where the transaction began.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// A map with an undo journal: the cost of a transaction is what it changes, not what there is.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    rows: BTreeMap<K, V>,
    /// What was under a key before each write since the last [`Self::keep`], oldest first.
    journal: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), journal: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.rows.contains_key(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    pub(super) fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.range(range)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        let before = self.rows.insert(key.clone(), value);
        self.journal.push((key, before));
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let before = self.rows.remove(key)?;
        self.journal.push((key.clone(), Some(before.clone())));
        Some(before)
    }

    /// Changes a row in place; `None`: there is no such row.
    pub(super) fn change<T>(&mut self, key: &K, change: impl FnOnce(&mut V) -> T) -> Option<T> {
        let row = self.rows.get_mut(key)?;
        self.journal.push((key.clone(), Some(row.clone())));
        Some(change(row))
    }

    /// Ends a transaction: what it did stays.
    pub(super) fn keep(&mut self) {
        self.journal.clear();
    }

    /// Ends a transaction: what it did is undone.
    pub(super) fn undo(&mut self) {
        for (key, before) in self.journal.drain(..).rev() {
            match before {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: &Table<u8, &'static str>) -> Vec<(u8, &'static str)> {
        table.iter().map(|(key, value)| (*key, *value)).collect()
    }

    #[test]
    fn undo_takes_back_every_write_since_the_last_keep() {
        let mut table = Table::default();
        table.put(1, "a");
        table.put(2, "b");
        table.keep();
        table.put(1, "x");
        table.put(1, "y");
        table.remove(&1);
        table.put(3, "c");
        table.change(&2, |value| *value = "z");
        table.remove(&3);
        table.put(3, "d");
        assert_eq!(rows(&table), [(2, "z"), (3, "d")]);
        table.undo();
        assert_eq!(rows(&table), [(1, "a"), (2, "b")]);
        table.undo();
        assert_eq!(rows(&table), [(1, "a"), (2, "b")], "there is nothing left to undo");
    }

    #[test]
    fn what_was_kept_stays() {
        let mut table = Table::default();
        table.put(1, "a");
        table.keep();
        table.undo();
        assert_eq!(rows(&table), [(1, "a")]);
    }
}
