//! The fleet in one line.

use crate::api::{Operation, Room};

/// In the order in which people look for them. What is not listed comes last.
const ORDER: [&str; 8] =
    ["ready", "occupied", "active", "allocated", "pending", "unready", "terminating", "error"];

pub(crate) struct Status<'a> {
    pub(crate) rooms: &'a [Room],
    pub(crate) wanted: u32,
    pub(crate) matches: usize,
    pub(crate) served: u64,
    pub(crate) operation: Option<&'a Operation>,
}

impl Status<'_> {
    pub(crate) fn line(&self) -> String {
        let rooms = match by_status(self.rooms) {
            counts if counts.is_empty() => "no rooms yet".to_owned(),
            counts => format!("{}: {}", count(self.rooms.len() as u64, "room"), counts.join(", ")),
        };
        let mut parts = vec![
            rooms,
            format!("{} wanted", count(self.wanted.into(), "player")),
            format!("{} running", count(self.matches as u64, "match")),
            format!("{} served", count(self.served, "player")),
        ];
        if let Some(operation) = self.operation {
            parts.push(format!("{} {}", operation.definition_name, operation.status));
        }
        parts.join(" | ")
    }
}

fn by_status(rooms: &[Room]) -> Vec<String> {
    let mut statuses: Vec<&str> = rooms.iter().map(|room| room.status.as_str()).collect();
    let rank = |status: &str| ORDER.iter().position(|known| *known == status).unwrap_or(ORDER.len());
    statuses.sort_unstable_by_key(|status| (rank(status), *status));
    let groups = statuses.chunk_by(|one, next| one == next);
    groups.map(|group| format!("{} {}", group.len(), group[0])).collect()
}

fn count(number: u64, noun: &str) -> String {
    let plural = match noun {
        _ if number == 1 => "",
        "match" => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        statuses: &[&str],
        (wanted, matches, served): (u32, usize, u64),
        operation: Option<(&str, &str)>,
        line: &str,
    ) {
        let room = |status: &&str| Room { status: (*status).to_owned(), ..Room::default() };
        let rooms: Vec<Room> = statuses.iter().map(room).collect();
        let operation = operation
            .map(|(name, status)| Operation { definition_name: name.to_owned(), status: status.to_owned() });
        let status = Status { rooms: &rooms, wanted, matches, served, operation: operation.as_ref() };
        assert_eq!(status.line(), line);
    }

    #[test]
    fn lines() {
        check(&[], (2, 0, 0), None, "no rooms yet | 2 players wanted | 0 matches running | 0 players served");
        check(
            &["pending"],
            (1, 1, 1),
            None,
            "1 room: 1 pending | 1 player wanted | 1 match running | 1 player served",
        );
        check(
            &["terminating", "lost", "occupied", "ready", "occupied", "error", "ready", "ready"],
            (3, 2, 37),
            Some(("add_rooms", "in_progress")),
            "8 rooms: 3 ready, 2 occupied, 1 terminating, 1 error, 1 lost | 3 players wanted | \
             2 matches running | 37 players served | add_rooms in_progress",
        );
    }
}
