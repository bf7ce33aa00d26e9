//! The demo from beginning to end: Maestro, the fleet, the players, and the way out.

use std::fs;
use std::io::{self, IsTerminal, Stdout};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::tcgetwinsize;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::api::{Api, Operation, Submitted};
use crate::arguments::Settings;
use crate::demand::Demand;
use crate::maestro::{Endpoints, Maestro, Stopped};
use crate::matchmaker;
use crate::players::Players;
use crate::recipe::{SCHEDULER, recipe};
use crate::screen::Screen;
use crate::status::Status;

const SERVING_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the status line and the players look at the fleet.
const TICK: Duration = Duration::from_millis(500);

enum Event {
    Serving(Endpoints),
    /// Ctrl-C, or what has the same meaning.
    Stop,
}

/// What the main loop wakes up for.
enum Wake {
    Tick,
    Serving(Endpoints),
    Over(Over),
}

/// Why the demo is over.
enum Over {
    Stopped,
    MaestroEnded(ExitStatus),
}

struct Demo<'a> {
    settings: &'a Settings,
    maestro: Maestro,
    events: Receiver<Event>,
    screen: Screen<Stdout>,
}

pub(crate) fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let (sender, events) = mpsc::channel();
    watch_signals(sender.clone()).context("cannot handle signals")?;
    let on_serving = move |endpoints| drop(sender.send(Event::Serving(endpoints)));
    let maestro = Maestro::start(&settings.maestro, &settings.data_dir, on_serving)?;
    let screen = Screen::new(io::stdout(), io::stdout().is_terminal());
    let mut demo = Demo { settings, maestro, events, screen };

    match demo.play()? {
        Over::Stopped => demo.stop(),
        Over::MaestroEnded(status) => {
            let log = demo.maestro.log().display().to_string();
            demo.screen.say(&format!("maestro ended by itself: {status}. The end of {log}:"))?;
            demo.screen.say(&demo.maestro.log_tail())?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Kills the room of the demo's own fleet that was started last, whatever else runs on this machine.
pub(crate) fn kill_a_room(url: &str) -> anyhow::Result<ExitCode> {
    let rooms = Api::new(url).rooms().with_context(|| format!("does the demo run at {url}?"))?;
    let newest = rooms.iter().filter(|room| !room.pids.is_empty()).max_by_key(|room| &room.created_at);
    let Some(room) = newest else {
        bail!("scheduler {SCHEDULER} has no room that runs");
    };
    for pid in &room.pids {
        let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw).context("not a process id")?;
        kill_process(pid, Signal::KILL).with_context(|| format!("cannot kill process {pid}"))?;
    }
    println!("killed room {} ({})", room.id, room.status);
    Ok(ExitCode::SUCCESS)
}

impl Demo<'_> {
    fn play(&mut self) -> anyhow::Result<Over> {
        let deadline = Instant::now() + SERVING_TIMEOUT;
        let endpoints = loop {
            match self.wake()? {
                Wake::Serving(endpoints) => break endpoints,
                Wake::Over(over) => return Ok(over),
                Wake::Tick if Instant::now() < deadline => {}
                Wake::Tick => {
                    let log = self.maestro.log().display();
                    bail!("maestro does not serve after {} s, see {log}", SERVING_TIMEOUT.as_secs());
                }
            }
        };
        let api = Api::new(&endpoints.management);
        let recipe = recipe(self.settings.rooms, &self.settings.room)?;
        let submitted = api.submit(&recipe)?;
        let recipe_file = write_recipe(&self.settings.data_dir, &recipe, &submitted)?;
        let mut demand = Demand::new(&self.settings.data_dir, self.settings.players_max, Instant::now());
        let mut players = Players::new(fastrand::u64(..));
        let Settings { maestro: program, demo, .. } = self.settings;
        let hints = Hints { program, demo, players: demand.file(), recipe: &recipe_file };
        let scheduler = told(&submitted, self.settings.rooms);
        self.screen.say(&introduction(&endpoints, self.maestro.log(), &scheduler, &hints))?;

        loop {
            match self.wake()? {
                Wake::Over(over) => return Ok(over),
                Wake::Serving(_) | Wake::Tick => {}
            }
            let (wanted, complaint) = demand.look(Instant::now());
            if let Some(complaint) = complaint {
                self.screen.say(&complaint)?;
            }
            let line = match observe(&api, wanted, &mut players) {
                Ok(line) => line,
                Err(error) => format!("maestro does not answer: {error:#}"),
            };
            self.screen.show(&line, terminal_width())?;
        }
    }

    fn wake(&mut self) -> anyhow::Result<Wake> {
        match self.events.recv_timeout(TICK) {
            Ok(Event::Serving(endpoints)) => return Ok(Wake::Serving(endpoints)),
            Ok(Event::Stop) => return Ok(Wake::Over(Over::Stopped)),
            // The thread that watches signals lives as long as the program, so that the channel stays connected.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        Ok(self.maestro.ended()?.map_or(Wake::Tick, |status| Wake::Over(Over::MaestroEnded(status))))
    }

    fn stop(&mut self) -> anyhow::Result<ExitCode> {
        self.screen.say("ending maestro and its rooms (once more to kill it)")?;
        let events = &self.events;
        let hurry = || events.try_iter().any(|event| matches!(event, Event::Stop));
        let stopped = self.maestro.stop(hurry)?;
        self.screen.say(&farewell(&stopped))?;
        let clean = stopped.status.success() && !stopped.killed;
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn watch_signals(sender: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let watch = move || signals.forever().for_each(|_| drop(sender.send(Event::Stop)));
    thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
    Ok(())
}

/// Looks at the fleet, lets the players act on what they see, and says how it stands.
fn observe(api: &Api, wanted: u32, players: &mut Players) -> anyhow::Result<String> {
    let rooms = api.rooms()?;
    players.step(Instant::now(), wanted, &rooms, |length| matchmaker::seat(api, length))?;
    let operation: Option<Operation> = api.latest_operation()?;
    let status = Status {
        rooms: &rooms,
        wanted,
        matches: players.playing(),
        served: players.served(),
        operation: operation.as_ref(),
    };
    Ok(status.line())
}

fn terminal_width() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// The recipe as a file that can be changed and applied. That of an earlier run whose scheduler is kept stays as it is:
/// someone may have changed it.
fn write_recipe(data_dir: &Path, recipe: &Value, submitted: &Submitted) -> anyhow::Result<PathBuf> {
    let file = data_dir.join(format!("{SCHEDULER}.json"));
    if *submitted != Submitted::AlreadyThere || !file.exists() {
        let text = format!("{recipe:#}\n");
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(file)
}

/// What the hints name.
struct Hints<'a> {
    program: &'a Path,
    /// This program.
    demo: &'a Path,
    /// Where the number of players can be written.
    players: &'a Path,
    /// What can be changed and applied.
    recipe: &'a Path,
}

fn told(submitted: &Submitted, rooms: u32) -> String {
    match submitted {
        Submitted::Created => {
            format!("Scheduler {SCHEDULER} was created and will have {rooms} rooms, more when players come.")
        }
        Submitted::AlreadyThere => format!("Scheduler {SCHEDULER} is there from an earlier run."),
        Submitted::NewVersion => {
            format!("Scheduler {SCHEDULER} is there from an earlier run and rolls over to a new version.")
        }
    }
}

fn introduction(endpoints: &Endpoints, log: &Path, scheduler: &str, hints: &Hints<'_>) -> String {
    let Endpoints { management, rooms, internal } = endpoints;
    let log = log.display();
    let (program, demo) = (hints.program.display(), hints.demo.display());
    let (players, recipe) = (hints.players.display(), hints.recipe.display());
    format!(
        "Maestro is serving.
  management API  {management}
  rooms API       {rooms}
  metrics         {internal}/metrics
  log             {log}

{scheduler} In another terminal, try
  {program} room list {SCHEDULER}
  {program} operation list {SCHEDULER}
  {program} allocation list {SCHEDULER}     which rooms the players' matchmaker was given
  {demo} --kill     kills one of its rooms: watch another one come
  echo 30 > {players}     raise or lower the players, and watch the rooms follow
  {program} scheduler autoscaling {SCHEDULER}     why there are as many rooms as there are
Change an environment value in {recipe}, and roll the new version out:
  {program} scheduler apply -f {recipe}
  {program} rollout status {SCHEDULER} --watch
Ctrl-C ends it all.
",
    )
}

fn farewell(stopped: &Stopped) -> String {
    let Stopped { status, after, killed } = stopped;
    let seconds = after.as_secs_f64();
    if *killed {
        format!("maestro did not end and was killed after {seconds:.1} s; its rooms may still be running")
    } else {
        format!("maestro ended after {seconds:.1} s ({status})")
    }
}
