//! `Warning` headers: what was accepted and is probably not what was meant.

use std::convert::Infallible;
use std::fmt;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponseParts, ResponseParts};
use maestro_proto::unknown_recipe_field;

/// A path that is longer than this is cut: it is for a person, who wrote it.
const TEXT_MAX: usize = 200;

/// One text each, and the paths of fields that they are about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings {
    paths: Vec<String>,
    texts: Vec<String>,
}

impl Warnings {
    pub(crate) fn unknown_fields(paths: Vec<String>) -> Self {
        let texts = paths.iter().map(|path| format!("unknown field {path}")).collect();
        Self { paths, texts }
    }

    /// The message is a recipe: the fields that were most likely meant can be named too.
    pub(crate) fn of_recipe(self) -> Self {
        let texts = self.paths.iter().map(|path| unknown_recipe_field(path)).collect();
        Self { texts, ..self }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// One line each.
impl fmt::Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts.join("\n"))
    }
}

impl IntoResponseParts for Warnings {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        let values = self.texts.iter().filter_map(|text| header_value(text));
        for value in values {
            response.headers_mut().append(header::WARNING, value);
        }
        Ok(response)
    }
}

/// `299 maestro "…"`: a lasting warning by us, quoted as RFC 7234 has it.
fn header_value(text: &str) -> Option<HeaderValue> {
    let mut value = String::from("299 maestro \"");
    for character in text.chars().filter(|c| !c.is_control()).take(TEXT_MAX) {
        if matches!(character, '"' | '\\') {
            value.push('\\');
        }
        value.push(character);
    }
    value.push('"');
    HeaderValue::from_bytes(value.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        for (text, value) in [
            ("unknown field spec.colour", r#"299 maestro "unknown field spec.colour""#),
            ("a \"b\" \\", r#"299 maestro "a \"b\" \\""#),
            ("two\r\nlines", r#"299 maestro "twolines""#),
            ("Größe", r#"299 maestro "Größe""#),
        ] {
            assert_eq!(header_value(text).unwrap().as_bytes(), value.as_bytes());
        }
        assert!(header_value(&"x".repeat(1000)).unwrap().len() < TEXT_MAX + 20);
    }
}
