//! Requests from the parameters of a query, `?stage=final&perPage=15`, which are all text.

use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

/// A parameter that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("query{}{parameter}: {reason}", if .parameter.is_empty() { "" } else { " parameter " })]
pub struct QueryError {
    /// Empty if it is not one of them alone that is wrong.
    pub parameter: String,
    pub reason: String,
}

/// Reads a request from decoded names and values. Names may be in either spelling; unknown ones are
/// ignored, as v10 does.
pub fn decode_query<'a, T>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<T, QueryError>
where
    T: Deserialize<'a>,
{
    let entries = parameters.into_iter().map(|(name, text)| (name, Parameter(text)));
    let mut track = serde_path_to_error::Track::new();
    let deserializer = MapDeserializer::<_, Error>::new(entries);
    let outcome = T::deserialize(serde_path_to_error::Deserializer::new(deserializer, &mut track));
    outcome.map_err(|error| QueryError {
        parameter: track.path().iter().map(ToString::to_string).collect(),
        reason: error.to_string(),
    })
}

/// A text that is whatever the field it is meant for needs.
struct Parameter<'a>(&'a str);

impl<'a> IntoDeserializer<'a, Error> for Parameter<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Parameter<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            "true" | "1" => visitor.visit_bool(true),
            "false" | "0" => visitor.visit_bool(false),
            text => Err(Error::invalid_value(Unexpected::Str(text), &"true or false")),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::v1::{DeleteSchedulerRequest, ListOperationsRequest, ListSchedulersRequest};

    #[test]
    fn parameters() {
        let read = decode_query::<ListOperationsRequest>([
            ("stage", "final"),
            ("order_by", "createdAt asc"),
            ("page", "2"),
            ("perPage", "50"),
            ("noAction", "true"),
            ("colour", "red"),
        ]);
        let expected = ListOperationsRequest {
            stage: "final".into(),
            order_by: "createdAt asc".into(),
            page: Some(2),
            per_page: Some(50),
            no_action: true,
            ..ListOperationsRequest::default()
        };
        assert_eq!(read, Ok(expected));
        assert_eq!(
            decode_query([("name", "true")]).map(|request: ListSchedulersRequest| request.name),
            Ok("true".into())
        );
    }

    #[test]
    fn parameters_that_cannot_be_read() {
        let refused =
            |name, text| decode_query::<ListOperationsRequest>([(name, text)]).unwrap_err().to_string();
        expect![[r#"query parameter page: invalid value: string "two", expected a whole number of 32 bits, not negative"#]].assert_eq(&refused("page", "two"));
        expect![[r#"query parameter per_page: invalid value: string "-1", expected a whole number of 32 bits, not negative"#]].assert_eq(&refused("per_page", "-1"));
        expect![[r#"query parameter noAction: invalid value: string "perhaps", expected true or false"#]]
            .assert_eq(&refused("noAction", "perhaps"));
        let twice = decode_query::<DeleteSchedulerRequest>([("force", "1"), ("force", "0")]).unwrap_err();
        expect!["query: duplicate field `force`"].assert_eq(&twice.to_string());
    }
}
