//! Maestro's side of the log keeper.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    recv, sendmsg, socketpair,
};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Order, PACKET_BYTES_MAX, Report, Settings, Source};
use crate::blocking::BlockingWork;
use crate::members::ProcessId;
use crate::process::Process;
use crate::room::{back_off, lock};

/// A keeper answers within a moment; one that is stuck must not hold up the news of a room's end.
const DRAINED_WITHIN: Duration = Duration::from_secs(1);
/// A keeper that has more unread than a socket holds is stuck.
const NO_WAIT: SendFlags = SendFlags::DONTWAIT;
/// A keeper that ends at once is started ever more slowly.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
const RUN_THAT_COUNTS: Duration = Duration::from_secs(10);

/// The log keeper of a region, started when the first room needs it and again whenever it ends.
pub(crate) struct LogKeeper {
    command: Vec<OsString>,
    settings: Settings,
    blocking: BlockingWork,
    /// Taken while a keeper is started, so that there is only one.
    starting: tokio::sync::Mutex<()>,
    connection: Mutex<Option<Arc<Connection>>>,
    next_id: AtomicU64,
    /// Keepers that ended in a row, without a run that counts in between.
    failures: AtomicU32,
    closed: CancellationToken,
}

struct Connection {
    socket: UnixStream,
    drains: Mutex<HashMap<u64, oneshot::Sender<()>>>,
}

impl LogKeeper {
    pub(crate) fn new(
        command: Vec<OsString>,
        settings: Settings,
        blocking: BlockingWork,
        closed: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            command,
            settings,
            blocking,
            starting: tokio::sync::Mutex::default(),
            connection: Mutex::default(),
            next_id: AtomicU64::new(0),
            failures: AtomicU32::new(0),
            closed,
        })
    }

    /// From now on there is a keeper, which reads the pipes that are there.
    pub(crate) async fn ensure_running(self: &Arc<Self>) -> io::Result<()> {
        let _starting = self.starting.lock().await;
        if self.current().is_some() || self.closed.is_cancelled() {
            return Ok(());
        }
        let (command, settings) = (self.command.clone(), self.settings.clone());
        let (socket, keeper) = self.blocking.run(move || spawn(&command, settings)).await?;
        let socket = StdUnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let connection =
            Arc::new(Connection { socket: UnixStream::from_std(socket)?, drains: Mutex::default() });
        *lock(&self.connection) = Some(Arc::clone(&connection));
        let closed = self.closed.clone();
        let supervision = Arc::clone(self).supervise(connection, keeper);
        tokio::spawn(closed.run_until_cancelled_owned(supervision));
        Ok(())
    }

    /// Hands over what a container writes. If it cannot be handed over, the next keeper finds the pipe by its name.
    pub(crate) fn keep(&self, source: Source, reader: &OwnedFd) {
        let Some(connection) = self.current() else { return };
        if let Err(error) = send(&connection.socket, &Order::Keep(source), Some(reader), NO_WAIT) {
            tracing::warn!(%error, "the log keeper does not listen");
            self.give_up(&connection);
        }
    }

    /// Returns when everything that the room has written is in its log, or a keeper that is there does not say so in time.
    pub(crate) async fn drain(&self, scheduler: &SchedulerName, room: &RoomId) {
        let Some(connection) = self.current() else { return };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        lock(&connection.drains).insert(id, answer);
        let order =
            Order::Drain { id, scheduler: scheduler.as_str().to_owned(), room: room.as_str().to_owned() };
        match send(&connection.socket, &order, None, NO_WAIT) {
            Ok(()) => drop(timeout(DRAINED_WITHIN, answered).await),
            Err(_) => self.give_up(&connection),
        }
        lock(&connection.drains).remove(&id);
    }

    /// The keeper goes on alone for as long as rooms write.
    pub(crate) fn close(&self) {
        lock(&self.connection).take();
    }

    fn current(&self) -> Option<Arc<Connection>> {
        lock(&self.connection).clone()
    }

    fn give_up(&self, connection: &Arc<Connection>) {
        let mut current = lock(&self.connection);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            current.take();
        }
        // Its supervision ends it and starts another.
        let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Both);
    }

    /// Boxed, because it starts the next one, which is supervised in the same way.
    fn supervise(self: Arc<Self>, connection: Arc<Connection>, keeper: Process) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let started = Instant::now();
            tokio::select! {
                biased;
                () = keeper.ended() => {}
                () = connection.listen() => {}
            }
            self.give_up(&connection);
            keeper.signal_group(Signal::KILL);
            keeper.ended().await;
            let exit = keeper.bury().await;
            tracing::warn!(?exit, "the log keeper ended; starting another");
            if started.elapsed() >= RUN_THAT_COUNTS {
                self.failures.store(0, Ordering::Relaxed);
            }
            loop {
                let failures = self.failures.fetch_add(1, Ordering::Relaxed);
                sleep(back_off(failures, BACK_OFF_MIN, BACK_OFF_MAX)).await;
                match self.ensure_running().await {
                    Ok(()) => return,
                    Err(error) => tracing::error!(%error, "the log keeper cannot be started"),
                }
            }
        })
    }
}

impl Connection {
    /// Returns when the other side is gone.
    async fn listen(&self) {
        let mut packet = [0; PACKET_BYTES_MAX];
        loop {
            if self.socket.readable().await.is_err() {
                return;
            }
            let received = self.socket.try_io(Interest::READABLE, || {
                Ok(recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT)?.0)
            });
            let length = match received {
                Ok(0) => return,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return,
            };
            match serde_json::from_slice(&packet[..length]) {
                Ok(Report::Drained { id }) => {
                    if let Some(answer) = lock(&self.drains).remove(&id) {
                        let _ = answer.send(());
                    }
                }
                Ok(Report::Warning { text }) => tracing::warn!("{text}"),
                Err(error) => {
                    tracing::warn!(%error, "the log keeper says something that cannot be understood");
                }
            }
        }
    }
}

fn send(socket: impl AsFd, order: &Order, brought: Option<&OwnedFd>, flags: SendFlags) -> io::Result<()> {
    let packet = serde_json::to_vec(order)?;
    let descriptors: Vec<_> = brought.iter().map(|descriptor| descriptor.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("a descriptor does not fit into its packet"));
    }
    sendmsg(socket, &[IoSlice::new(&packet)], &mut control, flags | SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Blocking. Must be called within a tokio runtime.
fn spawn(command: &[OsString], settings: Settings) -> io::Result<(OwnedFd, Process)> {
    let [program, arguments @ ..] = command else {
        return Err(io::Error::other("there is no command for it"));
    };
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // Nobody reads what it prints: holding our own output open would keep those waiting who read ours to its end.
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let process = Process::open(ProcessId::of(child.id())?)?
        .ok_or_else(|| io::Error::other("somebody else reaps our children"))?;
    send(&ours, &Order::Begin(settings), None, SendFlags::empty())?;
    Ok((ours, process))
}
