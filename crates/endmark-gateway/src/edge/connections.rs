//! Every connection there is, and which gives way to a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::presence::{Doing, Presence};

/// A body that comes is waited for so long even where others want its place: most have come by then, and of the others
/// the slowest goes first.
const BODY_AT_LEAST: Duration = Duration::from_secs(1);

/// A reader may be so slow even where others want its place: one that reads a kilobyte a second is heard of
/// within that time, through the buffers of both systems.
const UNREAD_AT_LEAST: Duration = Duration::from_mins(1);

/// The connections of one listener.
#[derive(Default)]
pub(super) struct Connections(Mutex<All>);

#[derive(Default)]
struct All {
    next: u64,
    by_number: HashMap<u64, Arc<Presence>>,
}

/// What a new connection finds.
pub(super) enum Place {
    /// There is room, perhaps since another one was asked to go.
    Free(Seat),
    /// All are busy.
    None,
}

impl Connections {
    /// A place for a new connection. Where all of them are taken the one that does the least gives way: those that
    /// do nothing first, then those that have not got as far as asking for something, each time the longest so.
    pub(super) fn enter(self: &Arc<Self>, limit: usize) -> Place {
        let mut all = self.lock();
        if all.by_number.len() >= limit {
            let gives_way = all
                .by_number
                .values()
                .filter(|presence| !presence.has_to_go())
                .filter_map(|presence| Some((reluctance(presence.doing())?, presence)))
                .min_by_key(|(reluctance, _)| *reluctance);
            match gives_way {
                Some((_, presence)) => presence.let_go(),
                // Those that were asked to go still have to: a place each is taken over.
                None => return Place::None,
            }
        }
        let number = all.next;
        all.next += 1;
        let presence = Presence::new();
        all.by_number.insert(number, Arc::clone(&presence));
        drop(all);
        Place::Free(Seat { number, presence, of: Arc::clone(self) })
    }

    /// How many have a request under way, or have not taken all of its reply.
    pub(super) fn busy(&self) -> usize {
        let is_busy = |presence: &Presence| {
            presence.is_under_way() || matches!(presence.doing().0, Doing::Waits | Doing::DoesNotRead)
        };
        self.lock().by_number.values().filter(|presence| is_busy(presence)).count()
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        // A map is whole after every operation, so a panic elsewhere cannot have spoilt it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How hard it is for a connection to give way: first what it does, then how short. None where it need not.
fn reluctance((doing, for_so_long): (Doing, Duration)) -> Option<(u8, std::cmp::Reverse<Duration>)> {
    let rank = match doing {
        Doing::Nothing => 0,
        Doing::SendsHead => 1,
        Doing::DoesNotRead if for_so_long >= UNREAD_AT_LEAST => 2,
        Doing::SendsBody if for_so_long >= BODY_AT_LEAST => 3,
        Doing::SendsBody | Doing::DoesNotRead | Doing::Waits => return None,
    };
    Some((rank, std::cmp::Reverse(for_so_long)))
}

/// The place of one connection, free again once this is dropped.
pub(super) struct Seat {
    number: u64,
    pub(super) presence: Arc<Presence>,
    of: Arc<Connections>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.of.lock().by_number.remove(&self.number);
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
    fn the_idle_give_way_before_the_busy_and_the_busy_never() {
        let connections = Arc::new(Connections::default());
        let seats: Vec<Seat> = (0..3).map(|_| seat(&connections, 3).unwrap()).collect();
        seats[0].presence.does(Doing::SendsHead);
        seats[1].presence.does(Doing::Waits);
        let fourth = seat(&connections, 3).unwrap();
        fourth.presence.does(Doing::Waits);
        let went = || seats.iter().map(|seat| seat.presence.has_to_go()).collect::<Vec<_>>();
        assert_eq!(went(), [false, false, true]);
        let fifth = seat(&connections, 3).unwrap();
        fifth.presence.does(Doing::Waits);
        assert_eq!(went(), [true, false, true]);
        assert!(seat(&connections, 3).is_none());
        drop(seats);
        assert_eq!(connections.lock().by_number.len(), 2);
        assert!(seat(&connections, 3).is_some());
    }

    #[test]
    fn a_slow_sender_or_reader_gives_way_only_after_a_while() {
        let soon = Duration::from_millis(500);
        assert!(reluctance((Doing::SendsBody, soon)).is_none());
        assert!(reluctance((Doing::DoesNotRead, soon)).is_none());
        assert!(reluctance((Doing::Waits, Duration::from_hours(1))).is_none());
        let long = Duration::from_mins(2);
        assert!(reluctance((Doing::DoesNotRead, long)) < reluctance((Doing::SendsBody, long)));
        assert!(reluctance((Doing::SendsHead, long)) < reluctance((Doing::SendsHead, soon)));
    }
}
