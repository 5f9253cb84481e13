//! One chat request and what is known about it from its admission on.

use std::sync::Arc;

use endmark_core::Format;
use endmark_wire::openai_chat::ChatRequest;
use http::{HeaderMap, Uri};

use crate::gateway::Gateway;
use crate::recovery::Schema;
use crate::settings::{Mode, Upstream};

/// One chat request, admitted.
pub(crate) struct Exchange {
    pub(crate) gateway: Arc<Gateway>,
    /// The id that `endmark log show` explains.
    pub(crate) id: String,
    /// The task it belongs to: named by the client, else its session.
    pub(crate) task_id: String,
    /// Which turn of the conversation is being answered, from 1.
    pub(crate) turn_number: u32,
    pub(crate) mode: Mode,
    pub(crate) upstream: Upstream,
    /// Where the request and its continuations go.
    pub(crate) uri: Uri,
    /// The headers they go with.
    pub(crate) headers: HeaderMap,
    pub(crate) request: ChatRequest,
    /// The grammar that the message text must follow, if one is demanded.
    pub(crate) demanded: Option<Format>,
    /// The schema that the message text must follow, if there is one.
    pub(crate) schema: Option<Schema>,
}

impl Exchange {
    /// The output tokens after which a single reply must have been cut, however it says it ended.
    pub(crate) fn limit_of_one_reply(&self) -> Option<u64> {
        // With several choices the reported count is their sum and says nothing about one.
        if self.request.choices == 1 { self.request.limit } else { None }
    }
}
