//! A rooms API on loopback, so that a room can be tested without Maestro.
//!
//! It notes every ping and answers as it is told. For tests only: it believes its clients.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Serves until the process ends.
pub struct FakeRoomsApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A ping as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedPing {
    pub path: String,
    pub body: Value,
    /// `Maestro-View: full`.
    pub asks_for_all: bool,
}

/// How pings are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// `success: true`, and the allocations of [`FakeRoomsApi::allocate`] if the room asks for them.
    Accept,
    /// `success: false`.
    Refuse,
    /// An HTTP error with this code.
    Error(u16),
    /// Hang up without a word.
    HangUp,
    /// Take the request and never answer.
    Silence,
}

struct Shared {
    inner: Mutex<Inner>,
    arrived: Condvar,
}

struct Inner {
    pings: Vec<ReceivedPing>,
    reply: Reply,
    allocations: Vec<Value>,
    connections: usize,
}

impl FakeRoomsApi {
    /// Listens on a free port and accepts all pings.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let inner =
            Inner { pings: Vec::new(), reply: Reply::Accept, allocations: Vec::new(), connections: 0 };
        let shared = Arc::new(Shared { inner: Mutex::new(inner), arrived: Condvar::new() });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.lock().connections += 1;
                let serving = Arc::clone(&serving);
                // An error ends the connection; the client sees as much.
                thread::spawn(move || serving.serve(&stream));
            }
        });
        Ok(Self { address, shared })
    }

    /// What a room finds in `MAESTRO_ROOMS_API_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn reply_with(&self, reply: Reply) {
        self.shared.lock().reply = reply;
    }

    /// Holds the room for a match until a ping says that it has begun.
    pub fn allocate(&self, id: &str, metadata: &Value) {
        let allocation = json!({"id": id, "metadata": metadata, "expiresAt": "2126-11-15T09:00:00Z"});
        self.shared.lock().allocations.push(allocation);
    }

    pub fn pings(&self) -> Vec<ReceivedPing> {
        self.shared.lock().pings.clone()
    }

    /// How many connections have been opened so far.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Blocks until the pings so far satisfy `enough`, and returns them. `Err` holds those that came in time.
    pub fn wait_for(
        &self,
        timeout: Duration,
        enough: impl Fn(&[ReceivedPing]) -> bool,
    ) -> Result<Vec<ReceivedPing>, Vec<ReceivedPing>> {
        let waited = self
            .shared
            .arrived
            .wait_timeout_while(self.shared.lock(), timeout, |inner| !enough(&inner.pings));
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let pings = inner.pings.clone();
        drop(inner);
        if enough(&pings) { Ok(pings) } else { Err(pings) }
    }
}

impl ReceivedPing {
    pub fn status(&self) -> &str {
        self.body["status"].as_str().unwrap_or_default()
    }

    /// Ids of the allocations whose matches it says have begun.
    pub fn begun(&self) -> Vec<&str> {
        self.body["begun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub fn running_matches(&self) -> u64 {
        self.body["runningMatches"].as_u64().unwrap_or_default()
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(ping) = read_request(&mut reader)? {
            let mut inner = self.lock();
            let reply = inner.reply;
            let accepted = if reply == Reply::Accept { inner.accept(&ping) } else { String::new() };
            inner.pings.push(ping);
            drop(inner);
            self.arrived.notify_all();
            match reply {
                Reply::Accept => write_response(stream, 200, &accepted)?,
                Reply::Refuse => write_response(stream, 200, r#"{"success":false}"#)?,
                Reply::Error(code) => {
                    write_response(stream, code, r#"{"code":2,"message":"as asked","details":[]}"#)?;
                }
                Reply::HangUp => return Ok(()),
                // Until the client gives up and closes its end.
                Reply::Silence => drop(reader.read(&mut [0])?),
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The answer to a room that asks for more than v10's, or v10's.
    fn accept(&mut self, ping: &ReceivedPing) -> String {
        let begun = ping.begun();
        self.allocations.retain(|allocation| !begun.iter().any(|id| allocation["id"] == *id));
        match ping.asks_for_all {
            true => json!({"success": true, "allocations": self.allocations}).to_string(),
            false => r#"{"success":true}"#.to_owned(),
        }
    }
}

/// None at the end of the connection.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<ReceivedPing>> {
    let mut request_line = String::new();
    if reader.read_line(&mut request_line)? == 0 {
        return Ok(None);
    }
    let (mut body_bytes, mut asks_for_all) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            body_bytes = value.trim().parse().map_err(io::Error::other)?;
        }
        asks_for_all |= header == "maestro-view: full";
    }
    let mut body = vec![0; body_bytes];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).map_err(io::Error::other)?;
    let path = request_line.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some(ReceivedPing { path, body, asks_for_all }))
}

fn write_response(mut stream: &TcpStream, code: u16, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {code} -\r\ncontent-type: application/json\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes())
}
