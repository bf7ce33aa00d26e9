//! One look at the process table for all who want one at the same time.
//!
//! Every scheduler wants to know once a minute what runs, and all of them want it at the same moments: after a start,
//! and when their cycles coincide. Whoever asks gets the result of a scan that began after they asked, and all who
//! asked before it began get the same. So there are never more than two: one that runs and one that is waited for.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use maestro_engine::ports::runtime::RuntimeError;
use tokio::sync::oneshot;

use crate::process_table::{self, Snapshot};
use crate::room::lock;

/// Looks at the process table of this machine; regions of one server share it.
#[derive(Clone)]
pub struct ProcessScanner(Arc<Inner>);

const PAUSE_MAX: Duration = Duration::from_millis(500);

type Scanned = Result<Arc<Snapshot>, RuntimeError>;
type Scan = dyn Fn() -> io::Result<Snapshot> + Send + Sync;

struct Inner {
    scan: Box<Scan>,
    state: Mutex<State>,
    scans: AtomicU64,
}

#[derive(Default)]
struct State {
    is_scanning: bool,
    /// They asked after the scan that runs, if one does, had begun.
    waiting: Vec<oneshot::Sender<Scanned>>,
}

impl ProcessScanner {
    /// Sees the processes of Maestro's own user, and of the one that rooms run as.
    pub fn new(room_user: Option<u32>) -> Self {
        let users: Vec<u32> = room_user.into_iter().chain([rustix::process::geteuid().as_raw()]).collect();
        Self::with(move || process_table::scan(&users))
    }

    fn with(scan: impl Fn() -> io::Result<Snapshot> + Send + Sync + 'static) -> Self {
        let inner = Inner { scan: Box::new(scan), state: Mutex::default(), scans: AtomicU64::new(0) };
        Self(Arc::new(inner))
    }

    /// How many scans there were.
    pub fn scans(&self) -> u64 {
        self.0.scans.load(Ordering::Relaxed)
    }

    /// What a scan found that began after this was called.
    pub(crate) async fn scan(&self) -> Scanned {
        let (answer, answered) = oneshot::channel();
        let begin = {
            let mut state = lock(&self.0.state);
            state.waiting.push(answer);
            !std::mem::replace(&mut state.is_scanning, true)
        };
        if begin {
            let inner = Arc::clone(&self.0);
            // A thread of its own: it depends on no tokio runtime, since those who wait may belong to several.
            let spawned = std::thread::Builder::new()
                .name("process-scan".into())
                .spawn(move || scan_while_asked(&inner));
            if let Err(error) = spawned {
                let waiting = {
                    let mut state = lock(&self.0.state);
                    state.is_scanning = false;
                    std::mem::take(&mut state.waiting)
                };
                let error = unavailable(&error);
                waiting.into_iter().for_each(|waiter| drop(waiter.send(Err(error.clone()))));
            }
        }
        answered.await.unwrap_or_else(|_| Err(unavailable(&io::Error::other("the scan was given up"))))
    }
}

impl std::fmt::Debug for ProcessScanner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProcessScanner").field("scans", &self.scans()).finish_non_exhaustive()
    }
}

fn scan_while_asked(inner: &Inner) {
    loop {
        let waiting = {
            let mut state = lock(&inner.state);
            if state.waiting.is_empty() {
                state.is_scanning = false;
                return;
            }
            std::mem::take(&mut state.waiting)
        };
        inner.scans.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        // A scan that panics must not leave everybody waiting forever.
        let scanned = catch_unwind(AssertUnwindSafe(|| (inner.scan)()))
            .unwrap_or_else(|_| Err(io::Error::other("the scan panicked")))
            .map(Arc::new)
            .map_err(|error| unavailable(&error));
        for waiter in waiting {
            // An error means that it gave up.
            let _ = waiter.send(scanned.clone());
        }
        // When rooms come and go all the time somebody always waits: two thirds of a processor are left to others.
        std::thread::sleep((2 * began.elapsed()).min(PAUSE_MAX));
    }
}

fn unavailable(error: &io::Error) -> RuntimeError {
    RuntimeError::Unavailable(format!("the processes of this host cannot be listed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::future::join_all;

    use super::*;

    /// A scanner whose scans begin and end when the test says so.
    fn controlled() -> (ProcessScanner, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (began, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Mutex::new(ends);
        let scanner = ProcessScanner::with(move || {
            began.send(()).unwrap();
            lock(&ends).recv_timeout(Duration::from_secs(20)).unwrap();
            Ok(Snapshot::default())
        });
        (scanner, begins, end)
    }

    #[tokio::test]
    async fn one_scan_begun_after_all_asked_serves_them_all() {
        let (scanner, begins, end) = controlled();
        let ask = || {
            let scanner = scanner.clone();
            tokio::spawn(async move { scanner.scan().await.unwrap() })
        };
        let first = ask();
        let _begins = tokio::task::spawn_blocking(move || {
            begins.recv_timeout(Duration::from_secs(20)).unwrap();
            begins
        })
        .await
        .unwrap();
        // They ask while a scan is running, which may have passed their room already.
        let herd: Vec<_> = (0..500).map(|_| ask()).collect();
        while lock(&scanner.0.state).waiting.len() < 500 {
            tokio::task::yield_now().await;
        }
        end.send(()).unwrap();
        let first = first.await.unwrap();
        assert!(
            herd.iter().all(|waiter| !waiter.is_finished()),
            "a scan that began before they asked is not theirs"
        );
        end.send(()).unwrap();
        let answers: Vec<_> = join_all(herd).await.into_iter().map(Result::unwrap).collect();
        assert!(answers.iter().all(|answer| Arc::ptr_eq(answer, &answers[0])));
        assert!(!Arc::ptr_eq(&first, &answers[0]));
        assert_eq!(scanner.scans(), 2);
    }

    #[tokio::test]
    async fn a_scan_that_fails_or_panics_is_an_error_and_the_next_one_is_made() {
        let scans = AtomicU64::new(0);
        let scanner = ProcessScanner::with(move || match scans.fetch_add(1, Ordering::SeqCst) {
            0 => Err(io::Error::other("no /proc")),
            1 => panic!("as this test wants it"),
            _ => Ok(Snapshot::default()),
        });
        let error = scanner.scan().await.unwrap_err().to_string();
        assert!(error.ends_with("the processes of this host cannot be listed: no /proc"), "{error}");
        scanner.scan().await.unwrap_err();
        scanner.scan().await.unwrap();
    }
}
