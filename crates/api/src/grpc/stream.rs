//! Answers that last: their capacity is held while they do, and they end in time.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use http_body_util::StreamBody;
use hyper::body::{Frame, SizeHint};
use prost::Message;
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

/// How a stream says why it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Farewell {
    /// By a status behind the last message.
    Status,
    /// By a comment between events.
    Comment,
}

/// The answer, which ends when the server does, or when it has lasted that long.
pub(crate) fn bounded(
    response: Response,
    lasts_max: Option<Duration>,
    stopping: Option<Stopping>,
    farewell: Farewell,
    held: Held,
) -> Response {
    let end = end(lasts_max, stopping).boxed();
    let lasting = |body| Body::new(LastingBody { body, end, farewell, held: Some(held), is_over: false });
    let mut response = response.map(lasting);
    response.extensions_mut().insert(Lasting);
    response
}

/// Messages one by one, and how they ended.
pub(super) fn written<M: Message + 'static>(
    messages: impl Stream<Item = Result<M, ApiError>> + Send + 'static,
) -> Response {
    let frames = messages.map(|message| message.and_then(|message| super::frame(&message)));
    // Nothing follows an error.
    let frames = frames.scan(false, |has_ended, frame| {
        let has_more = !std::mem::replace(has_ended, frame.is_err());
        ready(has_more.then_some(frame))
    });
    let frames = frames.map(|frame| match frame {
        Ok(frame) => Frame::data(frame),
        Err(error) => Frame::trailers(status::trailers(&error)),
    });
    let end = stream::once(ready(Frame::trailers(super::ok_trailers())));
    super::answer(StreamBody::new(frames.chain(end).map(Ok::<_, Infallible>)))
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

struct LastingBody {
    body: Body,
    end: BoxFuture<'static, ApiError>,
    farewell: Farewell,
    /// Given back with the end, which the client may be slow to take.
    held: Option<Held>,
    is_over: bool,
}

impl HttpBody for LastingBody {
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
            let last = match this.farewell {
                Farewell::Status => Frame::trailers(status::trailers(&error)),
                Farewell::Comment => Frame::data(Bytes::from(format!(": {}\n\n", error.message))),
            };
            return Poll::Ready(Some(Ok(last)));
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
