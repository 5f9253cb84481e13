//! Shares the state of one connection with other parts of the listener.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use endmark_wire::http1::Fault;
use tokio::sync::Notify;

/// Maximum bytes of a reply that wait in the HTTP library for a slow client. Without this limit, the library
/// would fill its buffer, which is large enough for the largest head. The gateway keeps a copy of all
/// accepted bytes for recovery.
const UNWRITTEN_LIMIT_BYTES: usize = 2 * 1024;

/// The current activity of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// The connection is idle: no byte of the next request has arrived.
    Idle,
    /// The client sends the head of a request.
    SendsHead,
    /// The client sends the body of a request.
    SendsBody,
    /// The client waits for the reply, or reads it.
    WaitsForReply,
    /// The client does not read its reply.
    NotReading,
}

impl Activity {
    const ALL: [Self; 5] =
        [Self::Idle, Self::SendsHead, Self::SendsBody, Self::WaitsForReply, Self::NotReading];

    fn number(self) -> u8 {
        Self::ALL.iter().position(|doing| *doing == self).map_or(0, |at| u8::try_from(at).unwrap_or(0))
    }

    fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Idle)
    }
}

/// The shared state of one connection.
pub(super) struct ConnectionState {
    opened_at: Instant,
    activity: AtomicU8,
    /// When the current activity began, in milliseconds after `opened_at`.
    activity_since_ms: AtomicU64,
    /// Whether a request is in progress: the head was forwarded, and the reply is not complete.
    has_request: AtomicBool,
    must_close: AtomicBool,
    /// Whether only the end of the connection marks the end of the current reply, as in HTTP/1.0.
    ends_by_closing: AtomicBool,
    pub(super) closing: Notify,
    /// Number of bytes that the HTTP library has accepted but not written. It is approximate, because the library
    /// adds framing.
    unwritten: AtomicUsize,
    wakers: Mutex<Wakers>,
}

/// The tasks that wait for a change, and the fault of the current body.
#[derive(Default)]
struct Wakers {
    body_fault: Option<Fault>,
    /// Wakes the reader of a body when a fault is found in the body.
    body: Option<Waker>,
    /// Wakes the reader of the next request when the current request ends.
    next: Option<Waker>,
    /// Wakes the producer of the reply when its output is written.
    reply: Option<Waker>,
}

impl ConnectionState {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened_at: Instant::now(),
            activity: AtomicU8::new(Activity::Idle.number()),
            activity_since_ms: AtomicU64::new(0),
            has_request: AtomicBool::new(false),
            must_close: AtomicBool::new(false),
            ends_by_closing: AtomicBool::new(false),
            closing: Notify::new(),
            unwritten: AtomicUsize::new(0),
            wakers: Mutex::default(),
        })
    }

    /// Returns the current activity and its duration.
    pub(super) fn activity(&self) -> (Activity, Duration) {
        let since = Duration::from_millis(self.activity_since_ms.load(Ordering::Relaxed));
        let doing = Activity::from_number(self.activity.load(Ordering::Relaxed));
        (doing, self.opened_at.elapsed().saturating_sub(since))
    }

    /// Sets the current activity. Setting the same activity again does not restart its duration.
    pub(super) fn set_activity(&self, doing: Activity) {
        if self.activity.swap(doing.number(), Ordering::Relaxed) != doing.number() {
            let now = u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.activity_since_ms.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn is_in_progress(&self) -> bool {
        self.has_request.load(Ordering::Acquire)
    }

    /// Records that the head of a request was forwarded.
    pub(super) fn set_in_progress(&self) {
        self.has_request.store(true, Ordering::Release);
    }

    /// Returns a guard. Dropping it ends the request, with or without a reply.
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestInProgress {
        RequestInProgress(Arc::clone(self))
    }

    /// Asks the connection to close, to make room for another.
    pub(super) fn ask_to_close(&self) {
        self.must_close.store(true, Ordering::Release);
        self.closing.notify_one();
    }

    pub(super) fn must_close(&self) -> bool {
        self.must_close.load(Ordering::Acquire)
    }

    pub(super) fn ends_by_closing(&self) -> bool {
        self.ends_by_closing.load(Ordering::Acquire)
    }

    /// Sets whether the end of the reply is the end of the connection.
    pub(super) fn set_ends_by_closing(&self, ends: bool) {
        self.ends_by_closing.store(ends, Ordering::Release);
    }

    /// Records that the rest of the client's body cannot be read.
    pub(super) fn note_body_failure(&self, fault: Fault) {
        let mut wakers = self.wakers();
        wakers.body_fault = Some(fault);
        if let Some(reader) = wakers.body.take() {
            reader.wake();
        }
    }

    /// Whether a request is in progress. If so, the end of the request wakes `reader`.
    pub(super) fn waits_for_reply(&self, reader: &Waker) -> bool {
        let mut wakers = self.wakers();
        let waits = self.is_in_progress();
        if waits && !wakers.next.as_ref().is_some_and(|known| known.will_wake(reader)) {
            wakers.next = Some(reader.clone());
        }
        waits
    }

    /// Records that the HTTP library accepted bytes of the reply.
    pub(super) fn note_accepted(&self, bytes: usize) {
        self.unwritten.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Whether the HTTP library may accept more of the reply. If not, the producer is woken when it may.
    pub(super) fn has_room(&self, producer: &Waker) -> bool {
        if self.unwritten.load(Ordering::Acquire) < UNWRITTEN_LIMIT_BYTES {
            return true;
        }
        self.wakers().reply = Some(producer.clone());
        // Check again, because the bytes may have been written in the meantime.
        self.unwritten.load(Ordering::Acquire) < UNWRITTEN_LIMIT_BYTES
    }

    /// Records that the HTTP library has written bytes to the client.
    pub(super) fn note_written(&self, bytes: usize) {
        let rest = |unwritten: usize| Some(unwritten.saturating_sub(bytes));
        let before =
            self.unwritten.fetch_update(Ordering::AcqRel, Ordering::Acquire, rest).unwrap_or_default();
        self.wake_producer(before);
    }

    /// Records that the HTTP library has written everything.
    pub(super) fn note_all_written(&self) {
        let before = self.unwritten.swap(0, Ordering::AcqRel);
        self.wake_producer(before);
    }

    /// Wakes the producer when room becomes available.
    fn wake_producer(&self, before: usize) {
        if before >= UNWRITTEN_LIMIT_BYTES
            && self.unwritten.load(Ordering::Acquire) < UNWRITTEN_LIMIT_BYTES
            && let Some(maker) = self.wakers().reply.take()
        {
            maker.wake();
        }
    }

    fn wakers(&self) -> MutexGuard<'_, Wakers> {
        // The state is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the fault that prevents the rest of the body from being read. If there is no fault yet, a
    /// later one wakes `reader`.
    pub(super) fn body_fault(&self, reader: &Waker) -> Option<Fault> {
        let mut wakers = self.wakers();
        let is_known = wakers.body.as_ref().is_some_and(|known| known.will_wake(reader));
        if wakers.body_fault.is_none() && !is_known {
            wakers.body = Some(reader.clone());
        }
        wakers.body_fault.clone()
    }
}

/// Marks a request as in progress until it is dropped.
pub(super) struct RequestInProgress(Arc<ConnectionState>);

impl RequestInProgress {
    /// Returns the state of the request's connection.
    pub(super) fn connection_state(&self) -> &ConnectionState {
        &self.0
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let mut wakers = self.0.wakers();
        self.0.has_request.store(false, Ordering::Release);
        if let Some(reader) = wakers.next.take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_activity_can_be_stored_and_read() {
        let presence = ConnectionState::new();
        for doing in Activity::ALL {
            presence.set_activity(doing);
            assert_eq!(presence.activity().0, doing);
        }
    }

    #[test]
    fn a_reply_waits_until_the_client_has_read() {
        let presence = ConnectionState::new();
        let wakes = Arc::new(WakeCounter::default());
        let maker = Waker::from(Arc::clone(&wakes));
        assert!(presence.has_room(&maker));
        presence.note_accepted(UNWRITTEN_LIMIT_BYTES + 10);
        assert!(!presence.has_room(&maker));
        presence.note_written(10);
        assert_eq!((wakes.0.load(Ordering::Relaxed), presence.has_room(&maker)), (0, false));
        presence.note_written(1);
        assert_eq!((wakes.0.load(Ordering::Relaxed), presence.has_room(&maker)), (1, true));
        presence.note_accepted(2 * UNWRITTEN_LIMIT_BYTES);
        assert!(!presence.has_room(&maker));
        presence.note_all_written();
        assert_eq!((wakes.0.load(Ordering::Relaxed), presence.has_room(&maker)), (2, true));
    }

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl std::task::Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}
