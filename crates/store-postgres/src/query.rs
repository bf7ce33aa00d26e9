//! A question that grows with what is asked for.

use crate::session::Statement;
use crate::value::Value;

pub(crate) struct Query<'a> {
    sql: String,
    values: Vec<Value<'a>>,
}

impl<'a> Query<'a> {
    pub(crate) fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), values: Vec::new() }
    }

    pub(crate) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// The next parameter.
    pub(crate) fn bind(&mut self, value: impl Into<Value<'a>>) -> &mut Self {
        self.values.push(value.into());
        self.sql.push_str(&format!("${}", self.values.len()));
        self
    }

    /// One more condition, if there is a value.
    pub(crate) fn and<T: Into<Value<'a>>>(&mut self, sql: &str, value: Option<T>) {
        if let Some(value) = value {
            self.push(" AND ").push(sql).bind(value);
        }
    }
}

impl<'a> From<Query<'a>> for Statement<'a> {
    fn from(Query { sql, values }: Query<'a>) -> Self {
        Self { sql: sql.into(), values }
    }
}
