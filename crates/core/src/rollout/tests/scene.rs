//! What a rollout can be, and what an event makes of it in words.

use std::fmt::Write;

use super::super::*;
use crate::lock::{Lock, Locks};
use crate::operation::{DefinitionKind, OperationId, Token};
use crate::scheduler::SchedulerName;

pub(super) const SIZE: SizeBaseline = SizeBaseline { before: 3, after: 5 };

pub(super) fn version(major: u32) -> Version {
    Version::parse(&format!("v{major}.0.0")).unwrap()
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(super) fn operation(kind: DefinitionKind) -> Holder {
    Holder::Operation { kind, id: OperationId::new(at(0), [7; 10]) }
}

pub(super) fn switch() -> Holder {
    operation(DefinitionKind::SwitchVersion)
}

pub(super) fn rollout(state: RolloutState, to: u32, note: &str) -> RolloutRecord {
    let (to, from) = (version(to), version(1));
    let occupied_at = Some(at(7));
    RolloutRecord { state, to, from, since: at(5), fleet_size: SIZE, occupied_at, note: note.into() }
}

/// All that a rollout to v2 can be, and its way back to v1.
pub(super) fn states() -> Vec<(&'static str, Option<RolloutRecord>)> {
    use RolloutState::{Halted, Paused, Rolling, RollingBack};
    vec![
        ("none", None),
        ("rolling", Some(rollout(Rolling, 2, ""))),
        ("paused", Some(rollout(Paused, 2, "paused by bob"))),
        ("halted", Some(rollout(Halted, 2, "v2.0.0 failed: boom"))),
        ("leaving", Some(rollout(RollingBack, 2, "canceled by bob"))),
        ("back", Some(rollout(RollingBack, 1, "canceled by bob"))),
        ("back-paused", Some(rollout(Paused, 1, "paused by bob"))),
        ("back-halted", Some(rollout(Halted, 1, "v1.0.0 failed: boom"))),
    ]
}

/// What `outcome` says of each state. States of which it says the same share a line; `TO`, `STATE` and `NOTE` are the
/// rollout's own before the event.
pub(super) fn table(outcome: impl Fn(Option<&RolloutRecord>) -> String) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (name, rollout) in states() {
        let mut text = outcome(rollout.as_ref());
        if let Some(RolloutRecord { state, to, note, .. }) = &rollout {
            let note = if note.is_empty() { "(no note)" } else { note };
            text = text.replace(note, "NOTE").replace(&to.to_string(), "TO");
            text = text.replace(&format!("is {},", state.as_str()), "is STATE,");
        }
        match lines.iter_mut().find(|(_, other)| *other == text) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => lines.push((name.to_owned(), text)),
        }
    }
    lines.into_iter().map(|(names, text)| format!("{names}: {text}\n")).collect()
}

pub(super) fn lock(kind: LockKind, holder: Holder) -> Lock {
    let (reason, token, acquired_at) = (String::new(), Token(1), at(0));
    Lock { kind, holder, reason, token, acquired_at, expires_at: None }
}

/// As a rollout has them.
pub(super) fn own_locks(rollout: Option<&RolloutRecord>) -> Locks {
    let held = rollout.into_iter().flat_map(|rollout| {
        let config = lock(LockKind::Config, rollout.holder());
        [Some(config), rollout.is_moving().then(|| lock(LockKind::Downscaling, rollout.holder()))]
    });
    Locks { held: held.flatten().collect(), waiters: Vec::new() }
}

/// Of a scheduler whose active version is the one that is rolled out.
pub(super) fn happens(rollout: Option<&RolloutRecord>, event: RolloutEvent<'_>, locks: &Locks) -> String {
    let active = rollout.map_or(version(1), |rollout| rollout.to);
    happens_at(rollout, event, locks, active)
}

pub(super) fn happens_at(
    rollout: Option<&RolloutRecord>,
    event: RolloutEvent<'_>,
    locks: &Locks,
    active: Version,
) -> String {
    let scheduler = SchedulerName::parse("arena").unwrap();
    let context = RolloutContext { scheduler: &scheduler, active, locks, now: at(100) };
    match transition(rollout, event, &context) {
        Ok(transition) => in_words(rollout, &transition),
        Err(refused) => format!("refused: {refused}"),
    }
}

fn in_words(before: Option<&RolloutRecord>, transition: &Transition) -> String {
    let Transition { rollout, versions, locks, switch_back, history } = transition;
    let mut parts = vec![match rollout {
        Some(rollout) if before == Some(rollout) => "as before".to_owned(),
        Some(rollout) => record_in_words(rollout),
        None => "none".to_owned(),
    }];
    parts.extend(versions.iter().map(|change| {
        let VersionChange { version, status, cause } = change;
        format!(
            "{version} {}{}",
            status.as_str(),
            if cause.is_empty() { String::new() } else { format!(": {cause}") }
        )
    }));
    let locks: Vec<String> = locks.iter().filter_map(|change| lock_in_words(change, locks)).collect();
    parts.extend((!locks.is_empty()).then(|| locks.join(" ")));
    parts.extend(switch_back.iter().map(|SwitchBack { switch, origin, reason }| {
        let from = switch.only_from.unwrap();
        format!("{origin:?}: switch to {} if {from} is active ({reason})", switch.to)
    }));
    let replaces = |to| format!("rooms of other major versions are replaced by those of {to} from now on");
    parts.extend(history.iter().map(|event| match rollout {
        Some(rollout) if *event == replaces(rollout.to) => "says so".to_owned(),
        Some(_) | None => format!("\"{event}\""),
    }));
    parts.join(" | ")
}

fn record_in_words(rollout: &RolloutRecord) -> String {
    let RolloutRecord { state, to, from, since, fleet_size, occupied_at, note } = rollout;
    assert_eq!((*from, *fleet_size), (version(1), SIZE));
    let mut text = format!("{} {to}", state.as_str());
    if *since == at(100) {
        text += " since now";
    }
    match occupied_at.map(Timestamp::as_second) {
        Some(7) => {}
        None => text += ", never took players",
        Some(100) => text += ", took players now",
        Some(other) => panic!("{other}"),
    }
    if !note.is_empty() {
        write!(text, " ({note})").unwrap();
    }
    text
}

/// `None`: every rollout does that, or it goes without saying.
fn lock_in_words(change: &LockChange, all: &[LockChange]) -> Option<String> {
    let who = |holder: &Holder| match holder {
        Holder::Operation { kind, .. } => kind.as_str().to_owned(),
        Holder::Rollout(version) => version.to_string(),
        Holder::HealthController => holder.to_string(),
    };
    let is_released = |kind, holder| {
        let is_it = |other: &LockChange| matches!(other, LockChange::Release { kind: k, holder: h } if (*k, *h) == (kind, holder));
        all.iter().any(is_it)
    };
    Some(match change {
        LockChange::Take { kind, taker, reason } => {
            assert_eq!(*reason, format!("rooms are replaced by those of {}", who(&taker.holder)));
            match taker.instead_of.filter(|other| *other != taker.holder) {
                Some(other) => format!("+{kind} (from {})", who(&other)),
                None => format!("+{kind}"),
            }
        }
        LockChange::Release { kind, holder } => format!("-{kind} ({})", who(holder)),
        LockChange::Await { kind, .. } => format!("awaits {kind}"),
        LockChange::StopAwaiting { holder: Holder::HealthController, .. } => return None,
        LockChange::StopAwaiting { kind, holder } if is_released(*kind, *holder) => return None,
        LockChange::StopAwaiting { kind, holder } => format!("no place for {kind} ({})", who(holder)),
    })
}
