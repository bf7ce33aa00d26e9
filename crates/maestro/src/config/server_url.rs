//! Addresses of servers, which may hold a password: what is shown of one never does.

use std::fmt;

use serde::{Serialize, Serializer};

/// Stands for what is nobody's business.
const HIDDEN: &str = "(hidden)";

#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl(String);

impl ServerUrl {
    pub(super) fn new(url: &str) -> Self {
        Self(url.to_owned())
    }

    /// With the password, for who connects.
    pub fn with_password(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_secrets(&self.0))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ServerUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Also of a text that is no URL, or a wrong one: what cannot be told apart from a password is hidden.
pub(super) fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return HIDDEN.to_owned() };
    // Parameters may be passwords, too, and a password may hold any character: the last @ is the one that ends it.
    let (rest, parameters) = match rest.split_once('?') {
        Some((rest, _)) => (rest, format!("?{HIDDEN}")),
        None => (rest, String::new()),
    };
    match rest.rsplit_once('@') {
        None => format!("{scheme}://{rest}{parameters}"),
        Some((login, host)) => {
            let user = login.split_once(':').map_or(login, |(user, _)| user);
            let password = if login.contains(':') { format!(":{HIDDEN}") } else { String::new() };
            format!("{scheme}://{user}{password}@{host}{parameters}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for (text, shown) in [
            ("postgres://ada:s3cret@db:5432/maestro", "postgres://ada:(hidden)@db:5432/maestro"),
            ("postgres://ada:s3/c@r:et@db/maestro", "postgres://ada:(hidden)@db/maestro"),
            ("postgres://ada@db/maestro", "postgres://ada@db/maestro"),
            ("redis://:s3cret@cache:6379/0", "redis://:(hidden)@cache:6379/0"),
            ("redis://cache", "redis://cache"),
            ("postgres://db/maestro?user=ada&password=s3cret", "postgres://db/maestro?(hidden)"),
            ("host=db password=s3cret", "(hidden)"),
        ] {
            let url = ServerUrl::new(text);
            assert_eq!((url.to_string().as_str(), format!("{url:?}").as_str()), (shown, shown));
            assert_eq!(serde_json::to_value(&url).unwrap(), shown);
            assert_eq!(url.with_password(), text);
        }
    }
}
