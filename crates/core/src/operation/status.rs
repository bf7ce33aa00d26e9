//! The state machine of an operation.

use crate::words::words;

words! {
    pub enum OperationStatus {
        Pending = "pending",
        InProgress = "in_progress",
        Evicted = "evicted",
        Finished = "finished",
        Error = "error",
        Canceled = "canceled",
    }

    /// How lists are asked for.
    pub enum Stage {
        Pending = "pending",
        Active = "active",
        Final = "final",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation that is {from} cannot become {to}")]
pub struct IllegalTransition {
    pub from: OperationStatus,
    pub to: OperationStatus,
}

impl OperationStatus {
    /// The only way from one status to another.
    pub fn become_(self, to: Self) -> Result<Self, IllegalTransition> {
        let legal = match self {
            Self::Pending => matches!(to, Self::InProgress | Self::Evicted | Self::Canceled),
            Self::InProgress => matches!(to, Self::Finished | Self::Error | Self::Canceled),
            Self::Evicted | Self::Finished | Self::Error | Self::Canceled => false,
        };
        if legal { Ok(to) } else { Err(IllegalTransition { from: self, to }) }
    }

    pub fn is_final(self) -> bool {
        self.stage() == Stage::Final
    }

    pub fn stage(self) -> Stage {
        match self {
            Self::Pending => Stage::Pending,
            Self::InProgress => Stage::Active,
            Self::Evicted | Self::Finished | Self::Error | Self::Canceled => Stage::Final,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transition_of_the_specification_and_no_other() {
        let legal = [
            (OperationStatus::Pending, OperationStatus::InProgress),
            (OperationStatus::Pending, OperationStatus::Evicted),
            (OperationStatus::Pending, OperationStatus::Canceled),
            (OperationStatus::InProgress, OperationStatus::Finished),
            (OperationStatus::InProgress, OperationStatus::Error),
            (OperationStatus::InProgress, OperationStatus::Canceled),
        ];
        for from in OperationStatus::ALL {
            for to in OperationStatus::ALL {
                let expected =
                    if legal.contains(&(from, to)) { Ok(to) } else { Err(IllegalTransition { from, to }) };
                assert_eq!(from.become_(to), expected);
            }
        }
    }

    #[test]
    fn words_are_read_back() {
        for status in OperationStatus::ALL {
            assert_eq!(OperationStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(OperationStatus::parse("done"), None);
    }
}
