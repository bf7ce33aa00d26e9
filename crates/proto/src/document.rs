//! Files that people write, in YAML or JSON: recipes, simulations, configurations.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_saphyr::{Location, UserMessageFormatter};

use crate::decimals::with_exact_decimals;

/// Why a text is neither YAML nor JSON. Shown, it ends with the place in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// `12:5`
    place: Option<String>,
    message: String,
}

impl SyntaxError {
    /// A message about a file, which begins with the place in it.
    pub fn in_file(&self, name: &str) -> String {
        let place = self.place.as_ref().map_or_else(String::new, |place| format!(":{place}"));
        format!("{name}{place}: not valid YAML: {}", without_place(&self.message))
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// How messages call a file; `-` is stdin.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Reads a file, or stdin. A wrong path must not fill the memory.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    if is_stdin(path) {
        io::stdin().take(bytes_max).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(path)?.take(bytes_max).read_to_string(&mut text)?;
    }
    if text.len() as u64 == bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(text)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// A document that is, or holds, a recipe; its decimals keep their digits. JSON is tried as JSON first: nearly all of it
/// is YAML, but not its escapes for characters beyond the 16-bit ones.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, SyntaxError> {
    let text = with_exact_decimals(text);
    serde_json::from_str(&text).or_else(|_| parse_yaml(&text))
}

pub fn parse_yaml<T: DeserializeOwned>(text: &str) -> Result<T, SyntaxError> {
    serde_saphyr::from_str(text).map_err(|error| SyntaxError {
        place: error.location().as_ref().map(place),
        message: error.without_snippet().render_with_formatter(&UserMessageFormatter),
    })
}

/// `12:5`
pub fn place(location: &Location) -> String {
    format!("{}:{}", location.line(), location.column())
}

/// A message of a parser without the place at its end.
pub fn without_place(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(reason, _)| reason)
}
