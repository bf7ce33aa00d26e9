//! Another size of a fleet, or one room more. Neither is in v10; a resize is written as Senlin's CLUSTER_RESIZE is.

use maestro_core::resize::{Draft, Number, Strictness};
use maestro_core::violation::{Violation, Violations};
use maestro_engine::Error;
use maestro_engine::services::ResizeOrder;
use maestro_proto::v1::{CreateRoomRequest, CreateRoomResponse, ResizeRequest, ResizeResponse};
use serde_json::{Map, Value};

use super::{Answered, Call, Management};

pub(super) async fn resize(api: Management, call: Call<ResizeRequest>) -> Answered<ResizeResponse> {
    let (user, force, scheduler) = (call.user()?, call.message.force, call.message.scheduler_name.clone());
    let order = order(call.message).map_err(|violations| Error::from(Violations(violations)))?;
    let id = api.engine.resize(&scheduler, &order, force, &user).await?;
    Ok(ResizeResponse { operation_id: id.to_string() })
}

pub(super) async fn create_room(
    api: Management,
    call: Call<CreateRoomRequest>,
) -> Answered<CreateRoomResponse> {
    let user = call.user()?;
    let CreateRoomRequest { scheduler_name: scheduler, region, force } = call.message;
    let id = api.engine.create_room(&scheduler, region.as_deref(), force, &user).await?;
    Ok(CreateRoomResponse { operation_id: id.to_string() })
}

/// What JSON alone can be wrong about; what the numbers mean together is for the engine to judge.
fn order(request: ResizeRequest) -> Result<ResizeOrder, Vec<Violation>> {
    let ResizeRequest {
        scheduler_name: _,
        adjustment_type,
        number,
        min_size,
        max_size,
        min_step,
        strict,
        force: _,
    } = request;
    let (given_number, given_strict) = (number.map(Value::from), strict.map(Value::from));
    let mut violations = Vec::new();
    let number = given_number.as_ref().and_then(|given| number_of(given).transpose()).transpose();
    let number = number.map_err(|reason| violations.push(Violation::new("number", reason)));
    let strictness = strictness(given_strict.as_ref());
    let strictness = strictness.map_err(|reason| violations.push(Violation::new("strict", reason)));
    let (Ok(number), Ok(strictness)) = (number, strictness) else {
        return Err(violations);
    };
    if adjustment_type.is_none() && number.is_none() && min_size.is_none() && max_size.is_none() {
        return Err(vec![Violation::new("number", "is missing, and no other field gives a size")]);
    }
    let asked = [
        ("adjustment_type", adjustment_type.as_deref().map(Value::from)),
        ("number", given_number),
        ("min_size", min_size.map(Value::from)),
        ("max_size", max_size.map(Value::from)),
        ("min_step", min_step.map(Value::from)),
        ("strict", given_strict),
    ];
    let asked: Map<_, _> =
        asked.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let [min_step, min_size, max_size] = [min_step, min_size, max_size].map(|size| size.map(i64::from));
    let draft = Draft { adjustment_type, number, min_step, min_size, max_size };
    Ok(ResizeOrder { draft, strictness, asked: Value::Object(asked) })
}

/// Also as text, which is how numbers are read elsewhere. Null is not set.
fn number_of(given: &Value) -> Result<Option<Number>, String> {
    match given {
        Value::Null => Ok(None),
        Value::Number(number) => Number::parse(&number.to_string()).map(Some),
        Value::String(text) => Number::parse(text).map(Some),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(format!("{given} is not a number")),
    }
}

/// Not there at all is true, as it is to Senlin's API; null is neither.
fn strictness(given: Option<&Value>) -> Result<Strictness, String> {
    match given {
        None => Ok(Strictness::Strict),
        Some(Value::Bool(strict)) => Ok(Strictness::from(Some(*strict))),
        Some(Value::Null) => Ok(Strictness::from(None)),
        Some(other) => Err(format!("{other} is not true, false or null")),
    }
}
