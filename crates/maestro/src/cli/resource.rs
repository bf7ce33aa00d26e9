//! A path of the API, with names and values escaped: a scheduler called `a/b` must not become two segments.

use std::fmt;

#[derive(Debug, Clone)]
pub(super) struct Resource(String);

impl Resource {
    pub(super) fn new(segments: &[&str]) -> Self {
        Self(segments.iter().map(|segment| format!("/{}", escape(segment))).collect())
    }

    /// A scheduler, also one whose name is a path of its own (`/schedulers/info`).
    pub(super) fn scheduler(name: &str) -> Self {
        match name {
            "info" => Self::new(&["scheduler", name]),
            name => Self::new(&["schedulers", name]),
        }
    }

    pub(super) fn query(mut self, name: &str, value: impl fmt::Display) -> Self {
        let separator = if self.0.contains('?') { '&' } else { '?' };
        self.0 += &format!("{separator}{name}={}", escape(&value.to_string()));
        self
    }

    /// Adds the value if there is one.
    pub(super) fn query_some(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// RFC 3986: everything but the unreserved characters as `%XX`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_escaped() {
        let resource = Resource::new(&["schedulers", "a/b ü", "rooms"])
            .query("game", "x&y=z")
            .query_some("page", None::<u32>);
        assert_eq!(resource.to_string(), "/schedulers/a%2Fb%20%C3%BC/rooms?game=x%26y%3Dz");
    }
}
