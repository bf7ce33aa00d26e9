//! Rooms for matchmakers, the same on both APIs.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maestro_core::allocation::{AllocationRequest, AllocationState, Wish};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::Version;
use maestro_core::time::Millis;
use maestro_core::violation::{Violation, Violations};
use maestro_engine::ports::store::AllocationPageRequest;
use maestro_engine::services::ExpectedMatch;
use maestro_engine::{AllocationView, Error};
use maestro_proto::protobuf::Struct;
use maestro_proto::v1::allocations_service::{
    CreateAllocations, GetAllocation, ListAllocations, ReturnAllocation,
};
use maestro_proto::v1::{
    self, Allocation, CreateAllocationsRequest, CreateAllocationsResponse, GetAllocationRequest,
    GetAllocationResponse, ListAllocationsRequest, ListAllocationsResponse, ReturnAllocationRequest,
    ReturnAllocationResponse,
};
use serde_json::{Map, Value};

use crate::answer::port;
use crate::edge::Route;
use crate::error::ApiError;
use crate::grpc::{self, unary};
use crate::http::{self, delete_as, post};
use crate::page::{Page, asked_page};
use crate::request::{Api, Call};

pub(crate) fn routes<A: Api>() -> Vec<Route<Arc<A>>> {
    vec![
        ("/schedulers/{scheduler_name}/allocations", post(create::<A>).merge(http::get(list::<A>))),
        (
            "/schedulers/{scheduler_name}/allocations/{allocation_id}",
            http::get(get::<A>).merge(delete_as(return_room::<A>, no_content)),
        ),
    ]
}

/// The same over gRPC.
pub(crate) fn methods<A: Api>() -> Vec<grpc::Route<Arc<A>>> {
    vec![
        unary(CreateAllocations, create::<A>),
        unary(ListAllocations, list::<A>),
        unary(GetAllocation, get::<A>),
        unary(ReturnAllocation, return_room::<A>),
    ]
}

async fn create<A: Api>(
    api: Arc<A>,
    call: Call<CreateAllocationsRequest>,
) -> Result<CreateAllocationsResponse, ApiError> {
    // A wish that is not understood must not be passed over: the room would not be the one that was wished for.
    if !call.warnings.is_empty() {
        return Err(ApiError::invalid(call.warnings.to_string()));
    }
    let scheduler = call.message.scheduler_name.clone();
    let request = read(call.message).map_err(Error::from)?;
    let allocated = api.engine().allocate(&scheduler, request).await?;
    Ok(CreateAllocationsResponse { allocations: allocated.into_iter().map(allocation).collect() })
}

async fn list<A: Api>(
    api: Arc<A>,
    call: Call<ListAllocationsRequest>,
) -> Result<ListAllocationsResponse, ApiError> {
    let page = asked_list(&call.message)?;
    let (number, page_size) = (page.page, page.page_size);
    let list = api.engine().allocations(&call.message.scheduler_name, page).await?;
    Ok(ListAllocationsResponse {
        allocations: list.allocations.into_iter().map(allocation).collect(),
        total: list.total,
        page: number,
        page_size,
    })
}

async fn get<A: Api>(
    api: Arc<A>,
    call: Call<GetAllocationRequest>,
) -> Result<GetAllocationResponse, ApiError> {
    let GetAllocationRequest { scheduler_name, allocation_id } = call.message;
    let found = api.engine().allocation(&scheduler_name, &allocation_id).await?;
    Ok(GetAllocationResponse { allocation: Some(allocation(found)) })
}

async fn return_room<A: Api>(
    api: Arc<A>,
    call: Call<ReturnAllocationRequest>,
) -> Result<ReturnAllocationResponse, ApiError> {
    let ReturnAllocationRequest { scheduler_name, allocation_id } = call.message;
    api.engine().return_allocation(&scheduler_name, &allocation_id).await?;
    Ok(ReturnAllocationResponse {})
}

fn no_content(_: ReturnAllocationResponse) -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// What is asked for; everything that cannot be read, by its field. What is out of bounds is the engine's to say.
fn read(message: CreateAllocationsRequest) -> Result<AllocationRequest, Violations> {
    let CreateAllocationsRequest {
        scheduler_name: _,
        request_id,
        count,
        wishes,
        wait_millis,
        ttl_millis,
        metadata,
    } = message;
    let mut violations = Vec::new();
    let wishes = wishes.into_iter().enumerate().map(|(place, wish)| read_wish(place, wish, &mut violations));
    let wishes = wishes.collect();
    match violations.is_empty() {
        true => Ok(AllocationRequest {
            request_id: (!request_id.is_empty()).then(|| request_id.into()),
            count: count.unwrap_or(1),
            wishes,
            wait: Millis(wait_millis.into()),
            ttl: ttl_millis.map(|millis| Millis(millis.into())),
            metadata: metadata.map(|metadata| text(metadata).into()),
        }),
        false => Err(Violations(violations)),
    }
}

fn read_wish(place: usize, wish: v1::Wish, violations: &mut Vec<Violation>) -> Wish {
    let v1::Wish { regions, version, metadata } = wish;
    let mut read_regions = Vec::with_capacity(regions.len());
    for (index, name) in regions.iter().enumerate() {
        match Region::parse(name) {
            Ok(region) => read_regions.push(region),
            Err(reason) => {
                violations.push(Violation::new(format!("wishes[{place}].regions[{index}]"), reason));
            }
        }
    }
    let version = match version.as_str() {
        "" => None,
        text => Version::parse(text)
            .map_err(|reason| violations.push(Violation::new(format!("wishes[{place}].version"), reason)))
            .ok(),
    };
    let metadata: Map<String, Value> = metadata.map(Map::from).unwrap_or_default();
    Wish { regions: read_regions, version, metadata: metadata.into_iter().collect() }
}

fn asked_list(request: &ListAllocationsRequest) -> Result<AllocationPageRequest, ApiError> {
    let ListAllocationsRequest { scheduler_name: _, state, room, page, per_page, page_size } = request;
    let Page { number, size } = asked_page(*page, *per_page, *page_size)?;
    let words = || AllocationState::ALL.map(AllocationState::as_str).join(", ");
    let wrong = || ApiError::invalid(format!("query parameter state: {state:?} must be one of {}", words()));
    let state = match state.as_str() {
        "" => None,
        word => Some(AllocationState::parse(word).ok_or_else(wrong)?),
    };
    let room = (!room.is_empty()).then(|| RoomId::new(room));
    Ok(AllocationPageRequest { page: number, page_size: size, state, room })
}

fn allocation(view: AllocationView) -> Allocation {
    Allocation {
        id: view.id.to_string(),
        room_id: view.room.to_string(),
        state: view.state.as_str().to_owned(),
        host: view.host.to_string(),
        ports: view.ports.iter().cloned().map(port).collect(),
        region: view.region.map_or_else(String::new, |region| region.to_string()),
        version: view.version.map_or_else(String::new, |version| version.to_string()),
        created_at: Some(view.created_at.into()),
        expires_at: Some(view.expires_at.into()),
        metadata: Some(view.metadata.as_deref().map(object).unwrap_or_default()),
        cause: view.cause,
        request_id: view.request_id.map_or_else(String::new, |id| id.to_string()),
        ended_at: view.ended_at.map(Into::into),
    }
}

pub(crate) fn expected(expected: &ExpectedMatch) -> v1::ExpectedMatch {
    v1::ExpectedMatch {
        id: expected.id.to_string(),
        metadata: Some(expected.metadata.as_deref().map(object).unwrap_or_default()),
        expires_at: Some(expected.expires_at.into()),
    }
}

/// What is stored was an object when it came.
fn object(text: &str) -> Struct {
    serde_json::from_str(text).unwrap_or_default()
}

fn text(object: Struct) -> String {
    Value::Object(object.into()).to_string()
}

#[cfg(test)]
mod tests {
    use maestro_proto::json::decode;

    use super::*;

    fn asked(json: &str) -> Result<AllocationRequest, String> {
        let message = decode::<CreateAllocationsRequest>(json.as_bytes()).unwrap().message;
        read(message).map_err(|violations| violations.to_string())
    }

    #[test]
    fn requests() {
        assert_eq!(asked(""), Ok(AllocationRequest::default()));
        assert_eq!(asked("{}"), Ok(AllocationRequest::default()));
        let request = asked(
            r#"{"requestId":"a","count":3,"waitMillis":5000,"ttlMillis":60000,"metadata":{"map":"ruins"},
                "wishes":[{"regions":["eu","us"],"version":"v1.2.3","metadata":{"level":3}},{}]}"#,
        );
        let request = request.unwrap();
        assert_eq!(request.request_id.as_deref(), Some("a"));
        assert_eq!((request.count, request.wait, request.ttl), (3, Millis(5000), Some(Millis(60000))));
        assert_eq!(request.metadata.as_deref(), Some(r#"{"map":"ruins"}"#));
        let [first, second] = request.wishes.as_slice() else { panic!("{:?}", request.wishes) };
        assert!(first.accepts(Some(r#"{"level":3}"#)), "a whole number stays one");
        assert_eq!(first.regions.len(), 2);
        assert_eq!(first.version, Version::parse("v1.2.3").ok());
        assert_eq!(*second, Wish::default());
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let wrong = asked(r#"{"wishes":[{},{"regions":["eu","-"],"version":"two"}]}"#).unwrap_err();
        assert!(wrong.contains("wishes[1].regions[1]: ") && wrong.contains("wishes[1].version: "), "{wrong}");
    }

    #[test]
    fn pages() {
        let page = |state: &str, page, per_page| {
            let state = state.to_owned();
            let request =
                ListAllocationsRequest { state, page, per_page, ..ListAllocationsRequest::default() };
            asked_list(&request).map_err(|error| error.message().to_owned())
        };
        let first = page("", None, None).unwrap();
        assert_eq!((first.page, first.page_size, first.state), (1, 15, None));
        assert_eq!(page("held", None, None).unwrap().state, Some(AllocationState::Held));
        assert_eq!(page("", None, Some(101)).unwrap_err(), "page size must be between 1 and 100, and is 101");
        let words = "held, begun, returned, expired, lost";
        let message = format!(r#"query parameter state: "open" must be one of {words}"#);
        assert_eq!(page("open", None, None).unwrap_err(), message);
    }
}
