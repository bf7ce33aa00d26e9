//! What a value may be: one kind per sort of setting, with its bounds. A setting is text wherever it comes from
//! (YAML scalar, variable, default), so that there is one parser and one message for each kind.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::duration;
use super::server_url::ServerUrl;

/// A sort of setting: how its text is read, and how it is shown again.
pub(super) struct Kind<T> {
    /// What the reference calls it.
    pub(super) name: &'static str,
    /// Whether a file may write it as a list; its text has commas then.
    pub(super) is_list: bool,
    /// Whether its text may hold a password.
    pub(super) is_secret: bool,
    /// Reads the text; the error says what would be right and names neither key nor value.
    parse: fn(&str) -> Result<T, String>,
    show: fn(&T) -> Value,
}

impl<T: Serialize> Kind<T> {
    const fn new(name: &'static str, parse: fn(&str) -> Result<T, String>) -> Self {
        Self {
            name,
            is_list: false,
            is_secret: false,
            parse,
            show: |value| serde_json::to_value(value).unwrap_or_default(),
        }
    }
}

/// What a field may be that has a setting of a kind: a value, or perhaps one.
pub(super) trait Reads<Field> {
    fn parse(&self, text: &str) -> Result<Field, String>;
    fn show(&self, field: &Field) -> Value;
}

impl<T> Reads<T> for Kind<T> {
    fn parse(&self, text: &str) -> Result<T, String> {
        (self.parse)(text)
    }

    fn show(&self, value: &T) -> Value {
        (self.show)(value)
    }
}

/// An empty text is absence.
impl<T> Reads<Option<T>> for Kind<T> {
    fn parse(&self, text: &str) -> Result<Option<T>, String> {
        if text.is_empty() { Ok(None) } else { (self.parse)(text).map(Some) }
    }

    fn show(&self, value: &Option<T>) -> Value {
        value.as_ref().map_or(Value::Null, self.show)
    }
}

/// A TCP port; 0 lets the system pick a free one.
pub(super) const PORT: Kind<u16> = Kind::new("port", |text| {
    text.parse().map_err(|_| "must be a port from 0 to 65535; 0 picks a free one".to_owned())
});

/// An IP address or a host name, without scheme and port.
pub(super) const HOST: Kind<String> = Kind::new("host", |text| {
    let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if is_name || text.parse::<IpAddr>().is_ok() {
        Ok(text.to_owned())
    } else {
        Err("must be an IP address or a host name, without scheme and port".to_owned())
    }
});

/// The name of a user of this machine.
pub(super) const USER_NAME: Kind<String> = Kind::new("user", |text| {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._$".contains(c));
    if is_name && !text.is_empty() && !text.starts_with('-') && !text.chars().all(|c| c.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err("must be the name of a user, not a number".to_owned())
    }
});

/// Any number of hosts.
pub(super) const HOSTS: Kind<Vec<String>> = Kind {
    is_list: true,
    ..Kind::new("list of hosts", |text| {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| (HOST.parse)(name).map_err(|rule| format!("{name:?} {rule}"))).collect()
    })
};

/// The base address of an HTTP API.
pub(super) const HTTP_URL: Kind<String> = Kind::new("URL", |text| {
    let authority = text.strip_prefix("http://").unwrap_or_default();
    if authority.is_empty() || authority.starts_with('/') || text.contains(char::is_whitespace) {
        return Err("must be a URL such as http://10.0.0.5:8070".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
});

const fn server_url(name: &'static str, parse: fn(&str) -> Result<ServerUrl, String>) -> Kind<ServerUrl> {
    Kind { is_secret: true, ..Kind::new(name, parse) }
}

/// A PostgreSQL server and database.
pub(super) const POSTGRES_URL: Kind<ServerUrl> = server_url("URL", |text| {
    match ["postgres://", "postgresql://"].iter().any(|scheme| has_host(text, scheme)) {
        true => Ok(ServerUrl::new(text)),
        false => {
            Err("must be a URL such as postgres://maestro:PASSWORD@db.example.com:5432/maestro".to_owned())
        }
    }
});

/// A Redis server.
pub(super) const REDIS_URL: Kind<ServerUrl> = server_url("URL", |text| match has_host(text, "redis://") {
    true => Ok(ServerUrl::new(text)),
    false => Err("must be a URL such as redis://:PASSWORD@redis.example.com:6379/0".to_owned()),
});

fn has_host(url: &str, scheme: &str) -> bool {
    let rest = url.strip_prefix(scheme).unwrap_or_default();
    !rest.is_empty() && !rest.starts_with('/') && !url.contains(char::is_whitespace)
}

/// A length of time above zero, written with its unit.
pub(super) const INTERVAL: Kind<Duration> = Kind {
    show: |value| duration::format(*value).into(),
    ..Kind::new("duration", |text| match duration::parse(text)? {
        Duration::ZERO => Err("must be longer than zero, such as 10s".to_owned()),
        positive => Ok(positive),
    })
};

/// A length of time above zero as a bare number, for keys whose name already says the unit.
pub(super) const MILLIS: Kind<Duration> = Kind {
    show: |value| u64::try_from(value.as_millis()).unwrap_or(u64::MAX).into(),
    ..Kind::new("milliseconds", |text| {
        let millis: u64 = text
            .parse()
            .map_err(|_| "must be a whole number of milliseconds without a unit, such as 5000".to_owned())?;
        match Duration::from_millis(millis) {
            Duration::ZERO => Err("must be at least 1".to_owned()),
            length if length > duration::LONGEST => Err("must be at most ten years".to_owned()),
            length => Ok(length),
        }
    })
};

/// A whole number between two bounds, both included.
pub(super) const fn count<const MIN: u32, const MAX: u32>() -> Kind<u32> {
    Kind::new("number", |text| match text.parse() {
        Ok(count) if (MIN..=MAX).contains(&count) => Ok(count),
        _ => Err(format!("must be a whole number from {MIN} to {MAX}")),
    })
}

/// A size in bytes; a lower bound keeps it usable, a terabyte keeps it honest.
pub(super) const fn bytes<const MIN: u64>() -> Kind<u64> {
    Kind::new("bytes", |text| match text.parse() {
        Ok(bytes) if (MIN..=BYTES_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("must be a whole number of bytes from {MIN} to {BYTES_MAX}")),
    })
}

const BYTES_MAX: u64 = 1 << 40;

/// Yes or no. Only YAML's own spelling: `yes` and `1` are more often a slip than a wish.
pub(super) const SWITCH: Kind<bool> = Kind::new("boolean", |text| {
    text.to_ascii_lowercase().parse().map_err(|_| "must be true or false".to_owned())
});

/// A path in the file system; a relative one starts at the working directory.
pub(super) const DIRECTORY: Kind<PathBuf> = Kind::new("path", |text| match text {
    "" => Err("must be a directory, such as ./data".to_owned()),
    path => Ok(PathBuf::from(path)),
});

/// A word out of a few.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident, $message:literal, { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        pub enum $name { $(#[serde(rename = $word)] $variant),+ }

        impl $name {
            pub(super) const KIND: Kind<Self> = Kind::new($message, |text| {
                match text.to_ascii_lowercase().as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(concat!("must be ", $message).to_owned()),
                }
            });

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words!(
    /// The least severe event that is logged.
    LogLevel, "off, error, warn, info, debug or trace",
    { Off = "off", Error = "error", Warn = "warn", Info = "info", Debug = "debug", Trace = "trace" }
);

words!(
    /// For people, or for machines: one JSON object per line.
    LogFormat, "text or json",
    { Text = "text", Json = "json" }
);

words!(
    /// What a region's rooms are.
    RuntimeKind, "process",
    { Process = "process" }
);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T>(kind: &Kind<T>, text: &str, expected: &str) {
        check_field::<T, T>(kind, text, expected);
    }

    fn check_optional<T>(kind: &Kind<T>, text: &str, expected: &str) {
        check_field::<T, Option<T>>(kind, text, expected);
    }

    fn check_field<T, Field>(kind: &Kind<T>, text: &str, expected: &str)
    where
        Kind<T>: Reads<Field>,
    {
        let outcome = match kind.parse(text) {
            Ok(value) => kind.show(&value).to_string(),
            Err(reason) => reason,
        };
        assert_eq!(outcome, expected, "{}: {text:?}", kind.name);
    }

    #[test]
    fn bounds_of_every_kind() {
        let port = "must be a port from 0 to 65535; 0 picks a free one";
        for (text, expected) in
            [("0", "0"), ("65535", "65535"), ("65536", port), ("-1", port), ("http", port)]
        {
            check(&PORT, text, expected);
        }
        let host = "must be an IP address or a host name, without scheme and port";
        for (text, expected) in [
            ("::1", "\"::1\""),
            ("rooms.example", "\"rooms.example\""),
            ("", host),
            ("http://a", host),
            ("127.0.0.1:8080", host),
            ("a b", host),
        ] {
            check(&HOST, text, expected);
        }
        for (text, expected) in [
            ("", "[]"),
            ("a.example", "[\"a.example\"]"),
            ("a.example, b", "[\"a.example\",\"b\"]"),
            ("a,b:80", &*format!("\"b:80\" {host}")),
        ] {
            check(&HOSTS, text, expected);
        }
        let url = "must be a URL such as http://10.0.0.5:8070";
        for (text, expected) in [
            ("http://a:1/", "\"http://a:1\""),
            ("a:1", url),
            ("http://", url),
            ("http:///x", url),
            ("https://a", url),
        ] {
            check(&HTTP_URL, text, expected);
        }
        check(&INTERVAL, "90s", "\"1m30s\"");
        check(&INTERVAL, "0s", "must be longer than zero, such as 10s");
        check(&INTERVAL, "7", "a number needs a unit: 7s, 7ms, 7m or 7h");
        check(&MILLIS, "5000", "5000");
        check(&MILLIS, "5s", "must be a whole number of milliseconds without a unit, such as 5000");
        check(&MILLIS, "0", "must be at least 1");
        check(&MILLIS, "18446744073709551615", "must be at most ten years");
        check(&count::<1, 10>(), "10", "10");
        check(&count::<1, 10>(), "11", "must be a whole number from 1 to 10");
        check(&count::<1, 10>(), "2.5", "must be a whole number from 1 to 10");
        check(&bytes::<1024>(), "1024", "1024");
        check(&bytes::<1024>(), "1023", "must be a whole number of bytes from 1024 to 1099511627776");
        check(&SWITCH, "True", "true");
        check(&SWITCH, "yes", "must be true or false");
        check(&DIRECTORY, "", "must be a directory, such as ./data");
        check_optional(&PORT, "", "null");
        check_optional(&PORT, "80", "80");
        check_optional(&PORT, "x", port);
        check(&LogLevel::KIND, "WARN", "\"warn\"");
        check(&LogLevel::KIND, "loud", "must be off, error, warn, info, debug or trace");
        check(&LogFormat::KIND, "json", "\"json\"");
    }
}
