//! One session: what it used, what of it was condensed or shortened, and the runs that it belongs to.

use endmark_context::Models;
use endmark_runs::AgentRun;
use endmark_store::{Reader, SessionOutput, StoreError};
use serde::Serialize;

use super::{compactions, usage, zoned};

/// Rows of each list at most.
const MAX_ROWS: u32 = 1_000;

/// All that is known of a session.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Its hash.
    pub session: String,
    /// What its calls came to, by model.
    pub usage: usage::Report,
    /// What of it was condensed, the newest first.
    pub compactions: Vec<compactions::Row>,
    /// Results of tools that were shortened in it first, and whose full values are kept, the newest first.
    pub outputs: Vec<Output>,
    /// Supervised runs whose calls it has, the newest first.
    pub runs: Vec<AgentRun>,
}

/// A kept output.
#[derive(Debug, Serialize)]
pub struct Output {
    /// Under which `endmark read` shows it.
    pub handle: String,
    /// What it was taken for.
    pub format: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its lines.
    pub lines: u64,
    /// When it came, in RFC 3339.
    #[serde(serialize_with = "zoned")]
    pub created_at: String,
}

impl Report {
    /// Reads what is known of a session; none where nothing is.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn read(reader: &Reader, session: &str, models: &Models) -> Result<Option<Self>, StoreError> {
        let report = Self {
            session: session.to_owned(),
            usage: usage::Report::of_session(reader, session, models)?,
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
