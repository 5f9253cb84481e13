//! Tracks all connections, and selects the one to close for a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::presence::{Activity, Presence};

/// How long an incoming body is protected from being closed for another client. Most bodies arrive in this time.
/// After it, the slowest body is closed first.
const BODY_AT_LEAST: Duration = Duration::from_secs(1);

/// How long a slow reader is protected from being closed for another client. A client that reads a kilobyte per
/// second shows activity within this time, despite the buffers of both systems.
const UNREAD_AT_LEAST: Duration = Duration::from_mins(1);

/// All connections of one listener.
#[derive(Default)]
pub(super) struct Connections(Mutex<All>);

#[derive(Default)]
struct All {
    next: u64,
    by_number: HashMap<u64, Arc<Presence>>,
}

/// Whether a new connection is admitted.
pub(super) enum Place {
    /// There is room, possibly because another connection was asked to close.
    Free(Seat),
    /// All connections are busy.
    None,
}

impl Connections {
    /// Admits a new connection. If there is no room, it closes the least active connection: first idle ones, then
    /// those without a complete request. Among these, the one with the longest unchanged state is closed.
    pub(super) fn enter(self: &Arc<Self>, limit: usize) -> Place {
        let mut all = self.lock();
        if all.by_number.len() >= limit {
            let gives_way = all
                .by_number
                .values()
                .filter(|presence| !presence.must_close())
                .filter_map(|presence| Some((reluctance(presence.activity())?, presence)))
                .min_by_key(|(reluctance, _)| *reluctance);
            match gives_way {
                Some((_, presence)) => presence.ask_to_close(),
                // Each connection that was already asked to close makes room for one other.
                None => return Place::None,
            }
        }
        let number = all.next;
        all.next += 1;
        let presence = Presence::new();
        all.by_number.insert(number, Arc::clone(&presence));
        drop(all);
        Place::Free(Seat { number, presence, connections: Arc::clone(self) })
    }

    /// Returns the number of connections with a request in progress or an unread reply.
    pub(super) fn busy(&self) -> usize {
        let is_busy = |presence: &Presence| {
            presence.is_in_progress()
                || matches!(presence.activity().0, Activity::Waits | Activity::NotReading)
        };
        self.lock().by_number.values().filter(|presence| is_busy(presence)).count()
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        // The map is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the order in which connections are closed: by activity, and longest duration first. Returns `None` if the
/// connection must not be closed.
fn reluctance((doing, for_so_long): (Activity, Duration)) -> Option<(u8, std::cmp::Reverse<Duration>)> {
    let rank = match doing {
        Activity::Idle => 0,
        Activity::SendsHead => 1,
        Activity::NotReading if for_so_long >= UNREAD_AT_LEAST => 2,
        Activity::SendsBody if for_so_long >= BODY_AT_LEAST => 3,
        Activity::SendsBody | Activity::NotReading | Activity::Waits => return None,
    };
    Some((rank, std::cmp::Reverse(for_so_long)))
}

/// The admission of one connection. Dropping it makes room for another.
pub(super) struct Seat {
    number: u64,
    pub(super) presence: Arc<Presence>,
    connections: Arc<Connections>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(connections: &Arc<Connections>, limit: usize) -> Option<Seat> {
        match connections.enter(limit) {
            Place::Free(seat) => Some(seat),
            Place::None => None,
        }
    }

    #[test]
    fn idle_connections_are_closed_before_busy_ones() {
        let connections = Arc::new(Connections::default());
        let seats: Vec<Seat> = (0..3).map(|_| seat(&connections, 3).unwrap()).collect();
        seats[0].presence.set_activity(Activity::SendsHead);
        seats[1].presence.set_activity(Activity::Waits);
        let fourth = seat(&connections, 3).unwrap();
        fourth.presence.set_activity(Activity::Waits);
        let went = || seats.iter().map(|seat| seat.presence.must_close()).collect::<Vec<_>>();
        assert_eq!(went(), [false, false, true]);
        let fifth = seat(&connections, 3).unwrap();
        fifth.presence.set_activity(Activity::Waits);
        assert_eq!(went(), [true, false, true]);
        assert!(seat(&connections, 3).is_none());
        drop(seats);
        assert_eq!(connections.lock().by_number.len(), 2);
        assert!(seat(&connections, 3).is_some());
    }

    #[test]
    fn a_slow_connection_is_closed_only_after_a_grace_period() {
        let soon = Duration::from_millis(500);
        assert!(reluctance((Activity::SendsBody, soon)).is_none());
        assert!(reluctance((Activity::NotReading, soon)).is_none());
        assert!(reluctance((Activity::Waits, Duration::from_hours(1))).is_none());
        let long = Duration::from_mins(2);
        assert!(reluctance((Activity::NotReading, long)) < reluctance((Activity::SendsBody, long)));
        assert!(reluctance((Activity::SendsHead, long)) < reluctance((Activity::SendsHead, soon)));
    }
}
