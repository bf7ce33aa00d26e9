//! An answer of HTTP/1.1 that lasts. Its connection has no other request; whoever takes nothing of it for too long is cut
//! off, like whoever sends nothing.

use std::sync::Arc;

use axum::response::Response;

use super::keeping::{Kept, keeping};
use super::{OpenConnection, Shared};
use crate::connections::Connection;

pub(super) fn watched(response: Response, open: &OpenConnection) -> Response {
    let watch = Watch { shared: Arc::clone(&open.shared), connection: Arc::clone(&open.connection) };
    watch.goes_on();
    keeping(response, watch)
}

struct Watch {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
}

impl Kept for Watch {
    fn goes_on(&self) {
        self.shared.connections.stream(&self.connection, self.shared.now());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.connections.rest(&self.connection, self.shared.now());
    }
}
