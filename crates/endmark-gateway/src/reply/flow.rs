//! Where a continuation goes while it is still coming.

use std::time::Duration;

use tokio::time::Instant;

use super::client::{ClientGone, LiveSlot, Waiter};

/// The client of a reply under recovery.
pub(crate) enum Flow<'a> {
    /// Gets the reply when it is whole.
    Waiting,
    /// Gets the part when it is whole, and what says until then that the gateway is at work.
    Held(Waiter<'a>),
    /// Has what cannot be gone on with: nothing may be asked for it.
    Closed,
    /// Has read a part of it already, and reads on as soon as more is certain.
    Live(LiveSlot<'a>),
}

impl Flow<'_> {
    /// Bytes of this part that the client has.
    pub(crate) fn sent(&self) -> usize {
        match self {
            Self::Waiting | Self::Held(_) | Self::Closed => 0,
            Self::Live(slot) => slot.sent(),
        }
    }

    /// Hands on what follows the bytes that the client has.
    pub(crate) async fn extend(&mut self, text: &str) -> Result<(), ClientGone> {
        match self {
            Self::Waiting | Self::Held(_) | Self::Closed => Ok(()),
            Self::Live(slot) => slot.extend(text).await,
        }
    }

    /// A client that has nothing of a reply yet gets it under the id of this answer.
    pub(crate) fn answered_by(&mut self, id: Option<&str>) {
        if let (Self::Live(slot), Some(id)) = (self, id) {
            slot.writer.answered_by(id);
        }
    }

    /// Tells the client that its reply is still being worked on.
    pub(crate) async fn keep_alive(&mut self) -> Result<(), ClientGone> {
        match self {
            Self::Waiting | Self::Closed => Ok(()),
            Self::Held(waiter) => waiter.keep_alive().await,
            Self::Live(slot) => slot.keep_alive().await,
        }
    }

    /// Whether the reply can still be changed.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, Self::Closed)
    }

    /// Whether continuations are best read as streams.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}

/// When the client last heard anything: what is held back of an answer is nothing to it, however fast that comes.
pub(crate) struct Heard {
    heartbeat: Duration,
    sent: usize,
    at: Instant,
}

impl Heard {
    pub(crate) fn new(heartbeat: Duration) -> Self {
        Self { heartbeat, sent: 0, at: Instant::now() }
    }

    /// Tells the client that its reply is being worked on where it has heard nothing for a heartbeat.
    pub(crate) async fn or_alive(&mut self, flow: &mut Flow<'_>) -> Result<(), ClientGone> {
        if flow.sent() > self.sent {
            (self.sent, self.at) = (flow.sent(), Instant::now());
        } else if self.at.elapsed() >= self.heartbeat {
            self.at = Instant::now();
            flow.keep_alive().await?;
        }
        Ok(())
    }
}
