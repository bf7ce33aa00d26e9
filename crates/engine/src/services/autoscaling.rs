//! What the health controller decided, and why. It is read from the stored operations, so that a restart forgets nothing.

use maestro_core::operation::{DefinitionKind, Operation, Stage};
use serde::Deserialize;

use crate::ports::store::PageRequest;
use crate::{Engine, Result};

/// One decision, with the numbers it was taken on, as a health cycle stores it in its `data`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalingDecision {
    /// When the cycle ended, in RFC 3339.
    #[serde(skip)]
    pub at: String,
    pub total: u64,
    pub occupied: u64,
    pub ready: u64,
    pub desired: u64,
    pub desired_ready: u64,
    /// Such as `Scale Up: +60`.
    pub decision: String,
    pub reason: String,
}

/// Operations that are looked through for decisions.
const OPERATIONS_SEEN: u32 = 200;

impl Engine {
    /// The latest decisions, newest first.
    pub async fn autoscaling_decisions(&self, scheduler: &str) -> Result<Vec<AutoscalingDecision>> {
        let record = self.scheduler(scheduler).await?;
        let page = PageRequest::newest(OPERATIONS_SEEN, true);
        let page = self.ports.store.operations(&record.name, Stage::Final, page).await?;
        let cycles = page
            .operations
            .iter()
            .filter(|operation| operation.definition.kind() == DefinitionKind::HealthController);
        Ok(cycles.filter_map(decision).collect())
    }
}

fn decision(cycle: &Operation) -> Option<AutoscalingDecision> {
    let stored = AutoscalingDecision::deserialize(&cycle.data["decision"]).ok()?;
    Some(AutoscalingDecision { at: cycle.ended_at.unwrap_or(cycle.created_at).to_string(), ..stored })
}
