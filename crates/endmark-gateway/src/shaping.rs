//! Changes a conversation on its way to an upstream: caps tool results (CX-5) and condenses the older part (CX-1,
//! CX-2). The omitted content is stored. Replacements are remembered, so that later requests of the same conversation
//! contain the same bytes.

mod read_tool;
mod results;
mod storage;
mod summaries;
mod summariser;
mod summary_memory;
mod tokens;

use endmark_store::Store;

use crate::settings::Settings;

pub(crate) use read_tool::{READ_TOOL, answer_read_call};
pub(crate) use results::{CappedRequest, cap_results};
pub(crate) use summaries::{CompactionResult, CondensedRequest, Summary, compact, compact_refused};
pub(crate) use summariser::Summariser;

/// Remembers capped results and facts about summaries, for all conversations.
#[derive(Default)]
pub(crate) struct Shaping {
    results: results::CapMemory,
    summaries: summary_memory::SummaryMemory,
}

/// The client, upstream and services that shaping needs to change a request.
#[derive(Clone, Copy)]
pub(crate) struct ShapingContext<'a> {
    pub(crate) shaping: &'a Shaping,
    pub(crate) settings: &'a Settings,
    pub(crate) store: &'a Store,
    /// The request's id, for the log.
    pub(crate) id: &'a str,
    /// The hash of the client's credential, if it sent one.
    pub(crate) credential: Option<&'a str>,
    /// The session's hash.
    pub(crate) session: &'a str,
    /// The upstream that the request is for.
    pub(crate) upstream: &'a str,
    /// The model that may summarise a condensed part.
    pub(crate) summariser: Option<Summariser<'a>>,
}

impl ShapingContext<'_> {
    /// Returns the owner of the data that is stored for this request. Only the owner can read the data.
    fn owner(&self) -> String {
        owner(self.credential)
    }
}

/// Returns the owner of the data kept for a client with this credential.
pub(crate) fn owner(credential: Option<&str>) -> String {
    format!("{}{}", endmark_store::CLIENT_OWNER_PREFIX, credential.unwrap_or_default())
}
