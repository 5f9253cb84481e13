//! A bounded queue of lines for a writer thread.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// Approximate size up to which queued lines are written in one system call.
const MAX_WRITE_BYTES: usize = 64 * 1024;

/// An entry of the queue.
enum Entry {
    Lines(Vec<u8>),
    /// A marker that is dropped when all earlier entries are written.
    Mark(Sender<()>),
}

/// A bounded queue in front of a writer that may block.
pub(super) struct Queue {
    sender: Sender<Entry>,
    room: usize,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    waiting_bytes: AtomicUsize,
    lost_pushes: AtomicU64,
}

impl Queue {
    /// Starts a thread that writes to `output`.
    ///
    /// At most `room` bytes may wait. After each write, `tell` receives the number of pushes lost since its last call,
    /// if any.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        room: usize,
        tell: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let run = move || write_all(output, &receiver, &shared, tell);
        thread::Builder::new().name("endmark-log".to_owned()).spawn(run)?;
        Ok(Self { sender, room, state })
    }

    /// Queues lines, or counts them as lost if there is no room.
    pub(super) fn push(&self, lines: Vec<u8>) {
        let length = lines.len();
        let fits = |waiting: usize| waiting.checked_add(length).filter(|waiting| *waiting <= self.room);
        let waiting = &self.state.waiting_bytes;
        let has_room = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if !has_room || self.sender.send(Entry::Lines(lines)).is_err() {
            self.state.lost_pushes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of pushes lost so far.
    pub(super) fn lost_pushes(&self) -> u64 {
        self.state.lost_pushes.load(Ordering::Relaxed)
    }

    /// Waits up to `patience` until everything pushed before is written.
    pub(super) fn flush(&self, patience: Duration) {
        let (mark, written) = mpsc::channel();
        if self.sender.send(Entry::Mark(mark)).is_ok() {
            // The dropped mark means that all is written. A timeout is ignored.
            let _ = written.recv_timeout(patience);
        }
    }
}

/// Writes entries until all senders are dropped.
fn write_all(mut output: impl Write, entries: &Receiver<Entry>, state: &State, tell: impl Fn(u64)) {
    let mut reported = 0;
    while let Ok(first) = entries.recv() {
        let mut lines = Vec::new();
        let mut marks = Vec::new();
        let mut next = Some(first);
        while let Some(entry) = next {
            match entry {
                Entry::Lines(more) => lines.extend_from_slice(&more),
                Entry::Mark(mark) => marks.push(mark),
            }
            next = if lines.len() < MAX_WRITE_BYTES { entries.try_recv().ok() } else { None };
        }
        // A write error cannot be reported here. Keep draining, so that the queue does not fill up.
        let _ = output.write_all(&lines).and_then(|()| output.flush());
        state.waiting_bytes.fetch_sub(lines.len(), Ordering::Relaxed);
        let lost = state.lost_pushes.load(Ordering::Relaxed);
        if lost > reported {
            tell(lost - reported);
            reported = lost;
        }
        drop(marks);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::SyncSender;

    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    /// A writer that waits for a token before each write.
    struct SlowWriter {
        tokens: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for SlowWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.tokens.recv().unwrap();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type LostReports = Arc<Mutex<Vec<u64>>>;

    fn start_slow_queue(room: usize) -> (Queue, SyncSender<()>, Arc<Mutex<Vec<u8>>>, LostReports) {
        let (sender, tokens) = mpsc::sync_channel(100);
        let written = Arc::default();
        let reported = LostReports::default();
        let heard = Arc::clone(&reported);
        let output = SlowWriter { tokens, written: Arc::clone(&written) };
        let queue = Queue::start(output, room, move |lost| heard.lock().unwrap().push(lost)).unwrap();
        (queue, sender, written, reported)
    }

    #[test]
    fn writers_never_wait_and_lost_lines_are_reported_once() {
        let (queue, tokens, written, reported) = start_slow_queue(10);
        for line in ["one\n", "two\n", "three\n", "4\n"] {
            queue.push(line.as_bytes().to_vec());
        }
        // The third line does not fit, because nothing has been written yet.
        assert_eq!((queue.lost_pushes(), written.lock().unwrap().as_slice()), (1, &b""[..]));
        for _ in 0..10 {
            tokens.send(()).unwrap();
        }
        queue.flush(TEST_TIMEOUT);
        assert_eq!(written.lock().unwrap().as_slice(), b"one\ntwo\n4\n");
        queue.push(b"five\n".to_vec());
        queue.flush(TEST_TIMEOUT);
        assert_eq!(reported.lock().unwrap().as_slice(), [1]);
        assert!(written.lock().unwrap().ends_with(b"4\nfive\n"));
    }

    #[test]
    fn shutdown_does_not_wait_for_a_stalled_reader() {
        let (queue, _tokens, written, _) = start_slow_queue(10);
        queue.push(b"one\n".to_vec());
        queue.flush(Duration::from_millis(10));
        assert!(written.lock().unwrap().is_empty());
    }
}
