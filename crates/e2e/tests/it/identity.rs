//! Copies of stores, and stores that are lost: whose rooms are whose.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use maestro_e2e::{Maestro, checks};
use rustix::process::Signal;

/// `cp -a`, of the files that make a store.
fn copy_store(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn restore(maestro: &Maestro, backup: &Path, flags: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    let (directory, file) = (maestro.data_dir(), backup.to_string_lossy().into_owned());
    let directory = directory.to_string_lossy().into_owned();
    let output = maestro.cli(&[&["restore", "--data-dir", &directory, &file], flags].concat())?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(said)?))
}

fn back_up(maestro: &Maestro) -> anyhow::Result<std::path::PathBuf> {
    let file = maestro.home().join("backup");
    let directory = maestro.data_dir().to_string_lossy().into_owned();
    let output = maestro.cli(&["backup", "--data-dir", &directory, &file.to_string_lossy()])?;
    ensure!(output.status.success(), "{output:?}");
    Ok(file)
}

/// The second server runs its own fleet, and its whole life leaves the first one's rooms as they are.
fn check_second_store(original: &Maestro, second: &mut Maestro) -> anyhow::Result<()> {
    let untouched = original.processes()?;
    second.start()?;
    assert_ne!(second.store_id(), original.store_id());
    second.until("a fleet of its own", || checks::settled(second, "arena", 2))?;
    second.api().delete("/schedulers/arena")?.expect(200)?;
    second.until("its fleet to be gone", || {
        ensure!(second.processes()?.is_empty(), "its processes are there");
        Ok(())
    })?;
    second.stop(Signal::TERM)?;
    assert_eq!(original.processes()?, untouched);
    checks::settled(original, "arena", 2)?;
    Ok(())
}

#[test]
fn a_backup_restored_beside_the_original_leaves_its_rooms_alone() -> anyhow::Result<()> {
    let original = Maestro::started(&[])?;
    original.fleet("arena", 2)?;
    let backup = back_up(&original)?;
    let mut second = Maestro::new(&[])?;
    let (code, said) = restore(&second, &backup, &[])?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("it is a new store"), "{said}");
    check_second_store(&original, &mut second)
}

#[test]
fn a_copied_data_directory_leaves_the_originals_rooms_alone() -> anyhow::Result<()> {
    let mut original = Maestro::started(&[])?;
    original.fleet("arena", 2)?;
    // Its rooms go on while it is copied and while it is away.
    original.kill()?;
    let mut second = Maestro::new(&[])?;
    copy_store(&original.data_dir(), &second.data_dir())?;
    original.start()?;
    original.until("the fleet again", || checks::settled(&original, "arena", 2))?;
    check_second_store(&original, &mut second)
}

/// Both carry one id, because somebody insisted on it: neither ends rooms of the other while that one lives.
#[test]
fn a_copy_with_the_same_identity_leaves_the_originals_rooms_alone_and_says_whose_they_are()
-> anyhow::Result<()> {
    let original = Maestro::started(&[])?;
    original.fleet("arena", 2)?;
    let backup = back_up(&original)?;
    let rooms = original.processes()?;
    let mut second = Maestro::new(&[])?;
    let (code, said) = restore(&second, &backup, &["--same-identity"])?;
    assert_eq!(code, Some(0), "{said}");
    second.start()?;
    assert_eq!(second.store_id(), original.store_id());
    // Processes carry the id of both.
    let still_there = || -> anyhow::Result<bool> {
        let running = original.processes()?;
        Ok(rooms.iter().all(|room| running.contains(room)))
    };
    second.until("a fleet of its own", || {
        checks::settled(&second, "arena", 2).ok();
        let own = second.processes()?.into_iter().filter(|process| !rooms.contains(process)).count();
        ensure!(own == 2, "{own} rooms of its own");
        Ok(())
    })?;
    let log = fs::read_to_string(second.log())?;
    for room in &rooms {
        let whose = format!("room {} belongs to the server with pid {}", room.room, original.pid()?);
        assert!(log.contains(&whose), "{whose}\n{log}");
    }
    second.api().delete("/schedulers/arena")?.expect(200)?;
    second.until("its fleet to be gone", || {
        let running = second.processes()?;
        ensure!(running.iter().all(|process| rooms.contains(process)), "{running:?}");
        Ok(())
    })?;
    second.stop(Signal::TERM)?;
    assert!(still_there()?, "{:?}", original.processes()?);
    checks::settled(&original, "arena", 2)?;

    // Without its database it does not take them for abandoned either.
    for name in ["maestro.db", "maestro.db-wal", "maestro.db-shm"] {
        fs::remove_file(second.data_dir().join(name)).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    second.start_with(&["--stop-unknown-rooms"])?;
    assert!(still_there()?, "{:?}", original.processes()?);
    checks::settled(&original, "arena", 2)?;
    Ok(())
}

#[test]
fn rooms_of_a_lost_store_are_not_touched_before_someone_decides() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    let backup = back_up(&maestro)?;
    let running = maestro.processes()?;
    maestro.kill()?;
    for name in ["maestro.db", "maestro.db-wal", "maestro.db-shm"] {
        fs::remove_file(maestro.data_dir().join(name))?;
    }

    let refused = maestro.start_command()?.output()?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    for room in &running {
        assert!(said.contains(&format!("{} (pid {})", room.room, room.pid)), "{said}");
    }
    assert!(said.contains("maestro restore") && said.contains("--stop-unknown-rooms"), "{said}");
    assert_eq!(maestro.processes()?, running);

    // In the original's place they are adopted.
    let (code, said) = restore(&maestro, &backup, &[])?;
    assert_eq!(code, Some(0), "{said}");
    maestro.start()?;
    maestro.until("the fleet again", || checks::settled(&maestro, "arena", 2))?;
    assert_eq!(maestro.processes()?, running);
    Ok(())
}

#[test]
fn rooms_of_a_lost_directory_are_adopted_by_a_restore_in_its_place() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    let backup = back_up(&maestro)?;
    let running = maestro.processes()?;
    maestro.kill()?;
    fs::remove_dir_all(maestro.data_dir())?;
    let (code, said) = restore(&maestro, &backup, &[])?;
    assert_eq!(code, Some(0), "{said}");
    maestro.start()?;
    maestro.until("the fleet again", || checks::settled(&maestro, "arena", 2))?;
    assert_eq!(maestro.processes()?, running);
    Ok(())
}

#[test]
fn rooms_of_a_lost_store_end_when_someone_says_so() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    let lost = maestro.store_id().map(str::to_owned);
    maestro.kill()?;
    for name in ["maestro.db", "maestro.db-wal", "maestro.db-shm"] {
        fs::remove_file(maestro.data_dir().join(name))?;
    }
    maestro.start_with(&["--stop-unknown-rooms"])?;
    assert_ne!(maestro.store_id().map(str::to_owned), lost);
    let left = maestro_e2e::processes_of_store(&lost.unwrap_or_default())?;
    assert!(left.is_empty(), "{left:?}");
    maestro.fleet("arena", 1)?;
    Ok(())
}

/// Recipes hold secrets.
#[test]
fn nobody_else_can_read_what_a_server_keeps() -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 1)?;
    let backup = back_up(&maestro)?;
    let mode = |path: &Path| anyhow::Ok(fs::metadata(path)?.mode() & 0o777);
    assert_eq!(mode(&backup)?, 0o600);
    assert_eq!(mode(&maestro.data_dir())?, 0o700);
    for entry in fs::read_dir(maestro.data_dir())? {
        let path = entry?.path();
        if path.is_file() {
            assert_eq!(mode(&path)?, 0o600, "{}", path.display());
        }
    }
    Ok(())
}
