//! Connects rooms with the engines that are up: each ping goes to any of them, as behind a load balancer. On its way
//! it can be lost, or arrive twice.

use std::sync::Arc;

use async_trait::async_trait;
use maestro_engine::ports::room_table::Ping;
use maestro_engine::{Engine, Tasks};
use parking_lot::Mutex;

use crate::coverage::{Coverage, RareEvent};
use crate::faults::ActiveFaults;
use crate::host::{GamePing, RoomsApi};
use crate::life::Life;

pub(super) struct Switchboard {
    lines: Mutex<Vec<Line>>,
    random: Mutex<fastrand::Rng>,
    active_faults: ActiveFaults,
    coverage: Coverage,
}

/// To one engine.
#[derive(Clone)]
struct Line {
    node: u64,
    engine: Arc<Engine>,
    life: Life,
    /// The engine's own: what it was asked ends with it.
    tasks: Tasks,
}

impl Switchboard {
    pub(super) fn new(seed: u64, active_faults: ActiveFaults, coverage: Coverage) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { lines: Mutex::default(), random, active_faults, coverage }
    }

    pub(super) fn connect(&self, node: u64, engine: Arc<Engine>, life: Life, tasks: Tasks) {
        self.lines.lock().push(Line { node, engine, life, tasks });
    }

    pub(super) fn disconnect(&self, node: u64) {
        self.lines.lock().retain(|line| line.node != node);
    }

    /// One of those that answer. A frozen one takes the connection and does not.
    fn any_line(&self) -> Option<Line> {
        let lines = self.lines.lock();
        let up: Vec<&Line> = lines.iter().filter(|line| !line.life.is_over()).collect();
        match up.as_slice() {
            [] => None,
            [only] => Some((*only).clone()),
            several => Some(several[self.random.lock().usize(0..several.len())].clone()),
        }
    }

    /// How often a ping arrives.
    fn copies(&self) -> u32 {
        let faults = self.active_faults.now();
        let mut random = self.random.lock();
        if faults.ping_lost.hits(&mut random) {
            self.coverage.saw(RareEvent::LostPing);
            0
        } else if faults.ping_repeated.hits(&mut random) {
            self.coverage.saw(RareEvent::RepeatedPing);
            2
        } else {
            1
        }
    }
}

#[async_trait]
impl RoomsApi for Switchboard {
    /// Rooms do not wait for each other, nor for the answer: who is slow or frozen takes a ping up when it can.
    async fn ping(&self, ping: GamePing) {
        for _ in 0..self.copies() {
            let Some(line) = self.any_line() else { return };
            let (engine, ping) = (line.engine, ping.clone());
            line.tasks.spawn("ping", async move {
                // A refused ping is answered, and rooms go on pinging.
                let _ = engine
                    .ping(Ping {
                        matches: ping.matches,
                        ..Ping::of(ping.scheduler.as_str(), ping.room.as_str(), ping.status)
                    })
                    .await;
            });
        }
    }
}
