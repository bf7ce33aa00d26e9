//! SIGTERM is the whole process's, so this file holds one test and is a process of its own.

use std::sync::mpsc;
use std::time::Duration;

use maestro_sdk::testing::FakeRoomsApi;
use maestro_sdk::{Options, Room, Status};
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::raise;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn sigterm_is_told_to_maestro_and_to_the_game() {
    let api = FakeRoomsApi::start().unwrap();
    let room = Room::new("arena", "arena-1", &api.url()).unwrap();
    let handle = room.start(Options::default()).unwrap();
    handle.occupied(2);
    api.wait_for(PATIENCE, |pings| pings.len() == 1).unwrap();
    assert!(!handle.terminate_requested());
    assert!(!handle.wait_terminate(Duration::ZERO));
    let (sender, called) = mpsc::channel();
    handle.on_terminate(move || sender.send("before").unwrap());

    raise(SIGTERM).unwrap();

    assert!(handle.wait_terminate(PATIENCE));
    assert!(handle.terminate_requested());
    assert_eq!(called.recv_timeout(PATIENCE), Ok("before"));
    let (sender, called) = mpsc::channel();
    handle.on_terminate(move || sender.send("after").unwrap());
    assert_eq!(called.try_recv(), Ok("after"));

    api.wait_for(PATIENCE, |pings| pings.len() == 2).unwrap();
    // The game lets one match end; nothing makes the room look open again.
    handle.occupied(1);
    api.wait_for(PATIENCE, |pings| pings.len() == 3).unwrap();
    assert_eq!(handle.status(), Some(Status::Terminating));
    drop(handle);

    let pings = api.pings();
    let said: Vec<_> = pings
        .iter()
        .map(|ping| (ping.status(), ping.running_matches()))
        .collect();
    assert_eq!(
        said,
        [
            ("occupied", 2),
            ("terminating", 2),
            ("terminating", 1),
            ("terminated", 1)
        ]
    );
}
