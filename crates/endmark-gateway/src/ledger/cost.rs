//! The cost of the calls of a request.

use std::sync::{Mutex, PoisonError};

use endmark_context::{Tokens, is_standard_tier, round_half_up};
use endmark_store::Billing;
use endmark_wire::reply::Usage;

/// The total cost of a request's calls. It is known only if the cost of each call is known.
#[derive(Debug, Default)]
pub(super) struct RequestCost(Mutex<CostSum>);

#[derive(Debug, Default)]
struct CostSum {
    /// The sum in millionths of nano-dollars. It is rounded once, as in the ledger.
    millionths: u128,
    has_cost: bool,
    is_incomplete: bool,
}

impl RequestCost {
    /// Adds the cost of a finished call in millionths of nano-dollars. `is_billed` is false for a call that
    /// costs nothing.
    pub(super) fn add(&self, millionths: Option<u128>, is_billed: bool) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.has_cost |= millionths.is_some();
        sum.is_incomplete |= millionths.is_none() && is_billed;
        sum.millionths = sum.millionths.saturating_add(millionths.unwrap_or(0));
    }

    pub(super) fn nano_usd(&self) -> Option<u64> {
        let sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (sum.has_cost && !sum.is_incomplete).then(|| round_half_up(sum.millionths))
    }
}

/// Converts usage to the tokens that have a price. `web_searches` are searches that the usage does not include.
pub(super) fn priced_tokens(usage: &Usage, web_searches: u64) -> Tokens {
    let written_1h = usage.cache_writes_for_an_hour().unwrap_or(0);
    let cached_audio = usage.cached_audio().unwrap_or(0);
    Tokens {
        prompt: usage.prompt,
        cached: usage.cached.unwrap_or(0).saturating_sub(cached_audio),
        prompt_audio: usage.prompt_audio().unwrap_or(0).saturating_sub(cached_audio),
        cached_audio,
        completion_audio: usage.completion_audio().unwrap_or(0),
        web_searches: usage.web_searches().unwrap_or(0).max(web_searches),
        cache_write: usage.cache_writes().unwrap_or(0).saturating_sub(written_1h),
        cache_write_1h: written_1h,
        completion: usage.completion,
        reasoning: usage.reasoning.unwrap_or(0),
    }
}

/// Returns the data that determines the price of a call in addition to its token sums.
pub(super) fn billing_of(tokens: &Tokens, tier: Option<String>) -> Billing {
    Billing {
        tier: tier.filter(|tier| !is_standard_tier(tier)),
        prompt_audio: tokens.prompt_audio,
        cached_audio: tokens.cached_audio,
        completion_audio: tokens.completion_audio,
        web_searches: tokens.web_searches,
    }
}

/// Maximum number of context windows that one call can use. A call with the provider's own tools uses several,
/// because its usage is the sum of the provider's steps. Research models report up to about 20.
const MAX_WINDOWS: u64 = 64;
/// Assumed context window of a model that is not in the table.
const UNKNOWN_WINDOW_TOKENS: u64 = 1_000_000;
/// Maximum plausible web searches of one call.
const MAX_WEB_SEARCHES: u64 = 10_000;

/// Whether a usage report is plausible: at most [`MAX_WINDOWS`] context windows, or a token for each byte sent or
/// received. A larger count is an error of the upstream, and would exhaust a budget.
pub(super) fn is_plausible(usage: &Usage, window_tokens: Option<u64>, exchanged_bytes: u64) -> bool {
    let windows = window_tokens.unwrap_or(UNKNOWN_WINDOW_TOKENS).saturating_mul(MAX_WINDOWS);
    usage.largest_count() <= windows.max(exchanged_bytes)
        && usage.web_searches().is_none_or(|searches| searches <= MAX_WEB_SEARCHES)
}

/// The usage of a call: reported by the upstream, or otherwise estimated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallUsage {
    pub(crate) usage: Usage,
    pub(crate) reports_prompt: bool,
    pub(crate) reports_output: bool,
}

impl CallUsage {
    /// Determines the usage of a call. `sent` and `written` are the estimated tokens of its prompt and its reply.
    /// `is_counted` is whether the reply ended with its counts; see
    /// [`Received::is_counted`](endmark_wire::reply::Received::is_counted). A reported 0 for existing text is
    /// ignored. If only a total is reported, the prompt gets its estimate and the output gets the rest, which
    /// includes hidden reasoning.
    pub(super) fn new(usage: Option<&Usage>, is_counted: bool, sent: u64, written: u64) -> Self {
        let mut counted = usage.cloned().unwrap_or_default();
        if counted.has_only_total() && is_counted {
            counted.completion = counted.total.saturating_sub(sent).max(written.min(counted.total));
            counted.prompt = counted.total - counted.completion;
            return Self { usage: counted, reports_prompt: true, reports_output: false };
        }
        let reports_prompt = counted.prompt > 0;
        let reports_output = usage.is_some() && is_counted && (counted.completion > 0 || written == 0);
        let rest_of_total = counted.total.saturating_sub(counted.prompt);
        let adds_up = counted.total == counted.prompt.saturating_add(counted.completion);
        if usage.is_some()
            && is_counted
            && reports_prompt
            && !adds_up
            && rest_of_total.max(counted.completion) > 0
        {
            // If the counts do not add up to the total, the rest counts as output.
            counted.completion = counted.completion.max(rest_of_total);
            counted.total = counted.prompt.saturating_add(counted.completion);
            return Self { usage: counted, reports_prompt, reports_output: false };
        }
        if !reports_prompt {
            counted.prompt = sent;
        }
        if !reports_output {
            counted.completion = counted.completion.max(written);
        }
        if !(reports_prompt && reports_output) {
            counted.total = counted.prompt.saturating_add(counted.completion);
        }
        Self { usage: counted, reports_prompt, reports_output }
    }

    /// Whether the complete usage was reported.
    pub(crate) fn is_reported(&self) -> bool {
        self.reports_prompt && self.reports_output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_sum_is_rounded_once_and_needs_all_parts() {
        let cost = RequestCost::default();
        assert_eq!(cost.nano_usd(), None);
        for expected in [0, 1, 1] {
            cost.add(Some(400_000), true);
            assert_eq!(cost.nano_usd(), Some(expected));
        }
        cost.add(None, false);
        assert_eq!(cost.nano_usd(), Some(1), "a refusal costs nothing");
        cost.add(None, true);
        assert_eq!(cost.nano_usd(), None);
    }

    #[test]
    fn missing_counts_of_a_reply_are_estimated() {
        let usage =
            |prompt, completion| Usage { prompt, completion, total: prompt + completion, ..Usage::default() };
        let spent = |usage: Option<&Usage>, is_counted| {
            let spent = CallUsage::new(usage, is_counted, 100, 20);
            (spent.usage.prompt, spent.usage.completion, spent.is_reported())
        };
        assert_eq!(spent(Some(&usage(90, 7)), true), (90, 7, true));
        // Streams in the Messages format begin with a count of 1. Servers that report counts in the middle of a reply
        // may report more than the text received so far.
        assert_eq!(spent(Some(&usage(90, 1)), false), (90, 20, false));
        assert_eq!(spent(Some(&usage(90, 50)), false), (90, 50, false));
        // Gemini may report only prompt tokens.
        assert_eq!(spent(Some(&usage(90, 0)), true), (90, 20, false));
        assert_eq!(spent(Some(&usage(0, 7)), true), (100, 7, false));
        assert_eq!(spent(None, true), (100, 20, false));
        let total = |total| Usage { total, ..Usage::default() };
        assert_eq!(spent(Some(&total(5_000)), true), (100, 4_900, false));
        assert_eq!(spent(Some(&total(90)), true), (70, 20, false));
        assert_eq!(spent(Some(&total(9)), true), (0, 9, false));
        assert_eq!(spent(Some(&total(9)), false), (100, 20, false));
        assert!(CallUsage::new(Some(&usage(90, 0)), true, 100, 0).is_reported());
        // Counts that do not add up to their total.
        let stated = |completion, total| Usage { total, ..usage(90, completion) };
        assert_eq!(spent(Some(&stated(7, 500)), true), (90, 410, false));
        assert_eq!(spent(Some(&stated(0, 500)), true), (90, 410, false));
        assert_eq!(spent(Some(&stated(30, 100)), true), (90, 30, false));
        assert_eq!(spent(Some(&stated(0, 90)), true), (90, 20, false));
    }
}
