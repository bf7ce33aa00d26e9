//! The management API: schedulers, their versions, operations and rooms, for people and tools.

mod locks;
mod operations;
mod regions;
mod resize;
mod rollouts;
mod rooms;
mod schedulers;
mod versions;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::{MethodRouter, delete, get, post};
use maestro_engine::Engine;
use maestro_engine::services::RegionOrder;

use crate::answer::{Answer, View};
use crate::edge::{Route, Spans};
use crate::error::ApiError;
use crate::request::{Asked, Message, Named, User, reason};
use crate::warning::Warnings;
use crate::{Context, Limits};

pub(crate) struct ManagementApi {
    engine: Arc<Engine>,
    pub(crate) body_max_bytes: usize,
}

type Api = State<Arc<ManagementApi>>;

type Answered<T> = Result<Answer<T>, ApiError>;

/// An answer to a message, with warnings about the message.
type AnsweredWithWarnings<T> = Result<(Warnings, Answer<T>), ApiError>;

pub fn management_router(context: &Context, limits: &Limits) -> Router {
    let edge = context.edge("management-api", limits, Spans::Always, Arc::new(|| {}));
    let api = Arc::new(ManagementApi {
        engine: Arc::clone(&context.engine),
        body_max_bytes: limits.body_max_bytes,
    });
    edge.router(routes(), api)
}

fn routes() -> Vec<Route<Arc<ManagementApi>>> {
    vec![
        ("/schedulers", get(schedulers::list).post(schedulers::create)),
        ("/schedulers/info", get(schedulers::info)),
        ("/schedulers/{scheduler_name}", one_scheduler()),
        // Ours: the same for every name, also for a scheduler that is called info.
        ("/scheduler/{scheduler_name}", one_scheduler()),
        ("/schedulers/{scheduler_name}/versions", get(versions::list)),
        ("/schedulers/{scheduler_name}/rollout", get(rollouts::get)),
        ("/schedulers/{scheduler_name}/rollout/pause", post(rollouts::pause)),
        ("/schedulers/{scheduler_name}/rollout/resume", post(rollouts::resume)),
        ("/schedulers/{scheduler_name}/rollout/cancel", post(rollouts::cancel)),
        ("/schedulers/{scheduler_name}/autoscaling", get(schedulers::autoscaling_decisions)),
        ("/schedulers/{scheduler_name}/operations", get(operations::list)),
        ("/schedulers/{scheduler_name}/operations/stuck", get(operations::stuck)),
        ("/schedulers/{scheduler_name}/operations/{operation_id}", get(operations::get)),
        ("/schedulers/{scheduler_name}/operations/{operation_id}/explain", get(operations::explain)),
        ("/schedulers/{scheduler_name}/operations/{operation_id}/cancel", post(operations::cancel)),
        ("/schedulers/{scheduler_name}/locks", get(locks::list)),
        ("/schedulers/{scheduler_name}/locks/{lock_key}", delete(locks::release)),
        // v9's paths.
        ("/scheduler/{scheduler_name}/locks", get(locks::list)),
        ("/scheduler/{scheduler_name}/locks/{lock_key}", delete(locks::release)),
        ("/regions", get(regions::list)),
        ("/regions/{region_name}/cordon", regions::order(RegionOrder::Cordon)),
        ("/regions/{region_name}/drain", regions::order(RegionOrder::Drain)),
        ("/regions/{region_name}/uncordon", regions::order(RegionOrder::Uncordon)),
        ("/regions/{region_name}/confirm-lost", regions::order(RegionOrder::ConfirmLost)),
        ("/schedulers/{scheduler_name}/add-rooms", post(rooms::add)),
        ("/schedulers/{scheduler_name}/remove-rooms", post(rooms::remove)),
        ("/schedulers/{scheduler_name}/resize", post(resize::resize)),
        ("/schedulers/{scheduler_name}/rooms", get(rooms::list).post(resize::create_room)),
        ("/schedulers/{scheduler_name}/rooms/{room_id}", get(rooms::get)),
        ("/schedulers/{scheduler_name}/rooms/{room_id}/logs", get(rooms::logs)),
    ]
}

fn one_scheduler() -> MethodRouter<Arc<ManagementApi>> {
    get(schedulers::get)
        .post(versions::create)
        .patch(versions::patch)
        .put(versions::switch)
        .delete(schedulers::delete)
}

#[cfg(test)]
pub(crate) fn paths() -> Vec<&'static str> {
    routes().into_iter().map(|(path, _)| path).collect()
}
