//! Shortened ids: people type only the beginning of one.

use maestro_core::operation::Stage;

use super::operation::in_all_stages;
use super::{Client, Exit, Failure, Json, Resource};

/// How many are named where a beginning fits several.
const CANDIDATES_SHOWN: usize = 10;

/// The largest page of operations that a server gives.
const PAGE_SIZE: u32 = 100;

const UUID_CHARS: usize = 36;

/// The whole id of the operation whose id begins like this.
pub(super) fn operation(client: &Client, scheduler: &str, given: &str) -> Result<String, Failure> {
    let is_prefix = !given.is_empty()
        && given.len() < UUID_CHARS
        && given.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !is_prefix {
        // Whole, or wrong: the server says what is wrong with it.
        return Ok(given.to_owned());
    }
    let (found, _) = in_all_stages(|stage| {
        let resource = Resource::new(&["schedulers", scheduler, "operations"])
            .query("stage", stage)
            .query_some("perPage", (stage == Stage::Final).then_some(PAGE_SIZE))
            .query("noAction", "true")
            .query("idPrefix", given);
        client.get(&resource, "operations")
    })?;
    let describe = |operation: &Json| {
        let [id, name, status] = ["id", "definitionName", "status"].map(|key| operation.get(key).cell());
        format!("{id} ({name}, {status})")
    };
    match found.as_slice() {
        [] => {
            client.get(&Resource::scheduler(scheduler), "scheduler")?;
            let message = format!("no operation of scheduler {scheduler} has an id that begins with {given}");
            Err(Failure::new(Exit::NotFound, message))
        }
        [only] => Ok(only.get("id").cell()),
        several => Err(ambiguous("operations", given, several.iter().map(describe))),
    }
}

/// Does something with a room by its id as it was given and, if there is no such room, by the only id that begins
/// like this: of those that run, and of those that ended within the last day.
pub(super) fn with_room<T>(
    client: &Client,
    scheduler: &str,
    given: &str,
    act: impl Fn(&str) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match act(given) {
        Err(missing) if missing.exit == Exit::NotFound => {
            let rooms = Resource::new(&["schedulers", scheduler, "rooms"]).query("ended", "true");
            let Ok(answer) = client.get(&rooms, "rooms") else { return Err(missing) };
            match room_among(answer.get("rooms").items(), scheduler, given)? {
                Some(id) => act(&id),
                None => Err(missing),
            }
        }
        outcome => outcome,
    }
}

/// The whole ids of rooms that run.
pub(super) fn live_rooms(client: &Client, scheduler: &str, given: &[String]) -> Result<Vec<String>, Failure> {
    let answer = client.get(&Resource::new(&["schedulers", scheduler, "rooms"]), "rooms")?;
    let rooms = answer.get("rooms").items();
    let whole = |given: &String| {
        room_among(rooms, scheduler, given)?.ok_or_else(|| {
            let message =
                format!("room {given} not found in scheduler {scheduler}; see maestro room list {scheduler}");
            Failure::new(Exit::NotFound, message)
        })
    };
    given.iter().map(whole).collect()
}

/// Ids begin with the scheduler's name; that may be left out.
fn room_among(rooms: &[Json], scheduler: &str, given: &str) -> Result<Option<String>, Failure> {
    let ids: Vec<String> = rooms.iter().map(|room| room.get("id").cell()).collect();
    if given.is_empty() {
        return Ok(None);
    }
    if ids.iter().any(|id| id == given) {
        return Ok(Some(given.to_owned()));
    }
    let named = format!("{scheduler}-{given}");
    let fits = |id: &String| id.starts_with(given) || id.starts_with(&named);
    let mut found: Vec<String> = ids.into_iter().filter(fits).collect();
    if found.len() > 1 { Err(ambiguous("rooms", given, found.into_iter())) } else { Ok(found.pop()) }
}

fn ambiguous(what: &str, given: &str, candidates: impl ExactSizeIterator<Item = String>) -> Failure {
    let count = candidates.len();
    let mut message = format!("{given} is ambiguous, {count} {what} have an id that begins with it:");
    for candidate in candidates.take(CANDIDATES_SHOWN) {
        message.push_str(&format!("\n  {candidate}"));
    }
    if count > CANDIDATES_SHOWN {
        message.push_str(&format!("\n  … and {} more", count - CANDIDATES_SHOWN));
    }
    Failure::invalid(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: Result<Option<&str>, &str>) {
        let ids = ["arena-bst", "arena-bxy", "arena-arena"];
        let rooms: Vec<Json> = ids.iter().map(|id| Json::object([("id", Json::from(*id))])).collect();
        let found = room_among(&rooms, "arena", given).map_err(|failure| failure.message);
        let found = found.as_ref().map(Option::as_deref).map_err(String::as_str);
        assert_eq!(found, expected, "{given}");
    }

    #[test]
    fn rooms_by_their_beginning() {
        check("arena-bst", Ok(Some("arena-bst")));
        check("arena-bs", Ok(Some("arena-bst")));
        check("bs", Ok(Some("arena-bst")));
        check("zz", Ok(None));
        check("", Ok(None));
        check("b", Err("b is ambiguous, 2 rooms have an id that begins with it:\n  arena-bst\n  arena-bxy"));
        check(
            "arena",
            Err(
                "arena is ambiguous, 3 rooms have an id that begins with it:\n  arena-bst\n  arena-bxy\n  arena-arena",
            ),
        );
    }
}
