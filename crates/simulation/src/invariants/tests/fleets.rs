//! How many rooms there are, and which of them go.

use maestro_core::guards;

use super::*;

#[test]
fn our_own_additions_stop_at_what_is_desired() {
    let adds = |amount: u32, origin: Origin| {
        async move |scene: &Scene| {
            scene.fleet(&[RoomStatus::Ready; 3]).await;
            scene.work(vec![Change::Enqueue(operation(2, add(amount), origin.clone()))]).await;
        }
    };
    check(adds(SIZE - 3, Origin::Controller), &[]);
    check(adds(SIZE - 2, Origin::Controller), &[Invariant::SurgeBound]);
    // People may want more.
    check(adds(SIZE, person()), &[]);
    // Twice the same wish is one too many, before either is begun.
    check(
        async |scene| {
            scene.fleet(&[RoomStatus::Ready; 3]).await;
            for number in [2, 3] {
                let wish = operation(number, add(SIZE - 3), Origin::Controller);
                scene.work(vec![Change::Enqueue(wish)]).await;
            }
        },
        &[Invariant::SurgeBound],
    );
    // In need, with the lock that says so.
    check(
        async |scene| {
            scene.fleet(&[RoomStatus::Ready; 3]).await;
            let panics = operation(2, add(SIZE), Origin::Controller);
            scene.request(vec![lock(2, LockKind::Panic), Change::Enqueue(panics)]).await;
        },
        &[],
    );
}

#[test]
fn ready_rooms_stay_that_must() {
    let rooms = SIZE as usize + 2;
    let removes = |candidates: u32, origin: Origin| {
        async move |scene: &Scene| {
            scene.fleet(&vec![RoomStatus::Ready; rooms]).await;
            let candidates: Vec<u32> = (1..=candidates).collect();
            let amount = candidates.len();
            scene.remove(remove(2), origin.clone(), &candidates, amount).await;
        }
    };
    check(removes(2, Origin::Controller), &[]);
    check(removes(3, Origin::Controller), &[Invariant::ReadyTarget]);
    check(removes(3, person()), &[]);
}

#[test]
fn players_go_last() {
    let fleet = [RoomStatus::Occupied, RoomStatus::Ready, RoomStatus::Ready];
    let removes = |definition: fn() -> Definition, candidates: &'static [u32], rooms_max: usize| {
        async move |scene: &Scene| {
            scene.fleet(&fleet).await;
            scene.remove(definition(), person(), candidates, rooms_max).await;
        }
    };
    check(removes(|| remove(3), &[2, 3, 1], 3), &[]);
    check(removes(|| remove(2), &[2, 3, 1], 2), &[]);
    check(removes(|| remove(1), &[1, 2, 3], 1), &[Invariant::ReadyBeforeOccupied]);
    check(removes(|| remove(2), &[2, 1, 3], 2), &[Invariant::ReadyBeforeOccupied]);
    check(removes(|| replace(&[1, 2]), &[1], 1), &[Invariant::ReadyBeforeOccupied]);
    // The ready ones are not to be replaced.
    check(removes(|| replace(&[1]), &[1], 1), &[]);
}

/// It may have expired between the plan and the claim.
#[test]
fn a_room_that_has_been_silent_for_long_need_not_go_first() {
    for (seconds, expected) in [(1, &[Invariant::ReadyBeforeOccupied] as &[_]), (60, &[])] {
        let removes = async move |scene: &Scene| {
            scene.fleet(&[RoomStatus::Occupied, RoomStatus::Ready]).await;
            scene.remove_at(seconds, replace(&[1, 2]), Origin::Controller, &[1], 1).await;
        };
        check(removes, expected);
    }
}

#[test]
fn autoscaling_takes_nobodys_room() {
    let removes = |candidate: u32| {
        async move |scene: &Scene| {
            let mut fleet = vec![RoomStatus::Ready; SIZE as usize + 2];
            fleet[0] = RoomStatus::Occupied;
            scene.fleet(&fleet).await;
            scene.remove(remove(1), Origin::Controller, &[candidate], 1).await;
        }
    };
    check(removes(2), &[]);
    check(removes(1), &[Invariant::OccupiedStays]);
}

#[test]
fn a_validation_room_is_not_counted() {
    let decides_on = |total: u32| {
        async move |scene: &Scene| {
            scene.cycle_beside_a_validation_room().await;
            scene.count(total).await;
        }
    };
    check(decides_on(3), &[]);
    check(decides_on(4), &[Invariant::ValidationNotCounted]);
    check(
        async |scene| {
            scene.read(&[RoomView { purpose: Purpose::Validation, ..view(1, RoomStatus::Ready) }]);
            scene.remove(remove(1), person(), &[1], 1).await;
        },
        &[Invariant::ValidationNotCounted],
    );
}

/// What the owner writes beside its steps is no new look at the fleet.
#[test]
fn a_room_that_ended_after_the_look_may_be_counted() {
    let delivered =
        || Change::EventsDelivered { scheduler: arena(), queue: QueueId(1), events: Vec::new(), at: at(0) };
    let idle = || Change::RecordNoAction(fixtures::no_action(5, 0));
    let decides_on = |total: u32, beside: Change| {
        async move |scene: &Scene| {
            scene.cycle_beside_a_validation_room().await;
            let end = fixtures::end_room(1, 0);
            scene.request(vec![end]).await;
            scene.work(vec![beside]).await;
            scene.count(total).await;
        }
    };
    for beside in [delivered, idle] {
        check(decides_on(3, beside()), &[]);
        check(decides_on(4, beside()), &[Invariant::ValidationNotCounted]);
    }
}

#[test]
fn no_port_is_given_twice() {
    let gives = |port| {
        async move |scene: &Scene| {
            scene.fleet(&[RoomStatus::Ready]).await;
            let second = NewRoomRecord { operation: operation_id(4), ..fixtures::new_room(2, port) };
            scene.work(vec![Change::IntendRoom(second)]).await;
        }
    };
    check(gives(40002), &[]);
    guards::take_out(Invariant::PortOnce);
    check(gives(40001), &[Invariant::PortOnce]);
    guards::put_back();
}
