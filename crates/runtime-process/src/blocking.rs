//! Work that waits for the disk or for the kernel, kept away from the threads that serve requests, and bounded: a
//! herd of callers takes turns instead of a thread each.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Enough to keep a disk and a few processors busy with starts; the rest waits without a thread.
const AT_ONCE_MAX: usize = 8;

/// One region's blocking work: a disk that hangs holds up its own region and no other.
#[derive(Clone)]
pub(crate) struct BlockingWork {
    turns: Arc<Semaphore>,
}

impl BlockingWork {
    pub(crate) fn new() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE_MAX)) }
    }

    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else {
            // Nobody closes it.
            return std::future::pending().await;
        };
        unbounded(move || {
            // Held by the work and not by who waits for it: a caller that gives up does not end what it began.
            let _turn = turn;
            work()
        })
        .await
    }
}

/// Runs blocking work that its caller bounds in another way.
pub(crate) async fn unbounded<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The tokio runtime goes down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Gate {
        state: Mutex<(usize, bool)>,
        changed: Condvar,
    }

    impl Gate {
        /// Counts who is inside, and waits to be let out.
        fn pass(&self) {
            let mut state = self.state.lock().unwrap();
            state.0 += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |(_, is_open)| !*is_open).unwrap());
        }
    }

    #[tokio::test]
    async fn a_herd_takes_turns_and_one_that_gave_up_keeps_its_turn() {
        let work = BlockingWork::new();
        let gate = Arc::new(Gate::default());
        let pass = || {
            let (work, gate) = (work.clone(), gate.clone());
            tokio::spawn(async move { work.run(move || gate.pass()).await })
        };
        let herd: Vec<_> = (0..100).map(|_| pass()).collect();
        let all_inside = tokio::task::spawn_blocking({
            let gate = gate.clone();
            move || {
                let state = gate.state.lock().unwrap();
                let few = |state: &mut (usize, bool)| state.0 < AT_ONCE_MAX;
                let (state, waited) =
                    gate.changed.wait_timeout_while(state, Duration::from_secs(20), few).unwrap();
                assert!(!waited.timed_out());
                state.0
            }
        });
        assert_eq!(all_inside.await.unwrap(), AT_ONCE_MAX);
        for member in &herd[..50] {
            member.abort();
        }
        assert_eq!(work.turns.available_permits(), 0);
        gate.state.lock().unwrap().1 = true;
        gate.changed.notify_all();
        for member in herd {
            let _ = member.await;
        }
        assert_eq!(work.run(|| 7).await, 7);
    }
}
