//! Where players come in: one socket that listens, and the connections it has accepted, served by one thread.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// One more pushes out the oldest: players that forget to hang up do not lock others out.
const CONNECTIONS_MAX: usize = 32;

const LINE_BYTES_MAX: usize = 128;

pub(crate) struct Lobby {
    listener: TcpListener,
    connections: Vec<Connection>,
    woken: UnixStream,
    waker: UnixStream,
}

struct Connection {
    stream: TcpStream,
    /// What has come of the next line.
    partial: Vec<u8>,
}

/// Ends a wait from another thread.
pub(crate) struct Waker(UnixStream);

impl Waker {
    pub(crate) fn wake(mut self) {
        // Fails only if the lobby is gone, and then nobody waits.
        let _ = self.0.write_all(&[0]);
    }
}

impl Lobby {
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let (waker, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        Ok(Self { listener, connections: Vec::new(), woken, waker })
    }

    pub(crate) fn waker(&self) -> io::Result<Waker> {
        self.waker.try_clone().map(Waker)
    }

    /// Sleeps until something happens or the time is up, then answers every whole line that has come.
    pub(crate) fn serve(
        &mut self,
        timeout: Option<Duration>,
        mut answer: impl FnMut(&str) -> String,
    ) -> io::Result<()> {
        self.wait(timeout)?;
        // Nothing to read unless a waker wrote; that it did is all it says.
        let _ = (&self.woken).read(&mut [0; 8]);
        self.accept()?;
        self.connections.retain_mut(|connection| connection.serve(&mut answer).is_ok());
        Ok(())
    }

    fn wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        let streams =
            self.connections.iter().map(|connection| PollFd::new(&connection.stream, PollFlags::IN));
        let mut awaited: Vec<PollFd<'_>> = streams
            .chain([PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)])
            .collect();
        // What does not fit is far enough in the future to be none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut awaited, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    if self.connections.len() == CONNECTIONS_MAX {
                        self.connections.remove(0);
                    }
                    self.connections.push(Connection { stream, partial: Vec::new() });
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(()),
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

impl Connection {
    /// An error is the end of the connection.
    fn serve(&mut self, answer: &mut impl FnMut(&str) -> String) -> io::Result<()> {
        let mut bytes = [0; LINE_BYTES_MAX];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(number) => self.partial.extend_from_slice(&bytes[..number]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                let reply = answer(String::from_utf8_lossy(&line).trim_end());
                // Fails when the buffer is full: a player who reads no answers is hung up on.
                self.stream.write_all(format!("{reply}\n").as_bytes())?;
            }
            if self.partial.len() > LINE_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
        }
    }
}
