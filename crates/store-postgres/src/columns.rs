//! How the domain's values are read from columns.

use maestro_core::allocation::ClaimNumber;
use maestro_core::operation::{OperationId, Token};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::documents::{Unreadable, unknown_value};
use serde_json::Value as Json;
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::failure::{Failure, Result};

/// A row whose columns are read by name: statements and readers stay in step when either is changed.
pub(crate) struct Columns<'a>(pub(crate) &'a Row);

impl<'a> Columns<'a> {
    pub(crate) fn get<T: FromSql<'a>>(&self, column: &'static str) -> Result<T> {
        Ok(self.0.try_get(column)?)
    }

    /// A number that is smaller than the column can hold.
    pub(crate) fn number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T> {
        to_number(self.get(column)?, column)
    }

    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp> {
        to_time(self.get(column)?, column)
    }

    pub(crate) fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>> {
        let at: Option<i64> = self.get(column)?;
        at.map(|at| to_time(at, column)).transpose()
    }

    pub(crate) fn token(&self, column: &'static str) -> Result<Token> {
        self.number(column).map(Token)
    }

    pub(crate) fn claim_number(&self, column: &'static str) -> Result<ClaimNumber> {
        self.number(column).map(ClaimNumber)
    }

    pub(crate) fn operation(&self, column: &'static str) -> Result<OperationId> {
        self.get(column).map(to_operation)
    }

    pub(crate) fn scheduler(&self, column: &'static str) -> Result<SchedulerName> {
        self.parsed(column, |text| SchedulerName::parse(text).ok())
    }

    pub(crate) fn version(&self, column: &'static str) -> Result<Version> {
        self.parsed(column, |text| Version::parse(text).ok())
    }

    pub(crate) fn json(&self, column: &'static str) -> Result<Json> {
        self.parsed(column, |text| serde_json::from_str(text).ok())
    }

    pub(crate) fn parsed<T>(&self, column: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        self.parsed_at(column, column, parse)
    }

    /// At a position: where so many rows are read that looking up names is what they cost most.
    pub(crate) fn parsed_at<T>(
        &self,
        position: impl RowIndex + std::fmt::Display,
        column: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        let text: &str = self.0.try_get(position)?;
        parse(text).ok_or_else(|| unknown_value(column, text).into())
    }

    /// `None` if it is NULL.
    pub(crate) fn optional<T>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let text: Option<&str> = self.get(column)?;
        let Some(text) = text else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| unknown_value(column, text).into())
    }
}

/// What `read` makes of each row.
pub(crate) fn read_rows<T>(rows: &[Row], mut read: impl FnMut(&Columns<'_>) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(|row| read(&Columns(row))).collect()
}

/// Of the first row, if there is one.
pub(crate) fn read_first<T>(rows: &[Row], read: impl FnOnce(&Columns<'_>) -> Result<T>) -> Result<Option<T>> {
    rows.first().map(|row| read(&Columns(row))).transpose()
}

/// Two lists: what `read` makes of the rows that can be read, and what `describe` makes of the others. It is told why they
/// cannot be read.
pub(crate) fn read_each<T, U>(
    what: &'static str,
    rows: &[Row],
    read: impl Fn(&Columns<'_>) -> Result<T>,
    describe: impl Fn(&Columns<'_>, String) -> Result<U>,
) -> Result<(Vec<T>, Vec<U>)> {
    let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
    for columns in rows.iter().map(Columns) {
        match or_unreadable(read(&columns))? {
            Ok(row) => readable.push(row),
            Err(why) => match or_unreadable(describe(&columns, why.to_string()))? {
                Ok(row) => unreadable.push(row),
                // Mostly its name: nobody can ask for it then, and no room can carry it.
                Err(why) => tracing::warn!(%why, "a stored {what} cannot be shown and is left alone"),
            },
        }
    }
    Ok((readable, unreadable))
}

/// The rows that can be read; the others are left alone.
pub(crate) fn read_readable<T>(
    what: &'static str,
    rows: &[Row],
    mut read: impl FnMut(&Columns<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut readable = Vec::with_capacity(rows.len());
    for columns in rows.iter().map(Columns) {
        match or_unreadable(read(&columns))? {
            Ok(row) => readable.push(row),
            Err(why) => tracing::warn!(%why, "a stored {what} is left alone"),
        }
    }
    Ok(readable)
}

/// Where a row that cannot be read must not hide the others: what was read, or why it cannot be.
pub(crate) fn or_unreadable<T>(read: Result<T>) -> Result<Result<T, Unreadable>> {
    match read {
        Ok(row) => Ok(Ok(row)),
        Err(Failure::Unreadable(why)) => Ok(Err(why)),
        Err(other) => Err(other),
    }
}

pub(crate) fn to_number<T: TryFrom<i64>>(number: i64, column: &'static str) -> Result<T> {
    T::try_from(number).map_err(|_| unknown_value(column, number).into())
}

pub(crate) fn to_time(micros: i64, column: &'static str) -> Result<Timestamp> {
    Timestamp::from_microsecond(micros).map_err(|_| unknown_value(column, micros).into())
}

pub(crate) fn to_operation(id: Uuid) -> OperationId {
    OperationId::from_u128(id.as_u128())
}
