//! resize: what was asked for has been turned into a number of rooms when it was asked, and is added or removed here, by
//! the same code as any other addition or removal. A combination that cannot be carried out ends it.

use async_trait::async_trait;
use maestro_core::operation::{Definition, Operation};
use serde_json::json;

use super::add_rooms::AddRooms;
use super::remove_rooms::RemoveRooms;
use super::{Executor, LockNeed, Result, Step, StepError, Work};

pub(super) struct Resize;

#[async_trait]
impl Executor for Resize {
    async fn needs(&self, work: &Work) -> Result<Vec<LockNeed>> {
        way(&work.operation).needs(work).await
    }

    async fn before_it_waits(&self, work: &Work) -> Result {
        way(&work.operation).before_it_waits(work).await
    }

    async fn step(&self, work: &Work) -> Result<Step> {
        let Definition::Resize { change: Err(why), .. } = &work.operation.definition else {
            return way(&work.operation).step(work).await;
        };
        // First it is written down, in Senlin's words.
        if work.operation.data.is_null() {
            let data = Some(json!({ "status": "ERROR", "reason": why }));
            return Ok(Step { data, ..Step::default() });
        }
        Err(StepError::Failed(why.clone()))
    }

    async fn undo(&self, work: &Work) -> Result<Step> {
        way(&work.operation).undo(work).await
    }

    async fn wait_is_over(&self, work: &Work) -> Result<bool> {
        way(&work.operation).wait_is_over(work).await
    }
}

/// Up or down; one that was refused goes nowhere, and adds no room.
fn way(operation: &Operation) -> &'static dyn Executor {
    match operation.definition.removes() {
        Some(_) => &RemoveRooms,
        None => &AddRooms,
    }
}
