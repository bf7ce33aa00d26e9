use super::*;

fn sides(ping: PingStatus, instance: InstanceStatus) -> Sides {
    Sides { instance, ping, fill: Fill::Single, held: false }
}

#[test]
fn the_whole_table() {
    let mut text = String::new();
    for ping in PingStatus::ALL {
        for instance in InstanceStatus::ALL {
            let of = |fill, held| Sides { fill, held, ..sides(ping, instance) }.status().as_str();
            let by_fill = Fill::ALL.map(|fill| match (of(fill, false), of(fill, true)) {
                (free, held) if free == held => free.to_owned(),
                (free, held) => format!("{free}/{held}"),
            });
            let mut by_fill = by_fill.to_vec();
            by_fill.dedup();
            text += &format!("{} {}: {}\n", ping.as_str(), instance.as_str(), by_fill.join(" "));
        }
    }
    expect_test::expect![[r#"
        unknown unknown: pending
        unknown pending: pending
        unknown ready: unready
        unknown terminating: terminating
        unknown error: error
        ready unknown: pending
        ready pending: pending
        ready ready: ready/allocated active occupied
        ready terminating: terminating
        ready error: error
        occupied unknown: pending
        occupied pending: pending
        occupied ready: occupied ready/allocated active occupied
        occupied terminating: terminating
        occupied error: error
        terminating unknown: terminating
        terminating pending: terminating
        terminating ready: terminating
        terminating terminating: terminating
        terminating error: error
        terminated unknown: terminated
        terminated pending: terminated
        terminated ready: terminated
        terminated terminating: terminated
        terminated error: error
    "#]]
    .assert_eq(&text);
}

/// What is handed to a script says all there is, and each thing once.
#[test]
fn the_tables_as_data_are_whole() {
    let rows: Vec<_> = composition().collect();
    assert_eq!(rows.len(), InstanceStatus::ALL.len() * PingStatus::ALL.len() * Fill::ALL.len() * 2);
    for (number, (sides, status)) in rows.iter().enumerate() {
        assert!(rows[..number].iter().all(|(other, _)| other != sides), "{sides:?} twice");
        assert_eq!(sides.status(), *status, "{sides:?}");
    }
    let listed: Vec<_> = transitions().collect();
    for from in RoomStatus::ALL {
        assert_eq!(MAY_BECOME[from as usize].0, from, "rows are in the order of the statuses");
        for to in RoomStatus::ALL {
            let times = listed.iter().filter(|change| **change == (from, to)).count();
            assert_eq!(times, usize::from(from != to && from.may_become(to)), "{from} to {to}");
        }
    }
}

#[test]
fn a_room_becomes_allocated_from_wherever_it_becomes_ready() {
    for from in RoomStatus::ALL.into_iter().filter(|from| ![Ready, Allocated].contains(from)) {
        assert_eq!(from.may_become(Allocated), from.may_become(Ready), "{from}");
    }
}

#[test]
fn all_transitions() {
    let mut table = String::new();
    for from in RoomStatus::ALL {
        let to: Vec<_> = transitions().filter(|(one, _)| *one == from).map(|(_, to)| to.as_str()).collect();
        table += &format!("{from}: {}\n", to.join(" "));
    }
    expect_test::expect![[r#"
        pending: unready ready active occupied allocated terminating terminated error
        unready: pending ready active occupied allocated terminating terminated error
        ready: unready active occupied allocated terminating terminated error
        active: unready ready occupied allocated terminating terminated error
        occupied: unready ready active allocated terminating terminated error
        allocated: unready ready active occupied terminating terminated error
        terminating: unready ready active occupied allocated terminated error
        terminated: 
        error: unready ready active occupied allocated terminating terminated
    "#]]
    .assert_eq(&table);
}

#[test]
fn several_matches_in_a_room() {
    for (word, matches, expected) in [
        (PingStatus::Ready, 0, Ready),
        (PingStatus::Occupied, 0, Ready),
        (PingStatus::Ready, 1, Active),
        (PingStatus::Occupied, 2, Active),
        (PingStatus::Occupied, 3, Occupied),
        (PingStatus::Ready, 9, Occupied),
    ] {
        let sides = Sides { fill: Fill::of(matches, 3), ..sides(word, InstanceStatus::Ready) };
        assert_eq!(sides.status(), expected, "{word:?} with {matches} of 3");
    }
}

#[test]
fn a_claimed_room_is_on_its_way_out_until_it_is_given_back() {
    let mut room = RoomState::new(InstanceStatus::Ready, 1, true);
    room.ping(PingStatus::Ready, 0).unwrap();
    assert!(!room.claim(&[Occupied], true), "it is ready");
    assert!(room.claim(&[Ready], true));
    assert!(!room.claim(&RoomStatus::ALL, false), "one claim at a time");
    assert_eq!(room.status(), Terminating);
    for (observed, status) in [(InstanceStatus::Error, Error), (InstanceStatus::Pending, Terminating)] {
        assert_eq!(room.observe(observed).after, status, "{observed:?}");
    }
    room.observe(InstanceStatus::Ready);
    room.unclaim();
    assert_eq!(room.status(), Ready);
}

#[test]
fn a_held_room_stays_allocated_until_a_match_begins() {
    let mut room = RoomState::new(InstanceStatus::Ready, 1, true);
    room.set_holds(1);
    let steps = [
        (PingStatus::Ready, Allocated),
        (PingStatus::Occupied, Occupied),
        (PingStatus::Terminating, Terminating),
    ];
    for (word, expected) in steps {
        assert_eq!(room.ping(word, 0).map(|change| change.after), Ok(expected), "{word:?}");
    }
    room.ping(PingStatus::Ready, 0).unwrap();
    room.set_holds(0);
    assert_eq!(room.status(), Ready);
}

#[test]
fn free_slots() {
    for (matches_max, word, matches, holds, expected) in [
        (1, PingStatus::Ready, 0, 0, 1),
        (1, PingStatus::Ready, 0, 1, 0),
        (1, PingStatus::Occupied, 1, 0, 0),
        (1, PingStatus::Terminating, 0, 0, 0),
        (4, PingStatus::Ready, 0, 0, 4),
        (4, PingStatus::Ready, 1, 2, 1),
        (4, PingStatus::Ready, 3, 2, 0),
        (4, PingStatus::Ready, 4, 0, 0),
    ] {
        let mut room = RoomState::new(InstanceStatus::Ready, matches_max, false);
        assert_eq!(room.free_slots(), 0, "nobody has heard of it");
        room.set_holds(holds);
        room.ping(word, matches).unwrap();
        assert_eq!(room.free_slots(), expected, "{word:?} with {matches} and {holds} of {matches_max}");
        room.claim(&RoomStatus::ALL, false);
        assert_eq!(room.free_slots(), 0, "it is on its way out");
    }
}

#[test]
fn a_room_that_was_there_before_the_table_is_unknown_until_it_pings() {
    let mut room = RoomState::new(InstanceStatus::Ready, 1, false);
    assert!(!room.claim(&RoomStatus::ALL, true));
    room.ping(PingStatus::Occupied, 0).unwrap();
    assert!(room.is_known() && room.was_ready());
    assert!(room.claim(&RoomStatus::ALL, true));
}

#[test]
fn what_is_not_possible_is_not_taken_up() {
    let mut room = RoomState::new(InstanceStatus::Ready, 1, false);
    room.ping(PingStatus::Terminated, 0).unwrap();
    let before = room;
    let refused = StatusChange { before: Terminated, after: Ready };
    assert_eq!(room.ping(PingStatus::Ready, 3), Err(refused));
    assert_eq!(room.observe(InstanceStatus::Error).after, Terminated);
    assert_eq!(room, before);
}
