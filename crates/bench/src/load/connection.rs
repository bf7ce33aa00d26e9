//! One connection that is kept, and as little HTTP as can be trusted.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More than any answer here has.
const ANSWER_MAX_BYTES: usize = 4096;

const STATUS_OK: &[u8] = b"HTTP/1.1 200 ";

pub(super) struct Connection {
    stream: TcpStream,
    answer_end: &'static [u8],
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(server: SocketAddr, answer_end: &'static [u8]) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(server).await.context("connecting to the server")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer_end, buffer: vec![0; ANSWER_MAX_BYTES] })
    }

    /// Sends a request and waits for its answer; any but the one that is expected is an error.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).await?;
        let mut length = 0;
        loop {
            let more = self.stream.read(&mut self.buffer[length..]).await?;
            anyhow::ensure!(more > 0, "the server closed the connection");
            length += more;
            if answer_length(&self.buffer[..length]).is_some_and(|expected| length >= expected) {
                break;
            }
        }
        let answer = &self.buffer[..length];
        anyhow::ensure!(
            answer.starts_with(STATUS_OK) && answer.ends_with(self.answer_end),
            "unexpected answer: {}",
            String::from_utf8_lossy(answer)
        );
        Ok(())
    }
}

/// `None`: its headers are not complete, or do not say.
fn answer_length(answer: &[u8]) -> Option<usize> {
    let text = str::from_utf8(answer).ok()?;
    let (headers, _) = text.split_once("\r\n\r\n")?;
    let length = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse::<usize>().ok())?
    })?;
    Some(headers.len() + 4 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_as_long_as_they_say() {
        for (answer, length) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", Some(40)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Some(38)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", None),
            ("HTTP/1.1 200 OK\r\n\r\n", None),
        ] {
            assert_eq!(answer_length(answer.as_bytes()), length, "{answer:?}");
        }
    }
}
