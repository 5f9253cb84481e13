//! The destination of a continuation while it arrives.

use std::time::Duration;

use tokio::time::Instant;

use super::client::{ClientGone, LiveSlot, WaitingClient};

/// How the client gets a reply under recovery.
pub(crate) enum Flow<'a> {
    /// The client gets the reply when it is whole.
    Waiting,
    /// The client gets the part when it is whole, and heartbeats until then.
    Held(WaitingClient<'a>),
    /// The client has content that cannot be continued, so nothing may be requested.
    Closed,
    /// The client has already read a part of the reply, and gets more as soon as it is certain.
    Live(LiveSlot<'a>),
}

impl Flow<'_> {
    /// Returns how many bytes of this part the client has.
    pub(crate) fn sent_bytes(&self) -> usize {
        match self {
            Self::Waiting | Self::Held(_) | Self::Closed => 0,
            Self::Live(slot) => slot.sent_bytes(),
        }
    }

    /// Sends the bytes that the client does not have yet.
    pub(crate) async fn extend(&mut self, text: &str) -> Result<(), ClientGone> {
        match self {
            Self::Waiting | Self::Held(_) | Self::Closed => Ok(()),
            Self::Live(slot) => slot.extend(text).await,
        }
    }

    /// Sets the response id for a client that has no part of the reply yet.
    pub(crate) fn set_answer_id(&mut self, id: Option<&str>) {
        if let (Self::Live(slot), Some(id)) = (self, id) {
            slot.writer.set_response_id(id);
        }
    }

    /// Sends a heartbeat while the reply is still being recovered.
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

    /// Whether continuations should be streamed.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}

/// When the client last received data. Text that is held back does not count.
pub(crate) struct LastDelivery {
    heartbeat: Duration,
    sent_bytes: usize,
    at: Instant,
}

impl LastDelivery {
    pub(crate) fn new(heartbeat: Duration) -> Self {
        Self { heartbeat, sent_bytes: 0, at: Instant::now() }
    }

    /// Sends a heartbeat if the client has received nothing for the heartbeat interval.
    pub(crate) async fn keep_alive_if_idle(&mut self, flow: &mut Flow<'_>) -> Result<(), ClientGone> {
        if flow.sent_bytes() > self.sent_bytes {
            (self.sent_bytes, self.at) = (flow.sent_bytes(), Instant::now());
        } else if self.at.elapsed() >= self.heartbeat {
            self.at = Instant::now();
            flow.keep_alive().await?;
        }
        Ok(())
    }
}
