//! One session: its usage, its compactions and capped results, and its runs.

use endmark_context::Models;
use endmark_runs::AgentRun;
use endmark_store::{Reader, SessionOutput, StoreError};
use serde::Serialize;

use super::{compactions, usage, zoned};

/// Rows of each list at most.
const MAX_ROWS: u32 = 1_000;

/// Everything about a session.
#[derive(Debug, Serialize)]
pub struct SessionReport {
    /// Its hash.
    pub session: String,
    /// The sums of its calls, by model.
    pub usage: usage::UsageReport,
    /// Its compactions, newest first.
    pub compactions: Vec<compactions::CompactionEntry>,
    /// Capped tool results that occurred in it first and whose full values are kept, newest first.
    pub outputs: Vec<Output>,
    /// Supervised runs whose calls it has, the newest first.
    pub runs: Vec<AgentRun>,
}

/// A kept output.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The handle for `endmark read`.
    pub handle: String,
    /// Its detected format.
    pub format: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its lines.
    pub lines: u64,
    /// When it came, in RFC 3339.
    #[serde(serialize_with = "zoned")]
    pub created_at: String,
}

impl SessionReport {
    /// Reads everything about a session, or returns `None` if there is nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn read(reader: &Reader, session: &str, models: &Models) -> Result<Option<Self>, StoreError> {
        let report = Self {
            session: session.to_owned(),
            usage: usage::UsageReport::of_session(reader, session, models)?,
            compactions: reader.compactions_of(session, MAX_ROWS)?.into_iter().map(Into::into).collect(),
            outputs: reader.outputs_of(session, MAX_ROWS)?.into_iter().map(Output::from).collect(),
            runs: reader.runs_of(session, MAX_ROWS)?.into_iter().map(AgentRun::from).collect(),
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
