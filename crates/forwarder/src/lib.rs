//! Delivers events to matchmakers over gRPC: the adapter behind [`EventSink`](maestro_engine::ports::EventSink).
//!
//! - [`GrpcSink`] speaks v10's service `eventforwarder.GRPCForwarder` (`proto/eventforwarder/forwarder.proto`).
//! - Connections are kept per address. An address is resolved again every half a minute, calls go round all that it
//!   resolves to, and what cannot be connected to is skipped for a moment.
//! - What a message is and when a delivery is repeated is not decided here, but in `maestro_core::event` and the engine.
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use maestro_core::event::{EventId, Message, MessageRoom};
//! use maestro_engine::ports::event_sink::{Delivery, EventSink};
//! use maestro_forwarder::GrpcSink;
//!
//! # async fn deliver() {
//! let room = MessageRoom { game: "brawl".into(), id: "arena-1".into(), ..MessageRoom::default() };
//! let message = Message::RoomEvent { room, event_type: "matchStarted".into() };
//! let delivery = Delivery {
//!     address: "matchmaker.example:9090",
//!     id: EventId::from_u128(7),
//!     message: &message,
//!     timeout: Duration::from_secs(1),
//! };
//! match GrpcSink::default().deliver(delivery).await {
//!     Ok(code) => println!("the receiver replied with {code}"),
//!     Err(error) => println!("not delivered: {error}"),
//! }
//! # }
//! ```

mod connections;
#[cfg(feature = "receiver")]
pub mod receiver;
mod sink;

pub use sink::{EVENT_ID_HEADER, GrpcSink};

/// Generated from `proto/eventforwarder`.
#[allow(unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
pub mod messages {
    tonic::include_proto!("eventforwarder");
}
