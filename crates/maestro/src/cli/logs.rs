//! `maestro room logs`: the end of a room's log, and what is added to it.

use std::time::Duration;

use clap::Args;

use super::room::RoomName;
use super::{Client, Failure, Resource, ids, note, print};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Lines that are asked for while following: more than a room writes between two polls.
const FOLLOW_LINES: u32 = 1000;

#[derive(Debug, Args)]
pub(super) struct LogsOptions {
    #[command(flatten)]
    name: RoomName,
    /// Number of lines to show, counted from the end
    #[arg(long, value_name = "LINES", default_value_t = 100)]
    tail: u32,
    /// Keep printing what the room writes until it ends
    #[arg(short, long)]
    follow: bool,
}

pub(super) fn run(client: &Client, options: &LogsOptions) -> Result<(), Failure> {
    let RoomName { scheduler, room } = &options.name;
    if !options.follow {
        let text =
            ids::with_room(client, scheduler, room, |room| read(client, scheduler, room, options.tail))?;
        return print(&text);
    }
    let (room, mut ending) = ids::with_room(client, scheduler, room, |room| {
        Ok((room.to_owned(), ending(client, scheduler, room)?))
    })?;
    let mut seen = Vec::new();
    let mut first_tail = Some(options.tail);
    loop {
        let text = read(client, scheduler, &room, first_tail.unwrap_or(0).max(FOLLOW_LINES))?;
        let added = advance(&mut seen, &text, ending.is_some());
        let skipped = first_tail.take().map_or(0, |tail| added.len().saturating_sub(tail as usize));
        for line in &added[skipped..] {
            print(line)?;
        }
        if let Some(how) = ending {
            note(&format!("room {room} has ended: {how}"));
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
        // Asked before the log is read: what a room that has ended wrote is then complete.
        ending = self::ending(client, scheduler, &room)?;
    }
}

fn read(client: &Client, scheduler: &str, room: &str, tail: u32) -> Result<String, Failure> {
    let resource = Resource::new(&["schedulers", scheduler, "rooms", room, "logs"]);
    client.get_text(&resource.query("tail", tail))
}

/// How the room ended, if it did.
fn ending(client: &Client, scheduler: &str, room: &str) -> Result<Option<String>, Failure> {
    let answer = client.get(&Resource::new(&["schedulers", scheduler, "rooms", room]), "id")?;
    let ended = answer.get("ended");
    Ok((!ended.is_null()).then(|| ended.get("how").cell()))
}

/// The lines that were added to those `seen` last. The server tells the end of a log, not what is new in it, so the new
/// part is found by laying the two ends over each other. (Only a room that writes nothing but the same line, more than
/// [`FOLLOW_LINES`] times, looks silent.) A last line without its newline is kept back until it has one, or there will
/// be no more.
fn advance(seen: &mut Vec<String>, text: &str, is_complete: bool) -> Vec<String> {
    let whole = match text.rfind('\n') {
        _ if is_complete => text,
        Some(end) => &text[..=end],
        None => "",
    };
    let now: Vec<String> = whole.lines().map(str::to_owned).collect();
    let longest = seen.len().min(now.len());
    let overlap = (0..=longest).rev().find(|count| seen[seen.len() - count..] == now[..*count]).unwrap_or(0);
    let added = now[overlap..].to_vec();
    if !now.is_empty() {
        *seen = now;
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added() {
        let mut seen = Vec::new();
        for (text, is_complete, added) in [
            ("a\nb\nc\n", false, "a b c"),
            ("a\nb\nc\n", false, ""),
            ("b\nc\nd\ne\n", false, "d e"),
            ("d\ne\nhal", false, ""),
            ("d\ne\nhalf\n", false, "half"),
            ("", false, ""),
            ("e\nhalf\nlast", true, "last"),
        ] {
            assert_eq!(advance(&mut seen, text, is_complete).join(" "), added, "{text:?}");
        }
    }

    #[test]
    fn a_log_that_moved_on_further_than_the_window() {
        let mut seen = Vec::new();
        advance(&mut seen, "a\nb\n", false);
        assert_eq!(advance(&mut seen, "x\ny\n", false), ["x", "y"]);
    }
}
