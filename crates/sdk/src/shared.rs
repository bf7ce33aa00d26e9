//! The state between the game's threads and the SDK's, and the loop that pings.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::allocation::Allocation;
use crate::http::RoomsApi;
use crate::options::Options;
use crate::ping::Ping;
use crate::state::{Next, State};

pub(crate) type Callback = Box<dyn FnOnce() + Send>;
pub(crate) type OnAllocated = Box<dyn FnMut(Allocation) + Send>;

pub(crate) struct Shared {
    inner: Mutex<Inner>,
    /// Something changed: a report, the end of a request, a request to end.
    changed: Condvar,
}

struct Inner {
    state: State,
    on_terminate: Vec<Callback>,
    on_allocated: Option<OnAllocated>,
    /// The pinging thread is gone.
    finished: bool,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        let inner = Inner { state, on_terminate: Vec::new(), on_allocated: None, finished: false };
        Self { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.lock().state)
    }

    /// Changes the state and wakes whoever waits for a change.
    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock().state);
        self.changed.notify_all();
    }

    /// As [`Shared::change`], but wakes the others only if the closure says that it matters to them.
    pub(crate) fn change_quietly(&self, change: impl FnOnce(&mut State) -> bool) {
        if change(&mut self.lock().state) {
            self.changed.notify_all();
        }
    }

    pub(crate) fn request_terminate(&self, now: Instant) {
        let mut inner = self.lock();
        inner.state.request_terminate(now);
        let callbacks = mem::take(&mut inner.on_terminate);
        drop(inner);
        self.changed.notify_all();
        callbacks.into_iter().for_each(|callback| callback());
    }

    pub(crate) fn on_terminate(&self, callback: Callback) {
        let mut inner = self.lock();
        if inner.state.terminate_requested {
            // Not under the lock: the callback may well use the handle.
            drop(inner);
            callback();
        } else {
            inner.on_terminate.push(callback);
        }
    }

    pub(crate) fn on_allocated(&self, mut callback: OnAllocated) {
        loop {
            let mut inner = self.lock();
            let untold = inner.state.allocations.take_untold();
            if untold.is_empty() {
                inner.on_allocated = Some(callback);
                return;
            }
            // Not under the lock: the callback may well use the handle.
            drop(inner);
            untold.into_iter().for_each(&mut callback);
        }
    }

    /// Tells the game of allocations that it does not know, if it wants to be told.
    fn tell_allocations(&self) {
        let mut inner = self.lock();
        let untold = inner.state.allocations.take_untold();
        let callback = if untold.is_empty() { None } else { inner.on_allocated.take() };
        let Some(mut callback) = callback else {
            inner.state.allocations.put_back(untold);
            return;
        };
        drop(inner);
        for allocation in untold {
            // A game that panics here has said so; its pings go on.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(allocation)));
        }
        // Unless the game has given another one meanwhile.
        self.lock().on_allocated.get_or_insert(callback);
    }

    /// Whether it was requested before the time was up.
    pub(crate) fn wait_terminate(&self, timeout: Duration) -> bool {
        self.wait(timeout, |inner| inner.state.terminate_requested)
    }

    pub(crate) fn wait_finished(&self, timeout: Duration) -> bool {
        self.wait(timeout, |inner| inner.finished)
    }

    /// The pinging thread. Ends after the farewell.
    pub(crate) fn run(&self, api: &RoomsApi, options: &Options) {
        loop {
            let (ping, is_last) = self.next();
            let timeout = if is_last {
                options.request_timeout.min(options.farewell_timeout)
            } else {
                options.request_timeout
            };
            let at = SystemTime::now();
            let reply = api.send(&ping, at, timeout);
            self.change(|state| state.answered(Instant::now(), (&ping, at), reply));
            self.tell_allocations();
            if is_last {
                break;
            }
        }
        self.lock().finished = true;
        self.changed.notify_all();
    }

    /// Waits for the next ping; true with it if it is the last.
    fn next(&self) -> (Ping, bool) {
        let mut inner = self.lock();
        loop {
            inner = match inner.state.next(Instant::now()) {
                Next::Send(ping) => return (ping, false),
                Next::Farewell(ping) => return (ping, true),
                Next::Wait(None) => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Next::Wait(Some(wait)) => {
                    self.changed.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn wait(&self, timeout: Duration, done: impl Fn(&Inner) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |inner| !done(inner));
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        done(&inner)
    }

    /// A panic elsewhere leaves nothing half-written here, and must not become a panic of the game.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
