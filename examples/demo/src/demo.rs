//! The demo from beginning to end: Maestro, the fleet, the players, and the way out.

use std::io::{self, IsTerminal, Stdout};
use std::process::{ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::api::{Api, Operation, Submitted};
use crate::arguments::Settings;
use crate::maestro::{Endpoints, Maestro, Stopped};
use crate::players::{self, Players};
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
        let submitted = api.submit(&recipe(self.settings.rooms, &self.settings.room)?)?;
        self.screen.say(&introduction(self.settings, &endpoints, &self.maestro, &submitted))?;

        let mut players = Players::new(self.settings.players_max, fastrand::u64(..), Instant::now());
        loop {
            match self.wake()? {
                Wake::Over(over) => return Ok(over),
                Wake::Serving(_) | Wake::Tick => {}
            }
            let line = match observe(&api, &mut players) {
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
fn observe(api: &Api, players: &mut Players) -> anyhow::Result<String> {
    let rooms = api.rooms()?;
    players.step(Instant::now(), &rooms, players::join);
    let operation: Option<Operation> = api.latest_operation()?;
    let status = Status {
        rooms: &rooms,
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

fn introduction(
    settings: &Settings,
    endpoints: &Endpoints,
    maestro: &Maestro,
    submitted: &Submitted,
) -> String {
    let Endpoints { management, rooms, internal } = endpoints;
    let program = settings.maestro.display();
    let log = maestro.log().display();
    let number = settings.rooms;
    let scheduler = match submitted {
        Submitted::Created => format!("Scheduler {SCHEDULER} was created and will have {number} rooms."),
        Submitted::AlreadyThere => format!("Scheduler {SCHEDULER} is there from an earlier run."),
        Submitted::NewVersion => {
            format!("Scheduler {SCHEDULER} is there from an earlier run and rolls over to a new version.")
        }
    };
    format!(
        "Maestro is serving.
  management API  {management}
  rooms API       {rooms}
  metrics         {internal}/metrics
  log             {log}

{scheduler} In another terminal, try
  {program} room list {SCHEDULER}
  {program} operation list {SCHEDULER}
  {program} room add {SCHEDULER} 3 --wait
  kill -9 $(pgrep -nf maestro-example-room)     and watch the room come back
  curl {management}/schedulers/{SCHEDULER}/rooms
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
