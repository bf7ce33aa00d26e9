//! Regions: which can be reached, and what people say about them. None of it is in v10.

use axum::extract::State;
use maestro_engine::services::{RegionOrder, RegionView};
use maestro_proto::v1::{
    ConfirmRegionLostRequest, ConfirmRegionLostResponse, CordonRegionRequest, CordonRegionResponse,
    DrainRegionRequest, DrainRegionResponse, ListRegionsResponse, Region, UncordonRegionRequest,
    UncordonRegionResponse,
};

use super::{Api, ManagementApi};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::request::{Asked, Message, Named, User, reason};
use crate::warning::Warnings;

type Ordered<T> = Result<(Warnings, Answer<T>), ApiError>;

pub(super) async fn list(State(api): Api) -> Result<Answer<ListRegionsResponse>, ApiError> {
    let regions = api.engine.regions().await?;
    Ok(Answer(ListRegionsResponse { regions: regions.into_iter().map(listed).collect() }))
}

pub(super) async fn cordon(
    State(api): Api,
    Named(name): Named<String>,
    User(user): User,
    Asked(query): Asked<CordonRegionRequest>,
    Message { message, warnings }: Message<CordonRegionRequest>,
) -> Ordered<CordonRegionResponse> {
    order(&api, &name, RegionOrder::Cordon, &user, [&query.reason, &message.reason]).await?;
    Ok((warnings, Answer(CordonRegionResponse {})))
}

pub(super) async fn drain(
    State(api): Api,
    Named(name): Named<String>,
    User(user): User,
    Asked(query): Asked<DrainRegionRequest>,
    Message { message, warnings }: Message<DrainRegionRequest>,
) -> Ordered<DrainRegionResponse> {
    order(&api, &name, RegionOrder::Drain, &user, [&query.reason, &message.reason]).await?;
    Ok((warnings, Answer(DrainRegionResponse {})))
}

pub(super) async fn uncordon(
    State(api): Api,
    Named(name): Named<String>,
    User(user): User,
    Asked(query): Asked<UncordonRegionRequest>,
    Message { message, warnings }: Message<UncordonRegionRequest>,
) -> Ordered<UncordonRegionResponse> {
    order(&api, &name, RegionOrder::Uncordon, &user, [&query.reason, &message.reason]).await?;
    Ok((warnings, Answer(UncordonRegionResponse {})))
}

pub(super) async fn confirm_lost(
    State(api): Api,
    Named(name): Named<String>,
    User(user): User,
    Asked(query): Asked<ConfirmRegionLostRequest>,
    Message { message, warnings }: Message<ConfirmRegionLostRequest>,
) -> Ordered<ConfirmRegionLostResponse> {
    order(&api, &name, RegionOrder::ConfirmLost, &user, [&query.reason, &message.reason]).await?;
    Ok((warnings, Answer(ConfirmRegionLostResponse {})))
}

/// The first reason that is given counts.
async fn order(
    api: &ManagementApi,
    name: &str,
    order: RegionOrder,
    user: &str,
    reasons: [&String; 2],
) -> Result<(), ApiError> {
    let given = reasons.into_iter().find(|reason| !reason.trim().is_empty());
    let reason = reason(given.map_or("", String::as_str))?;
    Ok(api.engine.order_region(name, order, user, reason).await?)
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
