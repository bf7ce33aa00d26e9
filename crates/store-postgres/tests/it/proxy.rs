//! A connection that breaks, or falls silent, at a chosen moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to the next connection that commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    None,
    /// The commit does not arrive.
    CutBefore,
    /// The commit arrives; its answer does not.
    CutAfter,
    /// Nothing arrives any more, and nobody is told: the process was stopped.
    Silence,
}

pub(crate) struct Proxy {
    port: u16,
    next: Arc<AtomicU8>,
}

/// How the message is written that commits.
const COMMIT: &[u8] = b"COMMIT\0";

impl Proxy {
    /// Before the server on this port of loopback.
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let next = Arc::new(AtomicU8::new(Fault::None as u8));
        let faults = next.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                tokio::spawn(pass_on(client, server, faults.clone()));
            }
        });
        Self { port, next }
    }

    /// The same database by way of this proxy.
    pub(crate) fn in_front_of(&self, url: &str, server: u16) -> String {
        url.replace(&format!(":{server}/"), &format!(":{}/", self.port))
    }

    /// Once.
    pub(crate) fn at_next_commit(&self, fault: Fault) {
        self.next.store(fault as u8, Ordering::SeqCst);
    }
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, next: Arc<AtomicU8>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            biased;
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let asked = &asked[..length];
                let commits = asked.windows(COMMIT.len()).any(|bytes| bytes == COMMIT);
                let fault = if commits { next.swap(Fault::None as u8, Ordering::SeqCst) } else { 0 };
                match fault {
                    fault if fault == Fault::CutBefore as u8 => return,
                    fault if fault == Fault::CutAfter as u8 => {
                        server.write_all(asked).await.unwrap();
                        // Whatever it says: it has done it by then.
                        let _ = server.read(&mut answered).await;
                        return;
                    }
                    fault if fault == Fault::Silence as u8 => return std::future::pending().await,
                    _ => server.write_all(asked).await.unwrap(),
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
