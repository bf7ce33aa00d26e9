//! `maestro scheduler resize`: a size, or a change, in one word.

use clap::Args;
use maestro_core::resize::{Adjustment, Number};

use crate::cli::{Context, Failure, Json, Resource, WaitOptions};

#[derive(Debug, Args)]
pub(in super::super) struct ResizeOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Number of rooms (10), a change (+5, -3), or a change in percent (+20%, -12.5%)
    #[arg(value_name = "N", value_parser = size, allow_hyphen_values = true)]
    size: Size,
    /// Minimum number of rooms that a percentage changes
    #[arg(long, value_name = "ROOMS")]
    min_step: Option<u32>,
    /// Lower bound of the resulting size
    #[arg(long, value_name = "ROOMS")]
    min_size: Option<u32>,
    /// Upper bound of the resulting size
    #[arg(long, value_name = "ROOMS")]
    max_size: Option<u32>,
    /// Adjust a size outside the bounds to the nearest one within them, instead of refusing it
    #[arg(long)]
    no_strict: bool,
    /// Resize even if autoscaling is on and will undo it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    wait: WaitOptions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Size {
    adjustment_type: &'static str,
    number: Number,
    /// For people: `to 10`, `by +20%`.
    words: String,
}

pub(super) fn resize(context: &Context, options: &ResizeOptions) -> Result<(), Failure> {
    let ResizeOptions { scheduler, size, min_step, min_size, max_size, no_strict, force, wait } = options;
    let number = size.number.to_string().parse().map_err(|error| Failure::invalid(format!("N: {error}")))?;
    let bounds = [("min_step", min_step), ("min_size", min_size), ("max_size", max_size)];
    let bounds = bounds.into_iter().filter_map(|(name, rooms)| Some((name, Json::from((*rooms)?))));
    let body = [("adjustment_type", Json::from(size.adjustment_type)), ("number", Json::Number(number))]
        .into_iter()
        .chain(bounds)
        .chain([("strict", Json::from(!no_strict)), ("force", Json::from(*force))]);
    let body = Json::Object(body.map(|(name, value)| (name.to_owned(), value)).collect());
    let answer = context.client()?.post(&Resource::new(&["schedulers", scheduler, "resize"]), &body)?;
    context.operation_started(scheduler, &format!("resize {scheduler} {}", size.words), &answer, wait)
}

fn size(text: &str) -> Result<Size, String> {
    let (number, is_percentage) = text.strip_suffix('%').map_or((text, false), |number| (number, true));
    let is_change = number.starts_with(['+', '-']);
    let adjustment_type = match (is_percentage, is_change) {
        (true, true) => Adjustment::PERCENTAGE,
        (true, false) => return Err(format!("write +{text} or -{text}")),
        (false, true) => Adjustment::CHANGE,
        (false, false) => Adjustment::EXACT,
    };
    // If there are two signs, both stay, and the text is not a number.
    let signed = number.strip_prefix('+').filter(|digits| !digits.starts_with('-')).unwrap_or(number);
    let number = Number::parse(signed).map_err(|_| "write it as 10, +5, -3, +20% or -12.5%".to_owned())?;
    let words = if is_change { format!("by {text}") } else { format!("to {text}") };
    Ok(Size { adjustment_type, number, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_changes() {
        for (text, adjustment_type, number, words) in [
            ("10", Adjustment::EXACT, "10", "to 10"),
            ("0", Adjustment::EXACT, "0", "to 0"),
            ("+5", Adjustment::CHANGE, "5", "by +5"),
            ("-3", Adjustment::CHANGE, "-3", "by -3"),
            ("+20%", Adjustment::PERCENTAGE, "20", "by +20%"),
            ("-12.5%", Adjustment::PERCENTAGE, "-12.5", "by -12.5%"),
        ] {
            let number = Number::parse(number).unwrap();
            assert_eq!(size(text), Ok(Size { adjustment_type, number, words: words.to_owned() }));
        }
    }

    #[test]
    fn what_is_neither() {
        for text in ["", "%", "+", "+-5", "-+5", "ten", "--wiat", "1e3", "5%%"] {
            let refused = size(text).unwrap_err();
            assert!(refused.starts_with("write "), "{text}: {refused}");
        }
        assert_eq!(size("20%"), Err("write +20% or -20%".to_owned()));
    }
}
