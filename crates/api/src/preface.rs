//! Which version of HTTP a connection speaks: HTTP/2 begins with words that no request of HTTP/1 begins with.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http1,
    Http2,
}

/// Reads until it is clear which version this is. What was read is read again from what is returned.
pub(crate) async fn detect<T: AsyncRead + Unpin>(mut stream: T) -> io::Result<(HttpVersion, Rewound<T>)> {
    let mut begun = [0; PREFACE.len()];
    let mut length = 0;
    while length < begun.len() && begun[..length] == PREFACE[..length] {
        let read = stream.read(&mut begun[length..]).await?;
        if read == 0 {
            break;
        }
        length += read;
    }
    let version = if begun == *PREFACE { HttpVersion::Http2 } else { HttpVersion::Http1 };
    Ok((version, Rewound { begun, given: 0, length, stream }))
}

/// A stream whose first bytes have been read, and are read again.
pub(crate) struct Rewound<T> {
    begun: [u8; PREFACE.len()],
    given: usize,
    length: usize,
    stream: T,
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewound<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.given < this.length && buffer.remaining() > 0 {
            let rest = &this.begun[this.given..this.length];
            let taken = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..taken]);
            this.given += taken;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewound<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Sent in pieces of this size.
    async fn check(sent: &[u8], piece: usize, expected: HttpVersion) {
        let (mut client, server) = tokio::io::duplex(1024);
        let whole = sent.to_vec();
        tokio::spawn(async move {
            for piece in whole.chunks(piece) {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let (version, mut rewound) = detect(server).await.unwrap();
        assert_eq!(version, expected, "{sent:?} by {piece}");
        let mut read = Vec::new();
        rewound.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, sent);
    }

    #[tokio::test]
    async fn by_how_a_connection_begins_and_nothing_is_lost() {
        let http2 = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0"].concat();
        for piece in [1, 7, 1000] {
            check(&http2, piece, HttpVersion::Http2).await;
            for http1 in
                ["", "P", "PUT /x HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/1.1\r\n\r\n"]
            {
                check(http1.as_bytes(), piece, HttpVersion::Http1).await;
            }
        }
    }
}
