//! What a call costs, in integers (CX-6).
//!
//! A rate is a whole number of nano-dollars per million tokens: DeepSeek's cache reads cost 3,000,000 of them, which is no
//! whole number of nano-dollars per token. A cost is summed in nano-dollars times tokens and rounded once.

mod schedule;

pub use schedule::{PriceEntry, Span};

use crate::moment::Moment;
use crate::tokens::Tokens;

/// Nano-dollars per million tokens.
pub type Rate = u64;

/// Tokens (or, for searches, thousands of them) that a rate is for.
const TOKENS_PER_RATE: u128 = 1_000_000;

/// A million tokens' worth of searches: their rate is for a thousand.
const TOKENS_PER_SEARCH: u128 = 1_000;

/// What each kind of token costs. A kind without a rate of its own costs what the kind around it costs: cached tokens
/// what the prompt costs, reasoning what the output costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// A prompt's tokens.
    pub input: Option<Rate>,
    /// Tokens of the reply.
    pub output: Option<Rate>,
    /// Tokens of the prompt that were read from a cache.
    pub cached: Option<Rate>,
    /// Tokens of the prompt that were written to a cache for minutes.
    pub cache_write: Option<Rate>,
    /// Tokens of the prompt that were written to a cache for an hour.
    pub cache_write_1h: Option<Rate>,
    /// Audio in the prompt.
    pub input_audio: Option<Rate>,
    /// Audio in the prompt that was read from a cache.
    pub cached_audio: Option<Rate>,
    /// Audio in the reply.
    pub output_audio: Option<Rate>,
    /// Reasoning, where it is not billed as output.
    pub reasoning: Option<Rate>,
    /// A thousand searches of the provider's own.
    pub web_search: Option<Rate>,
    /// Whether audio without a rate of its own costs what text costs. Without this such audio has no price.
    pub is_audio_as_text: bool,
}

impl Rates {
    /// These, and what `base` has where these have nothing.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        Self {
            input: self.input.or(base.input),
            output: self.output.or(base.output),
            cached: self.cached.or(base.cached),
            cache_write: self.cache_write.or(base.cache_write),
            cache_write_1h: self.cache_write_1h.or(base.cache_write_1h),
            input_audio: self.input_audio.or(base.input_audio),
            cached_audio: self.cached_audio.or(base.cached_audio),
            output_audio: self.output_audio.or(base.output_audio),
            reasoning: self.reasoning.or(base.reasoning),
            web_search: self.web_search.or(base.web_search),
            is_audio_as_text: self.is_audio_as_text || base.is_audio_as_text,
        }
    }
}

/// The prices of one model over time, and how they vary with the way it is served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// Of the entries that apply, the last one counts.
    pub(crate) standard: Vec<PriceEntry>,
    /// By the tier's name: `batch`, `flex`, `priority`, `fast`.
    pub(crate) variants: Vec<(String, Vec<PriceEntry>)>,
}

/// Whether a call that names this tier costs the standard price.
pub fn is_standard_tier(tier: &str) -> bool {
    matches!(tier, "" | "default" | "standard" | "auto")
}

/// Anthropic's word for inference in the United States alone, which costs 1.1 times as much for all tokens:
/// <https://platform.claude.com/docs/en/about-claude/pricing#data-residency-pricing>.
const US_ONLY: &str = "us";
/// The part of the price of tokens that it costs more.
const US_ONLY_SHARE: u128 = 10;

/// The word for a call that a model of other prices advised: Anthropic bills these tokens at the rates of that model, and counts
/// them with the others (`advisor_message` in `usage.iterations`). What the call costs is not known.
pub const ADVISED_TIER: &str = "advisor";

/// A cost that could be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Nano-dollars, rounded half up.
    pub nano_usd: u64,
    /// Whether the call named a tier that the table has no price of: the standard price stands in for it.
    pub is_unknown_tier: bool,
}

impl Prices {
    /// The same price at any time, whatever the tier.
    pub fn flat(rates: Rates) -> Self {
        Self { standard: vec![PriceEntry::always(rates)], variants: Vec::new() }
    }

    /// What a call costs whose reply came at `at`, or none where the table has no price of its tokens (CX-6: an
    /// unknown price is never 0).
    ///
    /// `tier` is what the reply says it was served as (`default` and `standard` are the standard price). Several words are
    /// joined by `+`; `us` is a tenth more for tokens, as Anthropic charges for inference in the United States alone.
    ///
    /// ```
    /// use endmark_context::{Models, Moment, Tokens};
    /// let model = Models::builtin().find("claude-sonnet-5").unwrap();
    /// let tokens = Tokens { prompt: 10_000, cached: 8_000, completion: 500, ..Tokens::default() };
    /// let cost = model.prices.cost(&tokens, Moment::from_unix_seconds(1_790_000_000), None).unwrap();
    /// // 2,000 at $2, 8,000 at $0.20 and 500 at $10 a million.
    /// assert_eq!(cost.nano_usd, 10_600_000);
    /// ```
    pub fn cost(&self, tokens: &Tokens, at: Moment, tier: Option<&str>) -> Option<Cost> {
        let (millionths, is_unknown_tier) = self.exact_cost(tokens, at, tier)?;
        Some(Cost { nano_usd: rounded(millionths), is_unknown_tier })
    }

    /// The same in millionths of nano-dollars, not rounded, and whether the tier is unknown.
    pub fn exact_cost(&self, tokens: &Tokens, at: Moment, tier: Option<&str>) -> Option<(u128, bool)> {
        let standard = applying(&self.standard, at)?;
        let mut rates = standard.rates_for(tokens.prompt);
        let (mut is_us_only, mut is_unknown) = (false, false);
        for word in tier.unwrap_or_default().split('+').filter(|word| !is_standard_tier(word)) {
            let variant = self.variants.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            match variant.and_then(|(_, entries)| applying(entries, at)) {
                Some(variant) => rates = variant.rates_for(tokens.prompt).over(rates),
                None if word == US_ONLY => is_us_only = true,
                None if word == ADVISED_TIER => return None,
                None => is_unknown = true,
            }
        }
        let searches = Tokens { web_searches: tokens.web_searches, ..Tokens::default() };
        let (cost, of_searches) = (rates.cost_of(tokens)?, rates.cost_of(&searches)?);
        let more = if is_us_only { (cost - of_searches) / US_ONLY_SHARE } else { 0 };
        Some((cost.saturating_add(more), is_unknown))
    }

    /// What several calls cost together at the standard price, in millionths of nano-dollars, not rounded: calls at `at` whose
    /// prompts have another price than shorter ones where one of `prompt_tokens` has. They have tokens of the same kinds.
    pub fn cost_of_many(&self, tokens: &Tokens, at: Moment, prompt_tokens: u64) -> Option<u128> {
        applying(&self.standard, at)?.rates_for(prompt_tokens).cost_of(tokens)
    }

    /// Where the standard price changes: behind prompts of how many tokens, and at which minutes of the day (UTC).
    pub fn edges(&self) -> (Vec<u64>, Vec<u16>) {
        let above = self.standard.iter().filter_map(|entry| entry.above.map(|(start, _)| start));
        let hours = self.standard.iter().filter_map(|entry| entry.hours);
        (above.collect(), hours.flat_map(|span| [span.from_minute, span.until_minute]).collect())
    }
}

/// Nano-dollars from millionths of them, rounded half up.
pub fn rounded(millionths: u128) -> u64 {
    u64::try_from(millionths.saturating_add(TOKENS_PER_RATE / 2) / TOKENS_PER_RATE).unwrap_or(u64::MAX)
}

/// The last entry that applies.
fn applying(entries: &[PriceEntry], at: Moment) -> Option<&PriceEntry> {
    entries.iter().rev().find(|entry| entry.applies(at))
}

impl Rates {
    /// Millionths of nano-dollars; none where there are tokens of a kind, or searches, without a price. Parts that do not fit into their whole count as they are
    /// reported: a provider bills them.
    fn cost_of(&self, tokens: &Tokens) -> Option<u128> {
        let Self { input, output, .. } = *self;
        let written = tokens.cache_write.saturating_add(tokens.cache_write_1h);
        let audio = tokens.prompt_audio.saturating_add(tokens.cached_audio);
        let plain = tokens.prompt.saturating_sub(tokens.cached).saturating_sub(written).saturating_sub(audio);
        let spoken = tokens.reasoning.saturating_add(tokens.completion_audio);
        let as_text = |rate: Option<Rate>| rate.filter(|_| self.is_audio_as_text);
        // Where reasoning has no price of its own it is output like any other.
        let parts = [
            (plain, input),
            (tokens.cached, self.cached.or(input)),
            (tokens.cache_write, self.cache_write.or(input)),
            (tokens.cache_write_1h, self.cache_write_1h.or(self.cache_write).or(input)),
            (tokens.prompt_audio, self.input_audio.or(as_text(input))),
            (tokens.cached_audio, self.cached_audio.or(self.input_audio).or(as_text(self.cached.or(input)))),
            (tokens.completion.saturating_sub(spoken), output),
            (tokens.reasoning, self.reasoning.or(output)),
            (tokens.completion_audio, self.output_audio.or(as_text(output))),
        ];
        let mut sum: u128 = 0;
        for (count, rate) in parts {
            if count > 0 {
                sum = sum.saturating_add(u128::from(count) * u128::from(rate?));
            }
        }
        if tokens.web_searches > 0 {
            let searches = u128::from(tokens.web_searches) * u128::from(self.web_search?);
            sum = sum.saturating_add(searches.saturating_mul(TOKENS_PER_SEARCH));
        }
        Some(sum)
    }
}

/// A price that cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PriceError {
    /// It is below 0, or no number.
    #[error("a price is 0 or more dollars per million tokens, not {0}")]
    NotAPrice(f64),
    /// It would not fit.
    #[error("{0} dollars per million tokens is more than any model costs")]
    TooLarge(f64),
}

/// More than this per million tokens is a mistake in the unit.
const HIGHEST_DOLLARS: f64 = 1_000_000.0;

/// A rate from dollars per million tokens, as configurations have it.
///
/// ```
/// use endmark_context::rate_from_dollars;
/// assert_eq!(rate_from_dollars(0.0028), Ok(2_800_000));
/// assert!(rate_from_dollars(-1.0).is_err());
/// ```
pub fn rate_from_dollars(dollars: f64) -> Result<Rate, PriceError> {
    if dollars.is_nan() || dollars < 0.0 {
        return Err(PriceError::NotAPrice(dollars));
    }
    if dollars > HIGHEST_DOLLARS {
        return Err(PriceError::TooLarge(dollars));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 10^15")]
    let rate = (dollars * 1e9).round() as u64;
    Ok(rate)
}

/// Nano-dollars as dollars with nine places, exactly (DESIGN 2).
///
/// ```
/// assert_eq!(endmark_context::dollars(10_600_000), "0.010600000");
/// ```
pub fn dollars(nano_usd: u64) -> String {
    format!("{}.{:09}", nano_usd / 1_000_000_000, nano_usd % 1_000_000_000)
}

/// Nano-dollars as people read them: whole cents from a dollar on, else the first two to three places that say something.
///
/// ```
/// use endmark_context::dollars_for_people;
/// assert_eq!(dollars_for_people(2_500_000_000), "2.50");
/// assert_eq!(dollars_for_people(62_540), "0.0000625");
/// assert_eq!(dollars_for_people(250_000), "0.00025");
/// assert_eq!(dollars_for_people(999_999_999), "1.00");
/// assert_eq!(dollars_for_people(0), "0.00");
/// ```
pub fn dollars_for_people(nano_usd: u64) -> String {
    const DOLLAR: u64 = 1_000_000_000;
    // What is rounded to: a cent, or the third place that is not zero.
    let unit = if nano_usd >= DOLLAR {
        DOLLAR / 100
    } else {
        10_u64.pow(nano_usd.max(1).ilog10().saturating_sub(2))
    };
    let rounded = nano_usd.saturating_add(unit / 2) / unit * unit;
    let exact = dollars(rounded);
    let places = exact.trim_end_matches('0').len().max(exact.len() - 7);
    exact.get(..places).unwrap_or(&exact).to_owned()
}

#[cfg(test)]
mod tests;
