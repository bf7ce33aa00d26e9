//! Where forwarders deliver events to: receivers that are down, hang, are slow, refuse, or take an event and do not say so.
//! They live as long as the world, and remember what they took. A [`SimulatedSink`] is one engine's way to them.

use std::collections::BTreeMap;
use std::fmt::from_fn;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::event::{EventId, Message, RpcCode};
use maestro_engine::ports::EventSink;
use maestro_engine::ports::event_sink::{Delivery, DeliveryError};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use crate::coverage::RareEvent;
use crate::faults::{Call, FaultInjector, Loss, Surroundings};
use crate::host::Span;

/// How a receiver treats what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// Takes it, and says so.
    Takes,
    /// Takes it after a while. Whoever does not wait for that long does not hear that it was taken.
    Slow(Span),
    /// Takes it, and nobody hears that.
    LosesAnswers,
    /// Nobody answers, and every caller knows at once.
    Down,
    /// Nobody answers, and callers wait.
    Hangs,
    Refuses(RpcCode),
}

/// What a receiver took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub id: EventId,
    pub message: Message,
    /// Since the world began.
    pub at: Duration,
}

/// All receivers of a world, by address: there is one at every address that anybody knows. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Receivers(Arc<Mutex<State>>);

struct State {
    receivers: BTreeMap<String, Receiver>,
    random: fastrand::Rng,
}

struct Receiver {
    reception: Reception,
    /// There are events that it will never take, whatever its reception is.
    is_picky: bool,
    taken: Vec<Taken>,
    /// Which engine tried each event last, and how often it was taken.
    tries: BTreeMap<EventId, (Arc<str>, u32)>,
}

impl Receivers {
    pub(crate) fn new(seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self(Arc::new(Mutex::new(State { receivers: BTreeMap::new(), random })))
    }

    /// From now on.
    pub fn set(&self, address: &str, reception: Reception) {
        self.0.lock().receiver(address).reception = reception;
    }

    /// It answers `InvalidArgument` to one in sixteen events from now on, and always to the same ones.
    pub fn make_picky(&self, address: &str) {
        self.0.lock().receiver(address).is_picky = true;
    }

    /// Everything is taken from now on.
    pub fn heal(&self) {
        for receiver in self.0.lock().receivers.values_mut() {
            (receiver.reception, receiver.is_picky) = (Reception::Takes, false);
        }
    }

    /// In the order in which it was taken, with what was taken again.
    pub fn taken(&self, address: &str) -> Vec<Taken> {
        self.0.lock().receivers.get(address).map(|receiver| receiver.taken.clone()).unwrap_or_default()
    }

    fn reception(&self, address: &str, id: EventId) -> Reception {
        let mut state = self.0.lock();
        let receiver = state.receiver(address);
        match receiver.reception {
            Reception::Down | Reception::Hangs => receiver.reception,
            _ if receiver.is_picky && is_disliked(id) => Reception::Refuses(RpcCode::InvalidArgument),
            reception => reception,
        }
    }

    fn draw(&self, span: Span) -> Duration {
        span.draw(&mut self.0.lock().random)
    }
}

impl State {
    fn receiver(&mut self, address: &str) -> &mut Receiver {
        self.receivers.entry(address.to_owned()).or_insert_with(|| Receiver {
            reception: Reception::Takes,
            is_picky: false,
            taken: Vec::new(),
            tries: BTreeMap::new(),
        })
    }
}

/// Ids end in random digits.
fn is_disliked(id: EventId) -> bool {
    id.to_string().ends_with('0')
}

/// The event sink of one engine.
pub(crate) struct SimulatedSink {
    receivers: Receivers,
    injector: FaultInjector,
}

impl SimulatedSink {
    pub(crate) fn new(receivers: Receivers, around: Surroundings) -> Self {
        Self { receivers, injector: FaultInjector::new(around, "receivers", |faults| faults.receivers) }
    }

    async fn receive(&self, delivery: Delivery<'_>) -> Result<i32, DeliveryError> {
        let Delivery { address, id, timeout, .. } = delivery;
        self.tried(address, id);
        match self.receivers.reception(address, id) {
            Reception::Takes => self.take(delivery),
            Reception::LosesAnswers => {
                self.take(delivery);
                return Err(unavailable(Loss::Unknown, "the connection was closed"));
            }
            Reception::Slow(span) => {
                let takes = self.receivers.draw(span);
                // It takes it all the same, and nobody is there any more who would hear that.
                sleep(takes.min(timeout)).await;
                self.take(delivery);
                if takes >= timeout {
                    return Err(too_late());
                }
            }
            Reception::Down => return Err(unavailable(Loss::NotDone, "connection refused")),
            Reception::Hangs => {
                sleep(timeout).await;
                return Err(too_late());
            }
            Reception::Refuses(code) => {
                return Err(DeliveryError { code, message: "it does not want this".into() });
            }
        }
        Ok(200)
    }

    fn tried(&self, address: &str, id: EventId) {
        let Surroundings { node, coverage, .. } = self.injector.around();
        let mut state = self.receivers.0.lock();
        let (last, _) = state.receiver(address).tries.entry(id).or_insert_with(|| (node.clone(), 0));
        if last != node {
            coverage.saw(RareEvent::DeliveryTakenOver);
            *last = node.clone();
        }
    }

    fn take(&self, delivery: Delivery<'_>) {
        let Delivery { address, id, message, .. } = delivery;
        let Surroundings { node, trace, coverage, inspector, .. } = self.injector.around();
        let times = {
            let mut state = self.receivers.0.lock();
            let receiver = state.receiver(address);
            receiver.taken.push(Taken { id, message: message.clone(), at: trace.elapsed() });
            let (_, times) = receiver.tries.entry(id).or_insert_with(|| (node.clone(), 0));
            *times += 1;
            *times
        };
        // Resyncs are as many as pings.
        if !matches!(message, Message::Resync { .. }) {
            let again = if times > 1 { " again" } else { "" };
            let (what, room) = (message.what(), &message.room().id);
            trace.note(format_args!("{address} takes event {what} of room {room} from {node}{again}"));
        }
        if times > 1 {
            coverage.saw(RareEvent::EventRepeated);
        }
        inspector.event_taken(node, address, id, message);
    }
}

#[async_trait]
impl EventSink for SimulatedSink {
    async fn deliver(&self, delivery: Delivery<'_>) -> Result<i32, DeliveryError> {
        let Delivery { address, id, .. } = delivery;
        let what = from_fn(|f| write!(f, "delivery of {id} to {address}"));
        let call = self.injector.call(Call::write(&what, Span::ZERO), self.receive(delivery), unavailable);
        let outcome = timeout(delivery.timeout, call).await.unwrap_or_else(|_| Err(too_late()));
        let around = self.injector.around();
        around.life.still_alive().await;
        if let Err(error) = &outcome {
            around.inspector.event_not_taken(id, error.code);
        }
        outcome
    }
}

fn unavailable(_: Loss, why: &'static str) -> DeliveryError {
    DeliveryError { code: RpcCode::Unavailable, message: why.into() }
}

fn too_late() -> DeliveryError {
    DeliveryError { code: RpcCode::DeadlineExceeded, message: "it did not answer in time".into() }
}
