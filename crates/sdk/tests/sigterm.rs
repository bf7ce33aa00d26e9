//! SIGTERM is the whole process's: these tests have a process apart from the others, and one that ends by it a child.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use maestro_sdk::testing::FakeRoomsApi;
use maestro_sdk::{Options, Room, Status};
use maestro_testkit::PATIENCE;
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::raise;

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
    let said: Vec<_> = pings.iter().map(|ping| (ping.status(), ping.running_matches())).collect();
    assert_eq!(said, [("occupied", 2), ("terminating", 2), ("terminating", 1), ("terminated", 1)]);
}

#[test]
fn without_a_handle_sigterm_ends_the_process_again() {
    const IS_CHILD: &str = "SIGTERM_TEST_IS_CHILD";
    if env::var_os(IS_CHILD).is_none() {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "without_a_handle_sigterm_ends_the_process_again"]).env(IS_CHILD, "1");
        assert_eq!(child.output().unwrap().status.signal(), Some(SIGTERM));
        return;
    }
    let api = FakeRoomsApi::start().unwrap();
    let room = Room::new("arena", "arena-1", &api.url()).unwrap();
    let first = room.clone().start(Options::default()).unwrap();
    let second = room.start(Options::default()).unwrap();
    drop(first);
    raise(SIGTERM).unwrap();
    // Had the first handle's end brought the default back, this would not be reached.
    assert!(second.wait_terminate(PATIENCE));
    drop(second);
    raise(SIGTERM).unwrap();
}
