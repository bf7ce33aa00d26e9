//! Events of rooms, and how they reach matchmakers.
//!
//! A room says something (an [`EventKind`]), and every enabled forwarder of its scheduler gets a [`Message`] made from it,
//! by v10's rules. What is decided here: what the message is ([`compose`]), what an answer means ([`verdict`]), when to try
//! again ([`retry_in`]), and which of several resyncs that wait still matter ([`WaitingResyncs`]).

mod compose;
mod delivery;
mod go_format;
mod id;
mod message;
mod resyncs;

pub use compose::{Addressee, ComposeError, EventKind, RoomFacts, compose};
pub use delivery::{DeliveryVerdict, RETRY_MOST, RpcCode, retry_in, verdict};
pub use id::EventId;
pub use message::{Message, MessageRoom, PlayerChange};
pub use resyncs::{RESYNCS_WAITING_MAX, WaitingResyncs};
