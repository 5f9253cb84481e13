//! The sums over calls: which calls count together, since all prices are the same for them, and what is summed of each.

use crate::calls::UsageRow;

/// Prompts of more tokens than these have another price with some model. A test compares them with the table of prices; one more
/// here needs a migration that sums all calls again.
pub const PROMPT_EDGES: [u64; 6] = [100_000, 128_000, 199_999, 200_000, 272_000, 512_000];

/// Models whose price depends on the hour, by a word that their names have in them, and the minutes of the day (UTC) at which it
/// changes. The same holds for these.
pub const MINUTE_EDGES: [(&str, &[u16]); 1] = [("deepseek", &[30, 60, 240, 360, 600, 990])];

/// How a call ended whose process was killed.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// What calls have in common that count together on one day: each price applies to all of them or to none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallClass {
    /// The upstream's name.
    pub upstream: String,
    /// Why they were made: [`Purpose::name`](crate::Purpose::name).
    pub purpose: String,
    /// The model that was asked for.
    pub model: String,
    /// The model that says it answered; empty where none does.
    pub answered_model: String,
    /// Of which kinds they have tokens, a bit each; 0 where they have none.
    pub kinds: u8,
    /// The largest of [`PROMPT_EDGES`] that their prompts exceed; 0 for none.
    pub above_tokens: u64,
    /// The first minute of their part of the day, UTC.
    pub from_minute: u16,
}

/// Has a struct of counts, their names as columns, and the way there and back.
macro_rules! counts {
    ($($(#[$about:meta])+ $name:ident,)+) => {
        /// Sums over calls of one class.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct CallSums { $($(#[$about])+ pub $name: u64,)+ }

        impl CallSums {
            /// The columns, in the order of the counts.
            pub(crate) const COLUMNS: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The counts.
            pub(crate) fn counts(&self) -> [u64; Self::COLUMNS.len()] {
                [$(self.$name),+]
            }

            /// The same from their counts.
            pub(crate) fn of_counts([$($name),+]: [u64; Self::COLUMNS.len()]) -> Self {
                Self { $($name),+ }
            }

            /// These and others.
            #[must_use]
            pub fn and(&self, other: &Self) -> Self {
                Self { $($name: self.$name.saturating_add(other.$name)),+ }
            }
        }
    };
}

counts! {
    /// Calls.
    calls,
    /// Of these, the first of their request.
    requests,
    /// Calls whose reply was looked at.
    judged,
    /// Of these, replies that were cut.
    cut,
    /// Calls that ended with nothing to look at: refused, lost, cancelled.
    without_reply,
    /// Calls whose process was killed.
    interrupted,
    /// Calls of whose prompt the provider reported no tokens.
    unreported,
    /// Tokens of prompts, as far as they were reported.
    reported_prompt,
    /// Tokens of replies, as far as they were reported.
    reported_output,
    /// Tokens of prompts, estimated where nothing was reported.
    prompt,
    /// Of these, neither read from a cache nor written to one.
    plain_prompt,
    /// Of the prompts, read from a cache.
    cached,
    /// Of the prompts, written to a cache for minutes.
    cache_write,
    /// Of the prompts, written to a cache for an hour.
    cache_write_1h,
    /// Tokens that were generated, estimated where nothing was reported.
    completion,
    /// Of these, no reasoning.
    plain_completion,
    /// Tokens that were reasoning.
    reasoning,
    /// Calls whose tokens are estimated.
    estimated,
}

impl CallSums {
    /// Tokens of prompts that were read from a cache or written to one.
    pub fn in_cache(&self) -> u64 {
        self.cached.saturating_add(self.cache_write).saturating_add(self.cache_write_1h)
    }
}

/// Returns the counts of a call, and the class of calls that it counts with.
pub fn counted(call: &UsageRow) -> (CallClass, CallSums) {
    let sums = sums_of(call);
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
        from_minute: part_of_day(&call.started_at, [&call.model, &answered_model]),
        above_tokens: PROMPT_EDGES.into_iter().filter(|edge| sums.prompt > *edge).max().unwrap_or(0),
        kinds: kinds.into_iter().fold(0, |bits, tokens| bits << 1 | u8::from(tokens > 0)),
        upstream: call.upstream.clone(),
        purpose: call.purpose.clone(),
        model: call.model.clone(),
        answered_model,
    };
    (class, sums)
}

fn part_of_day(started_at: &str, models: [&str; 2]) -> u16 {
    let edges = MINUTE_EDGES
        .into_iter()
        .find(|(word, _)| models.iter().any(|model| model.to_ascii_lowercase().contains(word)));
    let number =
        |place| started_at.get(place).and_then(|digits: &str| digits.parse::<u16>().ok()).unwrap_or(0);
    let minute = number(11..13) * 60 + number(14..16);
    let edges = edges.map_or(&[][..], |(_, edges)| edges);
    edges.iter().copied().filter(|edge| *edge <= minute).max().unwrap_or(0)
}

fn sums_of(call: &UsageRow) -> CallSums {
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
    if let Some((prompt, output)) = tokens.or_estimated(call.estimate) {
        (sums.prompt, sums.completion) = (prompt, output);
        sums.estimated = u64::from(!tokens.are_complete());
        sums.cached = tokens.cached.unwrap_or(0);
        sums.cache_write_1h = tokens.cache_written_1h.unwrap_or(0);
        sums.cache_write = tokens.cache_written.unwrap_or(0).saturating_sub(sums.cache_write_1h);
        sums.reasoning = tokens.reasoning.unwrap_or(0);
    }
    sums.plain_prompt = sums.prompt.saturating_sub(sums.in_cache());
    sums.plain_completion = sums.completion.saturating_sub(sums.reasoning);
    sums
}
