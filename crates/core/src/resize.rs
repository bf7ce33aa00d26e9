//! By how many rooms a fleet grows or shrinks when someone asks for another size. Pure.
//!
//! Inputs, rules and messages are those of Senlin's CLUSTER_RESIZE, since clients match them; sizes are numbers of
//! rooms. Percentages are exact: decimals are counted in millionths, never in binary floating point.

mod number;
mod request;
#[cfg(test)]
mod tests;

pub use number::Number;
pub use request::Draft;

/// What is asked for. Its bounds hold for this request only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// `None`: only the bounds count.
    pub adjustment: Option<Adjustment>,
    pub min_size: Option<u64>,
    pub max_size: Option<Max>,
    pub strictness: Strictness,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adjustment {
    Exact(u64),
    Change(i64),
    /// Of the rooms there are; a change of at least `min_step`, unless it is none at all.
    Percentage {
        number: Number,
        min_step: u64,
    },
}

/// A largest size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Max {
    Unlimited,
    Rooms(u64),
}

/// What happens to a size beyond the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It is refused; written `true`.
    Strict,
    /// It is brought within them; written `false`.
    BestEffort,
    /// It is refused if it is beyond the bounds of the request, and may be beyond those of the fleet; written `null`.
    RequestOnly,
}

/// The fleet whose size is to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// The rooms there are; `None`: not known.
    pub current: Option<u64>,
    pub min_size: u64,
    pub max_size: Max,
    /// The fleet size.
    pub desired_capacity: u64,
    /// What no fleet may exceed.
    pub nodes_max: Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resized {
    /// Also none at all.
    Create(u64),
    /// At least one.
    Delete(u64),
}

/// A combination of inputs that cannot be carried out, in Senlin's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error(
        "The target capacity ({target}) is greater than the maximum number of nodes allowed per cluster ({max})."
    )]
    AboveNodesMax { target: i128, max: u64 },
    #[error("The target capacity ({target}) is less than the specified min_size ({min}).")]
    BelowMin { target: i128, min: u64 },
    #[error("The target capacity ({target}) is less than the cluster's min_size ({min}).")]
    BelowClusterMin { target: i128, min: u64 },
    #[error("The target capacity ({target}) is greater than the specified max_size ({max}).")]
    AboveMax { target: i128, max: u64 },
    #[error("The target capacity ({target}) is greater than the cluster's max_size ({max}).")]
    AboveClusterMax { target: i128, max: u64 },
    #[error("The specified min_size ({min}) is greater than the current max_size ({max}) of the cluster.")]
    MinAboveClusterMax { min: u64, max: u64 },
    #[error(
        "The specified max_size ({max}) is greater than the maximum number of nodes allowed per cluster ({nodes_max})."
    )]
    MaxAboveNodesMax { max: u64, nodes_max: u64 },
    #[error("The specified max_size ({max}) is less than the current min_size ({min}) of the cluster.")]
    MaxBelowClusterMin { max: u64, min: u64 },
}

pub fn resize(request: &Request, cluster: &Cluster) -> Result<Resized, Invalid> {
    let current = i128::from(current(request, cluster));
    let mut target = match request.adjustment {
        None => current,
        Some(Adjustment::Exact(size)) => size.into(),
        Some(Adjustment::Change(rooms)) => current + i128::from(rooms),
        Some(Adjustment::Percentage { number, min_step }) => current + percentage(number, min_step, current),
    };
    if request.strictness == Strictness::BestEffort {
        target = within_bounds(request, cluster, target);
    }
    check(request, cluster, target)?;
    let rooms = u64::try_from((target - current).unsigned_abs()).unwrap_or(u64::MAX);
    Ok(if target < current { Resized::Delete(rooms) } else { Resized::Create(rooms) })
}

/// A fleet without rooms is about to have its fleet size, and changes are made to that. An exact size is compared with
/// the rooms there are: with none there, none can go.
fn current(request: &Request, cluster: &Cluster) -> u64 {
    match (request.adjustment, cluster.current) {
        (Some(Adjustment::Exact(_)), Some(rooms)) => rooms,
        (_, None | Some(0)) => cluster.desired_capacity,
        (_, Some(rooms)) => rooms,
    }
}

/// Cut to a whole number of rooms, but at least one; and at least `min_step`. Of an empty fleet no percentage is more
/// than nothing, and `min_step` then leads down, which the bounds refuse: only 0 % changes nothing at all.
fn percentage(number: Number, min_step: u64, current: i128) -> i128 {
    let rounded = number.percent_of(current);
    let min_step = i128::from(min_step);
    match rounded {
        _ if number.is_zero() => 0,
        rounded if rounded.abs() >= min_step => rounded,
        1.. => min_step,
        _ => -min_step,
    }
}

/// The bounds of the request, where it has any, or else those of the fleet. A largest size of 0 is checked, and not
/// aimed at: it empties no fleet.
fn within_bounds(request: &Request, cluster: &Cluster, target: i128) -> i128 {
    let raised = target.max(request.min_size.unwrap_or(cluster.min_size).into());
    match request.max_size.unwrap_or(cluster.max_size) {
        Max::Rooms(max @ 1..) => raised.min(max.into()),
        Max::Rooms(0) | Max::Unlimited => raised,
    }
}

/// In Senlin's order: the first that is broken is told.
fn check(request: &Request, cluster: &Cluster, target: i128) -> Result<(), Invalid> {
    let strict = request.strictness == Strictness::Strict;
    let above = |max: Max| max.rooms().filter(|max| target > i128::from(*max));
    if let Some(max) = above(cluster.nodes_max) {
        return Err(Invalid::AboveNodesMax { target, max });
    }
    match request.min_size {
        Some(min) if target < i128::from(min) => return Err(Invalid::BelowMin { target, min }),
        None if strict && target < i128::from(cluster.min_size) => {
            return Err(Invalid::BelowClusterMin { target, min: cluster.min_size });
        }
        Some(_) | None => {}
    }
    let max = match request.max_size {
        Some(max) => above(max).map(|max| Invalid::AboveMax { target, max }),
        None if strict => above(cluster.max_size).map(|max| Invalid::AboveClusterMax { target, max }),
        None => None,
    };
    max.or_else(|| contradiction(request, cluster)).map_or(Ok(()), Err)
}

/// Bounds that contradict those of the fleet.
fn contradiction(request: &Request, cluster: &Cluster) -> Option<Invalid> {
    match (request.min_size, request.max_size) {
        (Some(min), None) => {
            let max = cluster.max_size.rooms().filter(|max| min > *max)?;
            Some(Invalid::MinAboveClusterMax { min, max })
        }
        (min, Some(Max::Rooms(max))) => {
            let beyond = cluster.nodes_max.rooms().filter(|nodes_max| max > *nodes_max);
            let below = min.is_none() && max < cluster.min_size;
            let below = below.then_some(Invalid::MaxBelowClusterMin { max, min: cluster.min_size });
            beyond.map(|nodes_max| Invalid::MaxAboveNodesMax { max, nodes_max }).or(below)
        }
        (None, None) | (_, Some(Max::Unlimited)) => None,
    }
}

impl Max {
    fn rooms(self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Rooms(rooms) => Some(rooms),
        }
    }
}

impl From<Option<bool>> for Strictness {
    fn from(strict: Option<bool>) -> Self {
        match strict {
            Some(true) => Self::Strict,
            Some(false) => Self::BestEffort,
            None => Self::RequestOnly,
        }
    }
}
