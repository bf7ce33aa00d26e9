//! The simulated runtime is a runtime like any other, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::{Purpose, Region, RoomId};
use maestro_core::scheduler::Version;
use maestro_engine::Tasks;
use maestro_engine::ports::Runtime;
use maestro_engine::ports::contract::{fixtures, runtime};
use maestro_engine::ports::runtime::{Handle, RoomToStart};
use maestro_simulation::{
    Exit, GamePing, Habits, Host, HostFaults, Life, RoomsApi, SimulatedRuntime, Span, Trace, VirtualClock,
};
use runtime::{Behaviour, Place};

/// Nobody listens.
struct NoRoomsApi;

#[async_trait]
impl RoomsApi for NoRoomsApi {
    async fn ping(&self, _ping: GamePing) {}
}

struct OneHost {
    host: Arc<Host>,
    runtime: Arc<SimulatedRuntime>,
}

impl OneHost {
    async fn new() -> Self {
        let trace = Trace::begin(VirtualClock::begin());
        let region = Region::default_region();
        let host = Host::open(region, 7, &Tasks::default(), Arc::new(NoRoomsApi), trace);
        let runtime = SimulatedRuntime::connect(host.clone(), Life::new());
        runtime.create_scheduler(&runtime::arena()).await.unwrap();
        Self { host, runtime }
    }
}

#[async_trait]
impl Place for OneHost {
    fn runtime(&self) -> Arc<dyn Runtime> {
        self.runtime.clone()
    }

    async fn begin_again(&mut self) {
        self.runtime = SimulatedRuntime::connect(self.host.clone(), Life::new());
    }

    fn room(&self, id: &str, behaviour: Behaviour) -> RoomToStart {
        let id = RoomId::new(id);
        let mut habits = Habits::default();
        match behaviour {
            Behaviour::Runs => {}
            Behaviour::IgnoresStop => habits.obeys_after = None,
            Behaviour::Exits(code) => {
                let after = Span::exactly(Duration::from_secs(1));
                habits.exits = Some(Exit { after, code });
            }
            Behaviour::Writes(lines) => habits.lines_written = lines,
            Behaviour::CannotStart => self.host.set_host_faults(HostFaults {
                refuses_starts: Some("there is no such program".into()),
                ..HostFaults::default()
            }),
        }
        self.host.set_habits_of(&id, habits);
        RoomToStart {
            purpose: Purpose::Fleet,
            id,
            scheduler: runtime::arena(),
            version: Version::FIRST,
            recipe: Arc::new(fixtures::recipe(&runtime::arena())),
            ports: Vec::new(),
        }
    }

    async fn kill(&self, handle: &Handle) {
        self.host.kill(handle);
    }
}

#[tokio::test(start_paused = true)]
async fn keeps_the_contract() {
    runtime::suite(OneHost::new).await;
}
