//! `make run` beside other fleets on the same machine: the demo counts, kills and ends its own rooms and no others.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, PATIENCE, PortSlice, binaries, send_signal, until};
use maestro_testkit::Lines;
use rustix::process::Signal;

struct Demo {
    child: Child,
    lines: Lines,
    url: String,
    _ports: PortSlice,
}

impl Demo {
    fn start(directory: &std::path::Path) -> anyhow::Result<Self> {
        let ports = PortSlice::take()?;
        let [management, rooms, internal] = ports.api_ports()?;
        let mut child = Command::new(binaries::shipped()?.join("maestro-demo"))
            .args(["--rooms", "3", "--players", "0"])
            .current_dir(directory)
            .env_clear()
            .env("MAESTRO_MANAGEMENTAPI_PORT", management.to_string())
            .env("MAESTRO_ROOMSAPI_PORT", rooms.to_string())
            .env("MAESTRO_INTERNALAPI_PORT", internal.to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = Lines::of(child.stdout.take().context("stdout is piped")?);
        Ok(Self { child, lines, url: format!("http://127.0.0.1:{management}"), _ports: ports })
    }

    fn kill_a_room(&self) -> anyhow::Result<String> {
        let demo = binaries::shipped()?.join("maestro-demo");
        let output = Command::new(demo).arg("--kill").env("MAESTRO_URL", &self.url).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It ends its server, and that its rooms; killed, it could not.
        let _ = send_signal(self.child.id(), Signal::INT);
        let _ = self.child.wait();
    }
}

#[test]
fn it_counts_and_kills_its_own_rooms() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let mut demo = Demo::start(directory.path())?;
    demo.lines.wait(|line| line.contains("3 rooms: 3 ready"))?;
    // Younger than all of the demo's: what a search for the newest process of that name would find.
    let neighbour = Maestro::started(&[])?;
    neighbour.fleet("arena", 2)?;
    let untouched = neighbour.processes()?;

    let killed = demo.kill_a_room()?;
    assert!(killed.starts_with("killed room example-"), "{killed}");
    let id = killed.split_whitespace().nth(2).context("the room's id")?;
    until("another room to take its place", PATIENCE, || {
        let maestro = binaries::shipped()?.join("maestro");
        let listed = Command::new(maestro).args(["room", "list", "example", "--url", &demo.url]).output()?;
        let listed = String::from_utf8(listed.stdout)?;
        ensure!(!listed.contains(id) && listed.matches("ready").count() == 3, "{listed}");
        Ok(())
    })?;
    assert_eq!(neighbour.processes()?, untouched);

    send_signal(demo.child.id(), Signal::INT)?;
    until("the demo to end", PATIENCE, || {
        let status = demo.child.try_wait()?.context("it runs")?;
        ensure!(status.success(), "{status}");
        Ok(())
    })?;
    assert_eq!(neighbour.processes()?, untouched);
    Ok(())
}
