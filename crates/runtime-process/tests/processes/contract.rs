//! The contract of the runtime port, kept by processes.

use std::sync::Arc;

use async_trait::async_trait;
use maestro_engine::ports::contract::runtime::{Behaviour, Place, suite};
use maestro_engine::ports::runtime::{Handle, RoomToStart, Runtime};
use maestro_runtime_process::ProcessRuntime;

use crate::support::{self, World};

struct Processes {
    world: World,
    runtime: Arc<ProcessRuntime>,
}

#[async_trait]
impl Place for Processes {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime) as Arc<dyn Runtime>
    }

    async fn begin_again(&mut self) {
        self.runtime.shut_down(false).await;
        self.runtime = self.world.open().await;
    }

    fn room(&self, id: &str, behaviour: Behaviour) -> RoomToStart {
        let text = match behaviour {
            Behaviour::Runs => "echo started; exec sleep 1000".into(),
            Behaviour::IgnoresStop => "trap '' TERM; echo started; while :; do sleep 1000; done".into(),
            Behaviour::Exits(code) => format!("echo started; exit {code}"),
            Behaviour::Writes(lines) => {
                format!(
                    "i=0; while [ $i -lt {lines} ]; do echo $i; i=$((i+1)); done; echo started; exec sleep 1000"
                )
            }
            Behaviour::CannotStart => {
                let nothing = support::command("game", &["./no-such-program"]);
                return support::room(id, maestro_core::scheduler::RestartPolicy::Never, vec![nothing]);
            }
        };
        support::simple(id, &text)
    }

    async fn kill(&self, handle: &Handle) {
        handle.pids.iter().copied().for_each(support::kill_group);
    }
}

#[tokio::test]
async fn processes_keep_the_contract() {
    suite(async || {
        let world = World::new();
        let runtime = world.open().await;
        Processes { world, runtime }
    })
    .await;
}
