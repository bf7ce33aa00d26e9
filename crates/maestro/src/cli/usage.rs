//! What the argument parser says about a command line that it cannot read, without advice that does not work.

use clap::error::{ContextKind, ContextValue};

use maestro_core::nearest;

/// How the tip begins that an argument can be given after `--`: nothing here has a name that begins with a hyphen.
const AS_A_VALUE: &str = "to pass '";

/// Takes out tips that lead nowhere.
pub(super) fn without_wrong_tips(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let works = |tip: &clap::builder::StyledStr| !tip.to_string().starts_with(AS_A_VALUE);
        let tips: Vec<_> = tips.into_iter().filter(works).collect();
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    if let (Some(ContextValue::Strings(similar)), Some(ContextValue::String(given))) = (
        error.get(ContextKind::SuggestedSubcommand).cloned(),
        error.get(ContextKind::InvalidSubcommand).cloned(),
    ) {
        // What only sounds alike is something else: `restart` is not `start`.
        error.remove(ContextKind::SuggestedSubcommand);
        if let Some(nearest) = nearest(&given, similar.iter().map(String::as_str)) {
            let value = ContextValue::Strings(vec![nearest.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, value);
        }
    }
    error
}
