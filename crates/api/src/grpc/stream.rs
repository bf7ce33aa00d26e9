//! Answers that last: their capacity is held while they do, and they end in time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::status;
use crate::error::{ApiError, Code};
use crate::metrics::InFlight;

/// Travels with a request: changes, or is closed, when the server stops.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(pub(crate) watch::Receiver<()>);

/// Travels with an answer that lasts: its connection is in use until its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lasting;

/// What goes with a stream until it ends.
pub(crate) type Held = (OwnedSemaphorePermit, InFlight);

/// The answer, which ends when the server does, or when it has lasted that long.
pub(crate) fn bounded(
    response: Response,
    lasts_max: Option<Duration>,
    stopping: Option<Stopping>,
    held: Held,
) -> Response {
    let end = end(lasts_max, stopping).boxed();
    let mut response = response.map(|body| Body::new(Stream { body, end, held: Some(held), is_over: false }));
    response.extensions_mut().insert(Lasting);
    response
}

/// Why a stream ends that its caller did not end.
async fn end(lasts_max: Option<Duration>, stopping: Option<Stopping>) -> ApiError {
    let stopped = async {
        match stopping {
            // An error means that the sender is gone, which is an end too.
            Some(Stopping(mut stopping)) => drop(stopping.changed().await),
            None => std::future::pending().await,
        }
    };
    let expired = async {
        match lasts_max {
            Some(lasts_max) => tokio::time::sleep(lasts_max).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = stopped => ApiError::new(Code::Unavailable, "the server is stopping; call again"),
        () = expired => ApiError::new(Code::DeadlineExceeded, "the stream has lasted as long as it may"),
    }
}

struct Stream {
    body: Body,
    end: BoxFuture<'static, ApiError>,
    /// Given back with the end, which the client may be slow to take.
    held: Option<Held>,
    is_over: bool,
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(error) = this.end.as_mut().poll(context) {
            this.is_over = true;
            this.held = None;
            let trailers: HeaderMap = status::trailers(&error);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let frame = Pin::new(&mut this.body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = &frame {
            this.is_over = true;
            this.held = None;
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // It may end early.
        SizeHint::default()
    }
}
