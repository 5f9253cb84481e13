//! The client's side of a stream.

use bytes::Bytes;
use endmark_wire::writer::Writer;

use super::slot::{ReplyPart, Slot};
use crate::body::Outlet;

/// Error: the client closed its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client went away")]
pub(crate) struct ClientGone;

/// The client of a streamed reply. Sending waits until the client reads, so a slow client also slows the upstream. If
/// the client disconnects, all work for the reply is dropped.
pub(crate) struct ClientStream {
    outlet: Outlet,
}

impl ClientStream {
    /// Creates the client that reads from this outlet.
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self { outlet }
    }

    /// Sends bytes unchanged.
    pub(crate) async fn send(&mut self, bytes: Vec<u8>) -> Result<(), ClientGone> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.outlet.send(Bytes::from(bytes)).await.map_err(|_| ClientGone)
    }
}

/// A part of a reply that the client is reading while it is being recovered.
pub(crate) struct LiveSlot<'a> {
    pub(crate) client: &'a mut ClientStream,
    pub(crate) writer: &'a mut dyn Writer,
    pub(crate) slot: &'a Slot,
    /// Number of bytes of the part that the client has, including those that it wrote itself.
    pub(crate) sent_bytes: usize,
}

/// A streaming client that gets a part only when the part is whole.
pub(crate) struct WaitingClient<'a> {
    pub(crate) client: &'a mut ClientStream,
    pub(crate) writer: &'a dyn Writer,
}

impl WaitingClient<'_> {
    /// Sends a heartbeat, which clients ignore.
    pub(crate) async fn keep_alive(&mut self) -> Result<(), ClientGone> {
        self.client.send(self.writer.keep_alive()).await
    }
}

impl LiveSlot<'_> {
    pub(crate) fn sent_bytes(&self) -> usize {
        self.sent_bytes
    }

    /// Sends the bytes that the client does not have yet.
    pub(crate) async fn extend(&mut self, text: &str) -> Result<(), ClientGone> {
        if text.is_empty() {
            return Ok(());
        }
        let bytes = match &self.slot.part {
            ReplyPart::Text => self.writer.write_text(self.slot.choice, text),
            // Tool calls that cannot be sent in pieces are never sent live.
            ReplyPart::ToolCall(call) => {
                self.writer.write_arguments(self.slot.choice, call, text).unwrap_or_default()
            }
        };
        self.client.send(bytes).await?;
        self.sent_bytes += text.len();
        Ok(())
    }

    /// Sends a heartbeat, which clients ignore.
    pub(crate) async fn keep_alive(&mut self) -> Result<(), ClientGone> {
        self.client.send(self.writer.keep_alive()).await
    }
}
