//! Reports one session: its usage, its compactions and capped results, and its runs.

use endmark_context::Models;
use endmark_runs::AgentRun;
use endmark_store::{Reader, SessionOutput, StoreError};
use serde::Serialize;

use super::{compactions, serialize_with_zone, usage};

/// Maximum rows of each list.
const MAX_LIST_ROWS: u32 = 1_000;

/// All data about a session.
#[derive(Debug, Serialize)]
pub struct SessionReport {
    /// The session's hash.
    pub session: String,
    /// Usage and cost of the session's calls, by model.
    pub usage: usage::UsageReport,
    /// The session's compactions, newest first.
    pub compactions: Vec<compactions::CompactionEntry>,
    /// Kept full values of tool results that were first capped in this session, newest first.
    pub outputs: Vec<Output>,
    /// Supervised runs that made calls in this session, newest first.
    pub runs: Vec<AgentRun>,
    /// The lists that lack what other gateways of a shared database have.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub of_this_gateway: &'static [&'static str],
}

/// The lists that are read from the gateway's own journal, and so lack records of other gateways.
pub(crate) const LISTS_OF_THIS_GATEWAY: [&str; 3] = ["compactions", "outputs", "runs"];

/// A kept output.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The handle for `endmark read`.
    pub handle: String,
    /// The detected format.
    pub format: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The number of lines.
    pub lines: u64,
    /// When the output was received, in RFC 3339.
    #[serde(serialize_with = "serialize_with_zone")]
    pub created_at: String,
}

impl SessionReport {
    /// Reads all data about a session. Returns `None` if it has no records. The usage may be that of all gateways
    /// that share a database.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn read(
        reader: &Reader,
        session: &str,
        usage: Option<usage::UsageReport>,
        models: &Models,
    ) -> Result<Option<Self>, StoreError> {
        let own = || usage::UsageReport::for_session(reader, session, models);
        let report = Self {
            session: session.to_owned(),
            usage: usage.map_or_else(own, Ok)?,
            compactions: reader
                .session_compactions(session, MAX_LIST_ROWS)?
                .into_iter()
                .map(Into::into)
                .collect(),
            outputs: reader.session_outputs(session, MAX_LIST_ROWS)?.into_iter().map(Output::from).collect(),
            runs: reader.session_runs(session, MAX_LIST_ROWS)?.into_iter().map(AgentRun::from).collect(),
            of_this_gateway: &[],
        };
        let is_known =
            report.usage.total.calls > 0 || !report.compactions.is_empty() || !report.outputs.is_empty();
        Ok(Some(report).filter(|_| is_known))
    }
}

impl From<SessionOutput> for Output {
    fn from(output: SessionOutput) -> Self {
        let SessionOutput { handle, format, bytes, lines, created_at } = output;
        Self { handle, format, bytes, lines, created_at }
    }
}
