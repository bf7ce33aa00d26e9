//! The keeper itself: one thread that reads all pipes of a region.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{Signal, kill_process};

use super::files::Rooms;
use super::{Order, PACKET_BYTES_MAX, Report, Settings, Source};
use crate::members::ProcessId;
use crate::process::to_pid;

const READ_BYTES: usize = 64 << 10;
/// How often one pipe is read in a turn, so that a room that writes without end does not keep the others waiting.
const TURN_READS_MAX: usize = 4;
/// More than a pipe holds; what is written while it is read belongs to the next time.
const DRAIN_READS_MAX: usize = 32;
const EVENTS_MAX: usize = 256;
/// The keeper before has nothing to finish.
const PREDECESSOR_ENDS_WITHIN: Duration = Duration::from_secs(5);
const PREDECESSOR_POLL_EVERY: Duration = Duration::from_millis(5);
/// A full disk is mentioned so often.
const WARNING_EVERY: Duration = Duration::from_secs(60);

/// Schedulers come and go. Forgetting them costs another look at their directories.
const SCHEDULERS_MAX: usize = 10_000;

const MAESTRO: u64 = 0;

/// The whole life of a keeper, whose standard input is the connection to Maestro. For binaries to call that are started
/// with what [`crate::Options::log_keeper`] says, before they do anything else.
pub fn keep_logs() -> ExitCode {
    let kept = io::stdin().as_fd().try_clone_to_owned().and_then(|maestro| Keeper::begin(maestro)?.run());
    // Nobody reads what a keeper prints; its Maestro sees that it has ended.
    if kept.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Keeper {
    epoll: OwnedFd,
    /// `None`: it is gone, and nobody will bring more pipes.
    maestro: Option<OwnedFd>,
    settings: Settings,
    rooms: Rooms,
    streams: HashMap<u64, Stream>,
    next_token: u64,
    /// The most that the logs of each scheduler can take now, counted since its directory was last looked through.
    bytes: HashMap<String, u64>,
    buffer: Vec<u8>,
    warned_at: Option<Instant>,
    /// Held for as long as this keeper works.
    _lock: File,
}

struct Stream {
    source: Source,
    pipe: OwnedFd,
    inode: u64,
}

impl Keeper {
    fn begin(maestro: OwnedFd) -> io::Result<Self> {
        let settings = match receive(&maestro, RecvFlags::empty())? {
            Some((Order::Begin(settings), _)) => settings,
            _ => return Err(io::Error::other("it was not told what to do")),
        };
        let rooms = Rooms::open(&settings.rooms, settings.container_bytes)?;
        // Opened while the keeper before is still there: what is in a pipe is lost when nobody has it open.
        let pipes = rooms.pipes()?;
        let lock = take_over(&settings.lock)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &maestro, epoll::EventData::new_u64(MAESTRO), epoll::EventFlags::IN)?;
        let mut keeper = Self {
            epoll,
            maestro: Some(maestro),
            settings,
            rooms,
            streams: HashMap::new(),
            next_token: MAESTRO + 1,
            bytes: HashMap::new(),
            buffer: vec![0; READ_BYTES],
            warned_at: None,
            _lock: lock,
        };
        for (source, pipe) in pipes {
            keeper.add(source, pipe);
        }
        Ok(keeper)
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while self.maestro.is_some() || !self.streams.is_empty() {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    MAESTRO => self.obey(),
                    token => self.read(token, TURN_READS_MAX),
                }
            }
        }
        Ok(())
    }

    fn obey(&mut self) {
        let Some(maestro) = &self.maestro else { return };
        match receive(maestro, RecvFlags::DONTWAIT) {
            Ok(Some((Order::Keep(source), Some(pipe)))) => self.add(source, pipe),
            Ok(Some((Order::Drain { id, scheduler, room }, _))) => {
                self.drain(&scheduler, &room);
                self.report(&Report::Drained { id });
            }
            Ok(Some((Order::Begin(_) | Order::Keep(_), _))) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Maestro is gone, or speaks another language.
            Ok(None) | Err(_) => self.maestro = None,
        }
    }

    /// A pipe that was found by its name may be brought as well.
    fn add(&mut self, source: Source, pipe: OwnedFd) {
        let Ok(inode) = fstat(&pipe).map(|stat| stat.st_ino) else { return };
        if self.streams.values().any(|stream| stream.inode == inode && stream.source == source) {
            return;
        }
        let token = self.next_token;
        self.next_token += 1;
        let data = epoll::EventData::new_u64(token);
        if let Err(error) = epoll::add(&self.epoll, &pipe, data, epoll::EventFlags::IN) {
            self.warn(&format!("the output of room {} cannot be read: {error}", source.room));
            return;
        }
        self.streams.insert(token, Stream { source, pipe, inode });
        // One that nobody has open any more would never be heard of.
        self.read(token, 1);
    }

    fn drain(&mut self, scheduler: &str, room: &str) {
        let is_of_room = |stream: &Stream| stream.source.room == room && stream.source.scheduler == scheduler;
        let tokens: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| is_of_room(stream)).map(|(token, _)| *token).collect();
        for token in tokens {
            self.read(token, DRAIN_READS_MAX);
        }
    }

    fn read(&mut self, token: u64, reads_max: usize) {
        for _ in 0..reads_max {
            let Some(stream) = self.streams.get(&token) else { return };
            match rustix::io::read(&stream.pipe, &mut self.buffer[..]) {
                Ok(length @ 1..) => {
                    let source = stream.source.clone();
                    self.keep(&source, length);
                }
                Err(Errno::AGAIN | Errno::INTR) => return,
                // Nobody has it open any more.
                Ok(0) | Err(_) => {
                    self.streams.remove(&token);
                    return;
                }
            }
        }
    }

    /// What cannot be written is lost: the room must not wait for a disk that is full.
    fn keep(&mut self, source: &Source, length: usize) {
        match self.rooms.append(source, &self.buffer[..length]) {
            Ok(()) => {}
            // The room was forgotten, and something of it still writes.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                self.warn(&format!("the output of room {} is lost: {error}", source.room));
                return;
            }
        }
        let limit = self.settings.scheduler_bytes;
        let bytes = self.bytes.get(&source.scheduler).map(|bytes| bytes + length as u64);
        // Unknown at first.
        let bytes = match bytes {
            Some(bytes) if bytes <= limit => bytes,
            Some(_) | None => match self.rooms.hold_within(&source.scheduler, limit, &self.live(source)) {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.warn(&format!(
                        "the logs of scheduler {} cannot be bounded: {error}",
                        source.scheduler
                    ));
                    limit
                }
            },
        };
        if self.bytes.len() >= SCHEDULERS_MAX {
            self.bytes.clear();
        }
        self.bytes.insert(source.scheduler.clone(), bytes);
    }

    fn live(&self, source: &Source) -> HashSet<String> {
        let of_scheduler = self.streams.values().filter(|stream| stream.source.scheduler == source.scheduler);
        of_scheduler.map(|stream| stream.source.room.clone()).collect()
    }

    fn warn(&mut self, text: &str) {
        if self.warned_at.is_some_and(|at| at.elapsed() < WARNING_EVERY) {
            return;
        }
        self.warned_at = Some(Instant::now());
        self.report(&Report::Warning { text: text.to_owned() });
    }

    /// Never waits: a Maestro that does not listen must not keep rooms from writing.
    fn report(&self, report: &Report) {
        if let (Some(maestro), Ok(packet)) = (&self.maestro, serde_json::to_vec(report)) {
            let _ = send(maestro, &packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

/// `None`: the other side is gone.
fn receive(socket: &OwnedFd, flags: RecvFlags) -> io::Result<Option<(Order, Option<OwnedFd>)>> {
    let mut packet = [0; PACKET_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut slices = [IoSliceMut::new(&mut packet)];
        match recvmsg(socket, &mut slices, &mut control, flags | RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => break received.bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    if length == 0 {
        return Ok(None);
    }
    let brought = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(Some((serde_json::from_slice(&packet[..length])?, brought)))
}

/// Only one keeper works in a directory. One that is there belongs to a Maestro that is gone: it is ended, and since it
/// knows nothing that is not in the directory, at once. What it has read and not written yet is lost.
fn take_over(path: &Path) -> io::Result<File> {
    let mut file = File::from(rustix::fs::open(
        path,
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    )?);
    let deadline = Instant::now() + PREDECESSOR_ENDS_WITHIN;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                end_predecessor(&mut file)?;
                std::thread::sleep(PREDECESSOR_POLL_EVERY);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let me = ProcessId::of(std::process::id())?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(&me)?)?;
    Ok(file)
}

fn end_predecessor(file: &mut File) -> io::Result<()> {
    let mut text = String::new();
    file.rewind()?;
    file.take(1024).read_to_string(&mut text)?;
    // One that has the lock and has not written yet: look again.
    let Ok(predecessor) = serde_json::from_str::<ProcessId>(&text) else { return Ok(()) };
    let running = to_pid(predecessor.pid).filter(|_| predecessor.is_running());
    match running.map(|pid| kill_process(pid, Signal::KILL)) {
        None | Some(Ok(()) | Err(Errno::SRCH)) => Ok(()),
        Some(Err(error)) => Err(error.into()),
    }
}
