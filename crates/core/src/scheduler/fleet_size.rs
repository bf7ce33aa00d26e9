//! What becomes of the fleet size when another version becomes the active one.
//!
//! There is one number, `roomsReplicas`, which people change by resizing and by submitting versions. A rollout that is
//! taken back takes back what its versions made of the number, and leaves what people made of it since.

/// Why a version becomes the active one, as far as the fleet size is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeOnSwitch {
    /// A new version whose submission states `roomsReplicas`: what was said last counts, and so does what people changed
    /// since. `submitted_at`: the fleet size when it was submitted.
    Stated { submitted_at: u32 },
    /// A new version that says nothing about it.
    Kept,
    /// Someone switches to a version that exists: its number is set only if it differs from that of the recipe that is
    /// left, because otherwise nobody asked for another one.
    IfRecipesDiffer,
    /// A rollout failed or was canceled.
    Back,
}

/// What a rollout remembers, so that it can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeBaseline {
    /// The size without what the versions of this rollout made of it.
    pub before: u32,
    /// The size right after its last switch: people have made the difference to today's.
    pub after: u32,
}

/// What a switch sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeFacts {
    /// The fleet size as it is now.
    pub now: u32,
    /// `roomsReplicas` of the recipe that is active so far.
    pub left: u32,
    /// `roomsReplicas` of the recipe that becomes the active one.
    pub entered: u32,
    /// Of the rollout under way, if there is one.
    pub baseline: Option<SizeBaseline>,
}

/// The size from now on, and what a rollout remembers of it.
pub fn on_switch(reason: SizeOnSwitch, facts: SizeFacts) -> SizeBaseline {
    let before = size_before(facts);
    let after = match reason {
        SizeOnSwitch::Stated { submitted_at } => changed_since(facts.entered, submitted_at, facts.now),
        SizeOnSwitch::IfRecipesDiffer if facts.entered != facts.left => facts.entered,
        SizeOnSwitch::Kept | SizeOnSwitch::IfRecipesDiffer => facts.now,
        SizeOnSwitch::Back => before,
    };
    SizeBaseline { before, after }
}

/// Where a rollback leads: the number before the switch, and what people changed since.
fn size_before(facts: SizeFacts) -> u32 {
    let Some(SizeBaseline { before, after }) = facts.baseline else {
        return facts.now;
    };
    changed_since(before, after, facts.now)
}

/// A number, and what became of another one meanwhile.
fn changed_since(number: u32, then: u32, now: u32) -> u32 {
    let size = i64::from(number) + i64::from(now) - i64::from(then);
    u32::try_from(size.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_switch_makes_of_the_size() {
        use SizeOnSwitch::{Back, IfRecipesDiffer, Kept};
        let stated = |submitted_at| SizeOnSwitch::Stated { submitted_at };
        let base = |before, after| Some(SizeBaseline { before, after });
        // reason, now, recipe left, recipe entered, baseline → size
        for (reason, now, left, entered, baseline, expected) in [
            (stated(5), 5, 3, 8, None, 8),
            // A file with the number of before wins over a resize.
            (stated(5), 5, 3, 3, None, 3),
            (stated(5), 5, 3, 0, None, 0),
            // A resize that was asked for after it wins over the file.
            (stated(5), 7, 3, 8, None, 10),
            (stated(5), 3, 3, 1, None, 0),
            (Kept, 5, 3, 3, None, 5),
            (Kept, 5, 3, 8, base(4, 5), 5),
            (IfRecipesDiffer, 5, 3, 3, None, 5),
            (IfRecipesDiffer, 5, 3, 8, None, 8),
            (Back, 8, 8, 3, base(5, 8), 5),
            // People added two meanwhile, or removed two.
            (Back, 10, 8, 3, base(5, 8), 7),
            (Back, 6, 8, 3, base(5, 8), 3),
            (Back, 0, 8, 3, base(5, 8), 0),
            // The numbers of the recipes do not matter on a rollback.
            (Back, 9, 3, 3, base(5, 8), 6),
            (Back, 5, 3, 3, None, 5),
        ] {
            let facts = SizeFacts { now, left, entered, baseline };
            assert_eq!(on_switch(reason, facts).after, expected, "{reason:?} {facts:?}");
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Event {
        Resize(i32),
        Stated(u32),
        Kept,
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            (-50..50).prop_map(Event::Resize),
            (1000_u32..2000).prop_map(Event::Stated),
            Just(Event::Kept),
        ];
        proptest::collection::vec(event, 0..20)
    }

    proptest! {
        /// However many versions took over from each other, a rollback leaves what people changed and nothing else.
        #[test]
        fn a_way_back_leaves_what_people_changed(first in 1000_u32..2000, events in events()) {
            let (mut now, mut baseline, mut changed) = (first, None, 0);
            // A rollout begins with a switch: what was changed before it is not its to take back.
            for event in [Event::Stated(1500)].into_iter().chain(events) {
                let reason = match event {
                    Event::Resize(by) => {
                        changed += by;
                        now = now.checked_add_signed(by).unwrap();
                        continue;
                    }
                    Event::Stated(_) => SizeOnSwitch::Stated { submitted_at: now },
                    Event::Kept => SizeOnSwitch::Kept,
                };
                let entered = if let Event::Stated(size) = event { size } else { 7 };
                let is = on_switch(reason, SizeFacts { now, left: 7, entered, baseline });
                (now, baseline) = (is.after, Some(is));
            }
            let back = on_switch(SizeOnSwitch::Back, SizeFacts { now, left: 7, entered: 7, baseline });
            prop_assert_eq!(back.after, first.checked_add_signed(changed).unwrap());
            // Once back, there is nothing more to take back.
            let facts = SizeFacts { now: back.after, left: 7, entered: 7, baseline: Some(back) };
            prop_assert_eq!(on_switch(SizeOnSwitch::Back, facts).after, back.after);
        }
    }
}
