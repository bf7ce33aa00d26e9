//! How much a client may ask of a server. All of it is answered with an error in JSON, none of it with silence.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Limits {
    pub body_max_bytes: usize,
    /// How long an answer may take.
    pub request_timeout: Duration,
    /// Requests that are worked on at the same time. More are refused at once with 503: rooms ping again, people and
    /// CI ask again, and a queue of old requests helps nobody.
    pub requests_max: usize,
}

impl Limits {
    /// Recipes with many containers and long environments fit; nothing that needs streaming does. So many requests at
    /// once come only from a script that has gone wild; their bodies take half a GiB at the most.
    pub const MANAGEMENT: Self =
        Self { body_max_bytes: 1024 * 1024, request_timeout: Duration::from_secs(30), requests_max: 512 };

    /// A ping is a few hundred bytes; its metadata is kept for every room, so it is held short.
    pub const ROOMS: Self =
        Self { body_max_bytes: 64 * 1024, request_timeout: Duration::from_secs(5), requests_max: 4096 };
}

/// Requests that may wait before they are worked on, on each API. They have a capacity of their own: neither pings nor people
/// are refused because matchmakers wait. Enough for several fleets with a full queue each; what a waiting request keeps is
/// short.
pub(crate) const WAITING_MAX: usize = 4096;

/// Streams that are open at the same time, on each API. They last, so they have a capacity of their own.
pub(crate) const STREAMS_MAX: usize = 1024;

/// No path of ours with its query is anywhere near; hyper's own limit is 64 KiB.
pub(crate) const URL_MAX_BYTES: usize = 8 * 1024;

/// Names and values together.
pub(crate) const HEADERS_MAX_BYTES: usize = 16 * 1024;

/// Below hyper's own 100, beyond which it answers 431 without a body. (Setting hyper's would cost an allocation for
/// each request.)
pub(crate) const HEADERS_MAX: usize = 64;
