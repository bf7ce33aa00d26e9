//! Which version the rollout of a scheduler is about, and what has become of that version: what people see who
//! submitted it and want to know whether it is deployed.

use crate::operation::{Definition, Operation, OperationStatus};
use crate::scheduler::{Version, VersionStatus};
use crate::words::words;

/// The version that an answer is about, and the operations that it went through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VersionSubject<'a> {
    /// `None`: it has no number, because the operation that would have given it one has not begun, or never did.
    pub version: Option<Version>,
    /// The operation that made the version.
    pub made_by: Option<&'a Operation>,
    /// The latest operation that was to make it the active one.
    pub switched_by: Option<&'a Operation>,
    /// Someone asks for this version, not for what was wanted last.
    is_named: bool,
}

words! {
    /// What has become of a version.
    pub enum VersionOutcome {
        InProgress = "inProgress",
        Deployed = "deployed",
        Failed = "failed",
        Canceled = "canceled",
        Superseded = "superseded",
    }
}

/// The status of a version, what that comes to, and why, unless all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionProgress {
    pub status: VersionStatus,
    pub outcome: VersionOutcome,
    pub cause: String,
}

/// What the store knows about a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredVersion<'a> {
    pub status: VersionStatus,
    pub is_active: bool,
    /// Why it has that status.
    pub cause: &'a str,
}

impl<'a> VersionSubject<'a> {
    /// The version that was submitted or switched to last. `operations` are those that change versions, newest first;
    /// `fallback` is the version if none of them is remembered.
    pub fn newest(operations: &'a [Operation], fallback: Version) -> Self {
        let is_request = |operation: &&Operation| operation.origin.is_person() && !is_switch_back(operation);
        let Some(request) = operations.iter().find(is_request) else {
            return Self::of(operations, fallback);
        };
        let is_named = false;
        if let Definition::SwitchVersion(switch) = &request.definition {
            return Self { version: Some(switch.to), made_by: None, switched_by: Some(request), is_named };
        }
        let version = version_of(request);
        let mut later = operations.iter().take_while(|operation| operation.id != request.id);
        let switched_by = version.and_then(|version| later.find(|operation| switches_to(operation, version)));
        Self { version, made_by: Some(request), switched_by, is_named }
    }

    /// A version that someone names.
    pub fn of(operations: &'a [Operation], version: Version) -> Self {
        let is_maker = |operation: &&Operation| {
            matches!(operation.definition, Definition::CreateVersion { .. })
                && version_of(operation) == Some(version)
        };
        Self {
            version: Some(version),
            made_by: operations.iter().find(is_maker),
            switched_by: operations.iter().find(|operation| switches_to(operation, version)),
            is_named: true,
        }
    }

    /// The operation that says most about it: the one that has not ended, or that did not finish, or the latest.
    pub fn operation(&self) -> Option<&'a Operation> {
        let not_finished = |operation: &&'a Operation| operation.status != OperationStatus::Finished;
        self.made_by.filter(not_finished).or(self.switched_by).or(self.made_by)
    }

    /// `None`: there is no such version, and nobody tried to make it.
    pub fn progress(&self, stored: Option<StoredVersion<'_>>) -> Option<VersionProgress> {
        if let Some(made_by) = self.made_by.filter(|made_by| made_by.status != OperationStatus::Finished) {
            return Some(of_unfinished(made_by, VersionStatus::Validating));
        }
        let StoredVersion { status, is_active, cause } = stored?;
        // A switch to it that failed does not undo that it was deployed before.
        let stays_deployed = status == VersionStatus::Deployed && (self.is_named || is_active);
        let decides = |switch: &&Operation| match switch.status.is_final() {
            true => switch.status != OperationStatus::Finished && !stays_deployed,
            false => true,
        };
        if let Some(switch) = self.switched_by.filter(decides) {
            return Some(VersionProgress { status, ..of_unfinished(switch, status) });
        }
        let outcome = match status {
            VersionStatus::Validating | VersionStatus::Rolling => VersionOutcome::InProgress,
            // The first version, until its scheduler is made.
            VersionStatus::Validated if is_active => VersionOutcome::InProgress,
            VersionStatus::Validated => VersionOutcome::Failed,
            VersionStatus::Deployed => VersionOutcome::Deployed,
            VersionStatus::Superseded => VersionOutcome::Superseded,
            VersionStatus::Canceled => VersionOutcome::Canceled,
            VersionStatus::Error => VersionOutcome::Failed,
        };
        let cause = match status {
            VersionStatus::Validated if !is_active => "it was validated and never became the active version",
            _ => cause,
        };
        Some(VersionProgress { status, outcome, cause: cause.to_owned() })
    }
}

/// `meanwhile`: the status of a version whose operation has not ended.
fn of_unfinished(operation: &Operation, meanwhile: VersionStatus) -> VersionProgress {
    let cause = operation.cause().unwrap_or_default().to_owned();
    let (status, outcome) = match operation.status {
        OperationStatus::Pending | OperationStatus::InProgress | OperationStatus::Finished => {
            (meanwhile, VersionOutcome::InProgress)
        }
        OperationStatus::Canceled => (VersionStatus::Canceled, VersionOutcome::Canceled),
        OperationStatus::Error | OperationStatus::Evicted => (VersionStatus::Error, VersionOutcome::Failed),
    };
    VersionProgress { status, outcome, cause }
}

/// Part of a rollout that failed or was canceled, not a wish for a version of its own.
pub fn is_switch_back(operation: &Operation) -> bool {
    matches!(&operation.definition, Definition::SwitchVersion(switch) if switch.only_from.is_some())
}

fn switches_to(operation: &Operation, version: Version) -> bool {
    matches!(&operation.definition, Definition::SwitchVersion(switch)
        if switch.to == version && switch.only_from.is_none())
}

/// The number that a new version was given, once it has one.
fn version_of(operation: &Operation) -> Option<Version> {
    Version::parse(operation.data.get("version")?.as_str()?).ok()
}
