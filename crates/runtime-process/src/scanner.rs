//! One look at the process table for all who want one at the same time.
//!
//! Every scheduler wants to know once a minute what runs, and all of them want it at the same moments: after a start,
//! and when their cycles coincide. Whoever asks gets the result of a scan that began after they asked, and all who
//! asked before it began get the same. So there are never more than two: one that runs and one that is waited for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use maestro_engine::ports::runtime::{Result, RuntimeError};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::process_table::{self, Snapshot};

/// Looks at the process table of this machine; regions of one server share it.
#[derive(Clone)]
pub struct ProcessScanner(Arc<Inner>);

const PAUSE_MAX: Duration = Duration::from_millis(500);

type Scanned = Result<Arc<Snapshot>>;
type Scan = dyn Fn() -> io::Result<Snapshot> + Send + Sync;

struct Inner {
    scan: Box<Scan>,
    /// How many scans have begun.
    begun: AtomicU64,
    /// Held by whoever scans; the others wait for what that finds.
    last: Arc<Mutex<Option<LastScan>>>,
}

struct LastScan {
    number: u64,
    found: Scanned,
    next_at: Instant,
}

impl ProcessScanner {
    /// Sees the processes of Maestro's own user, and of the one that rooms run as.
    pub fn new(room_user: Option<u32>) -> Self {
        let users: Vec<u32> = room_user.into_iter().chain([rustix::process::geteuid().as_raw()]).collect();
        Self::with(move || process_table::scan(Some(&users)))
    }

    fn with(scan: impl Fn() -> io::Result<Snapshot> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { scan: Box::new(scan), begun: AtomicU64::new(0), last: Arc::default() }))
    }

    /// How many scans there were.
    pub fn scans(&self) -> u64 {
        self.0.begun.load(Ordering::Acquire)
    }

    /// What a scan found that began after this was called.
    pub(crate) async fn scan(&self) -> Scanned {
        let begun_before = self.scans();
        let mut last = Arc::clone(&self.0.last).lock_owned().await;
        if let Some(last) = last.as_ref().filter(|last| last.number > begun_before) {
            return last.found.clone();
        }
        let inner = Arc::clone(&self.0);
        // In a task of its own: if its caller stops waiting, no other scan begins beside it.
        let scan = tokio::spawn(async move {
            if let Some(last) = &*last {
                sleep_until(last.next_at).await;
            }
            let number = inner.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let began = Instant::now();
            let found = match tokio::task::spawn_blocking(move || (inner.scan)()).await {
                Ok(scanned) => scanned.map(Arc::new).map_err(unavailable),
                Err(panicked) => Err(unavailable(panicked)),
            };
            // When rooms come and go all the time somebody always waits: two thirds of a processor are left to others.
            let next_at = Instant::now() + (2 * began.elapsed()).min(PAUSE_MAX);
            *last = Some(LastScan { number, found: found.clone(), next_at });
            found
        });
        scan.await.unwrap_or_else(|error| Err(unavailable(error)))
    }
}

impl std::fmt::Debug for ProcessScanner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProcessScanner").field("scans", &self.scans()).finish_non_exhaustive()
    }
}

fn unavailable(error: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::Unavailable(format!("the processes of this host cannot be listed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex as StdMutex, mpsc};

    use futures_util::future::join_all;
    use futures_util::poll;

    use crate::room::lock;

    use super::*;

    /// A scanner whose scans begin and end when the test says so.
    fn controlled() -> (ProcessScanner, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (began, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = StdMutex::new(ends);
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
        let mut herd: Vec<_> = (0..500).map(|_| Box::pin(scanner.scan())).collect();
        for waiter in &mut herd {
            assert!(poll!(waiter).is_pending());
        }
        end.send(()).unwrap();
        let first = first.await.unwrap();
        for waiter in &mut herd {
            assert!(poll!(waiter).is_pending(), "a scan that began before they asked is not theirs");
        }
        end.send(()).unwrap();
        let answers: Vec<_> = join_all(herd).await.into_iter().map(Result::unwrap).collect();
        assert!(answers.iter().all(|answer| Arc::ptr_eq(answer, &answers[0])));
        assert!(!Arc::ptr_eq(&first, &answers[0]));
        assert_eq!(scanner.scans(), 2);
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_does_not_let_a_second_scan_begin_beside_the_first() {
        let (scanner, _begins, end) = controlled();
        let mut first = Box::pin(scanner.scan());
        assert!(poll!(&mut first).is_pending());
        while scanner.scans() == 0 {
            tokio::task::yield_now().await;
        }
        drop(first);
        let mut second = Box::pin(scanner.scan());
        assert!(poll!(&mut second).is_pending());
        tokio::task::yield_now().await;
        assert_eq!(scanner.scans(), 1);
        end.send(()).unwrap();
        end.send(()).unwrap();
        second.await.unwrap();
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
