//! A router on a real listener.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use maestro_api::{ConnectionLimits, Listening, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// Only ever waited out by a test that fails.
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

async fn start(router: Router, grace: Duration) -> Server {
    start_with(router, ConnectionLimits::default(), grace).await
}

async fn start_with(router: Router, limits: ConnectionLimits, grace: Duration) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { stopped.await.unwrap() };
    let listening = Listening { limits, ..Listening::new(listener, router) };
    let serving = tokio::spawn(serve(listening, shutdown, grace));
    Server { address, stop, serving }
}

async fn within_patience<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("in vain: {what}"))
}

async fn send(address: std::net::SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Until as many requests of a connection are answered.
async fn answers(stream: &mut TcpStream, expected: usize) {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while text.matches("done").count() < expected {
        let read = within_patience("an answer", stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "closed after {text}");
        text += std::str::from_utf8(&buffer[..read]).unwrap();
    }
}

/// Until the server closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    within_patience("the end of a connection", stream.read_to_string(&mut text)).await.unwrap();
    text
}

/// The work behind `/slow`: it says that it has begun, and goes on when it is told to.
#[derive(Default)]
struct Work {
    begun: Notify,
    go_on: Notify,
}

fn router(work: &Arc<Work>) -> Router {
    let work = Arc::clone(work);
    let slow = async move || {
        work.begun.notify_one();
        work.go_on.notified().await;
        "done"
    };
    Router::new().route("/quick", get(async || "done")).route("/slow", get(slow))
}

#[tokio::test]
async fn the_end_waits_for_what_is_being_worked_on() {
    let work = Arc::new(Work::default());
    let server = start(router(&work), PATIENCE).await;
    let slow = send(server.address, "/slow").await;
    within_patience("the slow request to begin", work.begun.notified()).await;
    let mut idle = send(server.address, "/quick").await;
    answers(&mut idle, 1).await;
    server.stop.send(()).unwrap();
    assert_eq!(rest(idle).await, "", "who is idle is sent away");
    assert!(TcpStream::connect(server.address).await.is_err(), "nothing new is accepted");
    assert!(!server.serving.is_finished());
    work.go_on.notify_one();
    let answer = rest(slow).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("done"), "{answer}");
    within_patience("the end", server.serving).await.unwrap();
}

#[tokio::test]
async fn the_end_does_not_wait_for_ever() {
    let work = Arc::new(Work::default());
    let server = start(router(&work), Duration::from_millis(10)).await;
    let slow = send(server.address, "/slow").await;
    within_patience("the slow request to begin", work.begun.notified()).await;
    server.stop.send(()).unwrap();
    within_patience("the end", server.serving).await.unwrap();
    assert_eq!(rest(slow).await, "");
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server = start(router(&Arc::default()), PATIENCE).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = "GET /quick HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3);
    stream.write_all(request.as_bytes()).await.unwrap();
    answers(&mut stream, 3).await;
    server.stop.send(()).unwrap();
    within_patience("the end", server.serving).await.unwrap();
}

#[tokio::test]
async fn more_headers_than_the_parser_reads_are_refused() {
    let server = start(router(&Arc::default()), PATIENCE).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let headers: String = (0..101).map(|number| format!("x-{number}: y\r\n")).collect();
    let request = format!("GET /quick HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

/// Writes what there is, one byte at a time, until the server has had enough.
async fn drip(address: std::net::SocketAddr, beginning: &str) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(beginning.as_bytes()).await.unwrap();
    let mut answer = [0; 1024];
    let cut = async {
        loop {
            tokio::select! {
                read = stream.read(&mut answer) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(read) => panic!("{}", String::from_utf8_lossy(&answer[..read])),
                },
                () = tokio::time::sleep(Duration::from_millis(20)) => {
                    if stream.write_all(b"x").await.is_err() {
                        break;
                    }
                }
            }
        }
    };
    within_patience("the end of a slow sender", cut).await;
}

#[tokio::test]
async fn slow_senders_are_cut_off_and_others_are_served() {
    let limits = ConnectionLimits { read_timeout: Duration::from_millis(300), ..ConnectionLimits::default() };
    let server = start_with(router(&Arc::default()), limits, PATIENCE).await;
    let mut kept = send(server.address, "/quick").await;
    answers(&mut kept, 1).await;
    let body = "PUT /quick HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n{";
    for beginning in ["", "G", "GET /quick HTTP/1.1\r\nhost: ", body] {
        drip(server.address, beginning).await;
    }
    // The later requests of a connection have the same deadline.
    let mut second = send(server.address, "/quick").await;
    answers(&mut second, 1).await;
    second.write_all(b"GET /qui").await.unwrap();
    assert_eq!(rest(second).await, "");
    // One that only rests is not slow.
    kept.write_all(b"GET /quick HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    answers(&mut kept, 1).await;
}

#[tokio::test]
async fn requests_that_are_never_finished_keep_nobody_out() {
    let limits =
        ConnectionLimits { incomplete_per_address_max: 4, connections_max: 8, ..ConnectionLimits::default() };
    let server = start_with(router(&Arc::default()), limits, PATIENCE).await;
    let mut kept = send(server.address, "/quick").await;
    answers(&mut kept, 1).await;
    let mut unfinished = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"PUT /quick HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{").await.unwrap();
        unfinished.push(stream);
    }
    let mut new = send(server.address, "/quick").await;
    answers(&mut new, 1).await;
    kept.write_all(b"GET /quick HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    answers(&mut kept, 1).await;
    assert_eq!(rest(unfinished.swap_remove(0)).await, "", "the oldest are closed");
}

#[tokio::test]
async fn a_body_in_pieces_arrives_whole_and_one_that_is_too_long_is_refused() {
    let echo = async |body: axum::body::Bytes| body;
    let router = Router::new().route("/echo", axum::routing::put(echo));
    let limits = ConnectionLimits { body_max_bytes: 8, ..ConnectionLimits::default() };
    let server = start_with(router, limits, PATIENCE).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let head = "PUT /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    stream.write_all(format!("{head}content-length: 5\r\n\r\ndo").as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    tokio::task::yield_now().await;
    stream.write_all(b"ne!").await.unwrap();
    let answer = rest(stream).await;
    assert!(answer.ends_with("\r\n\r\ndone!"), "{answer}");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(format!("{head}transfer-encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let answer = rest(stream).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
}
