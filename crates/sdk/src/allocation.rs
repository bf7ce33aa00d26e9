//! The allocations of a room: which of them the game has been told, and which matches have begun.

use std::collections::VecDeque;
use std::time::SystemTime;

use serde_json::{Map, Value};

/// Ids that are remembered: more than a room has allocations at once. Of an older one the game could be told again.
const KNOWN_MAX: usize = 4096;

/// Ids that a ping has room for.
const BEGUN_MAX: usize = 512;

/// A match that a matchmaker has promised to somebody: the room is held for it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Allocation {
    pub id: String,
    /// What the matchmaker wants the room to know: for whom, on which map.
    pub metadata: Map<String, Value>,
    /// When the room is given to others unless the match has begun.
    pub expires_at: SystemTime,
}

impl Allocation {
    /// From the JSON of the rooms API. `None`: it is something else.
    pub(crate) fn read(json: &Value) -> Option<Self> {
        let expires_at: jiff::Timestamp = json.get("expiresAt")?.as_str()?.parse().ok()?;
        Some(Self {
            id: json.get("id")?.as_str()?.to_owned(),
            metadata: json.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default(),
            expires_at: expires_at.into(),
        })
    }
}

/// All that the room knows of its allocations.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    /// Those in the latest answer to a ping.
    expected: Vec<Allocation>,
    /// Those of which the game has not been told.
    untold: Vec<Allocation>,
    /// Ids of those that were `untold` at some time, the oldest first.
    known: VecDeque<String>,
    /// Ids of those whose matches have begun, until Maestro has confirmed it.
    begun: Vec<String>,
}

impl Allocations {
    pub(crate) fn expected(&self) -> &[Allocation] {
        &self.expected
    }

    /// Those that the game is to be told of. They count as told.
    pub(crate) fn take_untold(&mut self) -> Vec<Allocation> {
        std::mem::take(&mut self.untold)
    }

    /// The game could not be told of these now.
    pub(crate) fn put_back(&mut self, untold: Vec<Allocation>) {
        self.untold.splice(..0, untold);
    }

    pub(crate) fn update(&mut self, expected: Vec<Allocation>) {
        self.expected = expected;
        let Self { expected, untold, known, .. } = self;
        // An allocation that is over before the game was told of it is not worth telling.
        untold.retain(|allocation| expected.iter().any(|other| other.id == allocation.id));
        for allocation in expected.iter() {
            if !known.contains(&allocation.id) {
                known.push_back(allocation.id.clone());
                untold.push(allocation.clone());
            }
        }
        known.drain(..known.len().saturating_sub(KNOWN_MAX.max(expected.len())));
    }

    pub(crate) fn begin(&mut self, id: String) {
        self.expected.retain(|allocation| allocation.id != id);
        if !self.begun.contains(&id) {
            self.begun.push(id);
        }
        self.begun.drain(..self.begun.len().saturating_sub(BEGUN_MAX));
    }

    /// What a ping says has begun.
    pub(crate) fn begun(&self) -> &[String] {
        &self.begun
    }

    /// Maestro knows that these have begun.
    pub(crate) fn confirm_begun(&mut self, sent: &[String]) {
        self.begun.retain(|id| !sent.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allocation(id: &str) -> Allocation {
        let read = json!({"id": id, "metadata": {"for": id}, "expiresAt": "2026-11-15T09:00:00.5Z"});
        Allocation::read(&read).unwrap()
    }

    fn ids(allocations: &[Allocation]) -> Vec<&str> {
        allocations.iter().map(|allocation| allocation.id.as_str()).collect()
    }

    #[test]
    fn an_allocation_as_it_is_written() {
        let read = allocation("a");
        assert_eq!((read.id.as_str(), &read.metadata["for"]), ("a", &Value::from("a")));
        let expires_at = read.expires_at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(expires_at.as_millis(), 1_794_733_200_500);
        for other in [json!({}), json!("a"), json!({"id": "a"}), json!({"id": "a", "expiresAt": "soon"})] {
            assert_eq!(Allocation::read(&other), None, "{other}");
        }
    }

    #[test]
    fn each_is_told_once_also_if_it_is_away_for_a_while() {
        let mut allocations = Allocations::default();
        allocations.update(vec![allocation("a")]);
        allocations.update(vec![allocation("a"), allocation("b")]);
        assert_eq!(ids(&allocations.take_untold()), ["a", "b"]);
        allocations.update(Vec::new());
        allocations.update(vec![allocation("a"), allocation("c")]);
        assert_eq!(ids(&allocations.take_untold()), ["c"]);
        assert_eq!(ids(allocations.expected()), ["a", "c"]);
    }

    #[test]
    fn what_is_over_before_it_was_told_is_not_told() {
        let mut allocations = Allocations::default();
        allocations.update(vec![allocation("a"), allocation("b")]);
        allocations.update(vec![allocation("b")]);
        let untold = allocations.take_untold();
        assert_eq!(ids(&untold), ["b"]);
        allocations.put_back(untold);
        assert_eq!(ids(&allocations.take_untold()), ["b"]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut allocations = Allocations::default();
        for number in 0..2 * KNOWN_MAX {
            allocations.update(vec![allocation(&number.to_string())]);
            allocations.begin(number.to_string());
        }
        assert_eq!((allocations.known.len(), allocations.begun.len()), (KNOWN_MAX, BEGUN_MAX));
        assert_eq!(allocations.untold.len(), 1);
        let newest = (2 * KNOWN_MAX - 1).to_string();
        assert_eq!(allocations.begun().last(), Some(&newest));
    }

    #[test]
    fn what_has_begun_is_said_until_it_was_heard() {
        let mut allocations = Allocations::default();
        allocations.begin("a".to_owned());
        let sent = allocations.begun().to_vec();
        allocations.begin("b".to_owned());
        allocations.begin("a".to_owned());
        assert_eq!(allocations.begun(), ["a", "b"]);
        allocations.confirm_begun(&sent);
        assert_eq!(allocations.begun(), ["b"]);
    }
}
