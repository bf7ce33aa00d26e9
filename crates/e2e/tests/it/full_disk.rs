//! A disk without space: requests say so and change nothing, and everything goes on when there is space again.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use maestro_e2e::{Answer, Maestro, checks, send_signal, until};
use rustix::process::Signal;
use tempfile::TempDir;

/// Every third write fails, from the first, the second, the third on: together that is every write there is.
#[test]
fn a_fleet_lives_through_writes_that_fail() -> anyhow::Result<()> {
    const STRIDE: usize = 3;
    let runs = (1..=STRIDE).map(|first| thread::spawn(move || live_with_failing_writes(first, STRIDE)));
    // All are started before the first is waited for, and all have ended, with their servers, before the first is judged.
    let runs: Vec<_> = runs.collect();
    let outcomes: Vec<_> = runs.into_iter().map(thread::JoinHandle::join).collect();
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => outcome?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(())
}

fn live_with_failing_writes(first: usize, stride: usize) -> anyhow::Result<()> {
    // More than the scenario makes.
    const WRITES: usize = 200;
    let mut maestro = Maestro::new(&[("WORKERS_SYNCINTERVAL", "1s")])?;
    let points: Vec<String> = (first..=WRITES).step_by(stride).map(|write| format!("full:{write}")).collect();
    maestro.set_failpoint(Some(&points.join(",")));
    maestro.start()?;
    let recipe = maestro.recipe("arena", 3)?.json();
    until_accepted(&maestro, || maestro.api().create(&recipe))?;
    let rooms = maestro.until("the fleet", || checks::settled(&maestro, "arena", 3))?;
    until_accepted(&maestro, || maestro.api().add("arena", 2, "ada"))?;
    maestro.until("the larger fleet", || checks::settled(&maestro, "arena", 5))?;
    send_signal(rooms[0].pids[0], Signal::KILL)?;
    maestro.until("the replacement", || {
        let now = checks::settled(&maestro, "arena", 5)?;
        ensure!(now.iter().all(|room| room.id != rooms[0].id), "it is listed");
        Ok(())
    })?;
    until_accepted(&maestro, || maestro.api().remove("arena", 2, "ada"))?;
    maestro.until("the smaller fleet", || checks::settled(&maestro, "arena", 3))?;
    until_accepted(&maestro, || maestro.api().delete("/schedulers/arena"))?;
    maestro.until("the end of the fleet", || {
        maestro.api().get("/schedulers/arena")?.expect(404)?;
        ensure!(maestro.processes()?.is_empty(), "processes are left");
        Ok(())
    })
}

/// As a person would: read that there is no space, and try again.
fn until_accepted(maestro: &Maestro, ask: impl Fn() -> anyhow::Result<Answer>) -> anyhow::Result<Answer> {
    maestro.until("a request to be accepted", || {
        let answer = ask()?;
        if answer.status == 503 {
            assert_says_full(&answer);
            bail!("{}", answer.text);
        }
        // Anything else is wrong, whatever comes later.
        assert_eq!(answer.status, 200, "{}", answer.text);
        Ok(answer)
    })
}

fn assert_says_full(answer: &Answer) {
    let said = answer.message();
    assert!(
        answer.status == 503
            && said.contains("disk is full")
            && said.contains("nothing was changed: try again"),
        "{answer:?}"
    );
}

#[test]
fn a_server_whose_writes_fail_is_not_ready() -> anyhow::Result<()> {
    // Renewals come every ten seconds, and the first of them fails.
    let ttl = ("WORKERS_OWNERSHIPTTLMILLIS", "30000");
    let lease = ("SERVICES_OPERATIONMANAGER_OPERATIONLEASETTLMILLIS", "30000");
    let mut maestro = Maestro::new(&[ttl, lease])?;
    maestro.set_failpoint(Some("full:renew"));
    maestro.start()?;
    let answer = maestro.until("it not to be ready", || maestro.internal().get("/readyz")?.expect(503))?;
    let reason = answer.text.lines().nth(1).unwrap_or_default();
    assert!(reason.starts_with("store writes: ") && reason.contains("disk is full"), "{}", answer.text);
    maestro.until("it to be ready", || maestro.internal().get("/readyz")?.expect(200))?;
    Ok(())
}

#[test]
fn a_really_full_disk_is_said_and_survived() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    let disk = match SmallDisk::mount() {
        Ok(disk) => disk,
        Err(error) => {
            println!("skipped: a small file system needs the right to mount one: {error:#}");
            return Ok(());
        }
    };
    symlink(disk.path(), maestro.data_dir())?;
    let outcome = fill_and_free(&mut maestro, &disk);
    // The server and its rooms hold files on the disk.
    drop(maestro);
    drop(disk);
    outcome
}

fn fill_and_free(maestro: &mut Maestro, disk: &SmallDisk) -> anyhow::Result<()> {
    maestro.start()?;
    let before = maestro.fleet("arena", 2)?;
    disk.fill()?;
    // What is left of blocks that are there already may take a few more writes.
    let mut accepted = 0;
    let refused = maestro.until("the disk to be full", || {
        let answer = maestro.api().add("arena", 1, "ada")?;
        if answer.status == 200 {
            accepted += 1;
        }
        answer.expect(503)
    })?;
    assert_says_full(&refused);
    maestro.api().get("/schedulers/arena")?.expect(200)?;
    let refused = maestro.api().create(&maestro.recipe("other", 1)?.json())?;
    assert_says_full(&refused);
    maestro.api().get("/schedulers/other")?.expect(404)?;

    disk.free()?;
    let size = 2 + accepted + 1;
    until_accepted(maestro, || maestro.api().add("arena", 1, "ada"))?;
    let after =
        maestro.until("what was accepted, and no more", || checks::settled(maestro, "arena", size))?;
    for room in before {
        ensure!(
            after.iter().any(|other| other.pids == room.pids),
            "room {} did not live through it",
            room.id
        );
    }
    Ok(())
}

/// A file system in memory with hardly any space.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> anyhow::Result<Self> {
        let at = tempfile::tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(at.path());
        let output = mount.output().context("running mount")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Self(at))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn fill(&self) -> anyhow::Result<()> {
        let mut filler = File::create(self.path().join("filler"))?;
        // Blocks of the file system's size, so that nothing is left at the end.
        while filler.write_all(&[0; 4096]).is_ok() {}
        Ok(())
    }

    fn free(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.path().join("filler"))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Who held files on it may have ended just now. If it stays mounted, so does its directory.
        let _ = until("the disk to be free", Duration::from_secs(10), || {
            let status = Command::new("umount").arg(self.path()).status()?;
            ensure!(status.success(), "{status}");
            Ok(())
        });
    }
}
