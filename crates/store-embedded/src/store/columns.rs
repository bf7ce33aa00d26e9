//! How the domain's values are kept in columns, and read again.

use maestro_core::allocation::ClaimNumber;
use maestro_core::operation::{OperationId, Token};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::documents::{Unreadable, unknown_value};
use rusqlite::types::{FromSql, ToSql, Value as SqlValue, ValueRef};
use rusqlite::{Connection, OptionalExtension, Params, Row, RowIndex, params_from_iter};
use serde_json::Value;

use super::failure::{Failure, Result};

/// Microseconds: finer than anything that is decided on, and all of time fits.
pub(super) fn from_time(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// SQLite's integers are signed. The sequence begins at 1 and is incremented: it never gets here.
pub(super) fn from_token(token: Token) -> i64 {
    i64::try_from(token.0).unwrap_or(i64::MAX)
}

/// Nobody claims a room so often that it would matter that they are signed.
pub(super) fn from_claim_number(number: ClaimNumber) -> i64 {
    i64::try_from(number.0).unwrap_or(i64::MAX)
}

pub(super) fn from_id(id: OperationId) -> String {
    id.to_string()
}

/// A row whose columns are read by name: statements and readers stay in step when either is changed.
pub(super) struct Columns<'a, 'b>(pub(super) &'a Row<'b>);

impl Columns<'_, '_> {
    pub(super) fn get<T: FromSql>(&self, column: &'static str) -> Result<T> {
        Ok(self.0.get(column)?)
    }

    pub(super) fn time(&self, column: &'static str) -> Result<Timestamp> {
        to_time(self.get(column)?, column)
    }

    pub(super) fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>> {
        let at: Option<i64> = self.get(column)?;
        at.map(|at| to_time(at, column)).transpose()
    }

    pub(super) fn token(&self, column: &'static str) -> Result<Token> {
        to_token(self.get(column)?)
    }

    pub(super) fn id(&self, column: &'static str) -> Result<OperationId> {
        self.parsed(column, OperationId::parse)
    }

    pub(super) fn scheduler(&self, column: &'static str) -> Result<SchedulerName> {
        self.parsed(column, |text| SchedulerName::parse(text).ok())
    }

    pub(super) fn version(&self, column: &'static str) -> Result<Version> {
        self.parsed(column, |text| Version::parse(text).ok())
    }

    pub(super) fn json(&self, column: &'static str) -> Result<Value> {
        self.parsed(column, |text| serde_json::from_str(text).ok())
    }

    pub(super) fn parsed<T>(&self, column: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        self.parsed_at(column, column, parse)
    }

    /// At a position: where so many rows are read that looking up names is what they cost most.
    pub(super) fn parsed_at<T>(
        &self,
        position: impl RowIndex,
        column: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        let text = self.0.get_ref(position)?.as_str().map_err(rusqlite::Error::from)?;
        parse(text).ok_or_else(|| unknown_value(column, text).into())
    }

    /// `None` if it is NULL.
    pub(super) fn optional<T>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.0.get_ref(column)? {
            ValueRef::Null => Ok(None),
            _ => self.parsed(column, parse).map(Some),
        }
    }
}

pub(super) fn execute(connection: &Connection, sql: &str, parameters: impl Params) -> Result {
    execute_counted(connection, sql, parameters).map(drop)
}

/// How many rows it changed.
pub(super) fn execute_counted(connection: &Connection, sql: &str, parameters: impl Params) -> Result<usize> {
    Ok(connection.prepare_cached(sql)?.execute(parameters)?)
}

/// A row as it is written: its columns and their values.
pub(super) type Values<'a> = &'a [(&'static str, &'a dyn ToSql)];

/// `into`: `INSERT INTO rooms`, or what else begins a statement that adds a row. How many rows it added.
pub(super) fn insert(connection: &Connection, into: &str, row: Values<'_>) -> Result<usize> {
    let columns: Vec<_> = row.iter().map(|(column, _)| *column).collect();
    let sql = format!("{into} ({}) VALUES ({})", columns.join(", "), vec!["?"; columns.len()].join(", "));
    execute_counted(connection, &sql, params_from_iter(row.iter().map(|(_, value)| value)))
}

/// Whether the table has exactly this row, as far as its columns are named.
pub(super) fn has_row(connection: &Connection, table: &str, row: Values<'_>) -> Result<bool> {
    let conditions: Vec<_> = row.iter().map(|(column, _)| format!("{column} IS ?")).collect();
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {})", conditions.join(" AND "));
    value(connection, &sql, params_from_iter(row.iter().map(|(_, value)| value)))
}

/// A condition of SQL that grows, and its values in order.
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<SqlValue>,
}

impl Condition {
    pub(super) fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), values: Vec::new() }
    }

    /// Only if there is a value.
    pub(super) fn and<T: Into<SqlValue>>(&mut self, sql: &str, value: Option<T>) {
        if let Some(value) = value {
            self.sql.push_str(" AND ");
            self.sql.push_str(sql);
            self.values.push(value.into());
        }
    }

    pub(super) fn count(&self, connection: &Connection, table: &str) -> Result<u32> {
        let sql = format!("SELECT count(*) FROM {table} WHERE {}", self.sql);
        value(connection, &sql, params_from_iter(&self.values))
    }
}

/// The only value of the only row.
pub(super) fn value<T: FromSql>(connection: &Connection, sql: &str, parameters: impl Params) -> Result<T> {
    Ok(connection.prepare_cached(sql)?.query_row(parameters, |row| row.get(0))?)
}

/// The same where there may be no row.
pub(super) fn find<T: FromSql>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<Option<T>> {
    Ok(connection.prepare_cached(sql)?.query_row(parameters, |row| row.get(0)).optional()?)
}

/// What `read` makes of each row.
pub(super) fn read_rows<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    mut read: impl FnMut(&Columns<'_, '_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(&Columns(row))?);
    }
    Ok(found)
}

/// Two lists: what `read` makes of the rows that can be read, and what `describe` makes of the others. It is told why they
/// cannot be read.
pub(super) fn read_each<T, U>(
    connection: &Connection,
    what: &'static str,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Columns<'_, '_>) -> Result<T>,
    describe: impl Fn(&Columns<'_, '_>, String) -> Result<U>,
) -> Result<(Vec<T>, Vec<U>)> {
    let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
    read_rows(connection, sql, parameters, |columns| {
        match or_unreadable(read(columns))? {
            Ok(row) => readable.push(row),
            Err(why) => match or_unreadable(describe(columns, why.to_string()))? {
                Ok(row) => unreadable.push(row),
                // Mostly its name: nobody can ask for it then, and no room can carry it.
                Err(why) => tracing::warn!(%why, "a stored {what} cannot be shown and is left alone"),
            },
        }
        Ok(())
    })?;
    Ok((readable, unreadable))
}

/// Where a row that cannot be read must not hide the others: what was read, or why it cannot be.
pub(super) fn or_unreadable<T>(read: Result<T>) -> Result<Result<T, Unreadable>> {
    match read {
        Ok(row) => Ok(Ok(row)),
        Err(Failure::Unreadable(why)) => Ok(Err(why)),
        Err(other) => Err(other),
    }
}

pub(super) fn to_token(number: i64) -> Result<Token> {
    let number = u64::try_from(number).map_err(|_| unknown_value("token", number))?;
    Ok(Token(number))
}

pub(super) fn to_claim_number(number: i64) -> Result<ClaimNumber> {
    let number = u64::try_from(number).map_err(|_| unknown_value("claim number", number))?;
    Ok(ClaimNumber(number))
}

pub(super) fn to_time(micros: i64, column: &'static str) -> Result<Timestamp> {
    Timestamp::from_microsecond(micros).map_err(|_| unknown_value(column, micros).into())
}
