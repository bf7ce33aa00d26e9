//! What the answer to a delivery means, and when to try again.

use crate::time::Millis;
use crate::words::words;

words! {
    /// The codes of gRPC, as Go names them.
    pub enum RpcCode {
        Ok = "OK",
        Canceled = "Canceled",
        Unknown = "Unknown",
        InvalidArgument = "InvalidArgument",
        DeadlineExceeded = "DeadlineExceeded",
        NotFound = "NotFound",
        AlreadyExists = "AlreadyExists",
        PermissionDenied = "PermissionDenied",
        ResourceExhausted = "ResourceExhausted",
        FailedPrecondition = "FailedPrecondition",
        Aborted = "Aborted",
        OutOfRange = "OutOfRange",
        Unimplemented = "Unimplemented",
        Internal = "Internal",
        Unavailable = "Unavailable",
        DataLoss = "DataLoss",
        Unauthenticated = "Unauthenticated",
    }
}

impl RpcCode {
    /// What the code in a receiver's reply stands for: it is counted, and decides nothing.
    pub fn of_reply(code: i32) -> Self {
        match code {
            200 => Self::Ok,
            404 => Self::NotFound,
            406 => Self::FailedPrecondition,
            500 => Self::Internal,
            _ => Self::Unknown,
        }
    }
}

/// What becomes of a queued event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryVerdict {
    Delivered,
    Retry,
    /// It is a dead letter: kept for people to look at, and tried again only if they ask for it.
    Dead,
}

/// `code`: of the call. A receiver that replied has the event, whatever the code in its reply says, as in v10. `waited`: since
/// the event was queued.
pub fn verdict(code: RpcCode, waited: Millis, keep_for: Millis) -> DeliveryVerdict {
    match code {
        RpcCode::Ok => DeliveryVerdict::Delivered,
        // No later attempt could have another answer.
        RpcCode::InvalidArgument | RpcCode::Unimplemented => DeliveryVerdict::Dead,
        RpcCode::Canceled
        | RpcCode::Unknown
        | RpcCode::DeadlineExceeded
        | RpcCode::NotFound
        | RpcCode::AlreadyExists
        | RpcCode::PermissionDenied
        | RpcCode::ResourceExhausted
        | RpcCode::FailedPrecondition
        | RpcCode::Aborted
        | RpcCode::OutOfRange
        | RpcCode::Internal
        | RpcCode::Unavailable
        | RpcCode::DataLoss
        | RpcCode::Unauthenticated => match waited < keep_for {
            true => DeliveryVerdict::Retry,
            false => DeliveryVerdict::Dead,
        },
    }
}

const RETRY_FIRST: Millis = Millis::from_seconds(1);
pub const RETRY_MOST: Millis = Millis::from_seconds(60);

/// How long to wait after so many attempts, the last of which has just failed: twice as long each time, up to the most, less
/// up to a half of it, so that those who failed together do not come back together. `draw` is any number.
pub fn retry_in(attempts: u32, draw: u64) -> Millis {
    let doublings = attempts.saturating_sub(1).min(16);
    let span = RETRY_FIRST.0.saturating_mul(1 << doublings).min(RETRY_MOST.0);
    Millis(span - draw % (span / 2 + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_and_what_they_mean() {
        let day = Millis::from_seconds(24 * 3600);
        for code in RpcCode::ALL {
            let [early, late] = [Millis(0), day].map(|waited| verdict(code, waited, day));
            let expected = match code {
                RpcCode::Ok => (DeliveryVerdict::Delivered, DeliveryVerdict::Delivered),
                RpcCode::InvalidArgument | RpcCode::Unimplemented => {
                    (DeliveryVerdict::Dead, DeliveryVerdict::Dead)
                }
                _ => (DeliveryVerdict::Retry, DeliveryVerdict::Dead),
            };
            assert_eq!((early, late), expected, "{code}");
        }
        assert_eq!(verdict(RpcCode::Unavailable, Millis(day.0 - 1), day), DeliveryVerdict::Retry);
    }

    #[test]
    fn replies_are_counted_as_v10_counts_them() {
        let codes = [200, 404, 406, 500, 0, 201, -1].map(RpcCode::of_reply);
        assert_eq!(
            codes.map(RpcCode::as_str),
            ["OK", "NotFound", "FailedPrecondition", "Internal", "Unknown", "Unknown", "Unknown"]
        );
    }

    #[test]
    fn without_jitter_the_wait_doubles_to_a_minute() {
        let waits: Vec<u64> = (0..=9).map(|attempts| retry_in(attempts, 0).0).collect();
        assert_eq!(waits, [1000, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    }

    proptest! {
        #[test]
        fn jitter_takes_away_up_to_a_half(attempts: u32, draw: u64) {
            let (most, wait) = (retry_in(attempts, 0), retry_in(attempts, draw));
            prop_assert!(wait <= most && wait.0 * 2 >= most.0 && wait <= RETRY_MOST);
        }
    }
}
