//! As little of an HTTP client as the management API needs.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server that needs longer has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// One connection that is kept, one request at a time.
pub(crate) struct Client {
    server: SocketAddr,
    stream: Option<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn to(server: SocketAddr) -> Self {
        Self { server, stream: None }
    }

    pub(crate) async fn request(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(method, path, body)).await;
        asked
            .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer in {ANSWER_TIMEOUT:?}")))
            .with_context(|| format!("{method} {path}"))
    }

    async fn exchange(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.server).await?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        let (host, length) = (self.server, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut received = Vec::new();
        let answer = loop {
            anyhow::ensure!(stream.read_buf(&mut received).await? > 0, "the server closed the connection");
            if let Some(answer) = parse(&received)? {
                break answer;
            }
        };
        self.stream = Some(stream);
        Ok(answer)
    }
}

/// `None`: it is not complete.
fn parse(received: &[u8]) -> anyhow::Result<Option<Answer>> {
    let text = str::from_utf8(received).context("an answer that is not text")?;
    let Some((headers, body)) = text.split_once("\r\n\r\n") else {
        return Ok(None);
    };
    let header = |name: &str| {
        let lines = headers.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    };
    let length: usize = header("content-length").context("an answer without a length")?.parse()?;
    let status = headers.split_ascii_whitespace().nth(1).context("an answer without a status")?.parse()?;
    Ok((body.len() >= length).then(|| Answer { status, body: body.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_end() {
        let whole = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
        let answer = parse(whole.as_bytes()).unwrap().expect("complete");
        assert_eq!((answer.status, answer.body.as_str()), (404, "{}"));
        for cut in [5, whole.len() - 1] {
            assert!(parse(&whole.as_bytes()[..cut]).unwrap().is_none(), "{cut}");
        }
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
