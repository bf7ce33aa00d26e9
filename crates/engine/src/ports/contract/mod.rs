//! One suite per port: a function over any implementation, called by each adapter's tests.
//!
//! A suite is a list of small cases, each named after the sentence of the port's documentation that it holds the
//! adapter to. All cases run, each on a fresh adapter, and a failing suite names all that are broken:
//!
//! ```text
//! #[tokio::test]
//! async fn keeps_the_contract() {
//!     contract::run_store_suites(|| async { StoreUnderTest::on_running_clock(Arc::new(MyStore::empty())) }).await;
//! }
//! ```
//!
//! A store decides by its own clock what has run out, and not every clock can be set. So nearly all cases give something
//! for no time or for long; those that need time to pass wait for it, on a clock that goes by itself or is told to.

#![allow(clippy::unwrap_used, reason = "suites are tests: a panic is how they say no")]

pub mod allocation_store;
pub mod fixtures;
pub mod operation_store;
pub mod outbox;
pub mod region_store;
pub mod room_registry;
pub mod room_table;
pub mod runtime;
pub mod scheduler_store;
mod store_under_test;
pub mod transactions;
pub mod wake_ups;

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

pub use store_under_test::{ManualClock, RunningClock, StoreClock, StoreUnderTest};

/// All suites of the durable side. `fresh` makes an empty store.
pub async fn run_store_suites<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = StoreUnderTest>,
{
    scheduler_store::run_all(&fresh).await;
    operation_store::run_all(&fresh).await;
    room_registry::run_all(&fresh).await;
    allocation_store::run_all(&fresh).await;
    region_store::run_all(&fresh).await;
    outbox::run_all(&fresh).await;
    transactions::run_all(&fresh).await;
}

/// Runs cases to the last one, and remembers which ones are broken.
pub struct Suite {
    port: &'static str,
    broken: Vec<&'static str>,
}

impl Suite {
    pub fn of(port: &'static str) -> Self {
        Self { port, broken: Vec::new() }
    }

    pub async fn case(&mut self, name: &'static str, case: impl Future<Output = ()>) {
        // What a case leaves half done dies with its own fresh adapter, so unwinding is safe here.
        if AssertUnwindSafe(case).catch_unwind().await.is_err() {
            self.broken.push(name);
        }
    }

    pub fn finish(self) {
        let Self { port, broken } = self;
        assert!(broken.is_empty(), "the contract of the {port} is broken: {}", broken.join(", "));
    }
}

/// Runs each case on an adapter of its own. Those that are `on_the_clock` get it with its clock.
macro_rules! run_cases {
    ($port:literal, $fresh:expr, [$($case:path),+ $(,)?]) => {
        $crate::ports::contract::run_cases!($port, $fresh, [$($case),+], on_the_clock: [])
    };
    ($port:literal, $fresh:expr, [$($case:path),+ $(,)?], on_the_clock: [$($timed:path),* $(,)?]) => {{
        let mut suite = $crate::ports::contract::Suite::of($port);
        $(
            let case = async {
                let adapter = $fresh().await;
                $case(&*adapter).await;
            };
            suite.case(stringify!($case), Box::pin(case)).await;
        )+
        $(
            let case = async {
                let adapter = $fresh().await;
                $timed(&adapter).await;
            };
            suite.case(stringify!($timed), Box::pin(case)).await;
        )*
        suite.finish();
    }};
}
use run_cases;
