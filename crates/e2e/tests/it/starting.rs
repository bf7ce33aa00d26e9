//! Starts that must be refused, and neighbours that must be left alone.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use anyhow::ensure;
use maestro_e2e::{Maestro, checks};
use rustix::process::Signal;

#[test]
fn two_data_directories_leave_each_other_alone() -> anyhow::Result<()> {
    let mut one = Maestro::started(&[])?;
    let other = Maestro::started(&[])?;
    for maestro in [&one, &other] {
        // The same name, so that nothing but the store's id tells them apart.
        maestro.api().create(&maestro.recipe("arena", 3)?.json())?.expect(200)?;
    }
    one.until("the one fleet", || checks::settled(&one, "arena", 3))?;
    other.until("the other fleet", || checks::settled(&other, "arena", 3))?;
    let untouched = other.processes()?;

    one.kill()?;
    one.start()?;
    one.until("the one fleet again", || checks::settled(&one, "arena", 3))?;
    one.api().delete("/schedulers/arena")?.expect(200)?;
    one.until("the one fleet to be gone", || {
        ensure!(one.processes()?.is_empty(), "its processes are there");
        Ok(())
    })?;
    checks::settled(&other, "arena", 3)?;
    assert_eq!(other.processes()?, untouched);
    Ok(())
}

#[test]
fn a_second_start_on_a_data_directory_is_refused_and_names_the_first() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let second = maestro.start_command()?.output()?;
    let (code, said) = told(&second);
    assert_eq!(code, Some(1), "{said}");
    let pid = format!("is in use by process {}", maestro.pid()?);
    assert!(said.contains(&pid), "{said}");
    maestro.api().get("/schedulers")?.expect(200)?;
    Ok(())
}

#[test]
fn a_damaged_database_is_refused_and_not_changed() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 1)?;
    maestro.stop(Signal::TERM)?;
    let database = maestro.data_dir().join("maestro.db");
    let sound = fs::read(&database)?;

    let mut scribbled = sound.clone();
    let middle = scribbled.len() / 2;
    scribbled[4096..middle].fill(0xa5);
    let cases: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("cut off", &sound[..sound.len() / 3]),
        ("scribbled over", &scribbled),
        ("something else", b"this is not a database, it is a letter to my aunt"),
    ];
    for (what, bytes) in cases {
        fs::write(&database, bytes)?;
        let before = files(&maestro.data_dir())?;
        let (code, said) = told(&maestro.start_command()?.output()?);
        assert_eq!(code, Some(1), "{what}: {said}");
        assert!(said.contains("maestro.db is damaged") && said.contains("maestro restore"), "{what}: {said}");
        let after = files(&maestro.data_dir())?;
        assert!(before == after, "{what}: files were changed: {:?}", after.keys());
    }

    fs::write(&database, &sound)?;
    maestro.start()?;
    maestro.until("the fleet again", || checks::settled(&maestro, "arena", 1))?;
    Ok(())
}

#[test]
fn a_taken_port_is_named_with_its_key() -> anyhow::Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    for (variable, key) in [
        ("MANAGEMENTAPI_PORT", "managementApi"),
        ("ROOMSAPI_PORT", "roomsApi"),
        ("INTERNALAPI_PORT", "internalApi"),
    ] {
        let maestro = Maestro::new(&[(variable, &port)])?;
        let (code, said) = told(&maestro.start_command()?.output()?);
        assert_eq!(code, Some(1), "{said}");
        let expected = format!("{key}: cannot listen on 127.0.0.1:{port}; choose another {key}.port");
        assert!(said.contains(&expected), "{said}");
        assert!(said.contains("Address already in use"), "{said}");
    }
    Ok(())
}

/// Exit code and stderr.
fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// All but the lock, in which every start writes its pid.
fn files(directory: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != "maestro.lock" {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(files)
}
