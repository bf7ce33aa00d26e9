use serde_json::json;

use super::super::*;
use crate::operation::testing::operation;
use crate::operation::{
    Definition, HistoryEvent, Operation, OperationStatus, Origin, Rollback, RollbackEnd, SwitchVersion,
};
use crate::scheduler::VersionStatus;
use crate::scheduler::tests::recipe;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

/// A person's operation that makes a version; `None`: it was not numbered.
fn make(number: u128, status: OperationStatus, numbered: Option<&str>) -> Operation {
    Operation {
        definition: Definition::CreateVersion { recipe: Box::new(recipe()) },
        origin: Origin::Person("ada".into()),
        data: numbered.map_or(json!(null), |version| json!({ "version": version })),
        ..operation(number, status, 1000)
    }
}

fn switch(number: u128, status: OperationStatus, to: &str, origin: Origin) -> Operation {
    let switch = SwitchVersion { to: version(to), only_from: None };
    Operation { definition: Definition::SwitchVersion(switch), origin, ..operation(number, status, 1000) }
}

fn switch_back(number: u128, to: &str, from: &str) -> Operation {
    let back = SwitchVersion { to: version(to), only_from: Some(version(from)) };
    let origin = Origin::Person("ada".into());
    Operation {
        definition: Definition::SwitchVersion(back),
        ..switch(number, OperationStatus::Finished, to, origin)
    }
}

fn turned_back(operation: Operation, then: RollbackEnd, why: &str) -> Operation {
    Operation { rollback: Some(Rollback { then, why: why.into() }), ..operation }
}

fn stored(status: VersionStatus, is_active: bool) -> Option<StoredVersion<'static>> {
    Some(StoredVersion { status, is_active, cause: "" })
}

/// Of the newest version: its number, status, outcome and cause.
fn check(
    operations: &[Operation],
    found: Option<StoredVersion<'_>>,
    expected: (Option<&str>, VersionStatus, VersionOutcome, &str),
) {
    let subject = VersionSubject::newest(operations, version("v1.0.0"));
    let VersionProgress { status, outcome, cause } = subject.progress(found).unwrap();
    let is = (subject.version.map(|version| version.to_string()), status, outcome, cause);
    let (number, status, outcome, cause) = expected;
    let expected = (number.map(str::to_owned), status, outcome, cause.to_owned());
    assert_eq!(is, expected, "{operations:#?}");
}

#[test]
fn a_version_on_its_way() {
    let (pending, at_work, done) =
        (OperationStatus::Pending, OperationStatus::InProgress, OperationStatus::Finished);
    let numbered = Some("v2.0.0");
    let (validated, rolling) = (VersionStatus::Validated, VersionStatus::Rolling);
    let in_progress = |status| (numbered, status, VersionOutcome::InProgress, "");
    let waiting = (None, VersionStatus::Validating, VersionOutcome::InProgress, "");
    check(&[make(1, pending, None)], None, waiting);
    let validating = stored(VersionStatus::Validating, false);
    check(&[make(1, at_work, numbered)], validating, in_progress(VersionStatus::Validating));
    let switching = [switch(2, pending, "v2.0.0", Origin::Engine), make(1, done, numbered)];
    check(&switching, stored(validated, false), in_progress(validated));
    let switched = [switch(2, done, "v2.0.0", Origin::Engine), make(1, done, numbered)];
    check(&switched, stored(rolling, true), in_progress(rolling));
    let deployed = (numbered, VersionStatus::Deployed, VersionOutcome::Deployed, "");
    check(&switched, stored(VersionStatus::Deployed, true), deployed);
    // A scheduler that is being made.
    check(&[], stored(validated, true), (Some("v1.0.0"), validated, VersionOutcome::InProgress, ""));
}

#[test]
fn a_version_that_is_not_deployed() {
    let done = OperationStatus::Finished;
    let numbered = Some("v2.0.0");
    let failed = turned_back(make(1, OperationStatus::Error, numbered), RollbackEnd::Error, "attempt 3");
    check(&[failed], None, (numbered, VersionStatus::Error, VersionOutcome::Failed, "attempt 3"));
    let mut canceled = make(1, OperationStatus::Canceled, None);
    canceled.history.push(HistoryEvent { at: canceled.created_at, event: "Canceled by ada".into() });
    check(&[canceled], None, (None, VersionStatus::Canceled, VersionOutcome::Canceled, "Canceled by ada"));
    let switch_canceled = [
        turned_back(
            switch(2, OperationStatus::Canceled, "v2.0.0", Origin::Engine),
            RollbackEnd::Canceled,
            "canceled by ada",
        ),
        make(1, done, numbered),
    ];
    let not_switched = (numbered, VersionStatus::Validated, VersionOutcome::Canceled, "canceled by ada");
    check(&switch_canceled, stored(VersionStatus::Validated, false), not_switched);
    // Its rollout failed, and the switch that leads back is not what people wanted.
    let rolled_back = [
        switch_back(3, "v1.0.0", "v2.0.0"),
        switch(2, done, "v2.0.0", Origin::Engine),
        make(1, done, numbered),
    ];
    let error = Some(StoredVersion { status: VersionStatus::Error, is_active: false, cause: "5 new rooms" });
    check(&rolled_back, error, (numbered, VersionStatus::Error, VersionOutcome::Failed, "5 new rooms"));
    let superseded =
        Some(StoredVersion { status: VersionStatus::Superseded, is_active: false, cause: "by v3.0.0" });
    let expected = (numbered, VersionStatus::Superseded, VersionOutcome::Superseded, "by v3.0.0");
    check(&[make(1, done, numbered)], superseded, expected);
}

#[test]
fn a_switch_is_a_wish_of_its_own() {
    let person = || Origin::Person("ada".into());
    let failed = turned_back(
        switch(2, OperationStatus::Error, "v1.0.0", person()),
        RollbackEnd::Error,
        "waited too long",
    );
    let operations = [failed, make(1, OperationStatus::Finished, Some("v2.0.0"))];
    let before = stored(VersionStatus::Deployed, false);
    let expected = (Some("v1.0.0"), VersionStatus::Deployed, VersionOutcome::Failed, "waited too long");
    check(&operations, before, expected);
    // Who asks for the version itself is told that it was deployed.
    let named = VersionSubject::of(&operations, version("v1.0.0")).progress(before).unwrap();
    assert_eq!(named.outcome, VersionOutcome::Deployed);
    // Who switches to what is active already has what was asked for.
    let evicted = [switch(3, OperationStatus::Evicted, "v1.0.0", person())];
    let active = stored(VersionStatus::Deployed, true);
    check(&evicted, active, (Some("v1.0.0"), VersionStatus::Deployed, VersionOutcome::Deployed, ""));
}

#[test]
fn a_version_that_nobody_made() {
    let operations = [make(1, OperationStatus::Finished, Some("v2.0.0"))];
    assert_eq!(VersionSubject::of(&operations, version("v7.0.0")).progress(None), None);
}
