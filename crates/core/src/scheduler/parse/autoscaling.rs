//! The autoscaling block. Validated whether it is enabled or not: turning it on must not be when one learns that it
//! was wrong.

use super::field::{Field, Refused};
use super::time::millis_above_zero;
use crate::scheduler::decimal::is_whole_number;
use crate::scheduler::draft::{
    AutoscalingDraft, FixedBufferDraft, PanicScaleDraft, PolicyParametersDraft, RoomOccupancyDraft,
    ScalingPolicyDraft,
};
use crate::scheduler::{
    Autoscaling, FixedBuffer, Fraction, OtherParameters, PanicScale, ReadyTarget, RoomOccupancy,
    ScalingPolicy,
};

/// How `max` is written when there is none.
const NO_MAX: i32 = -1;

const ROOM_OCCUPANCY: &str = ScalingPolicy::ROOM_OCCUPANCY;
const FIXED_BUFFER: &str = ScalingPolicy::FIXED_BUFFER;

pub(super) fn autoscaling(field: &Field<'_>, draft: &AutoscalingDraft) -> Result<Autoscaling, Refused> {
    let min = field.child("min").take(Autoscaling::parse_min(draft.min));
    let max = field.child("max").take(Autoscaling::parse_max(draft.max, draft.min));
    let cooldown_seconds = field.child("cooldown").number(draft.cooldown, 0, i32::MAX);
    let policy = policy(&field.child("policy"), draft.policy.as_ref());
    let panic = draft.panic.map(|draft| panic_scale(&field.child("panic"), draft)).transpose();
    let (min, max, cooldown_seconds) = (min?, max?, cooldown_seconds?);
    let (policy, other_parameters) = policy?;
    let panic = panic?;
    Ok(Autoscaling { enabled: draft.enabled, min, max, cooldown_seconds, policy, other_parameters, panic })
}

fn panic_scale(field: &Field<'_>, draft: PanicScaleDraft) -> Result<PanicScale, Refused> {
    let PanicScaleDraft { enabled, limit, delta, timeout } = draft;
    let limit = limit.map(|limit| field.child("limit").take(PanicScale::parse_limit(limit))).transpose();
    let delta = delta.map(|rooms| field.child("delta").number(rooms, 1, i32::MAX)).transpose();
    let timeout = timeout.map(|time| millis_above_zero(&field.child("timeout"), time)).transpose();
    let default = PanicScale::default();
    Ok(PanicScale {
        enabled: enabled.unwrap_or(default.enabled),
        limit: limit?.unwrap_or(default.limit),
        delta: delta?.unwrap_or(default.delta),
        timeout: timeout?.unwrap_or(default.timeout),
    })
}

impl PanicScale {
    /// The reason alone on failure: the caller knows which field it read. Not 100: what must be exceeded has to leave
    /// something above it.
    pub fn parse_limit(limit: i32) -> Result<u32, String> {
        match u32::try_from(limit) {
            Ok(limit @ 1..=99) => Ok(limit),
            Ok(_) | Err(_) => Err(format!(
                "{limit} is not between 1 and 99; it is the percentage of all places above which it panics, and no \
                 fleet is more than full"
            )),
        }
    }
}

impl Autoscaling {
    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse_min(min: i32) -> Result<u32, String> {
        match u32::try_from(min) {
            Ok(min) if min >= 1 => Ok(min),
            Ok(_) | Err(_) => Err(format!(
                "{min} is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0"
            )),
        }
    }

    /// `None`: no limit.
    pub fn parse_max(max: i32, min: i32) -> Result<Option<u32>, String> {
        match u32::try_from(max) {
            Ok(limit) if max > min => Ok(Some(limit)),
            Err(_) if max == NO_MAX => Ok(None),
            Ok(_) | Err(_) => Err(format!("{max} is not above min, which is {min}; {NO_MAX} means no limit")),
        }
    }
}

fn policy(
    field: &Field<'_>,
    draft: Option<&ScalingPolicyDraft>,
) -> Result<(ScalingPolicy, OtherParameters), Refused> {
    let Some(draft) = draft else {
        return Err(
            field.refuse(format!("is missing; a type, {ROOM_OCCUPANCY} or {FIXED_BUFFER}, is needed"))
        );
    };
    let parameters = field.child("parameters");
    let PolicyParametersDraft { room_occupancy: occupancy_draft, fixed_buffer: buffer_draft } =
        draft.parameters.clone().unwrap_or_default();
    // Both blocks are judged, as both are kept; the type says which one counts.
    let occupancy =
        occupancy_draft.map(|draft| room_occupancy(&parameters.child(ROOM_OCCUPANCY), &draft)).transpose();
    let buffer = buffer_draft.map(|draft| fixed_buffer(&parameters.child(FIXED_BUFFER), draft)).transpose();

    let missing = |name| parameters.child(name).refuse(format!("is missing; the policy's type is {name}"));
    match draft.policy_type.as_str() {
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

fn room_occupancy(field: &Field<'_>, draft: &RoomOccupancyDraft) -> Result<RoomOccupancy, Refused> {
    let ready_target = field.child("readyTarget").take(ReadyTarget::parse(&draft.ready_target));
    // v10 reads 0 as not set, and answers show 1 where it is off: both can be submitted again.
    let down_threshold = draft
        .down_threshold
        .as_deref()
        .filter(|text| !is_whole_number(text, 0) && !is_whole_number(text, 1))
        .map(|text| field.child("downThreshold").take(Fraction::parse(text)))
        .transpose();
    Ok(RoomOccupancy { ready_target: ready_target?, down_threshold: down_threshold? })
}

fn fixed_buffer(field: &Field<'_>, draft: FixedBufferDraft) -> Result<FixedBuffer, Refused> {
    let field = field.child("amount");
    match draft.amount.map(u32::try_from) {
        Some(Ok(amount)) if amount > 0 => Ok(FixedBuffer { amount }),
        Some(_) => Err(field
            .refuse(format!("{} is not a number of rooms of at least 1", draft.amount.unwrap_or_default()))),
        None => Err(field.refuse("is missing; the number of rooms to keep ready is needed")),
    }
}
