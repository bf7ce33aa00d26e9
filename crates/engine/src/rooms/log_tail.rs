//! The last lines that a room wrote, as far as they belong in a history: they often say why it failed.

use crate::Engine;
use crate::ports::store::RoomRecord;

/// Lines that are kept, from the end.
const LINES_MAX: usize = 5;
/// Characters of a line that are kept: a history is read by people, and stored with every operation.
const LINE_CHARACTERS_MAX: usize = 200;

/// Empty if nothing can be read: an operation does not fail for that.
pub(crate) async fn log_tail(engine: &Engine, room: &RoomRecord) -> Vec<String> {
    if room.handle.is_none() || !engine.regions.is_reachable(&room.region) {
        return Vec::new();
    }
    let Ok(runtime) = engine.runtime(&room.region) else {
        return Vec::new();
    };
    match runtime.logs(&room.scheduler, &room.id, LINES_MAX).await {
        Ok(log) => log.as_deref().map(last_lines).unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// As the end of a sentence; empty if there are none.
pub(crate) fn in_words(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => format!("; its last log lines: {}", lines.join(" | ")),
    }
}

fn last_lines(log: &str) -> Vec<String> {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(LINES_MAX);
    lines.into_iter().skip(skipped).map(bounded).collect()
}

/// Whatever a room writes, it is shown on one line.
fn bounded(line: &str) -> String {
    let visible = line.chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut text: String = visible.take(LINE_CHARACTERS_MAX + 1).collect();
    if text.chars().count() > LINE_CHARACTERS_MAX {
        text = text.chars().take(LINE_CHARACTERS_MAX).collect();
        text.push('…');
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_bounded() {
        let long = "x".repeat(LINE_CHARACTERS_MAX + 7);
        let log = format!("one\ntwo\nthree\n\n \nfour\tand \u{1b}[31mred\nfive\nsix\n{long}\n");
        let cut = format!("{}…", "x".repeat(LINE_CHARACTERS_MAX));
        assert_eq!(last_lines(&log), ["three", "four and  [31mred", "five", "six", cut.as_str()]);
        assert_eq!(in_words(&last_lines("a\nb\n")), "; its last log lines: a | b");
        assert_eq!(in_words(&last_lines("")), "");
    }
}
