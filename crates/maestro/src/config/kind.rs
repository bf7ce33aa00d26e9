//! What a value may be: one kind per sort of setting, with its bounds. A setting is text wherever it comes from
//! (YAML scalar, variable, default), so that there is one parser and one message for each kind.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::duration;

/// A sort of setting: how its text is read, and how it is shown again.
pub(super) trait Kind {
    type Value: Serialize;
    /// What the reference calls it.
    const NAME: &'static str;
    /// Whether a file may write it as a list; its text has commas then.
    const IS_LIST: bool = false;
    /// Reads the text; the error says what would be right and names neither key nor value.
    fn parse(text: &str) -> Result<Self::Value, String>;
    fn show(value: &Self::Value) -> Value {
        serde_json::to_value(value).unwrap_or_default()
    }
}

/// A TCP port; 0 lets the system pick a free one.
pub(super) enum Port {}

impl Kind for Port {
    type Value = u16;
    const NAME: &'static str = "port";

    fn parse(text: &str) -> Result<u16, String> {
        text.parse().map_err(|_| "must be a port from 0 to 65535; 0 picks a free one".to_owned())
    }
}

/// An IP address or a host name, without scheme and port.
pub(super) enum Host {}

impl Kind for Host {
    type Value = String;
    const NAME: &'static str = "host";

    fn parse(text: &str) -> Result<String, String> {
        let is_name =
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        if is_name || text.parse::<IpAddr>().is_ok() {
            Ok(text.to_owned())
        } else {
            Err("must be an IP address or a host name, without scheme and port".to_owned())
        }
    }
}

/// The name of a user of this machine.
pub(super) enum UserName {}

impl Kind for UserName {
    type Value = String;
    const NAME: &'static str = "user";

    fn parse(text: &str) -> Result<String, String> {
        let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._$".contains(c));
        if is_name && !text.is_empty() && !text.starts_with('-') && !text.chars().all(|c| c.is_ascii_digit())
        {
            Ok(text.to_owned())
        } else {
            Err("must be the name of a user, not a number".to_owned())
        }
    }
}

/// Any number of hosts.
pub(super) enum Hosts {}

impl Kind for Hosts {
    type Value = Vec<String>;
    const NAME: &'static str = "list of hosts";
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Result<Vec<String>, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| Host::parse(name).map_err(|rule| format!("{name:?} {rule}"))).collect()
    }
}

/// The base address of an HTTP API.
pub(super) enum HttpUrl {}

impl Kind for HttpUrl {
    type Value = String;
    const NAME: &'static str = "URL";

    fn parse(text: &str) -> Result<String, String> {
        let authority = text.strip_prefix("http://").unwrap_or_default();
        if authority.is_empty() || authority.starts_with('/') || text.contains(char::is_whitespace) {
            return Err("must be a URL such as http://10.0.0.5:8070".to_owned());
        }
        Ok(text.trim_end_matches('/').to_owned())
    }
}

/// A length of time above zero, written with its unit.
pub(super) enum Interval {}

impl Kind for Interval {
    type Value = Duration;
    const NAME: &'static str = "duration";

    fn parse(text: &str) -> Result<Duration, String> {
        match duration::parse(text)? {
            Duration::ZERO => Err("must be longer than zero, such as 10s".to_owned()),
            positive => Ok(positive),
        }
    }

    fn show(value: &Duration) -> Value {
        duration::format(*value).into()
    }
}

/// A length of time above zero as a bare number, for keys whose name already says the unit.
pub(super) enum Millis {}

impl Kind for Millis {
    type Value = Duration;
    const NAME: &'static str = "milliseconds";

    fn parse(text: &str) -> Result<Duration, String> {
        let longest = u64::try_from(duration::LONGEST.as_millis()).unwrap_or(u64::MAX);
        let millis: u64 = text
            .parse()
            .map_err(|_| "must be a whole number of milliseconds without a unit, such as 5000".to_owned())?;
        match millis {
            0 => Err("must be at least 1".to_owned()),
            _ if millis > longest => Err("must be at most ten years".to_owned()),
            _ => Ok(Duration::from_millis(millis)),
        }
    }

    fn show(value: &Duration) -> Value {
        u64::try_from(value.as_millis()).unwrap_or(u64::MAX).into()
    }
}

/// A whole number between two bounds, both included.
pub(super) enum Count<const MIN: u32, const MAX: u32> {}

impl<const MIN: u32, const MAX: u32> Kind for Count<MIN, MAX> {
    type Value = u32;
    const NAME: &'static str = "number";

    fn parse(text: &str) -> Result<u32, String> {
        match text.parse() {
            Ok(count) if (MIN..=MAX).contains(&count) => Ok(count),
            _ => Err(format!("must be a whole number from {MIN} to {MAX}")),
        }
    }
}

/// A size in bytes; a lower bound keeps it usable, a terabyte keeps it honest.
pub(super) enum Bytes<const MIN: u64> {}

const BYTES_MAX: u64 = 1 << 40;

impl<const MIN: u64> Kind for Bytes<MIN> {
    type Value = u64;
    const NAME: &'static str = "bytes";

    fn parse(text: &str) -> Result<u64, String> {
        match text.parse() {
            Ok(bytes) if (MIN..=BYTES_MAX).contains(&bytes) => Ok(bytes),
            _ => Err(format!("must be a whole number of bytes from {MIN} to {BYTES_MAX}")),
        }
    }
}

/// Yes or no. Only YAML's own spelling: `yes` and `1` are more often a slip than a wish.
pub(super) enum Switch {}

impl Kind for Switch {
    type Value = bool;
    const NAME: &'static str = "boolean";

    fn parse(text: &str) -> Result<bool, String> {
        text.to_ascii_lowercase().parse().map_err(|_| "must be true or false".to_owned())
    }
}

/// A place in the file system; a relative one starts at the working directory.
pub(super) enum Directory {}

impl Kind for Directory {
    type Value = PathBuf;
    const NAME: &'static str = "path";

    fn parse(text: &str) -> Result<PathBuf, String> {
        if text.is_empty() {
            return Err("must be a directory, such as ./data".to_owned());
        }
        Ok(PathBuf::from(text))
    }
}

/// A setting that may be absent; an empty text is absence.
pub(super) struct Optional<K>(std::convert::Infallible, std::marker::PhantomData<K>);

impl<K: Kind> Kind for Optional<K> {
    type Value = Option<K::Value>;
    const NAME: &'static str = K::NAME;

    fn parse(text: &str) -> Result<Option<K::Value>, String> {
        if text.is_empty() { Ok(None) } else { K::parse(text).map(Some) }
    }

    fn show(value: &Option<K::Value>) -> Value {
        value.as_ref().map_or(Value::Null, K::show)
    }
}

/// A word out of a few.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident, $message:literal, { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        pub enum $name { $(#[serde(rename = $word)] $variant),+ }

        impl $name {
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl Kind for $name {
            type Value = $name;
            const NAME: &'static str = $message;

            fn parse(text: &str) -> Result<$name, String> {
                match text.to_ascii_lowercase().as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(concat!("must be ", $message).to_owned()),
                }
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

    fn check<K: Kind>(text: &str, expected: &str) {
        let outcome = match K::parse(text) {
            Ok(value) => K::show(&value).to_string(),
            Err(reason) => reason,
        };
        assert_eq!(outcome, expected, "{}: {text:?}", K::NAME);
    }

    #[test]
    fn bounds_of_every_kind() {
        let port = "must be a port from 0 to 65535; 0 picks a free one";
        for (text, expected) in
            [("0", "0"), ("65535", "65535"), ("65536", port), ("-1", port), ("http", port)]
        {
            check::<Port>(text, expected);
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
            check::<Host>(text, expected);
        }
        for (text, expected) in [
            ("", "[]"),
            ("a.example", "[\"a.example\"]"),
            ("a.example, b", "[\"a.example\",\"b\"]"),
            ("a,b:80", &*format!("\"b:80\" {host}")),
        ] {
            check::<Hosts>(text, expected);
        }
        let url = "must be a URL such as http://10.0.0.5:8070";
        for (text, expected) in [
            ("http://a:1/", "\"http://a:1\""),
            ("a:1", url),
            ("http://", url),
            ("http:///x", url),
            ("https://a", url),
        ] {
            check::<HttpUrl>(text, expected);
        }
        check::<Interval>("90s", "\"1m30s\"");
        check::<Interval>("0s", "must be longer than zero, such as 10s");
        check::<Interval>("7", "a number needs a unit: 7s, 7ms, 7m or 7h");
        check::<Millis>("5000", "5000");
        check::<Millis>("5s", "must be a whole number of milliseconds without a unit, such as 5000");
        check::<Millis>("0", "must be at least 1");
        check::<Millis>("18446744073709551615", "must be at most ten years");
        check::<Count<1, 10>>("10", "10");
        check::<Count<1, 10>>("11", "must be a whole number from 1 to 10");
        check::<Count<1, 10>>("2.5", "must be a whole number from 1 to 10");
        check::<Bytes<1024>>("1024", "1024");
        check::<Bytes<1024>>("1023", "must be a whole number of bytes from 1024 to 1099511627776");
        check::<Switch>("True", "true");
        check::<Switch>("yes", "must be true or false");
        check::<Directory>("", "must be a directory, such as ./data");
        check::<Optional<Port>>("", "null");
        check::<Optional<Port>>("80", "80");
        check::<Optional<Port>>("x", port);
        check::<LogLevel>("WARN", "\"warn\"");
        check::<LogLevel>("loud", "must be off, error, warn, info, debug or trace");
        check::<LogFormat>("json", "\"json\"");
    }
}
