//! What must always hold, by name.

use maestro_core::operation::{OperationId, Token};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::{Claim, RoomView};
use maestro_engine::ports::store::{OwnershipRecord, Store, Transaction};

use crate::host::RoomOnHost;
use crate::trace::Trace;

/// Looks at everything that engines do. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Inspector;

impl Inspector {
    pub fn new(_trace: Trace) -> Self {
        Self
    }

    /// After each successful commit of an engine; `before` is who owned the scheduler at that moment.
    pub async fn committed(
        &self,
        _node: &str,
        _transaction: &Transaction,
        _before: Option<&OwnershipRecord>,
        _store: &dyn Store,
    ) {
    }

    pub fn owned(&self, _node: &str, _scheduler: &SchedulerName, _token: Token) {}

    pub fn table_read(&self, _node: &str, _scheduler: &SchedulerName, _views: &[RoomView]) {}

    pub async fn claimed(&self, _node: &str, _claim: &Claim<'_>, _claimed: &[RoomId], _store: &dyn Store) {}

    /// A person was told that this operation will be done.
    pub fn accepted(&self, _scheduler: &str, _operation: OperationId) {}

    pub async fn at_rest(&self, _store: &dyn Store, _rooms: &[RoomOnHost]) {}

    pub async fn not_converged(&self, _why: &str) {}

    /// `invariant-name: what happened`.
    pub fn violations(&self) -> Vec<String> {
        Vec::new()
    }
}
