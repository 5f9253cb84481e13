//! Records as they are written and read. Lengths and offsets are in bytes (PC-7).

use crate::error::StoreError;

/// The reason of the outcome if the mode `warn` prevented a recovery (PC-7).
pub const REASON_WARN_MODE: &str = "the mode is `warn`, which only watches and reports";

/// The reason of the outcome if the gateway itself limited the last request of a session, so that its reply
/// was not recovered (CX-7).
pub const REASON_CLOSING_LIMIT: &str =
    "the reply reached the limit that Endmark gives the last request of a session whose budget is used up";

/// The reason of the outcome if the client had set the limit, so that its reply was not recovered (PC-7).
pub const REASON_CLIENT_LIMIT: &str = "the reply reached the limit that the client set itself, which the mode `auto` takes for what the client wants";

/// Identifies a durable intent, from [`Recorder::begin_cut`](crate::Recorder::begin_cut) until it is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CutId(pub(crate) i64);

impl CutId {
    /// Returns the intent's number in `open_recoveries`. Numbers are not reused.
    pub fn number(self) -> i64 {
        self.0
    }
}

/// A reply that was judged as cut, before any recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutStarted {
    /// The id that the client sees in `x-endmark-request`.
    pub request_id: String,
    /// The part of the reply: a choice, or a tool call of a choice.
    pub slot: String,
    /// The task named in the header, or the session if there is no header (PC-7).
    pub task_id: String,
    /// The turn named in the header. Without a header, the number of assistant messages in the request plus
    /// one (PC-7).
    pub turn_number: u32,
    /// The index of the cut in bytes (PC-1); `None` if no grammar could determine it.
    pub truncation_index: Option<u64>,
    /// The length of the cut reply in bytes.
    pub initial_chunk_length: u64,
    /// The model's name as the client sent it.
    pub model: String,
    /// The upstream's name.
    pub provider: String,
    /// The kind of cut (PC-8): `limit`, `dropped`, `format`, `marker`, `empty` or `window`.
    pub cut_kind: String,
}

/// Whether the client got the complete reply (PC-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalStatus {
    /// The complete reply was delivered, perhaps after a correction.
    Resolved,
    /// Any other outcome.
    Exhausted,
}

impl FinalStatus {
    /// Returns the status as the table stores it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolved => "RESOLVED",
            Self::Exhausted => "EXHAUSTED",
        }
    }

    /// Parses a status in upper or lower case.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Resolved, Self::Exhausted].into_iter().find(|status| status.name().eq_ignore_ascii_case(name))
    }
}

/// How a cut reply ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CutSettled {
    /// Whether the complete reply was delivered.
    pub final_status: FinalStatus,
    /// Number of continuation calls.
    pub resume_attempts: u32,
    /// The outcome as in `x-endmark-outcome`, or a more specific one.
    pub outcome: String,
    /// The style of the last seam, if there is one.
    pub seam_style: Option<String>,
    /// Prompt tokens of the continuation calls.
    pub extra_prompt_tokens: u64,
    /// Output tokens of the continuation calls.
    pub extra_output_tokens: u64,
    /// Reason of the outcome, in one sentence.
    pub reason: String,
    /// The received pieces of the reply; each `ordinal` occurs once.
    pub pieces: Vec<ReplyPiece>,
}

/// A part of a reply, as one upstream call returned it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyPiece {
    /// 0 for the cut reply, and higher numbers for its continuations.
    pub ordinal: u32,
    /// How the piece was requested: by the original request, a prefill or a prompt.
    pub strategy: String,
    /// Length of the piece in bytes, before anything was dropped at the seam.
    pub received_bytes: u64,
    /// How the stream of the piece ended.
    pub ending: String,
    /// The stop reason that the provider reported, if any.
    pub stop: Option<String>,
    /// The verdict on this piece.
    pub judged: String,
    /// Reason of the verdict, in one sentence.
    pub why: String,
    /// Offset in bytes at which the piece begins in the joined text.
    pub seam_at: Option<u64>,
    /// How the piece was joined.
    pub seam_style: Option<String>,
    /// Bytes dropped at the seam, on both sides.
    pub dropped_bytes: u64,
    /// Confidence in the seam, from 0 to 1.
    pub confidence: Option<f64>,
    /// Fingerprint of the text, as returned by [`sha256_hex`](crate::sha256_hex).
    pub sha256: String,
    /// The text; `None` unless `[store_policy] keep_text` is enabled, which the caller checks.
    pub text: Option<String>,
}

/// A row of `partial_completion_log`, with other data about the reply.
///
/// If other software wrote the row, the text fields that it does not know are empty.
// Fields: each corresponds to a column of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRow {
    /// The row's number.
    pub id: i64,
    /// See [`CutStarted::task_id`].
    pub task_id: String,
    /// See [`CutStarted::turn_number`].
    pub turn_number: i64,
    /// See [`CutStarted::truncation_index`].
    pub truncation_index: Option<i64>,
    /// See [`CutStarted::initial_chunk_length`].
    pub initial_chunk_length: Option<i64>,
    /// See [`CutSettled::resume_attempts`].
    pub resume_attempts: i64,
    /// Whether the complete reply was delivered.
    pub final_status: FinalStatus,
    /// Time at which the outcome was known, as `YYYY-MM-DD HH:MM:SS` in UTC.
    pub timestamp: String,
    /// See [`CutStarted::request_id`].
    pub request_id: String,
    /// See [`CutStarted::slot`].
    pub slot: String,
    /// See [`CutStarted::model`].
    pub model: String,
    /// See [`CutStarted::provider`].
    pub provider: String,
    /// See [`CutStarted::cut_kind`].
    pub cut_kind: String,
    /// See [`CutSettled::outcome`].
    pub outcome: String,
    /// See [`CutSettled::seam_style`].
    pub seam_style: Option<String>,
    /// See [`CutSettled::extra_prompt_tokens`].
    pub extra_prompt_tokens: i64,
    /// See [`CutSettled::extra_output_tokens`].
    pub extra_output_tokens: i64,
    /// See [`CutSettled::reason`].
    pub reason: String,
    /// The gateway that recorded the row, if it is another gateway of a shared database.
    pub other_gateway: Option<OtherGateway>,
}

/// Another gateway that shares the database. The texts of its replies stay in its own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherGateway {
    /// The id of its instance.
    pub instance: String,
    /// The host name of its machine.
    pub machine: String,
    /// Number of pieces of the reply that it keeps.
    pub pieces: u64,
}

/// The last row of a page of recoveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryCursor {
    /// A row of this gateway, by its number.
    Row(i64),
    /// A row of any gateway that shares the database: its time, instance and number.
    Finished {
        /// See [`RecoveryRow::timestamp`].
        at: String,
        /// The id of the instance.
        instance: String,
        /// See [`RecoveryRow::id`].
        id: i64,
    },
}

/// A piece with the number of its row.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedPiece {
    /// The row's number.
    pub log_id: i64,
    /// The piece.
    pub piece: ReplyPiece,
}

/// The record of one row, or of all cut parts of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// The rows, oldest first.
    pub rows: Vec<RecoveryRow>,
    /// The pieces of the rows, by row and ordinal.
    pub pieces: Vec<LoggedPiece>,
}

impl Recovery {
    /// Returns the pieces of one row, in the order in which they were received.
    pub fn row_pieces(&self, log_id: i64) -> impl Iterator<Item = &ReplyPiece> {
        self.pieces.iter().filter(move |logged| logged.log_id == log_id).map(|logged| &logged.piece)
    }
}

/// Health of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterHealth {
    /// The newest migration in the store.
    pub schema: u32,
    /// Unsettled intents of all processes.
    pub open_cuts: u64,
    /// Transactions that this process has committed since it opened the store.
    pub commits: u64,
    /// Write requests answered by those transactions.
    pub writes: u64,
}

/// Condition of the store, read without accessing the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCondition {
    /// Why the last transaction failed, if it did.
    pub failure: Option<StoreError>,
    /// Whether the slate currently does not accept calls, so that a kill would lose them.
    pub slate_rejects_calls: bool,
    /// Number of times the store was recreated after its files were removed or replaced.
    pub renewals: u64,
    /// Whether the store was recreated within the last minute, so that periodic checks notice it.
    pub was_renewed_lately: bool,
    /// Upstream calls in progress.
    pub calls_open: u64,
    /// Rows of calls that wait for their commit.
    pub rows_waiting: u64,
    /// Committed rows of calls that the shared database does not have yet. Always 0 without a shared database.
    pub rows_unreported: u64,
    /// Other waiting writes, including records of cut replies that are retried later.
    pub writes_waiting: u64,
    /// Transactions committed since the store was opened.
    pub commits: u64,
    /// Failed transactions, and failed attempts to move the write-ahead log.
    pub failures: u64,
    /// Rows of calls committed.
    pub rows_committed: u64,
    /// Calls that have no row and will not get one.
    pub rows_lost: u64,
    /// Cut replies that have no record and will not get one.
    pub cuts_lost: u64,
    /// Calls that the slate did not accept. If the process had been killed while they ran, they would have
    /// been lost.
    pub unprotected_calls: u64,
}

/// What a store could not commit before it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UncommittedRecords {
    /// Rows of calls on the slate, which the next start commits.
    pub rows_left: u64,
    /// Rows of calls that are lost, because neither the store nor its slate accepted them.
    pub rows_lost: u64,
    /// Cut replies whose records are lost, because the store did not accept them.
    pub cuts_lost: u64,
}

impl StoreCondition {
    /// Whether all records have been written for the last minute.
    pub fn is_sound(&self) -> bool {
        self.failure.is_none() && !self.slate_rejects_calls && !self.was_renewed_lately
    }
}
