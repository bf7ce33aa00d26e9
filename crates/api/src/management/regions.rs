//! Regions: which can be reached, and what people say about them. None of it is in v10.

use maestro_engine::services::{RegionOrder, RegionView};
use maestro_proto::v1::{
    ConfirmRegionLostRequest, ConfirmRegionLostResponse, CordonRegionRequest, CordonRegionResponse,
    DrainRegionRequest, DrainRegionResponse, ListRegionsRequest, ListRegionsResponse, Region,
    UncordonRegionRequest, UncordonRegionResponse,
};

use super::{Answered, ApiError, Call, Management};
use crate::request::reason;

pub(super) async fn list(api: Management, _: Call<ListRegionsRequest>) -> Answered<ListRegionsResponse> {
    let regions = api.engine.regions().await?;
    Ok(ListRegionsResponse { regions: regions.into_iter().map(listed).collect() })
}

pub(super) async fn cordon(
    api: Management,
    call: Call<CordonRegionRequest>,
) -> Answered<CordonRegionResponse> {
    let user = call.user()?;
    let CordonRegionRequest { region_name, reason } = call.message;
    order(&api, RegionOrder::Cordon, &region_name, &user, &reason).await?;
    Ok(CordonRegionResponse {})
}

pub(super) async fn drain(api: Management, call: Call<DrainRegionRequest>) -> Answered<DrainRegionResponse> {
    let user = call.user()?;
    let DrainRegionRequest { region_name, reason } = call.message;
    order(&api, RegionOrder::Drain, &region_name, &user, &reason).await?;
    Ok(DrainRegionResponse {})
}

pub(super) async fn uncordon(
    api: Management,
    call: Call<UncordonRegionRequest>,
) -> Answered<UncordonRegionResponse> {
    let user = call.user()?;
    let UncordonRegionRequest { region_name, reason } = call.message;
    order(&api, RegionOrder::Uncordon, &region_name, &user, &reason).await?;
    Ok(UncordonRegionResponse {})
}

pub(super) async fn confirm_lost(
    api: Management,
    call: Call<ConfirmRegionLostRequest>,
) -> Answered<ConfirmRegionLostResponse> {
    let user = call.user()?;
    let ConfirmRegionLostRequest { region_name, reason } = call.message;
    order(&api, RegionOrder::ConfirmLost, &region_name, &user, &reason).await?;
    Ok(ConfirmRegionLostResponse {})
}

async fn order(
    api: &Management,
    order: RegionOrder,
    region: &str,
    user: &str,
    given: &str,
) -> Result<(), ApiError> {
    api.engine.order_region(region, order, user, reason(given)?).await?;
    Ok(())
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
