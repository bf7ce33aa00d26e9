//! Reading a request's body, bounded.

use std::fmt;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use crate::error::{ApiError, Code, TOO_MANY_REQUESTS};

/// Why there is no body.
#[derive(Debug)]
pub(crate) enum BodyError {
    TooLong {
        max_bytes: usize,
    },
    /// It did not come in time, and others of its connection did.
    TooSlow {
        timeout: Duration,
    },
    /// So much of so many bodies has arrived that no more of them can be kept.
    NoCapacity,
    Broken(String),
}

/// A body that could not be received: whoever reads it is told why.
pub(crate) fn unreceived(error: BodyError) -> Body {
    Body::new(StreamBody::new(stream::iter([Err::<Frame<Bytes>, _>(error)])))
}

/// The whole body.
pub(crate) async fn read(body: Body, max_bytes: usize) -> Result<Bytes, ApiError> {
    receive(body, max_bytes, |_| true).await.map_err(ApiError::from)
}

/// The whole body. Small ones arrive in one piece, which is handed on without copying; the pieces of others are kept
/// only if `keep` agrees to so many more bytes.
pub(crate) async fn receive<B>(
    mut body: B,
    max_bytes: usize,
    mut keep: impl FnMut(usize) -> bool,
) -> Result<Bytes, BodyError>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: fmt::Display + Into<axum::BoxError>,
{
    // What announces itself as too long is not read at all.
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(BodyError::TooLong { max_bytes });
    }
    let Some(first) = next_piece(&mut body).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > max_bytes {
        return Err(BodyError::TooLong { max_bytes });
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = BytesMut::new();
    let mut piece = Some(first);
    while let Some(more) = piece {
        if whole.len() + more.len() > max_bytes {
            return Err(BodyError::TooLong { max_bytes });
        }
        if !keep(more.len()) {
            return Err(BodyError::NoCapacity);
        }
        whole.extend_from_slice(&more);
        piece = next_piece(&mut body).await?;
    }
    Ok(whole.freeze())
}

async fn next_piece<B>(body: &mut B) -> Result<Option<Bytes>, BodyError>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: fmt::Display + Into<axum::BoxError>,
{
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else {
            return Ok(None);
        };
        let frame = frame.map_err(|error| {
            let text = error.to_string();
            let unreceived = error.into().downcast::<axum::Error>().ok().map(|error| error.into_inner());
            let known = unreceived.and_then(|error| error.downcast::<BodyError>().ok());
            known.map_or(BodyError::Broken(text), |error| *error)
        })?;
        // Trailers are not data; there is nothing in them for us.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { max_bytes } => {
                write!(f, "body: longer than the limit of {max_bytes} bytes")
            }
            Self::TooSlow { timeout } => write!(f, "body: not complete within {timeout:?}"),
            Self::NoCapacity => f.write_str(TOO_MANY_REQUESTS),
            Self::Broken(why) => write!(f, "body: {why}"),
        }
    }
}

impl std::error::Error for BodyError {}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let message = error.to_string();
        match error {
            BodyError::TooLong { .. } => Self::new(Code::ResourceExhausted, message),
            BodyError::TooSlow { .. } => {
                Self::new(Code::DeadlineExceeded, message).with_status(StatusCode::REQUEST_TIMEOUT)
            }
            BodyError::NoCapacity => Self::too_many_requests(),
            BodyError::Broken(_) => Self::invalid(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(pieces: &[&'static str], outcome: Result<&str, ()>) {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())))
            .collect();
        let read = read(Body::from_stream(stream::iter(pieces)), 8).await;
        let outcome = outcome.map(|text| Bytes::copy_from_slice(text.as_bytes()));
        assert_eq!(read.map_err(|_| ()), outcome);
    }

    #[tokio::test]
    async fn pieces_become_one_and_the_limit_holds() {
        check(&[], Ok("")).await;
        check(&["12345678"], Ok("12345678")).await;
        check(&["1234", "56", "78"], Ok("12345678")).await;
        check(&["123456789"], Err(())).await;
        check(&["1234", "5678", "9"], Err(())).await;
    }

    #[tokio::test]
    async fn what_announces_itself_as_too_long_is_not_read() {
        let read = read(Body::from("123456789"), 8).await;
        assert!(read.is_err());
    }

    #[tokio::test]
    async fn pieces_that_may_not_be_kept_are_not() {
        let pieces =
            ["1", "2", "3"].map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())));
        let mut left = 2;
        let read = receive(Body::from_stream(stream::iter(pieces)), 8, |bytes| {
            left -= i64::try_from(bytes).unwrap();
            left >= 0
        });
        assert!(matches!(read.await, Err(BodyError::NoCapacity)));
    }

    #[tokio::test]
    async fn why_a_body_was_not_received_is_told_to_whoever_reads_it() {
        for (error, message) in [
            (BodyError::TooLong { max_bytes: 7 }, "body: longer than the limit of 7 bytes"),
            (BodyError::TooSlow { timeout: Duration::from_secs(10) }, "body: not complete within 10s"),
            (BodyError::NoCapacity, "too many requests at once; try again in a second"),
            (BodyError::Broken("gone".into()), "body: gone"),
        ] {
            let told = read(unreceived(error), 8).await.unwrap_err();
            assert_eq!(told.message(), message);
        }
    }
}
