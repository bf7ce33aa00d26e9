//! Wake-ups between processes, as notifications of the database. They go over a connection of their own: a notification that is
//! sent inside a writing transaction would have all commits wait for one lock.
//!
//! Notifications pass only over a connection that stays the same. A pooler that gives each transaction another one does not
//! pass them on, and does not say so either: this is tried when the channel is opened. Where they do not pass, everybody looks
//! every second instead.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use maestro_engine::ports::WakeUpChannel;
use maestro_engine::ports::wake_ups::{Named, WakeUpBatch, WakeUpError};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use crate::error::OpenError;
use crate::options::Options;
use crate::server;

/// Of one database: stores do not hear each other.
const CHANNEL: &str = "maestro_wake_ups";
/// PostgreSQL refuses payloads of 8,000 bytes.
const PAYLOAD_MAX: usize = 7_900;
/// Notifications that wait to be taken. What is more is as good as everything.
const WAITING_MAX: usize = 1_024;
/// How long the trial notification may take, with a server that is busy.
const TRIAL_MAX: Duration = Duration::from_secs(3);
/// How often everybody looks where notifications do not pass.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// No wake-up begins with it.
const TRIAL: &str = "trial ";

pub struct PostgresWakeUps {
    config: Config,
    /// Notifications of others arrive here.
    passes: bool,
    line: Mutex<Option<Arc<Line>>>,
    /// Of the line: whoever receives has it.
    incoming: tokio::sync::Mutex<Option<mpsc::Receiver<String>>>,
}

/// A connection on which is listened and sent.
struct Line {
    client: Client,
    /// Some were dropped: too many waited.
    has_overflowed: Arc<AtomicBool>,
}

impl PostgresWakeUps {
    /// Connects, and tries whether a notification of another connection arrives.
    pub async fn open(options: &Options) -> Result<Self, OpenError> {
        let config = server::parse(options)?;
        let unreachable = |error: tokio_postgres::Error| OpenError::Unreachable {
            why: maestro_engine::with_sources(&error),
        };
        let (line, mut incoming) = connect(&config).await.map_err(unreachable)?;
        let (other, _) = connect(&config).await.map_err(unreachable)?;
        let passes = is_heard(&other.client, &mut incoming).await.map_err(unreachable)?;
        let (line, incoming) = (Mutex::new(Some(Arc::new(line))), tokio::sync::Mutex::new(Some(incoming)));
        Ok(Self { config, passes, line, incoming })
    }

    /// False: everybody looks every second instead.
    pub fn passes(&self) -> bool {
        self.passes
    }

    fn is_broken(&self) -> bool {
        self.line.lock().as_ref().is_none_or(|line| line.client.is_closed())
    }

    async fn reconnect(&self) -> Result<mpsc::Receiver<String>, WakeUpError> {
        let (line, incoming) = connect(&self.config).await.map_err(failed)?;
        *self.line.lock() = Some(Arc::new(line));
        Ok(incoming)
    }
}

async fn connect(config: &Config) -> Result<(Line, mpsc::Receiver<String>), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let (outgoing, incoming) = mpsc::channel(WAITING_MAX);
    let has_overflowed = Arc::<AtomicBool>::default();
    let overflow = has_overflowed.clone();
    // It carries answers too, so it waits for nobody who receives. It ends with the connection.
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message
                && outgoing.try_send(notification.payload().to_owned()).is_err()
            {
                overflow.store(true, Ordering::Relaxed);
            }
        }
    });
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
    Ok((Line { client, has_overflowed }, incoming))
}

async fn is_heard(
    other: &Client,
    incoming: &mut mpsc::Receiver<String>,
) -> Result<bool, tokio_postgres::Error> {
    // Other processes may try at the same time.
    let trial = format!("{TRIAL}{:016x}", RandomState::new().hash_one(0));
    notify(other, vec![trial.clone()]).await?;
    let heard = async {
        while let Some(payload) = incoming.recv().await {
            if payload == trial {
                return true;
            }
        }
        false
    };
    Ok(timeout(TRIAL_MAX, heard).await.unwrap_or(false))
}

async fn notify(client: &Client, payloads: Vec<String>) -> Result<(), tokio_postgres::Error> {
    let sql = "SELECT pg_notify($1, payload) FROM unnest($2) AS payload";
    client.query_typed(sql, &[(&CHANNEL, Type::TEXT), (&payloads, Type::TEXT_ARRAY)]).await.map(drop)
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> WakeUpError {
    WakeUpError(error.into())
}

#[async_trait]
impl WakeUpChannel for PostgresWakeUps {
    async fn send(&self, wake_ups: &WakeUpBatch) -> Result<(), WakeUpError> {
        // Made again by whoever receives.
        let line = self.line.lock().clone().ok_or_else(|| failed("the connection is broken"))?;
        notify(&line.client, payloads(wake_ups)).await.map_err(failed)
    }

    async fn receive(&self) -> Result<WakeUpBatch, WakeUpError> {
        let mut incoming = self.incoming.lock().await;
        if !self.passes {
            sleep(LOOK_EVERY).await;
            // Others may hear what is sent from here.
            if self.is_broken() {
                *incoming = Some(self.reconnect().await?);
            }
            return Ok(WakeUpBatch::everything());
        }
        let Some(receiver) = &mut *incoming else {
            *incoming = Some(self.reconnect().await?);
            return Ok(WakeUpBatch::everything());
        };
        let Some(first) = receiver.recv().await else {
            *incoming = None;
            *self.line.lock() = None;
            return Err(failed("the connection is broken"));
        };
        let mut batch = read(&first);
        while let Ok(next) = receiver.try_recv() {
            batch.merge(read(&next));
        }
        let line = self.line.lock().clone();
        if line.is_some_and(|line| line.has_overflowed.swap(false, Ordering::Relaxed)) {
            batch = WakeUpBatch::everything();
        }
        Ok(batch)
    }
}

const QUEUE: &str = "queue";
const ROOM: &str = "room";
const EVENT: &str = "event";
const WORKFORCE: &str = "workforce";
const REGIONS: &str = "regions";
/// No scheduler is called so.
const ALL: &str = "*";

/// Words such as `queue:arena`, as many to a payload as fit.
fn payloads(batch: &WakeUpBatch) -> Vec<String> {
    let WakeUpBatch { queues, rooms, events, workforce, regions } = batch;
    let named = [(QUEUE, queues), (ROOM, rooms), (EVENT, events)].into_iter().flat_map(|(kind, named)| {
        let names = match named {
            Named::These(names) => names.iter().map(|name| name.as_str()).collect(),
            Named::All => vec![ALL],
        };
        names.into_iter().map(move |name| format!("{kind}:{name}"))
    });
    let flags = [(WORKFORCE, workforce), (REGIONS, regions)].into_iter().filter(|(_, is_set)| **is_set);
    let mut payloads: Vec<String> = Vec::new();
    for word in named.chain(flags.map(|(flag, _)| flag.to_owned())) {
        match payloads.last_mut().filter(|payload| payload.len() + 1 + word.len() <= PAYLOAD_MAX) {
            Some(payload) => {
                payload.push(' ');
                payload.push_str(&word);
            }
            None => payloads.push(word),
        }
    }
    payloads
}

/// What it does not know, as a later version may say it, could mean anything.
fn read(payload: &str) -> WakeUpBatch {
    let mut batch = WakeUpBatch::default();
    if payload.starts_with(TRIAL) {
        return batch;
    }
    for word in payload.split(' ') {
        let (kind, name) = word.split_once(':').unwrap_or((word, ""));
        let named = match kind {
            QUEUE => &mut batch.queues,
            ROOM => &mut batch.rooms,
            EVENT => &mut batch.events,
            WORKFORCE => {
                batch.workforce = true;
                continue;
            }
            REGIONS => {
                batch.regions = true;
                continue;
            }
            _ => return WakeUpBatch::everything(),
        };
        match name {
            ALL => *named = Named::All,
            name => named.add(name),
        }
    }
    batch
}

#[cfg(test)]
mod tests {
    use maestro_engine::ports::wake_ups::NAMED_MAX;

    use super::*;

    #[test]
    fn batches_come_back_from_payloads_that_fit() {
        let mut many = WakeUpBatch { regions: true, ..WakeUpBatch::default() };
        for number in 0..NAMED_MAX {
            many.queues.add(&format!("{number:063}"));
        }
        let mut few = WakeUpBatch { rooms: Named::All, ..WakeUpBatch::default() };
        few.events.add("arena");
        for batch in [many, few, WakeUpBatch::everything()] {
            let mut read_back = WakeUpBatch::default();
            for payload in payloads(&batch) {
                assert!(payload.len() <= PAYLOAD_MAX);
                read_back.merge(read(&payload));
            }
            assert_eq!(read_back, batch);
        }
    }

    #[test]
    fn what_is_not_known_is_everything() {
        assert_eq!(read("queue:arena weather"), WakeUpBatch::everything());
        assert!(read("trial 1").is_empty());
    }
}
