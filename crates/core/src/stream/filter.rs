//! What a reader wants to hear of.

use std::collections::BTreeSet;

use super::{EventType, StreamEvent};
use crate::nearest;
use crate::scheduler::SchedulerName;

/// Nothing chosen: everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub scheduler: Option<SchedulerName>,
    pub types: BTreeSet<EventType>,
}

impl EventFilter {
    /// What concerns all schedulers (a region that is lost) concerns each.
    pub fn accepts(&self, event: &StreamEvent) -> bool {
        let is_of_scheduler = match (&self.scheduler, &event.scheduler) {
            (Some(wanted), Some(scheduler)) => wanted == scheduler,
            (None, _) | (Some(_), None) => true,
        };
        is_of_scheduler && (self.types.is_empty() || self.types.contains(&event.what.event_type()))
    }

    /// Types as they are written in a query, separated by commas. The reason alone on failure.
    pub fn parse_types(text: &str) -> Result<BTreeSet<EventType>, String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(|word| EventType::parse(word).ok_or_else(|| unknown(word))).collect()
    }
}

fn unknown(word: &str) -> String {
    let all = EventType::ALL.map(EventType::as_str);
    match nearest(word, all.into_iter()) {
        Some(near) => format!("{word:?} is not a type of event; did you mean {near}?"),
        None => format!("{word:?} is not a type of event; write some of {}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;
    use crate::room::{RoomId, RoomStatus};
    use crate::stream::Happened;
    use crate::time::Timestamp;

    fn event(scheduler: Option<&str>) -> StreamEvent {
        let what = match scheduler {
            Some(_) => Happened::RoomChanged {
                room: RoomId::new("arena-1"),
                before: RoomStatus::Ready,
                after: RoomStatus::Occupied,
            },
            None => Happened::RegionReached {
                region: Region::default_region(),
                reachable: false,
                why: "no answer".into(),
            },
        };
        let scheduler = scheduler.map(|name| SchedulerName::parse(name).unwrap());
        StreamEvent { at: Timestamp::UNIX_EPOCH, scheduler, what }
    }

    fn check(scheduler: Option<&str>, types: &str, of: Option<&str>, accepted: bool) {
        let filter = EventFilter {
            scheduler: scheduler.map(|name| SchedulerName::parse(name).unwrap()),
            types: EventFilter::parse_types(types).unwrap(),
        };
        assert_eq!(filter.accepts(&event(of)), accepted, "{scheduler:?} {types:?} {of:?}");
    }

    #[test]
    fn schedulers_and_types() {
        check(None, "", Some("arena"), true);
        check(Some("arena"), "", Some("arena"), true);
        check(Some("arena"), "", Some("lobby"), false);
        check(Some("arena"), "room,operation", Some("arena"), true);
        check(Some("arena"), " operation , region ", Some("arena"), false);
        check(Some("arena"), "", None, true);
        check(Some("arena"), "region", None, true);
        check(Some("arena"), "room", None, false);
    }

    #[test]
    fn a_type_that_does_not_exist_is_named() {
        let wrong = |types| EventFilter::parse_types(types).unwrap_err();
        assert_eq!(wrong("room,rolout"), r#""rolout" is not a type of event; did you mean rollout?"#);
        assert_eq!(
            wrong("x"),
            r#""x" is not a type of event; write some of room, allocation, operation, decision, rollout, region"#
        );
    }
}
