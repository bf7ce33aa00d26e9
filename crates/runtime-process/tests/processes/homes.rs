//! Directories of rooms, who may look into them, and whom rooms run as.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use maestro_core::room::RoomId;
use maestro_engine::ports::runtime::{RunningRoom, Runtime};
use maestro_runtime_process::{Options, ProcessRuntime, ProcessScanner, RoomUser};

use crate::support::{SOON, Seen, World, arena, eventually, logs, simple, stop, until_log};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_room_has_a_directory_of_its_own_until_it_ends() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    runtime.start(&simple("arena-1", "echo precious > file; echo up; exec sleep 1000")).await.unwrap();
    until_log(&runtime, "arena-1", "up").await;
    let home = world.path().join("homes/arena/arena-1");
    assert!(home.join("file").is_file());
    let files = world.path().join("rooms/arena/arena-1");
    for directory in [&world.path().join("rooms"), &world.path().join("homes"), &home, &files] {
        assert_eq!(mode(directory), 0o700, "{}", directory.display());
    }
    for file in ["game.log", "game.pipe", "room.json"] {
        assert_eq!(mode(&files.join(file)), 0o600, "{file}");
    }
    stop(&runtime, "arena-1", None, SOON).await;
    seen.ending("arena-1").await;
    assert!(!home.exists());
    assert_eq!(logs(&runtime, "arena-1").await, "up\n", "its log stays");
}

#[tokio::test]
async fn what_was_open_to_all_is_closed() {
    let world = World::new();
    let room = world.path().join("rooms/arena/arena-1");
    std::fs::create_dir_all(&room).unwrap();
    std::fs::write(room.join("game.log"), "old\n").unwrap();
    let precious = world.path().join("precious");
    std::fs::write(&precious, "").unwrap();
    std::os::unix::fs::symlink(&precious, room.join("link.log")).unwrap();
    let open = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    for directory in [world.path(), &world.path().join("rooms"), &world.path().join("rooms/arena"), &room] {
        open(directory, 0o755);
    }
    open(&room.join("game.log"), 0o644);
    open(&precious, 0o644);
    let _runtime = world.open().await;
    eventually("all is closed", async || {
        let directories =
            [world.path(), &world.path().join("rooms"), &world.path().join("rooms/arena"), &room];
        directories.into_iter().all(|path| mode(path) == 0o700) && mode(&room.join("game.log")) == 0o600
    })
    .await;
    assert_eq!(mode(&precious), 0o644, "no link is followed");
}

/// Needs root, as `adapters.runtime.process.user` does.
#[tokio::test]
async fn rooms_run_as_another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("only root can start processes of others");
        return;
    }
    let (world, outside) = (World::new(), tempfile::tempdir().unwrap());
    std::fs::set_permissions(outside.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let nobody = RoomUser { name: "nobody".into(), user_id: 65_534, group_id: 65_534 };
    let options = || Options {
        rooms_directory: Some(outside.path().to_owned()),
        user: Some(nobody.clone()),
        scanner: ProcessScanner::new(Some(nobody.user_id)),
        ..world.options()
    };
    let runtime = ProcessRuntime::open(options()).await.unwrap();
    let text = format!(
        "id -u; id -G; pwd; echo $USER; echo mine > file && echo written; echo again > /dev/stdout; \
         ls {} 2>/dev/null || echo closed; ls ../.. 2>/dev/null || echo hidden; echo up; exec sleep 1000",
        world.path().display()
    );
    let handle = runtime.start(&simple("arena-1", &text)).await.unwrap();
    until_log(&runtime, "arena-1", "up").await;
    let own = std::fs::read_dir(outside.path()).unwrap().next().unwrap().unwrap().path();
    let home = own.join("default/arena/arena-1");
    let expected = format!("65534\n65534\n{}\nnobody\nwritten\nagain\nclosed\nhidden\nup\n", home.display());
    assert_eq!(logs(&runtime, "arena-1").await, expected);
    assert_eq!((mode(&home), home.metadata().unwrap().uid()), (0o700, 65_534));
    runtime.shut_down(false).await;

    let runtime = ProcessRuntime::open(options()).await.unwrap();
    let mut seen = Seen::by(&runtime);
    assert_eq!(runtime.list().await.unwrap().len(), 1, "its processes are looked at too");
    let known = RunningRoom { id: RoomId::new("arena-1"), scheduler: arena(), handle: handle.clone() };
    runtime.adopt(vec![known]).await.unwrap();
    stop(&runtime, "arena-1", Some(&handle), SOON).await;
    seen.ending("arena-1").await;
    assert!(!home.exists());
    world.until_empty().await;
}
