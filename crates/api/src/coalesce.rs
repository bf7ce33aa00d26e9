//! A future that is polled again at once if it wakes itself, instead of being scheduled again.
//!
//! Reading a request's body makes hyper wake its own connection task once for each request. To tokio that is a task
//! that became ready, for which it wakes another thread; for a ping that costs more than the ping.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often in a row; then the scheduler decides, so that a busy connection does not starve others.
const POLLS_MAX: u32 = 4;

pub(crate) struct Coalesced<F> {
    future: F,
    bell: Arc<Bell>,
    /// The bell's, made once.
    waker: Waker,
}

struct Bell {
    state: AtomicU8,
    /// The task that polls us.
    task: AtomicWaker,
}

/// Nobody polls: a wake goes to the task.
const IDLE: u8 = 0;
/// Being polled, not woken since the poll began.
const POLLING: u8 = 1;
/// Being polled, and woken meanwhile: whoever polls will see it.
const WOKEN: u8 = 2;

impl<F> Coalesced<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(Bell { state: AtomicU8::new(IDLE), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&bell));
        Self { future, bell, waker }
    }
}

impl<F: Unpin> Coalesced<F> {
    pub(crate) fn future(&mut self) -> &mut F {
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for Coalesced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        this.bell.task.register(context.waker());
        for _ in 0..POLLS_MAX {
            this.bell.state.store(POLLING, Ordering::SeqCst);
            if let Poll::Ready(output) =
                Pin::new(&mut this.future).poll(&mut Context::from_waker(&this.waker))
            {
                return Poll::Ready(output);
            }
            let state = &this.bell.state;
            if state.compare_exchange(POLLING, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return Poll::Pending;
            }
        }
        this.bell.state.store(IDLE, Ordering::SeqCst);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let polling = self.state.compare_exchange(POLLING, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        match polling {
            Ok(_) | Err(WOKEN) => {}
            Err(_) => self.task.wake(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicU32);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Wakes itself in each of its first polls, and stays pending.
    fn restless(
        mut wakes: u32,
        polls: Arc<AtomicU32>,
        keep: Arc<AtomicWaker>,
    ) -> impl Future<Output = ()> + Unpin {
        std::future::poll_fn(move |context| {
            polls.fetch_add(1, Ordering::SeqCst);
            keep.register(context.waker());
            if wakes > 0 {
                wakes -= 1;
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }

    fn check(wakes: u32, polls_expected: u32, task_wakes: u32) {
        let (polls, keep) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicWaker::new()));
        let mut coalesced = Coalesced::new(restless(wakes, Arc::clone(&polls), Arc::clone(&keep)));
        let task = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&task));
        assert!(Pin::new(&mut coalesced).poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(polls.load(Ordering::SeqCst), polls_expected);
        assert_eq!(task.0.load(Ordering::SeqCst), task_wakes);
        // A wake from outside reaches the task.
        keep.wake();
        assert_eq!(task.0.load(Ordering::SeqCst), task_wakes + 1);
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_at_once() {
        check(0, 1, 0);
        check(1, 2, 0);
        check(3, 4, 0);
    }

    #[test]
    fn but_not_for_ever() {
        check(100, POLLS_MAX, 1);
    }
}
