//! The client's end of a stream.

use std::time::Duration;

use bytes::Bytes;
use endmark_wire::openai_chat::Template;
use endmark_wire::sse;
use tokio::time::timeout;

use super::slot::{Part, Slot};
use crate::body::Outlet;
use crate::recovery::ClientGone;

/// The client of a streamed reply. What is sent waits for it to read: a slow client slows its upstream.
pub(crate) struct ClientStream {
    outlet: Outlet,
    unread: Duration,
}

impl ClientStream {
    /// A client that counts as gone when it has read nothing for `unread`.
    pub(crate) fn new(outlet: Outlet, unread: Duration) -> Self {
        Self { outlet, unread }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: Vec<u8>) -> Result<(), ClientGone> {
        if bytes.is_empty() {
            return Ok(());
        }
        match timeout(self.unread, self.outlet.send(Bytes::from(bytes))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(ClientGone),
        }
    }

    /// Sends a chunk of JSON as an event.
    pub(crate) async fn send_chunk(&mut self, json: &[u8]) -> Result<(), ClientGone> {
        self.send(sse::data_frame(json)).await
    }

    /// Breaks the connection off, so that nobody takes the stream for a whole one.
    pub(crate) fn abort(self, why: &'static str) {
        self.outlet.abort(why.into());
    }

    /// Waits until the client is gone.
    pub(crate) async fn gone(&self) {
        self.outlet.closed().await;
    }
}

/// One part of a reply that the client is reading while it is being made whole.
pub(crate) struct LiveSlot<'a> {
    pub(crate) client: &'a mut ClientStream,
    pub(crate) template: &'a Template,
    pub(crate) slot: &'a Slot,
    /// Bytes of the part that the client has, what it began itself included.
    pub(crate) sent: usize,
}

impl LiveSlot<'_> {
    pub(crate) fn sent(&self) -> usize {
        self.sent
    }

    /// Sends what follows the bytes that the client has.
    pub(crate) async fn extend(&mut self, text: &str) -> Result<(), ClientGone> {
        if text.is_empty() {
            return Ok(());
        }
        let chunk = match &self.slot.part {
            Part::Text => self.template.text_chunk(self.slot.choice, text),
            Part::ToolCall(call) => self.template.tool_arguments_chunk(self.slot.choice, call, text),
        };
        self.client.send_chunk(&chunk).await?;
        self.sent += text.len();
        Ok(())
    }

    /// Sends a comment, which every client ignores and every proxy takes for a sign of life.
    pub(crate) async fn keep_alive(&mut self) -> Result<(), ClientGone> {
        self.client.send(sse::comment("endmark is asking for the rest")).await
    }
}
