//! The autoscaling block. It is validated even while it is disabled, so that enabling it cannot fail.

use maestro_core::scheduler::{
    Autoscaling, FixedBuffer, Fraction, OtherParameters, PanicScale, ReadyTarget, RoomOccupancy,
    ScalingPolicy, is_whole_number,
};

use super::field::{Field, Refused};
use super::time::millis_above_zero;
use crate::v1;

const ROOM_OCCUPANCY: &str = ScalingPolicy::ROOM_OCCUPANCY;
const FIXED_BUFFER: &str = ScalingPolicy::FIXED_BUFFER;

pub(super) fn autoscaling(field: &Field<'_>, wire: &v1::Autoscaling) -> Result<Autoscaling, Refused> {
    let min = field.child("min").take(Autoscaling::parse_min(wire.min));
    let max = field.child("max").take(Autoscaling::parse_max(wire.max, wire.min));
    let cooldown_seconds = field.child("cooldown").number(wire.cooldown, 0, i32::MAX);
    let policy = policy(&field.child("policy"), wire.policy.as_ref());
    let panic = field.optional("panic", wire.panic, panic_scale);
    let (min, max, cooldown_seconds) = (min?, max?, cooldown_seconds?);
    let (policy, other_parameters) = policy?;
    let panic = panic?;
    Ok(Autoscaling { enabled: wire.enabled, min, max, cooldown_seconds, policy, other_parameters, panic })
}

fn panic_scale(field: &Field<'_>, wire: v1::PanicScale) -> Result<PanicScale, Refused> {
    let limit =
        field.optional("limit", wire.limit, |field, limit| field.take(PanicScale::parse_limit(limit)));
    let delta = field.optional_number("delta", wire.delta, 1);
    let timeout = field.optional("timeout", wire.timeout, millis_above_zero);
    let default = PanicScale::default();
    Ok(PanicScale {
        enabled: wire.enabled.unwrap_or(default.enabled),
        limit: limit?.unwrap_or(default.limit),
        delta: delta?.unwrap_or(default.delta),
        timeout: timeout?.unwrap_or(default.timeout),
    })
}

fn policy(
    field: &Field<'_>,
    wire: Option<&v1::AutoscalingPolicy>,
) -> Result<(ScalingPolicy, OtherParameters), Refused> {
    let Some(wire) = wire else {
        return Err(
            field.refuse(format!("is missing; a type, {ROOM_OCCUPANCY} or {FIXED_BUFFER}, is needed"))
        );
    };
    let parameters = field.child("parameters");
    let nothing = v1::PolicyParameters::default();
    let blocks = wire.parameters.as_ref().unwrap_or(&nothing);
    // Both blocks are judged, as both are kept; the type says which one counts.
    let occupancy = parameters.optional(ROOM_OCCUPANCY, blocks.room_occupancy.as_ref(), room_occupancy);
    let buffer = parameters.optional(FIXED_BUFFER, blocks.fixed_buffer, fixed_buffer);

    let missing = |name| parameters.child(name).refuse(format!("is missing; the policy's type is {name}"));
    match wire.r#type.as_str() {
        ROOM_OCCUPANCY => Ok((
            ScalingPolicy::RoomOccupancy(occupancy?.ok_or_else(|| missing(ROOM_OCCUPANCY))?),
            OtherParameters { room_occupancy: None, fixed_buffer: buffer? },
        )),
        FIXED_BUFFER => Ok((
            ScalingPolicy::FixedBuffer(buffer?.ok_or_else(|| missing(FIXED_BUFFER))?),
            OtherParameters { room_occupancy: occupancy?, fixed_buffer: None },
        )),
        unknown => Err(field
            .child("type")
            .refuse(format!("{unknown:?} is neither {ROOM_OCCUPANCY} nor {FIXED_BUFFER}"))),
    }
}

fn room_occupancy(field: &Field<'_>, wire: &v1::RoomOccupancy) -> Result<RoomOccupancy, Refused> {
    let ready_target = field.child("readyTarget").take(ReadyTarget::parse(&wire.ready_target_text()));
    // v10 reads 0 as not set, and answers show 1 where it is off: both can be submitted again.
    let threshold =
        wire.down_threshold_text().filter(|text| !is_whole_number(text, 0) && !is_whole_number(text, 1));
    let down_threshold =
        field.optional("downThreshold", threshold, |field, text| field.take(Fraction::parse(&text)));
    Ok(RoomOccupancy { ready_target: ready_target?, down_threshold: down_threshold? })
}

fn fixed_buffer(field: &Field<'_>, wire: v1::FixedBuffer) -> Result<FixedBuffer, Refused> {
    let field = field.child("amount");
    match wire.amount.map(u32::try_from) {
        Some(Ok(amount)) if amount > 0 => Ok(FixedBuffer { amount }),
        Some(_) => Err(field
            .refuse(format!("{} is not a number of rooms of at least 1", wire.amount.unwrap_or_default()))),
        None => Err(field.refuse("is missing; the number of rooms to keep ready is needed")),
    }
}
