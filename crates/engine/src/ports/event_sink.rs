//! The event sink: what takes events to matchmakers.

use std::time::Duration;

use async_trait::async_trait;
use maestro_core::event::{EventId, Message, RpcCode};

/// One attempt per call; repeating one is the caller's business. A call that is dropped is given up, and the receiver may
/// have got the event all the same.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Delivers one event, within the timeout. Answers with the code in the receiver's reply, which is of interest to people
    /// only: a receiver that replies has the event.
    async fn deliver(&self, delivery: Delivery<'_>) -> Result<i32, DeliveryError>;
}

#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// As the recipe has it: `host:port`.
    pub address: &'a str,
    /// The same in every attempt.
    pub id: EventId,
    pub message: &'a Message,
    pub timeout: Duration,
}

/// The receiver may or may not have the event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct DeliveryError {
    pub code: RpcCode,
    /// In words, for people.
    pub message: String,
}

/// For engines without forwarders: nothing can be delivered.
pub struct NoEventSink;

#[async_trait]
impl EventSink for NoEventSink {
    async fn deliver(&self, _: Delivery<'_>) -> Result<i32, DeliveryError> {
        let message = "this process forwards no events".to_owned();
        Err(DeliveryError { code: RpcCode::Unavailable, message })
    }
}
