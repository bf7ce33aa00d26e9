//! A body of an answer that keeps something until its end, or until nobody reads it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// What is kept, and dropped with the body.
pub(super) trait Kept: Send + Unpin + 'static {
    /// The client takes more. Not called while it takes nothing.
    fn goes_on(&self) {}
}

struct Keeping<K> {
    body: Body,
    kept: K,
}

pub(super) fn keeping(response: Response, kept: impl Kept) -> Response {
    response.map(|body| Body::new(Keeping { body, kept }))
}

impl<K: Kept> HttpBody for Keeping<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(context);
        if frame.is_ready() {
            this.kept.goes_on();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
