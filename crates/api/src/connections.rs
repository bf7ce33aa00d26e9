//! The connections of one listener: how many there may be, how long each may take, and which have to go when there is
//! no capacity for more.
//!
//! A client that sends slowly, or not at all, costs a connection. So each has deadlines of its own, and when
//! connections run out those go first that have not sent a complete request: the oldest of the address that has most
//! of them. Connections that did send one (those of rooms are kept open between pings, and all local rooms share an
//! address) are not limited by address, and go only when nothing else is left, the longest idle first.
//!
//! Nothing here waits or asks for the time, and a request costs a few atomic writes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    pub connections_max: usize,
    /// How many connections of one address may not have sent a complete request yet.
    pub incomplete_per_address_max: usize,
    /// From the first byte of a request, or from the opening of the connection, to the last byte of the request.
    pub read_timeout: Duration,
    /// Between two requests, and for taking an answer.
    pub idle_timeout: Duration,
    /// The longest body of a request.
    pub body_max_bytes: usize,
    /// The bytes of all bodies that have not been received completely.
    pub bodies_max_bytes: usize,
}

impl Default for ConnectionLimits {
    /// The defaults of the configuration for the rooms API.
    fn default() -> Self {
        Self {
            connections_max: 65_536,
            incomplete_per_address_max: 256,
            read_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            body_max_bytes: 64 * 1024,
            bodies_max_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Connections that are closed at once when there are too many: finding them takes a look at all.
const EVICTED_AT_ONCE: usize = 32;

/// Whoever has not sent a request in this time is slow on its own account: a ping is one packet.
const PROMPT: Duration = Duration::from_secs(1);

/// Answers that last say something at least four times in this time. Who takes nothing of it does not listen.
const STALLED: Duration = Duration::from_secs(60);

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing complete has come yet.
    Opening,
    /// Part of a later request has come.
    Receiving,
    /// A request is being worked on: that has a deadline of its own.
    Working,
    /// The last answer is being sent, or has been received.
    Idle,
    /// An answer that lasts is being sent; since its last part was taken.
    Streaming,
}

impl Phase {
    fn from_u8(number: u8) -> Self {
        match number {
            0 => Self::Opening,
            1 => Self::Receiving,
            2 => Self::Working,
            3 => Self::Idle,
            _ => Self::Streaming,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    address: IpAddr,
    phase: AtomicU8,
    /// Since when, in milliseconds since the listener was opened.
    since_ms: AtomicU64,
    streams: Mutex<Streams>,
    /// Notified once, when the connection must be closed.
    cut: Notify,
}

/// The requests of HTTP/2 of one connection.
#[derive(Debug, Default)]
struct Streams {
    /// That are worked on, or whose answers last.
    open: u32,
    /// Of them, those whose answers last.
    lasting: u32,
}

/// What became of a new connection.
#[derive(Debug)]
pub(crate) struct Opened {
    /// `None`: everything is in use, and nothing can be closed.
    pub(crate) connection: Option<Arc<Connection>>,
    /// Somebody who may have been about to say something was turned away.
    pub(crate) refused: bool,
}

#[derive(Debug)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    open: Mutex<Open>,
    /// One permit for each byte of bodies that are not complete.
    bodies: Semaphore,
}

#[derive(Debug, Default)]
struct Open {
    /// All connections, in the order in which they came.
    by_id: BTreeMap<u64, Arc<Connection>>,
    /// The connections that have not sent a complete request, in the order in which they came.
    incomplete: HashMap<IpAddr, VecDeque<u64>>,
    last_id: u64,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        let bodies = Semaphore::new(limits.bodies_max_bytes.min(Semaphore::MAX_PERMITS));
        Self { limits, open: Mutex::default(), bodies }
    }

    pub(crate) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    pub(crate) fn count(&self) -> usize {
        self.open.lock().by_id.len()
    }

    pub(crate) fn open(&self, address: IpAddr, now: Duration) -> Opened {
        let address = sender(address);
        let mut open = self.open.lock();
        let mut refused = false;
        let of_address = open.incomplete.get(&address);
        if let Some(of_address) = of_address
            && of_address.len() >= self.limits.incomplete_per_address_max
            && let Some(oldest) = of_address.front().copied()
        {
            refused |= open.cut(oldest, now);
        }
        if open.by_id.len() >= self.limits.connections_max {
            refused |= open.evict(EVICTED_AT_ONCE, now);
        }
        if open.by_id.len() >= self.limits.connections_max {
            return Opened { connection: None, refused: true };
        }
        Opened { connection: Some(open.add(address, now)), refused }
    }

    /// Gives back descriptors that somebody else needs. True if somebody was turned away who may have been about to say
    /// something.
    pub(crate) fn make_room(&self, now: Duration) -> bool {
        self.open.lock().evict(EVICTED_AT_ONCE, now)
    }

    /// Closes those that took too long; how many there were.
    pub(crate) fn cut_overdue(&self, now: Duration) -> usize {
        let mut open = self.open.lock();
        let is_overdue = |connection: &&Arc<Connection>| {
            let (phase, age) = connection.state(now);
            match phase {
                Phase::Opening | Phase::Receiving => age >= self.limits.read_timeout,
                Phase::Working => false,
                Phase::Idle => age >= self.limits.idle_timeout,
                Phase::Streaming => age >= STALLED,
            }
        };
        let overdue: Vec<u64> =
            open.by_id.values().filter(is_overdue).map(|connection| connection.id).collect();
        for id in &overdue {
            open.cut(*id, now);
        }
        overdue.len()
    }

    pub(crate) fn close(&self, connection: &Connection) {
        self.open.lock().remove(connection.id);
    }

    /// A request has come completely.
    pub(crate) fn work(&self, connection: &Connection, now: Duration) {
        let before = connection.enter(Phase::Working, now);
        if before == Phase::Opening {
            self.open.lock().forget_incomplete(connection);
        }
    }

    /// The answer to a request can be sent.
    pub(crate) fn rest(&self, connection: &Connection, now: Duration) {
        connection.enter(Phase::Idle, now);
    }

    /// A part of an answer that lasts has been taken.
    pub(crate) fn stream(&self, connection: &Connection, now: Duration) {
        connection.enter(Phase::Streaming, now);
    }

    /// The same for one of several requests at a time.
    pub(crate) fn begin_stream(&self, connection: &Connection, now: Duration) {
        // Kept while the phase changes, so that the last to end does not overtake the first to begin.
        let mut streams = connection.streams.lock();
        streams.open += 1;
        self.work(connection, now);
    }

    /// `lasted`: its answer did.
    pub(crate) fn end_stream(&self, connection: &Connection, lasted: bool, now: Duration) {
        let mut streams = connection.streams.lock();
        streams.open = streams.open.saturating_sub(1);
        streams.lasting = streams.lasting.saturating_sub(u32::from(lasted));
        if streams.open == 0 {
            self.rest(connection, now);
        }
    }

    /// Keeps so many bytes of a body that is not complete, if there is capacity.
    pub(crate) fn keep(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        self.bodies.try_acquire_many(u32::try_from(bytes).ok()?).ok()
    }
}

impl Open {
    fn add(&mut self, address: IpAddr, now: Duration) -> Arc<Connection> {
        self.last_id += 1;
        let connection = Arc::new(Connection {
            id: self.last_id,
            address,
            phase: AtomicU8::new(Phase::Opening as u8),
            since_ms: AtomicU64::new(millis(now)),
            streams: Mutex::default(),
            cut: Notify::new(),
        });
        self.by_id.insert(connection.id, Arc::clone(&connection));
        self.incomplete.entry(address).or_default().push_back(connection.id);
        connection
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Connection>> {
        let connection = self.by_id.remove(&id)?;
        self.forget_incomplete(&connection);
        Some(connection)
    }

    fn forget_incomplete(&mut self, connection: &Connection) {
        if let Some(of_address) = self.incomplete.get_mut(&connection.address) {
            of_address.retain(|id| *id != connection.id);
            if of_address.is_empty() {
                self.incomplete.remove(&connection.address);
            }
        }
    }

    /// Tells the connection's task to end, and counts it as gone. True if it may have been about to say something.
    fn cut(&mut self, id: u64, now: Duration) -> bool {
        let Some(connection) = self.remove(id) else {
            return false;
        };
        let (phase, age) = connection.state(now);
        connection.cut.notify_one();
        match phase {
            Phase::Opening | Phase::Receiving => age < PROMPT,
            Phase::Working => true,
            Phase::Idle | Phase::Streaming => false,
        }
    }

    /// Closes up to so many, as the module says. True if one of them may have been about to say something.
    fn evict(&mut self, most: usize, now: Duration) -> bool {
        let crowd = |address: &IpAddr| self.incomplete.get(address).map_or(0, VecDeque::len);
        let candidate = |connection: &Arc<Connection>| {
            let (phase, age) = connection.state(now);
            let (last_to_go, crowd) = match phase {
                Phase::Opening => (0, crowd(&connection.address)),
                Phase::Receiving => (1, 0),
                Phase::Idle => (2, 0),
                Phase::Working | Phase::Streaming => return None,
            };
            Some((last_to_go, Reverse(crowd), Reverse(age), connection.id))
        };
        let mut candidates: Vec<_> = self.by_id.values().filter_map(candidate).collect();
        let most = most.min(candidates.len());
        if most < candidates.len() {
            candidates.select_nth_unstable(most);
        }
        let mut refused = false;
        for (.., id) in candidates.into_iter().take(most) {
            refused |= self.cut(id, now);
        }
        refused
    }
}

impl Connection {
    /// Bytes have come.
    pub(crate) fn receive(&self, now: impl FnOnce() -> Duration) {
        // While a request is worked on the next one may come: it is looked at when that is done.
        if self.phase.load(Ordering::Relaxed) == Phase::Idle as u8 {
            self.enter(Phase::Receiving, now());
        }
    }

    /// Waits until the connection must be closed.
    pub(crate) async fn cut(&self) {
        self.cut.notified().await;
    }

    pub(crate) fn is_streaming(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == Phase::Streaming as u8
    }

    /// The answer to one of its requests of HTTP/2 is going to last.
    pub(crate) fn begin_lasting(&self) {
        self.streams.lock().lasting += 1;
    }

    /// Whether answers to requests of HTTP/2 last.
    pub(crate) fn has_lasting(&self) -> bool {
        self.streams.lock().lasting > 0
    }

    /// Whether no request of HTTP/2 is worked on, except those whose answers last.
    pub(crate) fn all_last(&self) -> bool {
        let streams = self.streams.lock();
        streams.open == streams.lasting
    }

    fn enter(&self, phase: Phase, now: Duration) -> Phase {
        self.since_ms.store(millis(now), Ordering::Relaxed);
        Phase::from_u8(self.phase.swap(phase as u8, Ordering::Relaxed))
    }

    fn state(&self, now: Duration) -> (Phase, Duration) {
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        (Phase::from_u8(self.phase.load(Ordering::Relaxed)), now.saturating_sub(since))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whoever has one address of IPv6 has 2^64 of them.
fn sender(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests;
