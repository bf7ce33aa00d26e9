//! From what was written to a request, with everything that is wrong with it.

use super::{Adjustment, Max, Number, Request, Strictness};
use crate::violation::Violation;

/// A request as it comes from outside: whatever was written, checked by nothing yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    pub adjustment_type: Option<String>,
    pub number: Option<Number>,
    pub min_step: Option<i64>,
    pub min_size: Option<i64>,
    /// -1: no limit.
    pub max_size: Option<i64>,
}

impl Adjustment {
    pub const EXACT: &str = "EXACT_CAPACITY";
    pub const CHANGE: &str = "CHANGE_IN_CAPACITY";
    pub const PERCENTAGE: &str = "CHANGE_IN_PERCENTAGE";
}

impl Max {
    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse(size: i64) -> Result<Self, String> {
        match size {
            -1 => Ok(Self::Unlimited),
            size => u64::try_from(size)
                .map(Self::Rooms)
                .map_err(|_| format!("{size} is not at least 0; -1 means no limit")),
        }
    }
}

impl Request {
    /// With everything that is wrong with it. What a `strict` that is not there means is for the caller to know: to
    /// Senlin's parser it is false, to its API true.
    pub fn parse(draft: &Draft, strictness: Strictness) -> Result<Self, Vec<Violation>> {
        let mut violations = Vec::new();
        let adjustment = adjustment(draft).map_err(|more| violations.extend(more));
        let min_size = draft.min_size.map(at_least_zero).transpose();
        let min_size = min_size.map_err(|reason| violations.push(Violation::new("min_size", reason)));
        let max_size = draft.max_size.map(Max::parse).transpose();
        let max_size = max_size.map_err(|reason| violations.push(Violation::new("max_size", reason)));
        match (adjustment, min_size, max_size) {
            (Ok(adjustment), Ok(min_size), Ok(max_size)) => {
                Ok(Self { adjustment, min_size, max_size, strictness })
            }
            _ => Err(violations),
        }
    }
}

fn adjustment(draft: &Draft) -> Result<Option<Adjustment>, Vec<Violation>> {
    let Draft { adjustment_type, number, min_step, min_size: _, max_size: _ } = draft;
    let min_step = match min_step {
        Some(_) if adjustment_type.as_deref() != Some(Adjustment::PERCENTAGE) => {
            refuse("min_step", format!("goes with adjustment_type {} only", Adjustment::PERCENTAGE))
        }
        Some(step) => at_least_zero(*step).or_else(|reason| refuse("min_step", reason)),
        None => Ok(0),
    };
    let in_number = |reason| refuse("number", reason);
    let adjustment = match (adjustment_type.as_deref(), *number) {
        (None, None) => Ok(None),
        (None, Some(_)) => refuse("adjustment_type", format!("is missing; one of {} is needed", types())),
        (Some(Adjustment::EXACT), Some(number)) => {
            let size = whole(number).and_then(at_least_zero);
            size.map(|size| Some(Adjustment::Exact(size))).or_else(in_number)
        }
        (Some(Adjustment::CHANGE), Some(number)) => {
            whole(number).map(|rooms| Some(Adjustment::Change(rooms))).or_else(in_number)
        }
        (Some(Adjustment::PERCENTAGE), Some(number)) => {
            let min_step = min_step.as_ref().copied().unwrap_or(0);
            Ok(Some(Adjustment::Percentage { number, min_step }))
        }
        (Some(Adjustment::EXACT | Adjustment::CHANGE | Adjustment::PERCENTAGE), None) => {
            refuse("number", "is missing; adjustment_type needs one".into())
        }
        (Some(other), _) => refuse("adjustment_type", format!("{other:?} is not one of {}", types())),
    };
    match (min_step, adjustment) {
        (Ok(_), Ok(adjustment)) => Ok(adjustment),
        (min_step, adjustment) => Err(min_step.err().into_iter().chain(adjustment.err()).collect()),
    }
}

fn refuse<T>(field: &str, reason: String) -> Result<T, Violation> {
    Err(Violation::new(field, reason))
}

fn types() -> String {
    [Adjustment::EXACT, Adjustment::CHANGE, Adjustment::PERCENTAGE].join(", ")
}

fn whole(number: Number) -> Result<i64, String> {
    number.whole().ok_or_else(|| {
        format!(
            "{number} is not a whole number, which it must be unless adjustment_type is {}",
            Adjustment::PERCENTAGE
        )
    })
}

fn at_least_zero(number: i64) -> Result<u64, String> {
    u64::try_from(number).map_err(|_| format!("{number} is not at least 0"))
}
