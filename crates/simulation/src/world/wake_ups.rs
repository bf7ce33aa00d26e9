//! Carries wake-ups between the engines of a world. On their way they can be lost, be late, or arrive twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use maestro_engine::ports::WakeUpChannel;
use maestro_engine::ports::wake_ups::{WakeUpBatch, WakeUpError};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::coverage::{Coverage, RareEvent};
use crate::faults::{ActiveFaults, Faults};
use crate::host::Span;
use crate::life::Life;

use super::NodeNumber;

/// On their way if nothing is wrong.
const USUAL: Span = Span::millis(0, 5);
/// Late ones: longer than loops wait before they look by themselves.
const LATE: Span = Span::millis(100, 15_000);
/// Batches that wait for one engine: what is more is as good as everything.
const WAITING_MAX: usize = 64;

/// One for all engines. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(super) struct WakeUpSwitchboard(Arc<Inner>);

struct Inner {
    lines: Mutex<BTreeMap<NodeNumber, Arc<Line>>>,
    random: Mutex<fastrand::Rng>,
    active_faults: ActiveFaults,
    coverage: Coverage,
    /// Nothing passes.
    is_cut: Mutex<bool>,
}

/// To one engine.
#[derive(Default)]
struct Line {
    /// When each arrives.
    waiting: Mutex<Vec<(Instant, WakeUpBatch)>>,
    changed: Notify,
}

/// One engine's end.
pub(super) struct SimulatedChannel {
    node: NodeNumber,
    life: Life,
    line: Arc<Line>,
    switchboard: WakeUpSwitchboard,
}

impl WakeUpSwitchboard {
    pub(super) fn new(seed: u64, active_faults: ActiveFaults, coverage: Coverage) -> Self {
        Self(Arc::new(Inner {
            lines: Mutex::default(),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            active_faults,
            coverage,
            is_cut: Mutex::default(),
        }))
    }

    /// Everything is lost from now on.
    pub(super) fn cut(&self) {
        *self.0.is_cut.lock() = true;
    }

    pub(super) fn connect(&self, node: NodeNumber, life: Life) -> SimulatedChannel {
        let line = Arc::<Line>::default();
        self.0.lines.lock().insert(node, line.clone());
        SimulatedChannel { node, life, line, switchboard: self.clone() }
    }

    pub(super) fn disconnect(&self, node: NodeNumber) {
        self.0.lines.lock().remove(&node);
    }

    fn send(&self, from: NodeNumber, batch: &WakeUpBatch) {
        let faults = self.0.active_faults.now();
        for (_, line) in self.0.lines.lock().iter().filter(|(node, _)| **node != from) {
            for arrives_at in self.arrivals(&faults) {
                line.add(arrives_at, batch);
            }
        }
    }

    /// When it arrives, each time that it does.
    fn arrivals(&self, faults: &Faults) -> Vec<Instant> {
        if *self.0.is_cut.lock() {
            return Vec::new();
        }
        let (mut random, coverage) = (self.0.random.lock(), &self.0.coverage);
        if faults.wake_up_lost.hits(&mut random) {
            coverage.saw(RareEvent::LostWakeUp);
            return Vec::new();
        }
        let copies = match faults.wake_up_repeated.hits(&mut random) {
            true => {
                coverage.saw(RareEvent::RepeatedWakeUp);
                2
            }
            false => 1,
        };
        let mut arrive = || match faults.wake_up_late.hits(&mut random) {
            true => {
                coverage.saw(RareEvent::LateWakeUp);
                Instant::now() + LATE.draw(&mut random)
            }
            false => Instant::now() + USUAL.draw(&mut random),
        };
        (0..copies).map(|_| arrive()).collect()
    }
}

impl Line {
    fn add(&self, arrives_at: Instant, batch: &WakeUpBatch) {
        let mut waiting = self.waiting.lock();
        match waiting.len() < WAITING_MAX {
            true => waiting.push((arrives_at, batch.clone())),
            false => *waiting = vec![(arrives_at, WakeUpBatch::everything())],
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// What has arrived.
    fn take(&self) -> Option<WakeUpBatch> {
        let now = Instant::now();
        let mut arrived = WakeUpBatch::default();
        for (_, batch) in self.waiting.lock().extract_if(.., |(at, _)| *at <= now) {
            arrived.merge(batch);
        }
        (!arrived.is_empty()).then_some(arrived)
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.waiting.lock().iter().map(|(at, _)| *at).min()
    }
}

#[async_trait]
impl WakeUpChannel for SimulatedChannel {
    async fn send(&self, wake_ups: &WakeUpBatch) -> Result<(), WakeUpError> {
        self.life.still_alive().await;
        self.switchboard.send(self.node, wake_ups);
        Ok(())
    }

    async fn receive(&self) -> Result<WakeUpBatch, WakeUpError> {
        loop {
            self.life.still_alive().await;
            if let Some(batch) = self.line.take() {
                return Ok(batch);
            }
            let arrives = async {
                match self.line.next_arrival() {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.line.changed.notified() => {}
                () = arrives => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use maestro_engine::ports::contract::wake_ups::{Connected, run_all};
    use tokio::time::timeout;

    use crate::faults::Rate;

    use super::*;

    fn switchboard(faults: Faults) -> WakeUpSwitchboard {
        let active_faults = ActiveFaults::none();
        active_faults.set(faults);
        WakeUpSwitchboard::new(1, active_faults, Coverage::default())
    }

    fn pair(switchboard: &WakeUpSwitchboard) -> Box<Connected> {
        let connect = |node| Arc::new(switchboard.connect(node, Life::new()));
        Box::new(Connected { one: connect(1), other: connect(2) })
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_the_contract_whatever_goes_wrong() {
        run_all(|| async { pair(&switchboard(Faults::NONE)) }).await;
        let often = Rate::of_ten_thousand(5_000);
        let faults =
            Faults { wake_up_lost: often, wake_up_late: often, wake_up_repeated: often, ..Faults::NONE };
        run_all(|| async { pair(&switchboard(faults)) }).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_passes_once_it_is_cut_and_a_frozen_one_hears_when_it_is_thawed() {
        let switchboard = switchboard(Faults::NONE);
        let life = Life::new();
        let (one, frozen) = (switchboard.connect(1, Life::new()), switchboard.connect(2, life.clone()));
        life.freeze();
        one.send(&WakeUpBatch::everything()).await.unwrap();
        let hour = Duration::from_secs(3600);
        assert!(timeout(hour, frozen.receive()).await.is_err());
        life.thaw();
        assert_eq!(frozen.receive().await.unwrap(), WakeUpBatch::everything());
        switchboard.cut();
        one.send(&WakeUpBatch::everything()).await.unwrap();
        assert!(timeout(hour, frozen.receive()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_fetches_is_everything_at_some_time() {
        let switchboard = switchboard(Faults::NONE);
        let (one, other) = (switchboard.connect(1, Life::new()), switchboard.connect(2, Life::new()));
        for _ in 0..=WAITING_MAX {
            one.send(&WakeUpBatch { regions: true, ..WakeUpBatch::default() }).await.unwrap();
        }
        assert_eq!(other.receive().await.unwrap(), WakeUpBatch::everything());
    }
}
