//! One connection to a stream of server-sent events.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::super::{Client, Failure, Resource};

/// The server says something every 15 seconds. One that was silent for so long is gone, and nobody has said so.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Lines that are read before they are printed; then the server waits.
const LINES_AHEAD: usize = 256;

/// The longest line: an event has the reason of an operation at the most, and those are a few kilobytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

pub(super) struct Connection(Receiver<Heard>);

pub(super) enum Heard {
    /// Where to go on, if nothing else comes.
    Id(String),
    Data(String),
    /// And why.
    End(String),
}

impl Connection {
    pub(super) fn open(client: &Client, resource: &Resource, last_id: Option<&str>) -> Result<Self, Failure> {
        let body = client.open_stream(resource, last_id)?;
        let (sender, receiver) = sync_channel(LINES_AHEAD);
        // Reading has no time limit of its own. A thread that hangs ends with this process.
        std::thread::spawn(move || read(body, &sender));
        Ok(Self(receiver))
    }

    pub(super) fn hear(&self) -> Heard {
        self.0.recv_timeout(SILENCE_MAX).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Heard::End(format!("the server was silent for {SILENCE_MAX:?}")),
            RecvTimeoutError::Disconnected => Heard::End("the connection is lost".into()),
        })
    }
}

fn read(body: impl Read, heard: &SyncSender<Heard>) {
    let mut body = BufReader::new(body);
    let mut id = None;
    let mut data = None;
    loop {
        let mut line = String::new();
        let end = match (&mut body).take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) => Some("the server has ended the stream".to_owned()),
            Ok(_) if !line.ends_with('\n') => Some("the connection was cut off".to_owned()),
            Ok(_) => None,
            Err(error) => Some(format!("the connection is lost: {error}")),
        };
        if let Some(why) = end {
            let _ = heard.send(Heard::End(why));
            return;
        }
        let line = line.trim_end_matches(['\n', '\r']);
        let value = |name| line.strip_prefix(name).map(|value: &str| value.trim_start().to_owned());
        if let Some(said) = value("id:") {
            id = Some(said);
        } else if let Some(said) = value("data:") {
            data = Some(said);
        } else if line.is_empty() {
            // The id after its data: what was not printed is asked for again.
            let whole = data.take().map(Heard::Data).into_iter().chain(id.take().map(Heard::Id));
            for said in whole {
                if heard.send(said).is_err() {
                    return;
                }
            }
        }
    }
}
