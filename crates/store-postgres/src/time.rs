//! The store's time: the server's clock, at the moment at which it is read. (`now()` stands still within a transaction, and
//! would say when somebody began to wait for a lock.)

use maestro_core::time::Timestamp;

use crate::columns::to_time;
use crate::failure::Result;
use crate::session::{Answer, Statement};

/// In microseconds since 1970, as times are kept.
macro_rules! now_sql {
    () => {
        "(extract(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT"
    };
}
pub(crate) use now_sql;

pub(crate) fn now() -> Statement<'static> {
    Statement::new(concat!("SELECT ", now_sql!()), [])
}

/// The answer to [`now`].
pub(crate) fn read(answer: &Answer) -> Result<Timestamp> {
    to_time(answer.value()?.unwrap_or_default(), "clock_timestamp")
}
