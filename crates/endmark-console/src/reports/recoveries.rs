//! Reports recoveries: the cut replies and their outcomes (PC-7).

use endmark_store::{Recovery, RecoveryRow, ReplyPiece, RequestRecords};
use serde::Serialize;

use super::NotAsked;
use super::calls::CallReport;
use super::serialize_with_zone;

/// A list of recoveries, as the routes and commands return it.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveriesReport<'a> {
    pub rows: Vec<RecoveryEntry<'a>>,
    /// The upstream calls of the request, for `log show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<CallReport<'a>>>,
    /// Whether the records of other gateways that share the database are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub this_gateway_alone: bool,
}

/// Another gateway that recorded a recovery. Use the id of the request there, since it numbers its own rows.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineEntry<'a> {
    pub name: &'a str,
    pub instance: &'a str,
    /// How many pieces of the reply it keeps.
    pub pieces: u64,
}

/// One recovery. The fields have the names of the columns.
// Fields: each corresponds to a column of the published report.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveryEntry<'a> {
    pub id: i64,
    pub task_id: &'a str,
    pub turn_number: i64,
    pub truncation_index: Option<i64>,
    pub initial_chunk_length: Option<i64>,
    pub resume_attempts: i64,
    pub final_status: &'static str,
    #[serde(serialize_with = "serialize_with_zone")]
    pub timestamp: &'a str,
    pub request_id: &'a str,
    pub slot: &'a str,
    pub model: &'a str,
    pub provider: &'a str,
    pub cut_kind: &'a str,
    pub outcome: &'a str,
    pub seam_style: Option<&'a str>,
    pub extra_prompt_tokens: i64,
    pub extra_output_tokens: i64,
    pub reason: &'a str,
    /// The reason for not requesting a continuation, if the request prevented it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_asked: Option<NotAsked>,
    /// The machine of the gateway that recorded it, if it is another one that shares the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineEntry<'a>>,
    /// The received pieces, for `log show`. Only the gateway that received them has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Vec<PieceReport<'a>>>,
}

impl<'a> RecoveryEntry<'a> {
    /// Builds the report of a row.
    pub fn new(row: &'a RecoveryRow) -> Self {
        Self {
            id: row.id,
            task_id: &row.task_id,
            turn_number: row.turn_number,
            truncation_index: row.truncation_index,
            initial_chunk_length: row.initial_chunk_length,
            resume_attempts: row.resume_attempts,
            final_status: row.final_status.name(),
            timestamp: &row.timestamp,
            request_id: &row.request_id,
            slot: &row.slot,
            model: &row.model,
            provider: &row.provider,
            cut_kind: &row.cut_kind,
            outcome: &row.outcome,
            seam_style: row.seam_style.as_deref(),
            extra_prompt_tokens: row.extra_prompt_tokens,
            extra_output_tokens: row.extra_output_tokens,
            reason: &row.reason,
            not_asked: NotAsked::from_row(row),
            machine: row.other_gateway.as_ref().map(|other| MachineEntry {
                name: &other.machine,
                instance: &other.instance,
                pieces: other.pieces,
            }),
            pieces: None,
        }
    }
}

/// One piece of a reply, as the gateway received it.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PieceReport<'a> {
    pub ordinal: u32,
    pub strategy: &'a str,
    pub received_bytes: u64,
    pub ending: &'a str,
    pub stop: Option<&'a str>,
    pub judged: &'a str,
    pub why: &'a str,
    /// How the piece was joined to the text before it.
    pub seam: Option<PieceSeam<'a>>,
    pub sha256: &'a str,
    /// The text of the piece, if texts are kept.
    pub text: Option<&'a str>,
}

/// Where a piece was joined to the text before it.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PieceSeam<'a> {
    pub at: u64,
    pub style: Option<&'a str>,
    pub dropped_bytes: u64,
    pub confidence: Option<f64>,
}

/// Returns a report with a list of recoveries.
pub fn list_report(rows: &[RecoveryRow], this_gateway_alone: bool) -> RecoveriesReport<'_> {
    RecoveriesReport { rows: rows.iter().map(RecoveryEntry::new).collect(), calls: None, this_gateway_alone }
}

/// Returns a report about one recovery with its pieces.
pub fn recovery_report(recovery: &Recovery) -> RecoveriesReport<'_> {
    let entry = |row| RecoveryEntry { pieces: piece_reports(recovery, row), ..RecoveryEntry::new(row) };
    RecoveriesReport {
        rows: recovery.rows.iter().map(entry).collect(),
        calls: None,
        this_gateway_alone: false,
    }
}

/// Returns a report about one request. If no reply was cut, it contains only the upstream calls.
pub fn request_report(records: &RequestRecords) -> RecoveriesReport<'_> {
    let rows = records.recovery.as_ref().map_or(Vec::new(), |recovery| recovery_report(recovery).rows);
    let calls = Some(records.calls().iter().map(CallReport::new).collect());
    RecoveriesReport { rows, calls, this_gateway_alone: false }
}

/// Returns the pieces of a row, or `None` if another gateway keeps them.
fn piece_reports<'a>(recovery: &'a Recovery, row: &RecoveryRow) -> Option<Vec<PieceReport<'a>>> {
    row.other_gateway.is_none().then(|| recovery.row_pieces(row.id).map(PieceReport::new).collect())
}

impl<'a> PieceReport<'a> {
    fn new(piece: &'a ReplyPiece) -> Self {
        let seam = |at| PieceSeam {
            at,
            style: piece.seam_style.as_deref(),
            dropped_bytes: piece.dropped_bytes,
            confidence: piece.confidence,
        };
        Self {
            ordinal: piece.ordinal,
            strategy: &piece.strategy,
            received_bytes: piece.received_bytes,
            ending: &piece.ending,
            stop: piece.stop.as_deref(),
            judged: &piece.judged,
            why: &piece.why,
            seam: piece.seam_at.map(seam),
            sha256: &piece.sha256,
            text: piece.text.as_deref(),
        }
    }
}
