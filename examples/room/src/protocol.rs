//! What players say and hear: one line each way.

use std::time::{Duration, Instant};

use crate::game::{Game, Phase};

/// Longer matches are a slip of the hand.
const MATCH_SECONDS_MAX: f64 = 24.0 * 3600.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Request {
    Join { length: Duration },
    Status,
}

pub(crate) fn answer(line: &str, game: &mut Game, now: Instant) -> String {
    match parse(line) {
        Ok(Request::Join { length }) => match game.join(now, length) {
            Some(matches) => format!("OK {matches}"),
            None => "FULL".to_owned(),
        },
        Ok(Request::Status) => {
            format!("{} {}/{}", status(game), game.matches(), game.matches_max())
        }
        Err(expected) => format!("ERROR expected {expected}"),
    }
}

fn parse(line: &str) -> Result<Request, &'static str> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words[..] {
        ["JOIN", seconds] => match seconds.parse() {
            Ok(seconds) if seconds > 0.0 && seconds <= MATCH_SECONDS_MAX => {
                Ok(Request::Join { length: Duration::from_secs_f64(seconds) })
            }
            _ => Err("JOIN <seconds>, above 0 and at most a day"),
        },
        ["STATUS"] => Ok(Request::Status),
        _ => Err("JOIN <seconds> or STATUS"),
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
        assert_eq!(answer("STATUS", &mut game, now), "starting 0/1");
        game.open();
        for (line, reply) in [
            ("STATUS", "ready 0/1"),
            ("JOIN", "ERROR expected JOIN <seconds> or STATUS"),
            ("JOIN soon", "ERROR expected JOIN <seconds>, above 0 and at most a day"),
            ("JOIN -1", "ERROR expected JOIN <seconds>, above 0 and at most a day"),
            ("JOIN NaN", "ERROR expected JOIN <seconds>, above 0 and at most a day"),
            ("", "ERROR expected JOIN <seconds> or STATUS"),
            ("JOIN 0.5", "OK 1"),
            ("JOIN 5", "FULL"),
            ("STATUS", "occupied 1/1"),
        ] {
            assert_eq!(answer(line, &mut game, now), reply, "{line:?}");
        }
        game.close();
        assert_eq!(answer("STATUS", &mut game, now), "terminating 1/1");
    }
}
