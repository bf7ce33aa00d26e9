//! gRPC for the same handlers.
//!
//! A method is a route of the same router as the paths of HTTP, so it has the same edge and the same limits. A unary call
//! arrives whole, like every request, and its framing is read and written here ([`unary`]). Methods that answer with a
//! stream are routes of the kind [`Kind::Stream`], whose answers end with the server, with the caller's deadline, or after
//! a time of their own (`stream.rs`). Ours are written there too ([`streaming`]); tonic writes those of services that it has
//! generated, as for health. The only method that also reads a stream is reflection ([`streams_its_request`]).

mod health;
mod reflection;
pub(crate) mod status;
pub(crate) mod stream;
mod timeout;

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream::BoxStream;
use http_body_util::{BodyExt, Full};
use maestro_engine::Engine;
use maestro_proto::rpc::Method;
use prost::Message;

use crate::body;
use crate::error::{ApiError, Code};
use crate::http::Handler;
use crate::request::{Api, Call};
use crate::warning::Warnings;

pub(crate) use timeout::timeout;

/// Before each message: whether it is compressed, and its length.
pub(crate) const FRAME_HEAD_BYTES: usize = 5;

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// A method and what answers it.
pub(crate) struct Route<S> {
    /// `/package.Service/Method`.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    pub(crate) methods: MethodRouter<S>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One message in, one out.
    Unary,
    /// Answers as long as it lasts: until the caller has enough, or this time has passed.
    Stream { lasts_max: Option<Duration> },
}

/// A method that a handler answers. It is the one that HTTP uses.
pub(crate) fn unary<M, A, Q>(_: M, handler: impl Handler<A, Q, M::Response>) -> Route<Arc<A>>
where
    M: Method<Request: Message + Default + 'static, Response: Message + 'static>,
    A: Api,
    Q: TryFrom<M::Request> + Send + 'static,
    ApiError: From<Q::Error>,
{
    let answer = async move |State(api): State<Arc<A>>, request: Request| {
        let answered = async {
            let (headers, message) = read::<M::Request>(request, api.body_max_bytes()).await?;
            let call = Call::new(Q::try_from(message)?, Warnings::default(), &headers);
            handler.answer(api, call).await
        };
        match answered.await {
            Ok(message) => written(&message),
            Err(error) => status::refusal(error),
        }
    };
    Route { path: M::PATH, kind: Kind::Unary, methods: post(answer) }
}

/// A method whose answers come one by one, from a handler that HTTP uses as well.
pub(crate) fn streaming<M, A, H>(_: M, handler: H) -> Route<Arc<A>>
where
    M: Method<Request: Message + Default + Send + 'static, Response: Message + 'static>,
    A: Api,
    H: Handler<A, M::Request, BoxStream<'static, Result<M::Response, ApiError>>>,
{
    let answer = async move |State(api): State<Arc<A>>, request: Request| {
        let answered = async {
            let (headers, message) = read::<M::Request>(request, api.body_max_bytes()).await?;
            handler.answer(api, Call::new(message, Warnings::default(), &headers)).await
        };
        match answered.await {
            Ok(messages) => stream::written(messages),
            Err(error) => status::refusal(error),
        }
    };
    Route { path: M::PATH, kind: Kind::Stream { lasts_max: None }, methods: post(answer) }
}

/// Adds what every gRPC server has: health, and reflection of its services.
pub(crate) fn with_standard_services<S>(mut methods: Vec<Route<S>>, engine: &Arc<Engine>) -> Vec<Route<S>>
where
    S: Clone + Send + Sync + 'static,
{
    let own: BTreeSet<String> = methods.iter().map(|method| service_of(method.path).to_owned()).collect();
    methods.extend(health::routes(engine, own.clone()));
    methods.extend(reflection::routes(&own));
    methods
}

/// Whether a request says that it is one of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = content_type.and_then(|value| value.strip_prefix(CONTENT_TYPE.as_bytes()));
    // Not gRPC-Web.
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// Whether the messages of a request are answered one by one, so that it cannot be waited for as a whole.
pub(crate) fn streams_its_request(path: &str) -> bool {
    reflection::PATHS.contains(&path)
}

/// The service in the path of a method.
fn service_of(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// Refuses what cannot be a call, whatever it calls.
pub(crate) fn check(request: &Request) -> Result<(), ApiError> {
    if !is_grpc(request.headers()) {
        return Err(ApiError::invalid(
            "header Content-Type: this path is for gRPC, which is application/grpc",
        )
        .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    if request.version() != Version::HTTP_2 {
        return Err(ApiError::invalid("gRPC is spoken over HTTP/2 only"));
    }
    match request.headers().get(GRPC_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(()),
        Some(encoding) => {
            let encoding = String::from_utf8_lossy(encoding);
            let message =
                format!("header grpc-encoding: {encoding:?} is not supported; send messages as they are");
            Err(ApiError::new(Code::Unimplemented, message).with_status(StatusCode::BAD_REQUEST))
        }
    }
}

/// The one message of a unary call.
async fn read<Q: Message + Default>(request: Request, max_bytes: usize) -> Result<(HeaderMap, Q), ApiError> {
    let (parts, body) = request.into_parts();
    let body = body::read(body, max_bytes.saturating_add(FRAME_HEAD_BYTES)).await?;
    let message = Q::decode(framed(body)?).map_err(|error| ApiError::invalid(format!("message: {error}")))?;
    Ok((parts.headers, message))
}

/// The bytes of the only message in a body.
fn framed(mut body: Bytes) -> Result<Bytes, ApiError> {
    let Some(&[compressed, ref length @ ..]) = body.first_chunk::<FRAME_HEAD_BYTES>() else {
        return Err(ApiError::invalid("message: is missing"));
    };
    let length = u32::from_be_bytes(*length) as usize;
    let message = body.split_off(FRAME_HEAD_BYTES);
    if compressed != 0 {
        return Err(ApiError::invalid("message: is compressed, without a header grpc-encoding"));
    }
    if message.len() != length {
        let (has, rest) = (message.len(), "a call has one message");
        return Err(ApiError::invalid(format!("message: says {length} bytes, and has {has}; {rest}")));
    }
    Ok(message)
}

fn written(message: &impl Message) -> Response {
    match frame(message) {
        Ok(frame) => answer(Full::new(frame).with_trailers(ready(Some(Ok(ok_trailers()))))),
        Err(error) => status::refusal(error),
    }
}

/// A message with its head.
fn frame(message: &impl Message) -> Result<Bytes, ApiError> {
    let length = message.encoded_len();
    let written_length = u32::try_from(length)
        .map_err(|_| ApiError::new(Code::Internal, "the answer is too long for gRPC"))?;
    let mut frame = BytesMut::with_capacity(FRAME_HEAD_BYTES + length);
    frame.put_u8(0);
    frame.put_u32(written_length);
    message.encode_raw(&mut frame);
    Ok(frame.freeze())
}

fn ok_trailers() -> HeaderMap {
    HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("0"))])
}

fn answer<B>(body: B) -> Response
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_frame(body: &[u8], outcome: Result<&[u8], &str>) {
        let framed = framed(Bytes::copy_from_slice(body));
        let framed = framed.as_deref().map_err(|error| error.message().to_owned());
        assert_eq!(framed, outcome.map_err(str::to_owned), "{body:?}");
    }

    #[test]
    fn one_message_and_nothing_else() {
        check_frame(&[0, 0, 0, 0, 0], Ok(&[]));
        check_frame(&[0, 0, 0, 0, 2, 7, 8], Ok(&[7, 8]));
        check_frame(&[], Err("message: is missing"));
        check_frame(&[0, 0, 0, 0], Err("message: is missing"));
        check_frame(&[1, 0, 0, 0, 1, 7], Err("message: is compressed, without a header grpc-encoding"));
        check_frame(&[0, 0, 0, 0, 2, 7], Err("message: says 2 bytes, and has 1; a call has one message"));
        check_frame(
            &[0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0],
            Err("message: says 1 bytes, and has 6; a call has one message"),
        );
        check_frame(
            &[0, 255, 255, 255, 255],
            Err("message: says 4294967295 bytes, and has 0; a call has one message"),
        );
    }

    #[test]
    fn what_says_that_it_is_grpc() {
        for (content_type, expected) in [
            (Some("application/grpc"), true),
            (Some("application/grpc+proto"), true),
            (Some("application/grpc;charset=utf-8"), true),
            (Some("application/grpc-web+proto"), false),
            (Some("application/json"), false),
            (None, false),
        ] {
            let pairs = content_type.map(|value| (header::CONTENT_TYPE, HeaderValue::from_static(value)));
            assert_eq!(is_grpc(&pairs.into_iter().collect()), expected, "{content_type:?}");
        }
    }
}
