//! One suite per port: a function over any implementation, called by each adapter's tests.
//!
//! A suite is a list of small cases, each named after the sentence of the port's documentation that it holds the
//! adapter to. All cases run, each on a fresh adapter, and a failing suite names all that are broken:
//!
//! ```text
//! #[tokio::test]
//! async fn keeps_the_contract() {
//!     contract::run_store_suites(|| async { Arc::new(MyStore::empty()) as Arc<dyn Store> }).await;
//! }
//! ```

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
pub mod transactions;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::Store;

/// All suites of the durable side. `fresh` makes an empty store.
pub async fn run_store_suites<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = Arc<dyn Store>>,
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

/// Runs each case on an adapter of its own.
macro_rules! run_cases {
    ($port:literal, $fresh:expr, [$($case:path),+ $(,)?]) => {{
        let mut suite = $crate::ports::contract::Suite::of($port);
        $(
            let case = async {
                let adapter = $fresh().await;
                $case(&*adapter).await;
            };
            suite.case(stringify!($case), Box::pin(case)).await;
        )+
        suite.finish();
    }};
}
use run_cases;
