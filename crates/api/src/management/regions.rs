//! Regions: which can be reached, and what people say about them. None of it is in v10.

use std::sync::Arc;

use axum::routing::{MethodRouter, post};
use maestro_engine::services::{RegionOrder, RegionView};
use maestro_proto::v1::{CordonRegionRequest, CordonRegionResponse, ListRegionsResponse, Region};

use super::{Answer, Answered, Api, ApiError, Asked, ManagementApi, Message, Named, State, User, reason};

pub(super) async fn list(State(api): Api) -> Answered<ListRegionsResponse> {
    let regions = api.engine.regions().await?;
    Ok(Answer(ListRegionsResponse { regions: regions.into_iter().map(listed).collect() }))
}

/// Answers one kind of order about a region. Their requests are alike: a reason, in the query or in the body; the first
/// that is given counts.
pub(super) fn order(order: RegionOrder) -> MethodRouter<Arc<ManagementApi>> {
    let handle = async move |State(api): Api,
                             Named(name): Named<String>,
                             User(user): User,
                             Asked(query): Asked<CordonRegionRequest>,
                             Message { message, warnings }: Message<CordonRegionRequest>| {
        let given = [&query.reason, &message.reason].into_iter().find(|reason| !reason.trim().is_empty());
        let reason = reason(given.map_or("", String::as_str))?;
        api.engine.order_region(&name, order, &user, reason).await?;
        Ok::<_, ApiError>((warnings, Answer(CordonRegionResponse {})))
    };
    post(handle)
}

fn listed(view: RegionView) -> Region {
    let RegionView { name, reachable, cordoned, draining, reason, capacity, rooms } = view;
    Region {
        name: name.to_string(),
        reachable,
        cordoned,
        draining,
        reason,
        capacity: capacity.map(|rooms| u64::from(rooms).into()),
        rooms: rooms.iter().map(|(status, rooms)| (status.as_str().to_owned(), rooms)).collect(),
    }
}
