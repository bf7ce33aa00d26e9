//! SIGTERM, without unsafe code: a thread that sleeps until the signal comes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::SIGTERM;
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

/// Once a handler is installed, the default action is gone for good. So that a program that outlives its last handle can
/// still be ended by SIGTERM, a second handler stands in for the default while nobody watches.
static WATCHERS: Mutex<Watchers> = Mutex::new(Watchers { number: 0, nobody: None });

struct Watchers {
    number: usize,
    /// Installed with the first watcher.
    nobody: Option<Arc<AtomicBool>>,
}

pub(crate) struct Watcher {
    signals: Handle,
}

impl Watcher {
    /// Calls `on_sigterm` from a thread of its own, outside the signal handler, each time the signal comes.
    pub(crate) fn start(on_sigterm: impl Fn() + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM])?;
        let handle = signals.handle();
        let watch = move || signals.forever().for_each(|_| on_sigterm());
        thread::Builder::new().name("maestro-sigterm".to_owned()).spawn(watch)?;
        count(1)?;
        Ok(Self { signals: handle })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Only the first count can fail, and that one was made.
        let _ = count(-1);
        self.signals.close();
    }
}

fn count(change: isize) -> io::Result<()> {
    let mut watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let nobody = match &watchers.nobody {
        Some(nobody) => Arc::clone(nobody),
        None => {
            let nobody = Arc::new(AtomicBool::new(false));
            flag::register_conditional_default(SIGTERM, Arc::clone(&nobody))?;
            watchers.nobody = Some(Arc::clone(&nobody));
            nobody
        }
    };
    watchers.number = watchers.number.saturating_add_signed(change);
    nobody.store(watchers.number == 0, Ordering::SeqCst);
    Ok(())
}
