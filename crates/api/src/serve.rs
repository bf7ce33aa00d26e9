//! Serving a router on a listener: HTTP/1.1, bounded waits, and an end that lets running requests finish.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::Service;

use crate::coalesce::Coalesced;
use crate::limits::HEADER_READ_TIMEOUT;

/// How long to wait when no connection can be accepted, usually because all file descriptors are in use: that
/// passes only when some are given back.
const ACCEPT_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Serves until `shutdown` is ready. Then nothing new is accepted, idle connections are closed, and requests that are
/// being worked on have `grace` to end before they are dropped.
pub async fn serve(
    listener: impl Borrow<TcpListener>,
    router: Router,
    shutdown: impl Future<Output = ()>,
    grace: Duration,
) {
    let (stop, stopping) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            // Ended ones are taken out, or the set would grow with every connection there ever was.
            Some(_) = connections.join_next() => {}
            accepted = listener.borrow().accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, router.clone(), stopping.clone()));
                }
                Err(error) => not_accepted(error).await,
            }
        }
    }
    drop(listener);
    drop(stop);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, all_ended).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            ?grace,
            "requests did not end in time and are dropped"
        );
    }
}

async fn not_accepted(error: io::Error) {
    // A client that was gone before it was accepted concerns only itself.
    let client_gone =
        matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset);
    if !client_gone {
        tracing::error!(%error, "cannot accept connections");
        tokio::time::sleep(ACCEPT_RETRY_AFTER).await;
    }
}

async fn connection(stream: TcpStream, router: Router, mut stopping: watch::Receiver<()>) {
    // Answers are small and whole: waiting for more to send only makes them late.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        async move { Ok::<_, Infallible>(infallible(router.call(request.map(Body::new)).await)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = Coalesced::new(Box::pin(connection));
    let ended = tokio::select! {
        biased;
        ended = &mut connection => ended,
        _ = stopping.changed() => {
            connection.future().as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

fn infallible<T>(outcome: Result<T, Infallible>) -> T {
    match outcome {
        Ok(value) => value,
        Err(never) => match never {},
    }
}
