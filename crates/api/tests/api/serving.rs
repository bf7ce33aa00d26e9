//! A router on a real listener.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use maestro_api::serve;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

async fn start(router: Router, grace: Duration) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { stopped.await.unwrap() };
    let serving = tokio::spawn(serve(listener, router, shutdown, grace));
    Server { address, stop, serving }
}

async fn send(address: std::net::SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Until the server closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

fn router(work: Duration) -> Router {
    let slow = move || async move {
        tokio::time::sleep(work).await;
        "done"
    };
    Router::new().route("/quick", get(async || "done")).route("/slow", get(slow))
}

#[tokio::test]
async fn the_end_waits_for_what_is_being_worked_on() {
    let server = start(router(Duration::from_millis(300)), Duration::from_secs(10)).await;
    let slow = send(server.address, "/slow").await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.stop.send(()).unwrap();
    let answer = rest(slow).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("done"), "{answer}");
    server.serving.await.unwrap();
    assert_eq!(rest(idle).await, "");
    assert!(TcpStream::connect(server.address).await.is_err(), "nothing new is accepted");
}

#[tokio::test]
async fn the_end_does_not_wait_for_ever() {
    let server = start(router(Duration::from_secs(3600)), Duration::from_millis(100)).await;
    let slow = send(server.address, "/slow").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.stop.send(()).unwrap();
    server.serving.await.unwrap();
    assert_eq!(rest(slow).await, "");
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server = start(router(Duration::ZERO), Duration::from_secs(10)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = "GET /quick HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while text.matches("done").count() < 3 {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "closed after {text}");
        text += std::str::from_utf8(&buffer[..read]).unwrap();
    }
    server.stop.send(()).unwrap();
    server.serving.await.unwrap();
}

#[tokio::test]
async fn more_headers_than_the_parser_reads_are_refused() {
    let server = start(router(Duration::ZERO), Duration::from_secs(10)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let headers: String = (0..101).map(|number| format!("x-{number}: y\r\n")).collect();
    let request = format!("GET /quick HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}
