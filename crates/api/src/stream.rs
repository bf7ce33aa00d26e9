//! What happens, as it happens, the same on both APIs: as server-sent events, and over gRPC.
//!
//! A reader pulls: nothing is read, and nothing written as JSON, before its connection takes it.

mod data;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt, future};
use maestro_engine::services::{EventReader, Told};
use maestro_proto::v1::events::Watch;
use maestro_proto::v1::{StreamEvent, WatchEventsRequest};
use tokio::time::{Instant, timeout_at};

use crate::edge::Route;
use crate::error::ApiError;
use crate::grpc;
use crate::http::from_query_and_path;
use crate::request::{Api, Call};

/// Takes precedence over the query: a browser that connects again sends the query of the first time.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Proxies and clients take a connection for dead that says nothing for a minute or so.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a browser waits before it connects again: the server may be on its way up.
const BEGINNING: &str = "retry: 1000\n\n";

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// A proxy that collects an answer before it passes it on, or keeps it, would pass on nothing.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const BUFFERING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

pub(crate) fn routes<A: Api>() -> Vec<Route<Arc<A>>> {
    vec![("/events", on(MethodFilter::GET, sent_events::<A>))]
}

/// The same over gRPC.
pub(crate) fn methods<A: Api>() -> Vec<grpc::Route<Arc<A>>> {
    let one_by_one = async |api: Arc<A>, call: Call<WatchEventsRequest>| {
        let batches = watch(api, call).await?;
        Ok(batches.map_ok(|batch| stream::iter(batch.events.into_iter().map(Ok))).try_flatten().boxed())
    };
    vec![grpc::streaming(Watch, one_by_one)]
}

/// What a reader gets at once.
struct Batch {
    /// None: nothing has happened for a while.
    events: Vec<StreamEvent>,
    /// Up to where it knows everything that it wants to.
    seen: Option<String>,
}

type Batches = BoxStream<'static, Result<Batch, ApiError>>;

async fn watch<A: Api>(api: Arc<A>, call: Call<WatchEventsRequest>) -> Result<Batches, ApiError> {
    let WatchEventsRequest { scheduler, types, last_event_id, follow } = call.message;
    let reader = api.engine().watch_events(&scheduler, &types, &last_event_id).await?;
    let watching = Watching { reader, follows: follow.unwrap_or(true) };
    let batches = stream::unfold(Some(watching), async |watching| {
        let mut watching = watching?;
        match watching.next().await {
            Ok(Some(batch)) => Some((Ok(batch), Some(watching))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(batches.boxed())
}

async fn sent_events<A: Api>(State(api): State<Arc<A>>, request: Request) -> Result<Response, ApiError> {
    let last_id =
        request.headers().get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let mut call = from_query_and_path::<WatchEventsRequest>(request).await?;
    if let Some(last_id) = last_id {
        call.message.last_event_id = last_id;
    }
    let batches = watch(api, call).await?;
    let lines = batches.map_ok(|batch| Bytes::from(text_of(&batch)));
    let beginning = stream::once(future::ready(Ok(Bytes::from_static(BEGINNING.as_bytes()))));
    let mut response = Response::new(Body::from_stream(beginning.chain(ended_by_errors(lines))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(BUFFERING.0, BUFFERING.1);
    Ok(response)
}

/// An error ends the stream as a server that stops does: whoever reads asks again, and is told then.
fn ended_by_errors(
    lines: impl stream::Stream<Item = Result<Bytes, ApiError>> + Send,
) -> impl stream::Stream<Item = Result<Bytes, std::convert::Infallible>> + Send {
    let says = |error: ApiError| Bytes::from(format!(": {}\n\n", error.message.replace(['\r', '\n'], " ")));
    lines.map(move |line| Ok(line.unwrap_or_else(says)))
}

fn text_of(batch: &Batch) -> String {
    let mut text = String::new();
    for event in &batch.events {
        // Written into a text, which cannot fail.
        let _ = write!(text, "id: {}\nevent: {}\n", event.id, event.r#type);
        let json = serde_json::to_string(event).unwrap_or_default();
        let _ = write!(text, "data: {json}\n\n");
    }
    if batch.events.is_empty() {
        // An id without data is remembered and not told: who connects again need not read again what it did not want.
        let _ = match &batch.seen {
            Some(seen) => write!(text, ": keep-alive\nid: {seen}\n\n"),
            None => write!(text, ": keep-alive\n\n"),
        };
    }
    text
}

struct Watching {
    reader: EventReader,
    follows: bool,
}

impl Watching {
    /// `None`: that was all.
    async fn next(&mut self) -> Result<Option<Batch>, ApiError> {
        let keep_alive_at = Instant::now() + KEEP_ALIVE;
        loop {
            let told = self.reader.read().await?;
            let is_idle = Instant::now() >= keep_alive_at;
            if told.is_empty() && !self.follows {
                return Ok(None);
            }
            if !told.is_empty() || is_idle {
                let seen = self.reader.seen().map(|seen| seen.to_string());
                return Ok(Some(Batch { events: told.iter().map(message).collect(), seen }));
            }
            // In time or not, there may be something.
            if let Ok(waited) = timeout_at(keep_alive_at, self.reader.wait()).await {
                waited?;
            }
        }
    }
}

fn message(told: &Told) -> StreamEvent {
    match told {
        Told::Event(id, event) => StreamEvent {
            id: id.to_string(),
            at: Some(event.at.into()),
            r#type: event.what.event_type().to_string(),
            scheduler: event.scheduler.as_ref().map_or_else(String::new, ToString::to_string),
            subject: event.what.subject(),
            data: Some(data::of(&event.what)),
        },
        Told::Reset { seen, at, cause } => StreamEvent {
            id: seen.to_string(),
            at: Some((*at).into()),
            r#type: "reset".to_owned(),
            scheduler: String::new(),
            subject: String::new(),
            data: Some(data::of_reset(*cause)),
        },
    }
}
