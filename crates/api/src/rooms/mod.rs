//! The rooms API: what game rooms and matchmakers call.
//!
//! Old clients look at nothing but `success`. So what is wrong with a request as such is a 400, and everything that
//! goes wrong after that is a 200 with `success: false`.

mod failures;
mod ping;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, put};
use bytes::Bytes;
use maestro_engine::Engine;
use maestro_engine::ports::room_table::PingError;
use maestro_engine::services::RoomPing;

use self::failures::Failures;
use self::ping::Said;
use crate::edge::Spans;
use crate::error::{ApiError, json};
use crate::{Context, Limits, body};

#[derive(Debug, Clone)]
pub struct RoomsOptions {
    pub limits: Limits,
    /// Mounts `GET /bench/empty`, which does nothing: what a benchmark compares the ping with.
    pub empty_route: bool,
}

impl Default for RoomsOptions {
    fn default() -> Self {
        Self {
            limits: Limits::ROOMS,
            empty_route: false,
        }
    }
}

struct RoomsApi {
    engine: Arc<Engine>,
    failures: Failures,
    body_max_bytes: usize,
}

pub fn rooms_router(context: &Context, options: &RoomsOptions) -> Router {
    let edge = context.edge("rooms-api", &options.limits, Spans::WhenDebugging);
    let api = Arc::new(RoomsApi {
        engine: Arc::clone(&context.engine),
        failures: Failures::new(context.metrics.clone()),
        body_max_bytes: options.limits.body_max_bytes,
    });
    // The ping and the deprecated status update say the same thing.
    let mut router = Router::new()
        .route(
            "/scheduler/{scheduler_name}/rooms/{room_name}/ping",
            edge.route("/scheduler/:schedulerName/rooms/:roomID/ping", put(update)),
        )
        .route(
            "/scheduler/{scheduler_name}/rooms/{room_name}/status",
            edge.route("/scheduler/:schedulerName/rooms/:roomID/status", put(update)),
        );
    if options.empty_route {
        router = router.route("/bench/empty", edge.route("/bench/empty", get(empty)));
    }
    edge.with_fallback(router.with_state(api))
}

async fn update(State(api): State<Arc<RoomsApi>>, request: Request) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    let body = body::read(body, api.body_max_bytes).await?;
    let said = Said::decode(&body)?;
    let decoded;
    let (scheduler, room) = match names(parts.uri.path()) {
        Some(names) => names,
        None => {
            decoded = decoded_names(&mut parts).await?;
            (decoded.0.as_str(), decoded.1.as_str())
        }
    };
    let ping = RoomPing {
        scheduler,
        room,
        status: said.status,
        matches: said.matches,
        metadata: said.metadata,
    };
    Ok(success(api.deliver(ping).await))
}

impl RoomsApi {
    async fn deliver(&self, ping: RoomPing<'_>) -> bool {
        let RoomPing { scheduler, room, .. } = ping;
        let Err(error) = self.engine.ping(ping).await else {
            return true;
        };
        match &error {
            PingError::UnknownRoom | PingError::Refused { .. } => {
                tracing::debug!(scheduler_name = scheduler, room_id = room, %error, "ping refused");
            }
            PingError::Table(_) => {
                tracing::error!(scheduler_name = scheduler, room_id = room, %error, "ping failed");
            }
        }
        self.failures.count(&self.engine, scheduler).await;
        false
    }
}

fn success(success: bool) -> Response {
    const TRUE: Bytes = Bytes::from_static(br#"{"success":true}"#);
    const FALSE: Bytes = Bytes::from_static(br#"{"success":false}"#);
    json(if success { TRUE } else { FALSE })
}

/// Scheduler and room in `/scheduler/{}/rooms/{}/…`, borrowed; `None` if they must be decoded first.
fn names(path: &str) -> Option<(&str, &str)> {
    if path.contains('%') {
        return None;
    }
    let mut segments = path.split('/').skip(2);
    let scheduler = segments.next()?;
    let room = segments.nth(1)?;
    Some((scheduler, room))
}

async fn decoded_names(parts: &mut Parts) -> Result<(String, String), ApiError> {
    let names = Path::<(String, String)>::from_request_parts(parts, &()).await;
    names
        .map(|Path(names)| names)
        .map_err(|error| ApiError::invalid(format!("path: {}", error.body_text())))
}

async fn empty() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_path_as_it_is() {
        assert_eq!(
            names("/scheduler/arena/rooms/arena-1/ping"),
            Some(("arena", "arena-1"))
        );
        assert_eq!(names("/scheduler/arena/rooms/arena%2d1/ping"), None);
    }
}
