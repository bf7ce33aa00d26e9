//! `grpc.health.v1.Health`: whether this server is ready, from where `/readyz` has it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::post_service;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use maestro_engine::Engine;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::{Kind, Route};
use crate::internal::ready_in_time;

const CHECK: &str = "/grpc.health.v1.Health/Check";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// How often readiness is checked for those who watch it.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub(super) fn routes<S>(engine: &Arc<Engine>, services: BTreeSet<String>) -> [Route<S>; 2]
where
    S: Clone + Send + Sync + 'static,
{
    let server = HealthServer::new(Readiness { engine: Arc::clone(engine), services });
    [
        Route { path: CHECK, kind: Kind::Unary, methods: post_service(server.clone()) },
        // Balancers watch for as long as they know this server.
        Route { path: WATCH, kind: Kind::Stream { lasts_max: None }, methods: post_service(server) },
    ]
}

struct Readiness {
    engine: Arc<Engine>,
    services: BTreeSet<String>,
}

impl Readiness {
    /// All services are as ready as the server, which has no name.
    fn knows(&self, service: &str) -> bool {
        service.is_empty() || self.services.contains(service)
    }
}

async fn status(engine: &Engine) -> ServingStatus {
    match ready_in_time(engine.readiness()).await.is_ready {
        true => ServingStatus::Serving,
        false => ServingStatus::NotServing,
    }
}

fn message(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for Readiness {
    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let HealthCheckRequest { service } = request.into_inner();
        if !self.knows(&service) {
            let known = self.services.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let message = format!("service {service:?} is not served here; write one of {known}, or nothing");
            return Err(Status::not_found(message));
        }
        Ok(Response::new(message(status(&self.engine).await)))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let is_known = self.knows(&request.into_inner().service);
        let engine = Arc::clone(&self.engine);
        let changes = stream::unfold(None, move |before| {
            let engine = Arc::clone(&engine);
            async move {
                let mut is_first = before.is_none();
                loop {
                    if !is_first {
                        tokio::time::sleep(CHECK_INTERVAL).await;
                    }
                    is_first = false;
                    let now = if is_known { status(&engine).await } else { ServingStatus::ServiceUnknown };
                    if before != Some(now) {
                        return Some((Ok(message(now)), Some(now)));
                    }
                }
            }
        });
        Ok(Response::new(changes.boxed()))
    }
}
