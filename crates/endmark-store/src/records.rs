//! What is written and read: plain records, in the units of PC-7 (lengths and offsets in bytes).

use crate::error::StoreError;

/// The reason of a recovery of which the mode `warn` let nothing be asked (PC-7).
pub const LEFT_BY_WARN: &str = "the mode is `warn`, which only watches and reports";

/// The reason of a recovery that is not tried for the last request of a session, which the gateway itself limits (CX-7).
pub const LEFT_BY_CLOSING_LIMIT: &str =
    "the reply reached the limit that Endmark gives the last request of a session whose budget is used up";

/// The reason of a recovery of which the client's own limit let nothing be asked (PC-7).
pub const LEFT_BY_OWN_LIMIT: &str = "the reply reached the limit that the client set itself, which the mode `auto` takes for what the client wants";

/// The handle of a durable intent, from [`Recorder::begin_cut`](crate::Recorder::begin_cut) until it is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CutId(pub(crate) i64);

impl CutId {
    /// The intent's number in `open_recoveries`; no number is given twice.
    pub fn number(self) -> i64 {
        self.0
    }
}

/// A reply that was just judged to be cut, before anything is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutStarted {
    /// The id that the client sees in `x-endmark-request`.
    pub request_id: String,
    /// Which part of the reply: a choice, or a tool call of one.
    pub slot: String,
    /// The task header, else the session (PC-7).
    pub task_id: String,
    /// The turn header, else the number of assistant messages in the request plus one (PC-7).
    pub turn_number: u32,
    /// PC-1's index, in bytes; none where no grammar could tell.
    pub truncation_index: Option<u64>,
    /// The cut reply's length in bytes.
    pub initial_chunk_length: u64,
    /// The model's name as the client wrote it.
    pub model: String,
    /// The upstream's name.
    pub provider: String,
    /// The kind of cut (PC-8): `limit`, `dropped`, `format`, `marker`, `empty` or `window`.
    pub cut_kind: String,
}

/// Whether the client got the whole reply (PC-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalStatus {
    /// Delivered whole, also after correction.
    Resolved,
    /// Everything else.
    Exhausted,
}

impl FinalStatus {
    /// The literal in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolved => "RESOLVED",
            Self::Exhausted => "EXHAUSTED",
        }
    }

    /// Reads the literal, in either case.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Resolved, Self::Exhausted].into_iter().find(|status| status.name().eq_ignore_ascii_case(name))
    }
}

/// How a cut reply ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CutSettled {
    /// Whole or not.
    pub final_status: FinalStatus,
    /// The continuation calls that were made.
    pub resume_attempts: u32,
    /// The word of `x-endmark-outcome`, or a finer one.
    pub outcome: String,
    /// The style of the last seam, if there is one.
    pub seam_style: Option<String>,
    /// Prompt tokens of the continuation calls.
    pub extra_prompt_tokens: u64,
    /// Output tokens of the continuation calls.
    pub extra_output_tokens: u64,
    /// Why it ended so, in one sentence.
    pub reason: String,
    /// The reply as it was received; each `ordinal` once.
    pub pieces: Vec<Piece>,
}

/// A part of a reply as one upstream call gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// 0 is the cut reply, the others continue it.
    pub ordinal: u32,
    /// How it was asked for: the original request, a prefill, a prompt.
    pub strategy: String,
    /// Its length in bytes, before anything was dropped at the seam.
    pub received_bytes: u64,
    /// How its stream ended.
    pub ending: String,
    /// Why the provider says it stopped, if it said so.
    pub stop: Option<String>,
    /// What it was judged to be.
    pub judged: String,
    /// Why, in one sentence.
    pub why: String,
    /// Where its part begins in the joined text, in bytes.
    pub seam_at: Option<u64>,
    /// How it was joined.
    pub seam_style: Option<String>,
    /// The bytes dropped at the seam, of both sides.
    pub dropped_bytes: u64,
    /// How sure the seam is, from 0 to 1.
    pub confidence: Option<f64>,
    /// The fingerprint of its text, as [`sha256_hex`](crate::sha256_hex) gives it.
    pub sha256: String,
    /// Its text; none unless `[store_policy] keep_text` is on, which is the caller's to decide.
    pub text: Option<String>,
}

/// A row of `partial_completion_log`, with what else is known of the reply.
///
/// A row that other software wrote into the table has empty words where nothing else is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
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
    /// Whole or not.
    pub final_status: FinalStatus,
    /// When the outcome was known, as `YYYY-MM-DD HH:MM:SS` in UTC.
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
}

/// A piece with the row it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedPiece {
    /// The row's number.
    pub log_id: i64,
    /// The piece.
    pub piece: Piece,
}

/// What is known of one row, or of every cut part of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// The rows, oldest first.
    pub rows: Vec<LogRow>,
    /// Their pieces, by row and ordinal.
    pub pieces: Vec<LoggedPiece>,
}

impl Recovery {
    /// The pieces of one of the rows, in the order they were received.
    pub fn pieces_of(&self, log_id: i64) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(move |logged| logged.log_id == log_id).map(|logged| &logged.piece)
    }
}

/// The writer's own account of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// The newest migration in the store.
    pub schema: u32,
    /// Intents of all processes that are not settled yet.
    pub open_cuts: u64,
    /// Transactions this process has committed since it opened the store.
    pub commits: u64,
    /// Requests to write that were answered by those transactions.
    pub writes: u64,
}

/// How the store does, as it knows without asking the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Why the last transaction failed, if it did.
    pub failure: Option<StoreError>,
    /// Calls under way are not noted beside the store at the moment, so that a kill would lose them.
    pub calls_not_noted: bool,
    /// How often the store was begun anew, after its files were removed or replaced.
    pub renewals: u64,
    /// Whether that was within the last minute: whoever looks now and then is to see it.
    pub renewed_lately: bool,
    /// Upstream calls under way.
    pub calls_open: u64,
    /// Rows of calls that wait for their commit.
    pub rows_waiting: u64,
    /// Other writes that wait, records of cut replies that are kept for later among them.
    pub writes_waiting: u64,
    /// Transactions committed since the store was opened.
    pub commits: u64,
    /// Transactions, and moves of the journal, that failed.
    pub failures: u64,
    /// Rows of calls committed.
    pub rows_committed: u64,
    /// Calls that have no row, and will have none.
    pub rows_lost: u64,
    /// Cut replies that have no record, and will have none.
    pub cuts_lost: u64,
    /// Notes of calls that were not taken: a kill at that time would have lost them.
    pub calls_unnoted: u64,
}

/// What a store that is closed could not commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leftover {
    /// Rows of calls that stand on the slate: the next start commits them.
    pub rows_left: u64,
    /// Rows of calls that neither the store nor its slate took: they are gone.
    pub rows_lost: u64,
    /// Cut replies whose records the store did not take: they are gone.
    pub cuts_lost: u64,
}

impl Condition {
    /// Whether all that is to be recorded is, and was for the last minute.
    pub fn is_sound(&self) -> bool {
        self.failure.is_none() && !self.calls_not_noted && !self.renewed_lately
    }
}
