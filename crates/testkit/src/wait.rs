//! Waiting for what must become true.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for what should take a second or two. Generous: on a machine that is busy with other things
/// a test may be slow, but must not fail.
pub const PATIENCE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(20);

/// Looks until it finds something. `look` says as an error why it is not so yet; the last one is told when the time
/// is up.
pub fn until<T>(
    what: impl Display,
    bound: Duration,
    mut look: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(why) if started.elapsed() >= bound => {
                return Err(why.context(format!("waited {bound:?} for {what}")));
            }
            Err(_) => thread::sleep(POLL),
        }
    }
}

/// Waits with [`PATIENCE`] for a condition that nobody announces, while other tasks run.
///
/// # Panics
///
/// If it does not come true.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let comes = async {
        while !is_so().await {
            tokio::time::sleep(POLL).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, comes).await.is_ok(), "{what}: not within {PATIENCE:?}");
}
