//! Writes one row of the log for each cut part. The row is opened when the cut is detected, and closed exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use endmark_recovery::{CutKind, PieceRecord};
use endmark_store::{CutId, CutSettled, CutStarted, FinalStatus, Recorder, ReplyPiece, StoreError};
use tokio::task::JoinHandle;

use super::case::RecoveryCase;
use super::store_wait_limit::StoreWaitLimit;
use crate::metrics::Metrics;
use crate::reply::Slot;
use crate::stopping::{ShutdownStage, Stopping};

/// The open row of a cut part. If this is dropped before it is closed, the row records that the client
/// disconnected or the gateway stopped.
pub(super) struct CutRecord {
    recorder: Recorder,
    metrics: Arc<Metrics>,
    stopping: Arc<Stopping>,
    upstream: String,
    kind: CutKind,
    /// The start data, which is written again if the store rejected it.
    started: CutStarted,
    /// The row. `None` once it is closed.
    row: Option<OpenRow>,
    keep_text: bool,
    /// Number of resume calls of the request, and the number of those before this part.
    calls: Arc<AtomicU32>,
    calls_before: u32,
}

/// A row that is not closed yet.
enum OpenRow {
    Recorded(CutId),
    /// The store is still writing the row, but the reply could not wait any longer.
    Pending(JoinHandle<Result<CutId, StoreError>>),
    /// The store did not accept the row.
    Failed,
}

impl OpenRow {
    /// Returns the row's id, however long the store takes.
    async fn id(self) -> Option<CutId> {
        match self {
            Self::Recorded(id) => Some(id),
            Self::Pending(pending) => pending.await.ok()?.ok(),
            Self::Failed => None,
        }
    }
}

/// The outcome of a cut part.
pub(super) struct CutOutcome<'a> {
    pub(super) resolved: bool,
    pub(super) outcome: &'static str,
    pub(super) extra_prompt_tokens: u64,
    pub(super) extra_output_tokens: u64,
    pub(super) reason: String,
    pub(super) pieces: &'a [PieceRecord],
    /// The strategy of each piece after the first, and its upstream if that is not the original one.
    pub(super) strategies: &'a [String],
}

impl<'a> CutOutcome<'a> {
    /// Creates the outcome of a part that was not resumed, or whose client disconnected.
    pub(super) fn without_calls(outcome: &'static str, reason: &str, pieces: &'a [PieceRecord]) -> Self {
        Self {
            resolved: false,
            outcome,
            extra_prompt_tokens: 0,
            extra_output_tokens: 0,
            reason: reason.to_owned(),
            pieces,
            strategies: &[],
        }
    }
}

impl CutRecord {
    /// Opens a row durably, so that the next start finds it if this process is killed. If the store fails, the client
    /// still gets its reply.
    pub(super) async fn open(
        case: &RecoveryCase<'_>,
        slot: &Slot,
        kind: CutKind,
        truncation_index: Option<usize>,
        received: usize,
    ) -> Self {
        let recorder = case.recorder.clone();
        let calls = case.calls.continuation_count();
        let started = CutStarted {
            request_id: case.id.to_owned(),
            slot: slot.to_string(),
            task_id: case.task_id.to_owned(),
            turn_number: case.turn_number,
            truncation_index: truncation_index.map(|index| index as u64),
            initial_chunk_length: received as u64,
            model: case.request.view().model.clone(),
            provider: case.upstream_name().to_owned(),
            cut_kind: kind.name().to_owned(),
        };
        let (pending, intent) = (recorder.clone(), started.clone());
        let mut pending = tokio::spawn(async move { pending.begin_cut(intent).await });
        let open = match case.store_wait_limit.wait(&mut pending).await {
            Some(Ok(Ok(id))) => OpenRow::Recorded(id),
            Some(Ok(Err(error))) => {
                tracing::error!(request = case.id, %error, "the store did not accept the record of a cut reply: it will be written later");
                OpenRow::Failed
            }
            // The task is cancelled only at the end of the process.
            Some(Err(_)) => OpenRow::Failed,
            None => {
                tracing::error!(
                    request = case.id,
                    "the store is slow: recovery continues before the record of the cut is written"
                );
                OpenRow::Pending(pending)
            }
        };
        Self {
            recorder,
            metrics: Arc::clone(case.metrics),
            stopping: Arc::clone(case.stopping),
            upstream: case.upstream_name().to_owned(),
            kind,
            started,
            row: Some(open),
            keep_text: case.settings.store_policy.keep_text,
            calls_before: calls.load(Ordering::Relaxed),
            calls,
        }
    }

    /// Closes the row.
    pub(super) async fn close(mut self, patience: &StoreWaitLimit, closing: CutOutcome<'_>) {
        let Some(open) = self.row.take() else { return };
        self.metrics.note_cut(&self.upstream, self.kind.name(), closing.outcome);
        let settled = cut_settled(&closing, self.calls(), self.keep_text);
        let settling = settle(self.recorder.clone(), self.started.clone(), open, settled);
        // The task continues even if nothing waits for it.
        let _ = patience.wait(tokio::spawn(settling)).await;
    }

    /// Returns the number of calls for the rest of the part, including failed ones and excluding corrections (PC-5).
    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed).saturating_sub(self.calls_before)
    }
}

/// Records the outcome. If the store rejects it, queues it without waiting.
async fn settle(recorder: Recorder, started: CutStarted, open: OpenRow, settled: CutSettled) {
    let id = open.id().await;
    if let Some(id) = id {
        match recorder.settle_cut(id, settled.clone()).await {
            Ok(_) => return,
            Err(error) => tracing::error!(
                request = started.request_id,
                %error,
                "the store did not accept the outcome of a cut reply: it will be written later"
            ),
        }
    }
    tokio::spawn(recorder.keep_cut_record(id, started, settled));
}

impl Drop for CutRecord {
    fn drop(&mut self) {
        let Some(open) = self.row.take() else { return };
        let left = if self.stopping.has_reached(ShutdownStage::Interrupted) {
            CutOutcome::without_calls("interrupted", "the gateway was stopped", &[])
        } else {
            CutOutcome::without_calls("cancelled", "the client went away", &[])
        };
        self.metrics.note_cut(&self.upstream, self.kind.name(), left.outcome);
        let settled = cut_settled(&left, self.calls(), false);
        // Without a runtime, the process is ending. The next start finds the open row.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(settle(self.recorder.clone(), self.started.clone(), open, settled));
        }
    }
}

fn cut_settled(closing: &CutOutcome<'_>, resume_attempts: u32, keep_text: bool) -> CutSettled {
    let pieces: Vec<ReplyPiece> = closing
        .pieces
        .iter()
        .enumerate()
        .map(|(index, record)| {
            let strategy = match index {
                0 => "first",
                later => closing.strategies.get(later - 1).map_or("unknown", String::as_str),
            };
            piece_row(index, strategy, record, keep_text)
        })
        .collect();
    CutSettled {
        final_status: if closing.resolved { FinalStatus::Resolved } else { FinalStatus::Exhausted },
        resume_attempts,
        outcome: closing.outcome.to_owned(),
        seam_style: pieces.iter().rev().find_map(|piece| piece.seam_style.clone()),
        extra_prompt_tokens: closing.extra_prompt_tokens,
        extra_output_tokens: closing.extra_output_tokens,
        reason: closing.reason.clone(),
        pieces,
    }
}

fn piece_row(index: usize, strategy: &str, record: &PieceRecord, keep_text: bool) -> ReplyPiece {
    let seam = record.seam.as_ref();
    ReplyPiece {
        ordinal: u32::try_from(index).unwrap_or(u32::MAX),
        strategy: strategy.to_owned(),
        received_bytes: record.text.len() as u64,
        ending: record.ending.name().to_owned(),
        stop: record.stop.map(|stop| stop.name().to_owned()),
        judged: record.judgement.name().to_owned(),
        why: record.reason.clone(),
        seam_at: seam.map(|seam| seam.at as u64),
        seam_style: seam.map(|seam| seam.style.name().to_owned()),
        dropped_bytes: seam.map_or(0, |seam| seam.dropped_bytes as u64),
        confidence: seam.map(|seam| seam.confidence),
        sha256: endmark_store::sha256_hex(record.text.as_bytes()),
        text: keep_text.then(|| record.text.clone()),
    }
}
