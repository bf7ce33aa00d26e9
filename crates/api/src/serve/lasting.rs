//! An answer of HTTP/1.1 that lasts. Its connection has no other request; whoever takes nothing of it for too long is cut
//! off, like whoever sends nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::{OpenConnection, Shared};
use crate::connections::Connection;

pub(super) fn watched(response: Response, open: &OpenConnection) -> Response {
    let (shared, connection) = (Arc::clone(&open.shared), Arc::clone(&open.connection));
    shared.connections.stream(&connection, shared.now());
    response.map(|body| Body::new(Watched { body, shared, connection }))
}

struct Watched {
    body: Body,
    shared: Arc<Shared>,
    connection: Arc<Connection>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    /// Not called while the client takes nothing.
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(context);
        if frame.is_ready() {
            this.shared.connections.stream(&this.connection, this.shared.now());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.shared.connections.rest(&self.connection, self.shared.now());
    }
}
