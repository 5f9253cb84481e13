//! Changes a conversation on its way to an upstream: caps tool results (CX-5) and condenses the older part (CX-1,
//! CX-2). The omitted content is stored. Replacements are remembered, so that later requests of the same conversation
//! contain the same bytes.

mod keep;
mod read;
mod results;
mod summaries;
mod summariser;
mod tokens;

use endmark_store::Store;

use crate::settings::Settings;

pub(crate) use read::{READ_TOOL, read};
pub(crate) use results::{CappedRequest, cap_results};
pub(crate) use summaries::{Compaction, CondensedRequest, Summary, compact, compact_refused};
pub(crate) use summariser::Summariser;

/// Remembers data about all conversations.
#[derive(Default)]
pub(crate) struct Shaping {
    results: results::Memory,
    summaries: summaries::Memory,
}

/// The request's client and upstream, and the means to change the request.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
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

impl Subject<'_> {
    /// Returns the owner of the stored parts. Only the owner can read them.
    fn owner(&self) -> String {
        owner(self.credential)
    }
}

/// Returns the owner of the data kept for a client with this credential.
pub(crate) fn owner(credential: Option<&str>) -> String {
    format!("{}{}", endmark_store::CLIENT, credential.unwrap_or_default())
}
