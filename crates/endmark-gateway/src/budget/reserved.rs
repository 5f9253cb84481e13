//! A call that is held, until it has a row of its own.

use endmark_context::budget::{Scope, Unit};
use endmark_store::{Charge, Recorder};

use super::estimate::PromptEstimate;

/// A hold. One that is dropped before its call is noted is let go of: the client has gone away in between.
#[derive(Debug)]
pub(crate) struct Reserved {
    recorder: Option<Recorder>,
    request_id: String,
    /// The number of the call that it is for.
    pub(crate) call: u32,
    /// Whether it is the closing call of its session.
    pub(crate) is_closing: bool,
    /// The budget of which least is left.
    pub(crate) least_left: Option<(Scope, Unit, u64)>,
    /// What it holds in each of its budgets, or would hold if the store took it.
    pub(crate) charges: Vec<Charge>,
    /// Its prompt, as it was estimated.
    pub(crate) prompt: PromptEstimate,
    /// The budgets that came to a level by it, with that in percent.
    pub(crate) warned: Vec<(Scope, u8)>,
}

impl Reserved {
    pub(super) fn new(recorder: Recorder, request_id: String, call: u32, prompt: PromptEstimate) -> Self {
        let recorder = Some(recorder);
        Self {
            recorder,
            request_id,
            call,
            is_closing: false,
            least_left: None,
            charges: Vec::new(),
            prompt,
            warned: Vec::new(),
        }
    }

    /// The highest level that a budget came to by it; 0 where none did.
    pub(crate) fn percent(&self) -> u8 {
        self.warned.iter().map(|(_, percent)| *percent).max().unwrap_or(0)
    }

    /// Its call is noted, or nothing is held: from now on there is nothing to let go of.
    pub(crate) fn keep(&mut self) {
        self.recorder = None;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        let (request_id, call, closes) = (std::mem::take(&mut self.request_id), self.call, self.is_closing);
        // Without a runtime the gateway is at its end, and what is held is settled at the next start.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = recorder.release(&request_id, call, closes).await {
                    tracing::warn!(%error, "what a call held that was never made stays held until the next start");
                }
            });
        }
    }
}
