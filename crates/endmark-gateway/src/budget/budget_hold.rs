//! Keeps the hold of a call until the call is recorded.

use endmark_context::budget::{RemainingRate, Scope, Unit};
use endmark_store::{Charge, Recorder};

use super::estimate::PromptEstimate;

/// The hold of a call in its budgets. It is released if it is dropped before the call is recorded, for
/// example because the client disconnected.
#[derive(Debug)]
pub(crate) struct BudgetHold {
    recorder: Option<Recorder>,
    request_id: String,
    /// The number of the call.
    pub(crate) call: u32,
    /// Whether it is the closing call of its session.
    pub(crate) is_closing: bool,
    /// The remaining amount in the tightest budget.
    pub(crate) least_left: Option<(Scope, Unit, u64)>,
    /// The rate limits of the call, with the remaining amounts.
    pub(crate) rates: Vec<RemainingRate>,
    /// The amount that the call holds in each budget, or would hold if the store accepted it.
    pub(crate) charges: Vec<Charge>,
    /// The estimate of the prompt.
    pub(crate) prompt: PromptEstimate,
    /// The budgets that reached a warning level through this call, with the level in percent.
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

    /// Returns the highest warning level that a budget reached through this call, or 0.
    pub(crate) fn warning_percent(&self) -> u8 {
        self.warned_budgets.iter().map(|(_, percent)| *percent).max().unwrap_or(0)
    }

    /// Disables the release on drop, because the call is recorded or nothing is held.
    pub(crate) fn disarm(&mut self) {
        self.recorder = None;
    }
}

impl Drop for BudgetHold {
    fn drop(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        let (request_id, call, closes) = (std::mem::take(&mut self.request_id), self.call, self.is_closing);
        // Without a runtime the gateway is shutting down. The next start settles the hold.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = recorder.release(&request_id, call, closes).await {
                    tracing::warn!(%error, "the hold of a call that was never made cannot be released: it stays until the next start");
                }
            });
        }
    }
}
