//! `runs/events`: streams events of runs as server-sent events, from now on or after a given event.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use endmark_runs::RunEventReport;
use endmark_store::{Store, StoredRunEvent};
use http::Response;
use http_body_util::BodyExt as _;
use http_body_util::channel::{Channel, Sender};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::answer::{ConsoleBody, ConsoleError, body_response};
use crate::console::{Console, ConsoleRequest};
use crate::query::Query;

/// Maximum clients that follow events at the same time.
pub(crate) const MAX_FOLLOWERS: usize = 32;
/// How often the store is polled. Other processes also write runs, so notifications within this process would
/// not report all of them.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Longest silence before a heartbeat, and so before a lost client is detected.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum duration of a response. The client then reconnects with the number of its last event, so it misses
/// no event.
const MAX_RESPONSE_DURATION: Duration = Duration::from_mins(5);
/// Maximum events that one read of the store returns.
const MAX_EVENTS_PER_READ: u32 = 500;
/// The first line of a response, which sets the client's reconnection delay in milliseconds.
const RETRY_PREAMBLE: &str = "retry: 1000\n\n";

type EventSender = Sender<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// The stream of one client: the followed run, if it follows only one, and the last event that was sent.
struct RunEventStream {
    store: Store,
    is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
    run: Option<String>,
    last_sent: i64,
    _place: OwnedSemaphorePermit,
}

/// Answers `runs/events?run=&after=` with the events after the given number. `Last-Event-ID` overrides `after`.
/// Without either, only new events are sent.
pub(super) async fn follow(
    console: &Console,
    visit: &ConsoleRequest,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(visit.head.uri.query(), &["run", "after"])?;
    let last = visit.head.headers.get("last-event-id").map(|last| {
        let number = last.to_str().ok().and_then(|last| last.trim().parse().ok());
        number.ok_or_else(|| {
            ConsoleError::BadRequest("`Last-Event-ID` is not the number of an event".to_owned())
        })
    });
    let after = match last.transpose()? {
        Some(last) => Some(last),
        None => query.number("after")?,
    };
    let place = Arc::clone(&console.followers).try_acquire_owned();
    let place = place.map_err(|_| ConsoleError::TooManyFollowers(MAX_FOLLOWERS))?;
    let newest = match after {
        Some(after) => after,
        None => visit.store.read(endmark_store::Reader::newest_run_event).await?,
    };
    let following = RunEventStream {
        store: visit.store.clone(),
        is_stopping: Arc::clone(&visit.is_stopping),
        run: query.owned_text("run"),
        last_sent: newest,
        _place: place,
    };
    let (events, body) = Channel::new(8);
    tokio::spawn(following.send_until_closed(events));
    Ok(body_response("text/event-stream", body.boxed_unsync()))
}

impl RunEventStream {
    /// Sends events until the client disconnects, the gateway stops, the store fails or the response's lifetime ends.
    async fn send_until_closed(mut self, mut events: EventSender) {
        let until = Instant::now() + MAX_RESPONSE_DURATION;
        let mut last_sent = Instant::now();
        if events.send_data(RETRY_PREAMBLE.into()).await.is_err() {
            return;
        }
        while Instant::now() < until && !(self.is_stopping)() {
            let (run, newest) = (self.run.clone(), self.last_sent);
            let read =
                self.store.read(move |reader| reader.run_events(run.as_deref(), newest, MAX_EVENTS_PER_READ));
            let found = match read.await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "the events of runs cannot be read");
                    return;
                }
            };
            let is_full = found.len() >= MAX_EVENTS_PER_READ as usize;
            let mut text = String::new();
            for event in found {
                self.last_sent = event.id;
                text.push_str(&format_event(event));
            }
            if text.is_empty() && last_sent.elapsed() >= HEARTBEAT_INTERVAL {
                text.push_str(":\n\n");
            }
            if !text.is_empty() {
                last_sent = Instant::now();
                if events.send_data(text.into()).await.is_err() {
                    return;
                }
            }
            if !is_full {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }
}

/// Formats an event. Serialised JSON contains no line breaks, so a message cannot end the frame.
fn format_event(event: StoredRunEvent) -> String {
    let id = event.id;
    let data = serde_json::to_string(&RunEventReport::from(event)).unwrap_or_default();
    format!("id: {id}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cannot_end_its_event_frame() {
        let event = StoredRunEvent {
            id: 7,
            run_id: "run_1".to_owned(),
            occurred_at: "2026-11-24 10:00:00.000".to_owned(),
            name: "agent_run.started".to_owned(),
            attempt: 1,
            state: "running".to_owned(),
            reason: None,
            message: "a\n\nid: 9\r\ndata: {}".to_owned(),
        };
        let sent = format_event(event);
        assert_eq!(sent.lines().count(), 3, "{sent}");
        assert!(sent.starts_with("id: 7\ndata: {") && sent.ends_with("}\n\n"));
    }
}
