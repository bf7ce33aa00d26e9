//! What players say and hear: one line each way.

use std::time::{Duration, Instant};

use crate::game::{Game, Phase};

/// Longer matches are a slip of the hand.
const MATCH_SECONDS_MAX: f64 = 24.0 * 3600.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Request<'a> {
    Join { length: Duration, allocation: Option<&'a str> },
    Status,
}

/// A match that has begun, and the allocation that its players named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun<'a> {
    pub(crate) allocation: Option<&'a str>,
}

/// What the player hears, and whether a match has begun.
pub(crate) fn answer<'a>(line: &'a str, game: &mut Game, now: Instant) -> (String, Option<Begun<'a>>) {
    match parse(line) {
        Ok(Request::Join { length, allocation }) => match game.join(now, length) {
            Some(matches) => (format!("OK {matches}"), Some(Begun { allocation })),
            None => ("FULL".to_owned(), None),
        },
        Ok(Request::Status) => (format!("{} {}/{}", status(game), game.matches(), game.matches_max()), None),
        Err(expected) => (format!("ERROR expected {expected}"), None),
    }
}

fn parse(line: &str) -> Result<Request<'_>, &'static str> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words[..] {
        ["JOIN", seconds] => Ok(Request::Join { length: match_length(seconds)?, allocation: None }),
        ["JOIN", seconds, allocation] => {
            Ok(Request::Join { length: match_length(seconds)?, allocation: Some(allocation) })
        }
        ["STATUS"] => Ok(Request::Status),
        _ => Err("JOIN <seconds> [<allocation>] or STATUS"),
    }
}

fn match_length(seconds: &str) -> Result<Duration, &'static str> {
    match seconds.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= MATCH_SECONDS_MAX => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("JOIN <seconds>, above 0 and at most a day"),
    }
}

fn status(game: &Game) -> &'static str {
    match game.phase() {
        Phase::Starting => "starting",
        Phase::Open if game.matches() == 0 => "ready",
        Phase::Open => "occupied",
        Phase::Closed => "terminating",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation() {
        let now = Instant::now();
        let mut game = Game::new(1);
        let reply = |line, game: &mut Game| answer(line, game, now).0;
        assert_eq!(reply("STATUS", &mut game), "starting 0/1");
        game.open();
        for (line, expected) in [
            ("STATUS", "ready 0/1"),
            ("JOIN", "ERROR expected JOIN <seconds> [<allocation>] or STATUS"),
            ("JOIN soon", "ERROR expected JOIN <seconds>, above 0 and at most a day"),
            ("JOIN -1", "ERROR expected JOIN <seconds>, above 0 and at most a day"),
            ("JOIN NaN", "ERROR expected JOIN <seconds>, above 0 and at most a day"),
            ("", "ERROR expected JOIN <seconds> [<allocation>] or STATUS"),
            ("JOIN 5 a b", "ERROR expected JOIN <seconds> [<allocation>] or STATUS"),
            ("JOIN 0.5", "OK 1"),
            ("JOIN 5", "FULL"),
            ("STATUS", "occupied 1/1"),
        ] {
            assert_eq!(reply(line, &mut game), expected, "{line:?}");
        }
        game.close();
        assert_eq!(reply("STATUS", &mut game), "terminating 1/1");
    }

    #[test]
    fn players_who_name_their_allocation() {
        let now = Instant::now();
        let mut game = Game::new(2);
        game.open();
        let begun = |line, game: &mut Game| answer(line, game, now).1;
        assert_eq!(begun("JOIN 5 a", &mut game), Some(Begun { allocation: Some("a") }));
        assert_eq!(begun("JOIN 5", &mut game), Some(Begun { allocation: None }));
        assert_eq!(begun("JOIN 5 b", &mut game), None, "it is full");
    }
}
