//! Whether a region can be reached, from a series of answers. With hysteresis: one lost packet does not move a fleet, and
//! one answer does not bring it back.

use crate::time::Timestamp;

/// Failures in a row after which a region counts as unreachable.
const FAILURES: u32 = 3;
/// Answers in a row after which it counts as reachable again.
const ANSWERS: u32 = 2;

/// What is known of one region. Until it is asked for the first time, nothing speaks against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reachability {
    sight: Sight,
    /// Answers in a row that speak against what holds now.
    against: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// `since`: when it came back, if it was away.
    Reachable {
        since: Option<Timestamp>,
    },
    Unreachable {
        since: Timestamp,
        why: String,
    },
}

/// What an answer changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Lost,
    Back,
}

impl Default for Reachability {
    fn default() -> Self {
        Self { sight: Sight::Reachable { since: None }, against: 0 }
    }
}

impl Reachability {
    pub fn sight(&self) -> &Sight {
        &self.sight
    }

    pub fn is_reachable(&self) -> bool {
        matches!(self.sight, Sight::Reachable { .. })
    }

    /// Takes in one answer; `Err` says why there was none.
    pub fn heard(&mut self, answer: Result<(), String>, now: Timestamp) -> Option<Turn> {
        match (&mut self.sight, answer) {
            (Sight::Reachable { .. }, Ok(())) => self.against = 0,
            (Sight::Unreachable { why, .. }, Err(newest)) => {
                *why = newest;
                self.against = 0;
            }
            (Sight::Reachable { .. }, Err(why)) => {
                self.against += 1;
                if self.against >= FAILURES {
                    return Some(self.turn(Sight::Unreachable { since: now, why }, Turn::Lost));
                }
            }
            (Sight::Unreachable { .. }, Ok(())) => {
                self.against += 1;
                if self.against >= ANSWERS {
                    return Some(self.turn(Sight::Reachable { since: Some(now) }, Turn::Back));
                }
            }
        }
        None
    }

    fn turn(&mut self, sight: Sight, turn: Turn) -> Turn {
        self.sight = sight;
        self.against = 0;
        turn
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: usize) -> Timestamp {
        Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
    }

    /// `+` is an answer, `-` is none; `U` and `R` are the turns that follow, `.` that nothing does.
    fn turns(answers: &str) -> String {
        let mut region = Reachability::default();
        let turn = |(second, answer): (usize, char)| {
            let answer = if answer == '+' { Ok(()) } else { Err(format!("silent at {second}")) };
            match region.heard(answer, at(second)) {
                None => '.',
                Some(Turn::Lost) => 'U',
                Some(Turn::Back) => 'R',
            }
        };
        answers.chars().enumerate().map(turn).collect()
    }

    #[test]
    fn hysteresis() {
        for (answers, expected) in [
            ("+", "."),
            // Nothing is known before the first answer, and that is one lost packet, too.
            ("-", "."),
            ("-+--+", "....."),
            ("---++", "..U.R"),
            ("+--+--+", "......."),
            ("+---", "...U"),
            ("+-----", "...U.."),
            ("+---+-+-++", "...U.....R"),
            ("+---++--+---", "...U.R.....U"),
        ] {
            assert_eq!(turns(answers), expected, "{answers}");
        }
    }

    #[test]
    fn why_and_since_when() {
        let mut region = Reachability::default();
        assert_eq!(region.sight(), &Sight::Reachable { since: None });
        for second in 3..=5 {
            region.heard(Err("no route".into()), at(second));
        }
        region.heard(Err("refused".into()), at(6));
        assert_eq!(region.sight(), &Sight::Unreachable { since: at(5), why: "refused".into() });
        region.heard(Ok(()), at(7));
        assert!(!region.is_reachable());
        region.heard(Ok(()), at(8));
        assert_eq!(region.sight(), &Sight::Reachable { since: Some(at(8)) });
    }

    proptest! {
        /// Turns alternate, and none comes before its row of answers is full.
        #[test]
        fn turns_alternate(answers in prop::collection::vec(any::<bool>(), 1..200)) {
            let text: String = answers.iter().map(|well| if *well { '+' } else { '-' }).collect();
            let turns = turns(&text);
            let happened: String = turns.chars().filter(|turn| *turn != '.').collect();
            prop_assert!(!happened.contains("UU") && !happened.contains("RR") && !happened.starts_with('R'));
            for (index, turn) in turns.char_indices() {
                let row = |wanted: char, length: u32| {
                    let length = length as usize;
                    index + 1 >= length && text[index + 1 - length..=index].chars().all(|c| c == wanted)
                };
                match turn {
                    'U' => prop_assert!(row('-', FAILURES)),
                    'R' => prop_assert!(row('+', ANSWERS)),
                    _ => {}
                }
            }
        }
    }
}
