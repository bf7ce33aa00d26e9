//! A server that answers what a test tells it to, over real HTTP on loopback.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// More than any client of a test sends.
const BODY_MAX: usize = 1 << 20;

/// Longer than any client of a test waits.
const SILENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone)]
pub struct Request {
    /// `GET /path?query`.
    pub line: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

#[derive(Debug, Clone)]
pub enum Reply {
    Whole(String),
    /// All but the end of it, then the connection is closed.
    CutOff(String),
    HangUp,
    Silence,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

impl Reply {
    pub fn json(status: u16, body: &str) -> Self {
        Self::new(status, "Content-Type: application/json", body)
    }

    /// Several headers are separated by `\r\n`.
    pub fn new(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Whole(format!(
            "HTTP/1.1 {status} Some Reason\r\n{headers}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }
}

/// Serves on a free port, one request per connection, until the process ends.
pub fn serve(respond: impl Fn(Request) -> Reply + Send + Sync + 'static) -> io::Result<SocketAddr> {
    listen(move |mut stream| {
        // Clients open connections that they do not use.
        let Some(request) = read_request(&stream) else { return };
        // A client that has gone does not matter.
        let _ = match respond(request) {
            Reply::Whole(text) => stream.write_all(text.as_bytes()),
            Reply::CutOff(text) => stream.write_all(&text.as_bytes()[..text.len().saturating_sub(5)]),
            Reply::HangUp => Ok(()),
            Reply::Silence => {
                thread::sleep(SILENCE);
                Ok(())
            }
        };
    })
}

/// The same for other protocols. Each connection has a thread of its own.
pub fn listen(connected: impl Fn(TcpStream) + Send + Sync + 'static) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let connected = Arc::new(connected);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connected = Arc::clone(&connected);
            thread::spawn(move || connected(stream));
        }
    });
    Ok(address)
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let mut request = Request {
        line: line.trim_end().strip_suffix(" HTTP/1.1")?.into(),
        headers: vec![],
        body: String::new(),
    };
    loop {
        line.clear();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.into(), value.trim().into()));
    }
    let length = request.header("content-length").unwrap_or("0").parse::<usize>().ok()?;
    let mut body = vec![0; length.min(BODY_MAX)];
    lines.read_exact(&mut body).ok()?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Some(request)
}
