//! Reading a request's body, bounded.

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::error::{ApiError, Code};

/// The whole body. Small ones arrive in one piece, which is handed on without copying.
pub(crate) async fn read(mut body: Body, max_bytes: usize) -> Result<Bytes, ApiError> {
    // What announces itself as too long is not read at all.
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_long(max_bytes));
    }
    let Some(first) = next_piece(&mut body).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > max_bytes {
        return Err(too_long(max_bytes));
    }
    let Some(second) = next_piece(&mut body).await? else {
        return Ok(first);
    };
    let mut whole = BytesMut::with_capacity(first.len() + second.len());
    whole.extend_from_slice(&first);
    let mut piece = second;
    loop {
        if whole.len() + piece.len() > max_bytes {
            return Err(too_long(max_bytes));
        }
        whole.extend_from_slice(&piece);
        match next_piece(&mut body).await? {
            Some(next) => piece = next,
            None => return Ok(whole.freeze()),
        }
    }
}

async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, ApiError> {
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else {
            return Ok(None);
        };
        let frame = frame.map_err(|error| ApiError::invalid(format!("body: {error}")))?;
        // Trailers are not data; there is nothing in them for us.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn too_long(max_bytes: usize) -> ApiError {
    let message = format!("body: longer than the {max_bytes} bytes that are accepted here");
    ApiError::new(Code::ResourceExhausted, message)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

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
}
