//! A held call, until it has a row of its own.

use endmark_context::budget::{RateLeft, Scope, Unit};
use endmark_store::{Charge, Recorder};

use super::estimate::PromptEstimate;

/// A hold. If it is dropped before its call is recorded, it is released: the client has disconnected in between.
#[derive(Debug)]
pub(crate) struct BudgetHold {
    recorder: Option<Recorder>,
    request_id: String,
    /// The number of its call.
    pub(crate) call: u32,
    /// Whether it is the closing call of its session.
    pub(crate) is_closing: bool,
    /// The amount left in the tightest budget.
    pub(crate) least_left: Option<(Scope, Unit, u64)>,
    /// Its rate limits, with the amounts left after it.
    pub(crate) rates: Vec<RateLeft>,
    /// What it holds in each of its budgets, or would hold if the store accepted it.
    pub(crate) charges: Vec<Charge>,
    /// The estimate of its prompt.
    pub(crate) prompt: PromptEstimate,
    /// The budgets that reached a warning level by it, with that level in percent.
    pub(crate) warned_budgets: Vec<(Scope, u8)>,
}

impl BudgetHold {
    pub(super) fn new(recorder: Recorder, request_id: String, call: u32, prompt: PromptEstimate) -> Self {
        let recorder = Some(recorder);
        Self {
            recorder,
            request_id,
            call,
            is_closing: false,
            least_left: None,
            rates: Vec::new(),
            charges: Vec::new(),
            prompt,
            warned_budgets: Vec::new(),
        }
    }

    /// Returns the highest level that a budget reached by it, or 0.
    pub(crate) fn percent(&self) -> u8 {
        self.warned_budgets.iter().map(|(_, percent)| *percent).max().unwrap_or(0)
    }

    /// Its call is recorded, or nothing is held: there is nothing to release any more.
    pub(crate) fn keep(&mut self) {
        self.recorder = None;
    }
}

impl Drop for BudgetHold {
    fn drop(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        let (request_id, call, closes) = (std::mem::take(&mut self.request_id), self.call, self.is_closing);
        // Without a runtime the gateway is shutting down, and the hold is settled at the next start.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = recorder.release(&request_id, call, closes).await {
                    tracing::warn!(%error, "what a call held that was never made stays held until the next start");
                }
            });
        }
    }
}
