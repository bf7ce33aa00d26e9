//! Matches come and go in rooms, and the fleet follows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use maestro_e2e::{Maestro, Room, checks};
use serde_json::json;

use super::WHOLE_TEST;

/// They end by themselves; while they are wanted others begin.
const SHORT: Duration = Duration::from_secs(5);

/// Players, each in a room of its own.
struct Players<'a> {
    maestro: &'a Maestro,
    matches: BTreeMap<String, Match>,
}

struct Match {
    /// Not after the room's own time for it, which begins when the room has read the request.
    ends_at: Instant,
    /// Maestro knows of it.
    is_seen: bool,
}

#[test]
fn the_fleet_follows_matches_and_no_room_goes_under_its_players() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let mut recipe = maestro.recipe("arena", 2)?.json();
    recipe["autoscaling"] = json!({
        "enabled": true,
        "min": 2,
        "max": 8,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}},
    });
    maestro.api().create(&recipe)?.expect(200)?;
    let first = maestro.until("the fleet", || checks::settled(&maestro, "arena", 2))?;
    let mut players = Players { maestro: &maestro, matches: BTreeMap::new() };
    assert!(players.join(&first[0], WHOLE_TEST)?, "a ready room has a place");

    // Five want ten rooms, and eight is the most.
    maestro.until("a fleet of eight", || {
        let rooms = players.look()?;
        let missing = 5_usize.saturating_sub(players.matches.len());
        for room in rooms.iter().filter(|room| room.status == "ready").take(missing) {
            players.join(room, SHORT)?;
        }
        ensure!(rooms.len() == 8, "{} rooms, {} matches", rooms.len(), players.matches.len());
        Ok(())
    })?;
    let rooms = maestro.until("a fleet of two", || {
        let rooms = players.look()?;
        ensure!(rooms.len() == 2, "{} rooms, {} matches", rooms.len(), players.matches.len());
        checks::one_process_each(&maestro, "arena", &rooms)?;
        Ok(rooms)
    })?;
    let played_in = rooms.iter().find(|room| room.id == first[0].id);
    assert!(
        played_in.is_some_and(|room| room.pids == first[0].pids && room.status == "occupied"),
        "{rooms:?}"
    );
    let mut removals = maestro.api().operations("arena")?;
    removals.retain(|operation| operation.definition_name == "remove_rooms");
    assert!(!removals.is_empty());
    for removal in removals {
        assert!(removal.reason.contains("occupied at readyTarget 0.5"), "{}", removal.reason);
    }
    Ok(())
}

impl Players<'_> {
    /// The rooms, after a check that none of those that Maestro knew to be occupied has gone or is asked to go before
    /// its match was over.
    fn look(&mut self) -> anyhow::Result<Vec<Room>> {
        let rooms = self.maestro.api().rooms("arena")?;
        let now = Instant::now();
        self.matches.retain(|_, running| running.ends_at > now);
        for (id, running) in &mut self.matches {
            let room = rooms.iter().find(|room| room.id == *id);
            let status = room.map_or("gone", |room| room.status.as_str());
            running.is_seen |= status == "occupied";
            assert!(!running.is_seen || status == "occupied", "{id} has a match, and is {status}");
        }
        Ok(rooms)
    }

    /// Only of use for rooms that are listed as ready: what they are told to be later is then told of this match.
    fn join(&mut self, room: &Room, length: Duration) -> anyhow::Result<bool> {
        let ends_at = Instant::now() + length;
        // A room that goes at this moment takes nobody in.
        let has_joined = room.join(length).unwrap_or(false);
        if has_joined {
            self.matches.insert(room.id.clone(), Match { ends_at, is_seen: false });
        }
        Ok(has_joined)
    }
}
