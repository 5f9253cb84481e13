//! Tracks all connections, and selects the one to close for a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connection_state::{Activity, ConnectionState};

/// How long a connection with an incoming body is protected from being closed for another client. Most bodies
/// arrive in this time. Afterwards, the connection with the slowest body is closed first.
const MIN_BODY_TIME: Duration = Duration::from_secs(1);

/// How long a connection with a slow reader is protected from being closed for another client. A client that
/// reads a kilobyte per second shows activity within this time, despite the buffers of both systems.
const MIN_UNREAD_TIME: Duration = Duration::from_mins(1);

/// All connections of one listener.
#[derive(Default)]
pub(super) struct Connections(Mutex<OpenConnections>);

#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_number: HashMap<u64, Arc<ConnectionState>>,
}

/// The decision about a new connection.
pub(super) enum ConnectionAdmission {
    /// There is room, possibly because another connection was asked to close.
    Admitted(ConnectionSlot),
    /// All connections are busy.
    Refused,
}

impl Connections {
    /// Admits a new connection. If there is no room, it closes the least active connection: first idle ones, then
    /// those without a complete request. Among these, the one with the longest unchanged state is closed.
    pub(super) fn admit(self: &Arc<Self>, limit: usize) -> ConnectionAdmission {
        let mut all = self.lock();
        if all.by_number.len() >= limit {
            let least_active = all
                .by_number
                .values()
                .filter(|presence| !presence.must_close())
                .filter_map(|presence| Some((closing_order(presence.activity())?, presence)))
                .min_by_key(|(reluctance, _)| *reluctance);
            match least_active {
                Some((_, presence)) => presence.ask_to_close(),
                // Each connection that was already asked to close makes room for one other.
                None => return ConnectionAdmission::Refused,
            }
        }
        let number = all.next;
        all.next += 1;
        let presence = ConnectionState::new();
        all.by_number.insert(number, Arc::clone(&presence));
        drop(all);
        ConnectionAdmission::Admitted(ConnectionSlot {
            number,
            state: presence,
            connections: Arc::clone(self),
        })
    }

    /// Returns the number of connections with a request in progress or an unread reply.
    pub(super) fn busy_count(&self) -> usize {
        let is_busy = |presence: &ConnectionState| {
            presence.is_in_progress()
                || matches!(presence.activity().0, Activity::WaitsForReply | Activity::NotReading)
        };
        self.lock().by_number.values().filter(|presence| is_busy(presence)).count()
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        // The map is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the sort key by which connections are closed: first by activity, then by duration, longest first.
/// Returns `None` if the connection must not be closed.
fn closing_order((activity, duration): (Activity, Duration)) -> Option<(u8, std::cmp::Reverse<Duration>)> {
    let rank = match activity {
        Activity::Idle => 0,
        Activity::SendsHead => 1,
        Activity::NotReading if duration >= MIN_UNREAD_TIME => 2,
        Activity::SendsBody if duration >= MIN_BODY_TIME => 3,
        Activity::SendsBody | Activity::NotReading | Activity::WaitsForReply => return None,
    };
    Some((rank, std::cmp::Reverse(duration)))
}

/// The admission of one connection. Dropping it makes room for another.
pub(super) struct ConnectionSlot {
    number: u64,
    pub(super) state: Arc<ConnectionState>,
    connections: Arc<Connections>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted_slot(connections: &Arc<Connections>, limit: usize) -> Option<ConnectionSlot> {
        match connections.admit(limit) {
            ConnectionAdmission::Admitted(seat) => Some(seat),
            ConnectionAdmission::Refused => None,
        }
    }

    #[test]
    fn idle_connections_are_closed_before_busy_ones() {
        let connections = Arc::new(Connections::default());
        let seats: Vec<ConnectionSlot> = (0..3).map(|_| admitted_slot(&connections, 3).unwrap()).collect();
        seats[0].state.set_activity(Activity::SendsHead);
        seats[1].state.set_activity(Activity::WaitsForReply);
        let fourth = admitted_slot(&connections, 3).unwrap();
        fourth.state.set_activity(Activity::WaitsForReply);
        let close_requests = || seats.iter().map(|seat| seat.state.must_close()).collect::<Vec<_>>();
        assert_eq!(close_requests(), [false, false, true]);
        let fifth = admitted_slot(&connections, 3).unwrap();
        fifth.state.set_activity(Activity::WaitsForReply);
        assert_eq!(close_requests(), [true, false, true]);
        assert!(admitted_slot(&connections, 3).is_none());
        drop(seats);
        assert_eq!(connections.lock().by_number.len(), 2);
        assert!(admitted_slot(&connections, 3).is_some());
    }

    #[test]
    fn a_slow_connection_is_closed_only_after_a_grace_period() {
        let soon = Duration::from_millis(500);
        assert!(closing_order((Activity::SendsBody, soon)).is_none());
        assert!(closing_order((Activity::NotReading, soon)).is_none());
        assert!(closing_order((Activity::WaitsForReply, Duration::from_hours(1))).is_none());
        let long = Duration::from_mins(2);
        assert!(closing_order((Activity::NotReading, long)) < closing_order((Activity::SendsBody, long)));
        assert!(closing_order((Activity::SendsHead, long)) < closing_order((Activity::SendsHead, soon)));
    }
}
