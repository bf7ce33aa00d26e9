//! What cannot be started is refused in words that say what to change, and leaves nothing.

use maestro_core::room::RoomId;
use maestro_core::scheduler::{Container, EnvironmentValue, EnvironmentVariable, RestartPolicy};
use maestro_engine::ports::runtime::{Runtime, RuntimeError};
use maestro_runtime_process::ProcessRuntime;

use crate::support::{Seen, World, arena, command, logs, room, script, variable};

async fn refusal(runtime: &ProcessRuntime, containers: Vec<Container>) -> String {
    match runtime.start(&room("arena-1", RestartPolicy::Never, containers)).await {
        Err(RuntimeError::Refused(why)) => why,
        other => panic!("{other:?} is no refusal"),
    }
}

#[tokio::test]
async fn a_command_that_cannot_run() {
    let world = World::new();
    let runtime = world.open().await;
    std::fs::write(world.path().join("text"), "no program").unwrap();
    std::fs::write(world.path().join("garbage"), "\x01\x02").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(world.path().join("garbage"), executable).unwrap();
    for (argv, expected) in [
        (&[][..], "it has no command"),
        (&["./nothing"], "command \"./nothing\" cannot be started: No such file or directory"),
        (&["no-such-program"], "command \"no-such-program\": no such program in PATH"),
        (&["./text"], "command \"./text\" cannot be started: Permission denied"),
        (&["./garbage"], "command \"./garbage\" cannot be started: Exec format error"),
        (&["./"], "command \"./\" cannot be started: Permission denied"),
        (&["/bin/echo", "zero\0byte"], "command \"/bin/echo\" cannot be started"),
    ] {
        let why = refusal(&runtime, vec![command("game", argv)]).await;
        assert!(why.starts_with("container \"game\": ") && why.contains(expected), "{why}");
    }
    assert_eq!(runtime.logs(&arena(), &RoomId::new("arena-1"), 1).await, Ok(None));
}

#[tokio::test]
async fn all_containers_or_none() {
    let world = World::new();
    let runtime = world.open().await;
    std::fs::write(world.path().join("text"), "no program").unwrap();
    let containers = vec![
        script("one", "sleep 1000 & exec sleep 1000"),
        script("two", "exec sleep 1000"),
        command("three", &["./text"]),
    ];
    let why = refusal(&runtime, containers).await;
    assert!(why.starts_with("container \"three\": command \"./text\""), "{why}");
    assert_eq!(runtime.list().await, Ok(vec![]));
    world.until_empty().await;
}

#[tokio::test]
async fn an_environment_that_cannot_be_had() {
    let world = World::new();
    let runtime = world.open().await;
    let with = |value| {
        let mut container = script("game", "exit 0");
        container.environment = vec![EnvironmentVariable { name: "X".into(), value }];
        vec![container]
    };
    let path = "metadata.labels['a']".into();
    let why = refusal(&runtime, with(EnvironmentValue::Field { path })).await;
    assert!(why.contains("environment X") && why.contains("it has metadata.name"), "{why}");
    let (name, key) = ("db".into(), "password".into());
    let why = refusal(&runtime, with(EnvironmentValue::Secret { name, key })).await;
    assert!(why.contains("there is no file secrets/db/password in the data directory"), "{why}");
}

#[tokio::test]
async fn a_working_directory_that_is_not_there() {
    let world = World::new();
    let mut options = world.options();
    options.working_directory = world.path().join("nowhere");
    let runtime = ProcessRuntime::open(options).await.unwrap();
    let why = refusal(&runtime, vec![script("game", "exit 0")]).await;
    assert!(why.contains("nowhere: there is no such directory"), "{why}");
}

#[tokio::test]
async fn a_command_is_looked_for_in_the_rooms_own_path() {
    let world = World::new();
    let runtime = world.open().await;
    let mut seen = Seen::by(&runtime);
    std::fs::create_dir(world.path().join("bin")).unwrap();
    std::os::unix::fs::symlink("/bin/echo", world.path().join("bin/say")).unwrap();
    for (id, argv) in [("arena-1", ["say", "hi"]), ("arena-2", ["bin/say", "hi"])] {
        let mut container = command("game", &argv);
        container.environment = vec![variable("PATH", "bin:/usr/bin")];
        runtime.start(&room(id, RestartPolicy::Never, vec![container])).await.unwrap();
        seen.ending(id).await;
        assert_eq!(logs(&runtime, id).await, "hi\n", "{argv:?}");
    }
}
