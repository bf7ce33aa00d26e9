//! `grpc.reflection`: the schema, for tools that have none.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use maestro_proto::FILE_DESCRIPTOR_SET;
use tonic_reflection::server::Builder;
use tower::Service;

use super::{Kind, Route};

/// Tools ask for one or the other.
const V1: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const V1_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
pub(super) const PATHS: [&str; 2] = [V1, V1_ALPHA];

/// A tool reads what it needs at once, and people who explore can connect again.
const KIND: Kind = Kind::Stream { lasts_max: Some(Duration::from_secs(60)) };

/// Symbols and files are what tools ask for: those are short.
const REQUEST_MAX_BYTES: usize = 4096;

/// Lists these services and the standard ones.
pub(super) fn routes<S>(services: &BTreeSet<String>) -> [Route<S>; 2]
where
    S: Clone + Send + Sync + 'static,
{
    let standard = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];
    let names: Vec<String> = services.iter().cloned().chain(standard.map(str::to_owned)).collect();
    let names_of_alpha = names.clone();
    let v1 = move || {
        let built = schema(&names).build_v1().expect("the build has compiled the schema");
        built.max_decoding_message_size(REQUEST_MAX_BYTES)
    };
    let v1_alpha = move || {
        let built = schema(&names_of_alpha).build_v1alpha().expect("the build has compiled the schema");
        built.max_decoding_message_size(REQUEST_MAX_BYTES)
    };
    [
        Route { path: V1, kind: KIND, methods: built_when_asked(v1) },
        Route { path: V1_ALPHA, kind: KIND, methods: built_when_asked(v1_alpha) },
    ]
}

fn schema(services: &[String]) -> Builder<'static> {
    let builder = Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // What errors carry.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET);
    services.iter().fold(builder, |builder, name| builder.with_service_name(name))
}

/// Indexing the schema takes milliseconds of a start, and most servers are never asked for it.
fn built_when_asked<S, T, B>(build: B) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
    T: Service<Request, Response = Response<tonic::body::Body>, Error = Infallible, Future: Send>,
    T: Clone + Send + Sync + 'static,
    B: Fn() -> T + Send + Sync + 'static,
{
    let built = Arc::new((OnceLock::new(), build));
    post(async move |request: Request| -> Response {
        let (service, build) = &*built;
        let mut service = service.get_or_init(build).clone();
        let Ok(answer) = service.call(request).await;
        answer.map(Body::new)
    })
}
