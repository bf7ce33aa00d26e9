//! Writes log lines in a thread of its own, so that a log that cannot be written stops nobody: its reader gone, its
//! pipe full, its disk full. Whoever logs only puts a line in a bounded queue. What cannot be written is dropped and
//! counted, and the log says how much is missing as soon as it can be written again.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Lines that wait to be written: a burst of a busy server, and a reader that pauses for a moment.
const LINES_MAX: usize = 16 * 1024;
/// Bytes of all lines that wait, so that long lines do not use up the memory.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a flush looks whether there is space in a full queue.
const FLUSH_RETRY: Duration = Duration::from_millis(5);

/// The queue and its thread. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Queue>);

struct Queue {
    messages: SyncSender<Message>,
    waiting_bytes: AtomicUsize,
    dropped: Counter,
    /// Dropped lines that the log does not mention yet.
    unmentioned: AtomicU64,
}

enum Message {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// How a gap in the log is told.
pub(super) type DescribeGap = fn(lines: u64) -> String;

impl LogWriter {
    pub(super) fn start(sink: impl Write + Send + 'static, describe_gap: DescribeGap) -> io::Result<Self> {
        let (messages, waiting) = mpsc::sync_channel(LINES_MAX);
        let queue = Arc::new(Queue {
            messages,
            waiting_bytes: AtomicUsize::new(0),
            dropped: Counter::default(),
            unmentioned: AtomicU64::new(0),
        });
        let mut output = Output { queue: Arc::clone(&queue), sink, describe_gap, is_torn: false };
        let write = move || output.write_all_of(&waiting);
        // Not joined: it may hang in a write forever, and ends with the process.
        thread::Builder::new().name("log-writer".into()).spawn(write)?;
        Ok(Self(queue))
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "maestro_log_lines_dropped",
            "Lines of the log that could not be written",
            self.0.dropped.clone(),
        );
    }

    /// Waits until what was logged so far is written, but not for longer than this.
    pub(super) fn flush(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let (answer, written) = mpsc::sync_channel(1);
        let mut message = Message::Flush(answer);
        while let Err(TrySendError::Full(unsent)) = self.0.messages.try_send(message) {
            if Instant::now() >= deadline {
                return;
            }
            message = unsent;
            thread::sleep(FLUSH_RETRY);
        }
        // An error means that it takes too long, or that nobody writes any more: then there is nothing to wait for.
        let _ = written.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

impl Queue {
    fn push(&self, line: &[u8]) {
        let waiting = self.waiting_bytes.fetch_add(line.len(), Ordering::Relaxed);
        let is_queued = waiting < BYTES_MAX && self.messages.try_send(Message::Line(line.to_vec())).is_ok();
        if !is_queued {
            self.waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            self.drop_line();
        }
    }

    fn drop_line(&self) {
        self.dropped.inc();
        self.unmentioned.fetch_add(1, Ordering::Relaxed);
    }
}

/// One line per call: the formatter writes each event as a whole. Never fails: there is nobody to tell.
impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread's side.
struct Output<W> {
    queue: Arc<Queue>,
    sink: W,
    describe_gap: DescribeGap,
    /// The last line was written in part.
    is_torn: bool,
}

impl<W: Write> Output<W> {
    fn write_all_of(&mut self, waiting: &Receiver<Message>) {
        while let Ok(message) = waiting.recv() {
            match message {
                Message::Line(line) => {
                    self.queue.waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
                    self.mention_gap();
                    if self.write(&line).is_err() {
                        self.queue.drop_line();
                    }
                }
                Message::Flush(answer) => {
                    self.mention_gap();
                    // Nobody waits any more.
                    let _ = answer.send(());
                }
            }
        }
    }

    /// Says how many lines are missing here, if that can be written.
    fn mention_gap(&mut self) {
        let lines = self.queue.unmentioned.load(Ordering::Relaxed);
        if lines == 0 {
            return;
        }
        let line = (self.describe_gap)(lines);
        if self.write(line.as_bytes()).is_ok() {
            self.queue.unmentioned.fetch_sub(lines, Ordering::Relaxed);
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.sink.write_all(b"\n")?;
            self.is_torn = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.sink.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.is_torn = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A standard stream, without the lock and the buffer of the standard library's: nobody else may wait for it.
pub(super) struct Stream<F>(pub(super) F);

impl<F: AsFd> Write for Stream<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.0, bytes) {
                // Whoever has the other end may have made it so.
                Err(Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// What became of a line.
    #[derive(Default)]
    struct Disk {
        written: Mutex<Vec<u8>>,
        state: Mutex<State>,
        changed: Condvar,
    }

    #[derive(Default, Clone, Copy, PartialEq)]
    enum State {
        #[default]
        Well,
        /// A write takes so many bytes and fails after that.
        FailsAfter(usize),
        Hangs,
    }

    struct Sink(Arc<Disk>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let state = self.0.state.lock().unwrap();
            let mut state = self.0.changed.wait_while(state, |state| *state == State::Hangs).unwrap();
            let taken = match &mut *state {
                State::Well | State::Hangs => bytes.len(),
                State::FailsAfter(0) => return Err(io::ErrorKind::StorageFull.into()),
                State::FailsAfter(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    taken
                }
            };
            self.0.written.lock().unwrap().extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Disk {
        fn set(&self, state: State) {
            *self.state.lock().unwrap() = state;
            self.changed.notify_all();
        }

        fn text(&self) -> String {
            String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
        }
    }

    fn start() -> (LogWriter, Arc<Disk>) {
        let disk = Arc::<Disk>::default();
        let writer = LogWriter::start(Sink(disk.clone()), |lines| format!("{lines} missing\n")).unwrap();
        (writer, disk)
    }

    fn log(writer: &LogWriter, line: &str) {
        writer.clone().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    #[test]
    fn what_could_not_be_written_is_counted_and_told_once_it_can_be() {
        let (writer, disk) = start();
        log(&writer, "one");
        writer.flush(PATIENCE);
        disk.set(State::FailsAfter(2));
        log(&writer, "two");
        log(&writer, "three");
        writer.flush(PATIENCE);
        assert_eq!(writer.0.dropped.get(), 2);
        disk.set(State::Well);
        log(&writer, "four");
        writer.flush(PATIENCE);
        assert_eq!(disk.text(), "one\ntw\n2 missing\nfour\n");
        log(&writer, "five");
        writer.flush(PATIENCE);
        assert!(disk.text().ends_with("four\nfive\n"), "{}", disk.text());
        assert_eq!(writer.0.dropped.get(), 2);
    }

    #[test]
    fn a_log_that_hangs_holds_up_nobody() {
        let (writer, disk) = start();
        disk.set(State::Hangs);
        let lines = LINES_MAX + 1000;
        for line in 0..lines {
            log(&writer, &line.to_string());
        }
        let dropped = writer.0.dropped.get();
        assert!((998..=1000).contains(&dropped), "{dropped} lines dropped");
        // Returns although nothing is written.
        writer.flush(Duration::from_millis(10));
        disk.set(State::Well);
        writer.flush(PATIENCE);
        let text = disk.text();
        // More than one gap, if the thread was late and met the first lines when the queue was full already.
        let gaps: Vec<u64> =
            text.lines().filter_map(|line| line.strip_suffix(" missing")?.parse().ok()).collect();
        assert_eq!(gaps.iter().sum::<u64>(), dropped, "the gap is not told: {gaps:?}");
        assert_eq!(text.lines().count(), lines - dropped as usize + gaps.len());
    }

    #[test]
    fn long_lines_are_bounded_by_their_bytes() {
        let (writer, disk) = start();
        disk.set(State::Hangs);
        let line = "x".repeat(BYTES_MAX / 4);
        for _ in 0..10 {
            log(&writer, &line);
        }
        let dropped = writer.0.dropped.get();
        assert!((4..=6).contains(&dropped), "{dropped} lines dropped");
        disk.set(State::Well);
        writer.flush(PATIENCE);
        log(&writer, "after");
        writer.flush(PATIENCE);
        assert!(disk.text().ends_with("after\n"));
    }
}
