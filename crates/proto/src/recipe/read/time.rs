//! Lengths of time.

use std::time::Duration;

use maestro_core::time::Millis;

use super::field::{Field, Refused};
use crate::protobuf;

/// What fits in 64 bits of nanoseconds, in which operations show times to clients of v10: 292 years.
const MAX: Duration = Duration::from_nanos(i64::MAX as u64);

const NANOS_PER_MILLI: u32 = 1_000_000;

pub(super) fn above_zero(field: &Field<'_>, wire: protobuf::Duration) -> Result<Duration, Refused> {
    let time = read(field, wire, "longer than zero")?;
    if time.is_zero() {
        return Err(field.refuse("0s is too short; write a time longer than zero, such as \"30s\""));
    }
    Ok(time)
}

pub(super) fn millis_above_zero(field: &Field<'_>, wire: protobuf::Duration) -> Result<Millis, Refused> {
    millis(field, above_zero(field, wire)?)
}

pub(super) fn millis_from_zero(field: &Field<'_>, wire: protobuf::Duration) -> Result<Millis, Refused> {
    millis(field, read(field, wire, "of zero or more")?)
}

fn read(field: &Field<'_>, wire: protobuf::Duration, right: &str) -> Result<Duration, Refused> {
    let protobuf::Duration { seconds, nanos } = wire;
    let (Ok(whole), Ok(nanos @ 0..1_000_000_000)) = (u64::try_from(seconds), u32::try_from(nanos)) else {
        return Err(field.refuse(format!(
            "{seconds} seconds and {nanos} nanoseconds is not a time {right}, such as \"30s\""
        )));
    };
    let time = Duration::new(whole, nanos);
    if time > MAX {
        return Err(field.refuse(format!("{seconds}s is too long; at most {}s", MAX.as_secs())));
    }
    Ok(time)
}

/// Refused rather than rounded: what is printed is what was written.
fn millis(field: &Field<'_>, time: Duration) -> Result<Millis, Refused> {
    match u64::try_from(time.as_millis()) {
        Ok(millis) if time.subsec_nanos().is_multiple_of(NANOS_PER_MILLI) => Ok(Millis(millis)),
        Ok(_) | Err(_) => Err(field.refuse(format!("{time:?} is finer than a millisecond"))),
    }
}
