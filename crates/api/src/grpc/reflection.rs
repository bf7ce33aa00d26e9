//! `grpc.reflection`: the schema, for tools that have none.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::routing::post_service;
use maestro_proto::FILE_DESCRIPTOR_SET;
use tonic_reflection::server::Builder;

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
    let standard = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"].map(str::to_owned);
    let configured = || {
        let builder = Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // What errors carry.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET);
        services.iter().chain(&standard).fold(builder, |builder, name| builder.with_service_name(name))
    };
    let v1 = configured().build_v1().expect("the build has compiled the schema");
    let v1_alpha = configured().build_v1alpha().expect("the build has compiled the schema");
    [
        Route {
            path: V1,
            kind: KIND,
            methods: post_service(v1.max_decoding_message_size(REQUEST_MAX_BYTES)),
        },
        Route {
            path: V1_ALPHA,
            kind: KIND,
            methods: post_service(v1_alpha.max_decoding_message_size(REQUEST_MAX_BYTES)),
        },
    ]
}
