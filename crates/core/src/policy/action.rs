//! What an operation is about to do, as policies see it: Senlin's actions are our operations.

use super::Refusal;
use super::data::{Data, Part};
use crate::resize::{self, Cluster, Request, Resized, resize};

/// How many rooms an operation adds or removes if nobody says: one.
const DEFAULT_COUNT: u64 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// add_rooms, Senlin's CLUSTER_SCALE_OUT. What was asked for, if it was.
    ScaleOut { count: Option<u64> },
    /// remove_rooms, Senlin's CLUSTER_SCALE_IN.
    ScaleIn { count: Option<u64> },
    /// resize, Senlin's CLUSTER_RESIZE.
    Resize { request: Request, cluster: Cluster },
    /// create_room, Senlin's NODE_CREATE.
    CreateRoom,
}

impl Action {
    /// What an earlier policy has decided counts, also if it left the number out; then what was asked for. What a
    /// resize comes to is written down for the policies that follow.
    pub(super) fn change(&self, data: &mut Data) -> Result<Resized, Refusal> {
        let decided = |part: &Option<Part>| part.as_ref().map(|part| part.count.unwrap_or(DEFAULT_COUNT));
        let (creation, deletion) = (decided(&data.creation), decided(&data.deletion));
        Ok(match self {
            Self::ScaleOut { count } => Resized::Create(creation.or(*count).unwrap_or(DEFAULT_COUNT)),
            Self::ScaleIn { count } => Resized::Delete(deletion.or(*count).unwrap_or(DEFAULT_COUNT)),
            Self::CreateRoom => Resized::Create(DEFAULT_COUNT),
            Self::Resize { request, cluster } => match (creation, deletion) {
                (Some(count), _) => Resized::Create(count),
                (None, Some(count)) => Resized::Delete(count),
                (None, None) => parsed(request, cluster, data)?,
            },
        })
    }
}

fn parsed(request: &Request, cluster: &Cluster, data: &mut Data) -> Result<Resized, resize::Invalid> {
    let outcome = resize(request, cluster)?;
    let (part, count) = match outcome {
        Resized::Create(count) => (&mut data.creation, count),
        Resized::Delete(count) => (&mut data.deletion, count),
    };
    *part = Some(Part { count: Some(count), ..Part::default() });
    Ok(outcome)
}
