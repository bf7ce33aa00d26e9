//! The management API: schedulers, their versions, operations and rooms, for people and tools.

mod events;
mod imports;
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
use axum::routing::{MethodFilter, MethodRouter};
use maestro_engine::Engine;
use maestro_proto::v1::events_service::{ListEvents, ReplayEvents};
use maestro_proto::v1::explanations_service::{ExplainOperation, ListStuckOperations};
use maestro_proto::v1::fleet_service::{
    AddRooms, CreateRoom, GetAutoscalingDecisions, GetRoom, GetRoomLogs, ListRooms, RemoveRooms, Resize,
};
use maestro_proto::v1::imports_service::ImportScheduler;
use maestro_proto::v1::locks_service::{ListLocks, ReleaseLock};
use maestro_proto::v1::operations_service::{CancelOperation, GetOperation, ListOperations};
use maestro_proto::v1::regions_service::{
    ConfirmRegionLost, CordonRegion, DrainRegion, ListRegions, UncordonRegion,
};
use maestro_proto::v1::rollouts_service::{CancelRollout, GetRollout, PauseRollout, ResumeRollout};
use maestro_proto::v1::schedulers_service::{
    CreateScheduler, DeleteScheduler, GetScheduler, GetSchedulerVersions, GetSchedulersInfo, ListSchedulers,
    NewSchedulerVersion, PatchScheduler, SwitchActiveVersion,
};

use crate::allocations;
use crate::answer::View;
use crate::edge::{Route, Spans};
use crate::error::ApiError;
use crate::grpc::{self, unary};
use crate::http::{delete, delete_as, get, get_as, post, post_with_reason, put, recipe};
use crate::request::{Api, Call};
use crate::stream;
use crate::warning::Warnings;
use crate::{Context, Limits};

pub(crate) struct ManagementApi {
    engine: Arc<Engine>,
    body_max_bytes: usize,
}

type Management = Arc<ManagementApi>;

type Answered<T> = Result<T, ApiError>;

impl Api for ManagementApi {
    fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn body_max_bytes(&self) -> usize {
        self.body_max_bytes
    }
}

pub fn management_router(context: &Context, limits: &Limits) -> Router {
    let edge = context.edge("management-api", limits, Spans::Always, Arc::new(|| {}));
    let api = Arc::new(ManagementApi {
        engine: Arc::clone(&context.engine),
        body_max_bytes: limits.body_max_bytes,
    });
    edge.router(routes(), grpc::with_standard_services(methods(), &context.engine), api)
}

fn routes() -> Vec<Route<Management>> {
    let mut routes = vec![
        ("/schedulers", get(schedulers::list).merge(recipe(MethodFilter::POST, schedulers::create))),
        ("/schedulers/info", get(schedulers::info)),
        ("/schedulers/{scheduler_name}", one_scheduler()),
        // Ours: the same for every name, also for a scheduler that is called info.
        ("/scheduler/{scheduler_name}", one_scheduler()),
        ("/schedulers/{scheduler_name}/versions", get(versions::list)),
        ("/schedulers/{scheduler_name}/import", post(imports::import)),
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
        ("/schedulers/{scheduler_name}/events", get(events::list)),
        ("/schedulers/{scheduler_name}/events/replay", post(events::replay)),
        ("/schedulers/{scheduler_name}/locks", get_as(locks::list, locks::alone)),
        ("/schedulers/{scheduler_name}/locks/{lock_key}", delete_as(locks::release, locks::no_content)),
        // v9's paths.
        ("/scheduler/{scheduler_name}/locks", get_as(locks::list, locks::alone)),
        ("/scheduler/{scheduler_name}/locks/{lock_key}", delete_as(locks::release, locks::no_content)),
        ("/regions", get(regions::list)),
        ("/regions/{region_name}/cordon", post_with_reason(regions::cordon, |order| &mut order.reason)),
        ("/regions/{region_name}/drain", post_with_reason(regions::drain, |order| &mut order.reason)),
        ("/regions/{region_name}/uncordon", post_with_reason(regions::uncordon, |order| &mut order.reason)),
        (
            "/regions/{region_name}/confirm-lost",
            post_with_reason(regions::confirm_lost, |order| &mut order.reason),
        ),
        ("/schedulers/{scheduler_name}/add-rooms", post(rooms::add)),
        ("/schedulers/{scheduler_name}/remove-rooms", post(rooms::remove)),
        ("/schedulers/{scheduler_name}/resize", post(resize::resize)),
        ("/schedulers/{scheduler_name}/rooms", get(rooms::list).merge(post(resize::create_room))),
        ("/schedulers/{scheduler_name}/rooms/{room_id}", get_as(rooms::get, rooms::alone)),
        ("/schedulers/{scheduler_name}/rooms/{room_id}/logs", get_as(rooms::logs, rooms::text)),
    ];
    routes.extend(allocations::routes());
    routes.extend(stream::routes());
    routes
}

fn one_scheduler() -> MethodRouter<Management> {
    get(schedulers::get)
        .merge(recipe(MethodFilter::POST, versions::create))
        .merge(recipe(MethodFilter::PATCH, versions::patch))
        .merge(put(versions::switch))
        .merge(delete(schedulers::delete))
}

/// The same over gRPC.
fn methods() -> Vec<grpc::Route<Management>> {
    let mut methods = vec![
        unary(ListSchedulers, schedulers::list),
        unary(GetSchedulersInfo, schedulers::info),
        unary(GetScheduler, schedulers::get),
        unary(CreateScheduler, schedulers::create),
        unary(NewSchedulerVersion, versions::create),
        unary(PatchScheduler, versions::patch),
        unary(SwitchActiveVersion, versions::switch),
        unary(DeleteScheduler, schedulers::delete),
        unary(GetSchedulerVersions, versions::list),
        unary(ImportScheduler, imports::import),
        unary(ListOperations, operations::list),
        unary(GetOperation, operations::get),
        unary(CancelOperation, operations::cancel),
        unary(ExplainOperation, operations::explain),
        unary(ListStuckOperations, operations::stuck),
        unary(AddRooms, rooms::add),
        unary(RemoveRooms, rooms::remove),
        unary(Resize, resize::resize),
        unary(CreateRoom, resize::create_room),
        unary(ListRooms, rooms::list),
        unary(GetRoom, rooms::get),
        unary(GetRoomLogs, rooms::logs),
        unary(GetAutoscalingDecisions, schedulers::autoscaling_decisions),
        unary(GetRollout, rollouts::get),
        unary(PauseRollout, rollouts::pause),
        unary(ResumeRollout, rollouts::resume),
        unary(CancelRollout, rollouts::cancel),
        unary(ListEvents, events::list),
        unary(ReplayEvents, events::replay),
        unary(ListLocks, locks::list),
        unary(ReleaseLock, locks::release),
        unary(ListRegions, regions::list),
        unary(CordonRegion, regions::cordon),
        unary(DrainRegion, regions::drain),
        unary(UncordonRegion, regions::uncordon),
        unary(ConfirmRegionLost, regions::confirm_lost),
    ];
    methods.extend(allocations::methods());
    methods.extend(stream::methods());
    methods
}

#[cfg(test)]
pub(crate) fn paths() -> Vec<&'static str> {
    routes().into_iter().map(|(path, _)| path).collect()
}
