//! How the domain's values are written into columns.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use maestro_core::allocation::{AllocationId, ClaimNumber};
use maestro_core::event::EventId;
use maestro_core::operation::{OperationId, Token};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{QueueId, TransactionId};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// A parameter of a statement. It knows its type also if it is NULL, so that no statement has to be described by the
/// server before it is sent.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Bool(Option<bool>),
    Int(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Id(Option<Uuid>),
    Ints(Vec<i64>),
    Texts(Vec<Cow<'a, str>>),
    Ids(Vec<Uuid>),
}

impl Value<'_> {
    pub(crate) fn type_of(&self) -> Type {
        match self {
            Self::Bool(_) => Type::BOOL,
            Self::Int(_) => Type::INT8,
            Self::Text(_) => Type::TEXT,
            Self::Id(_) => Type::UUID,
            Self::Ints(_) => Type::INT8_ARRAY,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Ids(_) => Type::UUID_ARRAY,
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Bool(value) => value.to_sql(kind, out),
            Self::Int(value) => value.to_sql(kind, out),
            Self::Text(value) => value.as_deref().map(without_nul).to_sql(kind, out),
            Self::Id(value) => value.to_sql(kind, out),
            Self::Ints(values) => values.to_sql(kind, out),
            Self::Texts(values) => {
                let values: Vec<_> = values.iter().map(|text| without_nul(text)).collect();
                values.to_sql(kind, out)
            }
            Self::Ids(values) => values.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// PostgreSQL keeps every character but this one, which no text needs.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

/// The parameters of a statement, `$1` first.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::value::Value::from($value)),*] };
}
pub(crate) use values;

/// `$type` is written like this, and as NULL if there is none.
macro_rules! written {
    ($($type:ty => $kind:ident: |$value:ident| $written:expr;)*) => { $(
        impl<'a> From<$type> for Value<'a> {
            fn from($value: $type) -> Self {
                Self::$kind(Some($written))
            }
        }

        impl<'a> From<Option<$type>> for Value<'a> {
            fn from(value: Option<$type>) -> Self {
                Self::$kind(value.map(|$value: $type| $written))
            }
        }
    )* };
}

written! {
    bool => Bool: |value| value;
    i64 => Int: |value| value;
    u32 => Int: |value| value.into();
    u16 => Int: |value| value.into();
    // No text, list or number of ours comes near the limit.
    usize => Int: |value| i64::try_from(value).unwrap_or(i64::MAX);
    // Microseconds: finer than anything that is decided on, and all of time fits.
    Timestamp => Int: |value| value.as_microsecond();
    Millis => Int: |value| micros(value);
    Token => Int: |value| i64::try_from(value.0).unwrap_or(i64::MAX);
    ClaimNumber => Int: |value| i64::try_from(value.0).unwrap_or(i64::MAX);
    QueueId => Int: |value| value.0;
    &'a str => Text: |value| value.into();
    String => Text: |value| value.into();
    &'a String => Text: |value| value.into();
    Version => Text: |value| value.to_string().into();
    &'a SchedulerName => Text: |value| value.as_str().into();
    &'a RoomId => Text: |value| value.as_str().into();
    &'a Region => Text: |value| value.as_str().into();
    OperationId => Id: |value| Uuid::from_bytes(*value.as_bytes());
    AllocationId => Id: |value| Uuid::from_bytes(*value.as_bytes());
    EventId => Id: |value| Uuid::from_bytes(*value.as_bytes());
    TransactionId => Id: |value| Uuid::from_u128(value.0);
}

impl From<Vec<i64>> for Value<'_> {
    fn from(values: Vec<i64>) -> Self {
        Self::Ints(values)
    }
}

impl<'a> From<Vec<&'a str>> for Value<'a> {
    fn from(values: Vec<&'a str>) -> Self {
        Self::Texts(values.into_iter().map(Cow::from).collect())
    }
}

impl From<Vec<String>> for Value<'_> {
    fn from(values: Vec<String>) -> Self {
        Self::Texts(values.into_iter().map(Cow::from).collect())
    }
}

impl From<Vec<Uuid>> for Value<'_> {
    fn from(values: Vec<Uuid>) -> Self {
        Self::Ids(values)
    }
}

/// A length of time as times are kept.
fn micros(length: Millis) -> i64 {
    i64::try_from(length.0.saturating_mul(1000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_without_nul() {
        for (text, written) in [("", ""), ("a b", "a b"), ("a\0b\0", "a\u{FFFD}b\u{FFFD}")] {
            let mut out = BytesMut::new();
            Value::from(text).to_sql(&Type::TEXT, &mut out).unwrap();
            assert_eq!(out, written.as_bytes());
        }
    }
}
