//! Sums of calls. Calls are summed together only if the same prices apply to them.

use crate::calls::UsageRow;

/// Prompt sizes in tokens above which the price of some model changes. A test compares them with the price
/// table. A new size requires a migration that recomputes all sums.
pub const PROMPT_PRICE_THRESHOLDS: [u64; 6] = [100_000, 128_000, 199_999, 200_000, 272_000, 512_000];

/// Models whose price depends on the time of day: a word in the model's name, with the minutes of the day
/// (UTC) at which the price changes. A new entry requires the same test and a migration.
pub const PRICE_CHANGE_MINUTES: [(&str, &[u16]); 1] = [("deepseek", &[30, 60, 240, 360, 600, 990])];

/// The ending of a call whose process was killed.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// The properties of calls that are counted together on one day. Each price applies to all of these calls or to none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallClass {
    /// Name of the upstream.
    pub upstream: String,
    /// Purpose of the calls: [`Purpose::name`](crate::Purpose::name).
    pub purpose: String,
    /// The requested model.
    pub model: String,
    /// The model that the replies name; empty if they name no model.
    pub answered_model: String,
    /// The kinds of tokens in the calls, as one bit each; 0 means no tokens.
    pub kinds: u8,
    /// The largest of [`PROMPT_PRICE_THRESHOLDS`] that the prompts exceed, or 0 if they exceed none of them.
    pub above_tokens: u64,
    /// Start of the calls' price period, in minutes after midnight UTC. 0 if the price does not depend on the
    /// time of day.
    pub from_minute: u16,
}

/// Defines a struct of counts, with column names and conversions in both directions.
macro_rules! counts {
    ($($(#[$about:meta])+ $name:ident,)+) => {
        /// Sums over calls of one class.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct CallSums { $($(#[$about])+ pub $name: u64,)+ }

        impl CallSums {
            /// The columns, in the order of the counts.
            pub(crate) const COLUMNS: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Returns the counts in the order of [`COLUMNS`](Self::COLUMNS).
            pub(crate) fn counts(&self) -> [u64; Self::COLUMNS.len()] {
                [$(self.$name),+]
            }

            /// Creates the sums from their counts.
            pub(crate) fn from_counts([$($name),+]: [u64; Self::COLUMNS.len()]) -> Self {
                Self { $($name),+ }
            }

            /// Returns the sum of both.
            #[must_use]
            pub fn plus(&self, other: &Self) -> Self {
                Self { $($name: self.$name.saturating_add(other.$name)),+ }
            }
        }
    };
}

counts! {
    /// Number of calls.
    calls,
    /// Number of calls that are the first of their request.
    requests,
    /// Number of calls with a verdict on the reply.
    judged,
    /// Number of these replies that were cut.
    cut,
    /// Number of calls without a reply that could be judged: they were refused, lost or cancelled.
    without_reply,
    /// Number of calls whose process was killed.
    interrupted,
    /// Number of calls for which the provider reported no prompt tokens.
    unreported,
    /// Reported prompt tokens.
    reported_prompt,
    /// Reported output tokens.
    reported_output,
    /// Prompt tokens, estimated where they were not reported.
    prompt,
    /// Prompt tokens that were neither read from a cache nor written to one.
    plain_prompt,
    /// Prompt tokens read from a cache.
    cached,
    /// Prompt tokens written to a cache that keeps them for a few minutes.
    cache_write,
    /// Prompt tokens written to a cache that keeps them for an hour.
    cache_write_1h,
    /// Generated tokens, estimated where they were not reported.
    completion,
    /// Generated tokens without reasoning.
    plain_completion,
    /// Reasoning tokens.
    reasoning,
    /// Number of calls whose tokens are estimated.
    estimated,
}

impl CallSums {
    /// Returns the prompt tokens that were read from a cache or written to one.
    pub fn cache_tokens(&self) -> u64 {
        self.cached.saturating_add(self.cache_write).saturating_add(self.cache_write_1h)
    }
}

/// Returns the counts of a call, and its class.
pub fn classify(call: &UsageRow) -> (CallClass, CallSums) {
    let sums = call_sums(call);
    let kinds = [
        sums.plain_prompt,
        sums.cached,
        sums.cache_write,
        sums.cache_write_1h,
        sums.plain_completion,
        sums.reasoning,
    ];
    let answered_model = call.answered_model.clone().unwrap_or_default();
    let class = CallClass {
        from_minute: price_period_start(&call.started_at, [&call.model, &answered_model]),
        above_tokens: PROMPT_PRICE_THRESHOLDS
            .into_iter()
            .filter(|edge| sums.prompt > *edge)
            .max()
            .unwrap_or(0),
        kinds: kinds.into_iter().fold(0, |bits, tokens| bits << 1 | u8::from(tokens > 0)),
        upstream: call.upstream.clone(),
        purpose: call.purpose.clone(),
        model: call.model.clone(),
        answered_model,
    };
    (class, sums)
}

fn price_period_start(started_at: &str, models: [&str; 2]) -> u16 {
    let edges = PRICE_CHANGE_MINUTES
        .into_iter()
        .find(|(word, _)| models.iter().any(|model| model.to_ascii_lowercase().contains(word)));
    let number =
        |place| started_at.get(place).and_then(|digits: &str| digits.parse::<u16>().ok()).unwrap_or(0);
    let minute = number(11..13) * 60 + number(14..16);
    let edges = edges.map_or(&[][..], |(_, edges)| edges);
    edges.iter().copied().filter(|edge| *edge <= minute).max().unwrap_or(0)
}

fn call_sums(call: &UsageRow) -> CallSums {
    let tokens = &call.tokens;
    let is_interrupted = call.ending == INTERRUPTED;
    let mut sums = CallSums {
        calls: 1,
        requests: u64::from(call.call == 1),
        judged: u64::from(call.verdict.is_some()),
        cut: u64::from(call.verdict.as_deref() == Some("cut")),
        without_reply: u64::from(call.verdict.is_none() && !is_interrupted && call.mode != "off"),
        interrupted: u64::from(is_interrupted),
        unreported: u64::from(tokens.prompt.is_none()),
        reported_prompt: tokens.prompt.unwrap_or(0),
        reported_output: tokens.output.unwrap_or(0),
        ..CallSums::default()
    };
    if let Some((prompt, output)) = tokens.with_estimate(call.estimate) {
        (sums.prompt, sums.completion) = (prompt, output);
        sums.estimated = u64::from(!tokens.are_complete());
        sums.cached = tokens.cached.unwrap_or(0);
        sums.cache_write_1h = tokens.cache_written_1h.unwrap_or(0);
        sums.cache_write = tokens.cache_written.unwrap_or(0).saturating_sub(sums.cache_write_1h);
        sums.reasoning = tokens.reasoning.unwrap_or(0);
    }
    sums.plain_prompt = sums.prompt.saturating_sub(sums.cache_tokens());
    sums.plain_completion = sums.completion.saturating_sub(sums.reasoning);
    sums
}
