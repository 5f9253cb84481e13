//! Computes the cost of a call with integers (CX-6).
//!
//! A rate is a whole number of nano-dollars per million tokens, because a price per single token may be a
//! fraction: the input of `deepseek-v3.2` costs 228,800,000 nano-dollars per million tokens. Costs are summed
//! in millionths of nano-dollars, and rounded once.

mod schedule;

pub use schedule::{DailySpan, PriceEntry};

use crate::moment::Moment;
use crate::tokens::Tokens;

/// Nano-dollars per million tokens.
pub type Rate = u64;

/// The number of tokens that cost one rate.
const TOKENS_PER_RATE: u128 = 1_000_000;

/// Rates of searches are per thousand searches. A number of searches times this constant has the unit of a
/// number of tokens.
const TOKENS_PER_SEARCH: u128 = 1_000;

/// The rates of all kinds of tokens.
///
/// If a kind has no rate, the rate of the kind that contains it applies: cached tokens cost as much as prompt
/// tokens, and reasoning costs as much as output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Prompt tokens.
    pub input: Option<Rate>,
    /// Reply tokens.
    pub output: Option<Rate>,
    /// Prompt tokens that were read from a cache.
    pub cached: Option<Rate>,
    /// Prompt tokens that were written to a short-lived cache (minutes).
    pub cache_write: Option<Rate>,
    /// Prompt tokens that were written to a one-hour cache.
    pub cache_write_1h: Option<Rate>,
    /// Audio in the prompt.
    pub input_audio: Option<Rate>,
    /// Audio in the prompt that was read from a cache.
    pub cached_audio: Option<Rate>,
    /// Audio in the reply.
    pub output_audio: Option<Rate>,
    /// Reasoning tokens, if they have a price of their own.
    pub reasoning: Option<Rate>,
    /// A thousand searches that the provider itself made.
    pub web_search: Option<Rate>,
    /// Whether audio without its own rate costs as much as text. If not, such audio has no price.
    pub is_audio_as_text: bool,
}

impl Rates {
    /// Returns these rates. Missing ones are copied from `base`.
    #[must_use]
    pub fn or_base(self, base: Self) -> Self {
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

/// The prices of one model: how they change over time and by service tier.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// The price entries of the standard tier. If several entries apply at a moment, the last one counts.
    pub(crate) standard: Vec<PriceEntry>,
    /// The price entries of other tiers: `batch`, `flex`, `priority`, `fast`.
    pub(crate) variants: Vec<(String, Vec<PriceEntry>)>,
}

/// Whether a call in this service tier costs the standard price.
pub fn is_standard_tier(tier: &str) -> bool {
    matches!(tier, "" | "default" | "standard" | "auto")
}

/// Anthropic's name for inference in the United States only. It costs 1.1 times as much for all tokens:
/// <https://platform.claude.com/docs/en/about-claude/pricing#data-residency-pricing>.
const US_ONLY: &str = "us";
/// The surcharge is the price of the tokens divided by this number, so 10 %.
const US_ONLY_SURCHARGE_DIVISOR: u128 = 10;

/// The tier of calls in which a second model advised the first one.
///
/// Anthropic bills the advisor's tokens at the advisor's rates, but reports them in one sum with the other
/// tokens (`advisor_message` in `usage.iterations`). Therefore the cost of such a call is unknown.
pub const ADVISED_TIER: &str = "advisor";

/// A computed cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Nano-dollars, rounded half up.
    pub nano_usd: u64,
    /// Whether the table has no price for the call's tier. If so, the cost is computed at the standard price.
    pub is_unknown_tier: bool,
}

impl Prices {
    /// Returns prices that apply at any time and in any tier.
    pub fn flat(rates: Rates) -> Self {
        Self { standard: vec![PriceEntry::always_applicable(rates)], variants: Vec::new() }
    }

    /// Returns the cost of a call. Its reply arrived at `at`.
    ///
    /// Returns `None` if any of its tokens have no known price (CX-6: an unknown price is never 0).
    ///
    /// `tier` is the service tier in the reply; `default` and `standard` mean the standard price. Several
    /// tiers are joined by `+`. `us` adds 10 % to the price of tokens, as Anthropic charges for inference in
    /// the United States only.
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
        Some(Cost { nano_usd: round_half_up(millionths), is_unknown_tier })
    }

    /// Like [`cost`](Self::cost), in millionths of nano-dollars and not rounded. The second value states
    /// whether the tier is unknown.
    pub fn exact_cost(&self, tokens: &Tokens, at: Moment, tier: Option<&str>) -> Option<(u128, bool)> {
        let standard = last_applicable(&self.standard, at)?;
        let mut rates = standard.rates_for(tokens.prompt);
        let (mut is_us_only, mut is_unknown) = (false, false);
        for word in tier.unwrap_or_default().split('+').filter(|word| !is_standard_tier(word)) {
            let variant = self.variants.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            match variant.and_then(|(_, entries)| last_applicable(entries, at)) {
                Some(variant) => rates = variant.rates_for(tokens.prompt).or_base(rates),
                None if word == US_ONLY => is_us_only = true,
                None if word == ADVISED_TIER => return None,
                None => is_unknown = true,
            }
        }
        let searches = Tokens { web_searches: tokens.web_searches, ..Tokens::default() };
        let (cost, of_searches) = (rates.token_cost(tokens)?, rates.token_cost(&searches)?);
        let more = if is_us_only { (cost - of_searches) / US_ONLY_SURCHARGE_DIVISOR } else { 0 };
        Some((cost.saturating_add(more), is_unknown))
    }

    /// Returns the total cost of several calls at `at`, at the standard price, in millionths of nano-dollars
    /// and not rounded.
    ///
    /// `prompt_tokens` is the prompt size of one call. It decides for all calls whether the price for long
    /// prompts applies. The calls must use the same kinds of tokens.
    pub fn batch_cost(&self, tokens: &Tokens, at: Moment, prompt_tokens: u64) -> Option<u128> {
        last_applicable(&self.standard, at)?.rates_for(prompt_tokens).token_cost(tokens)
    }

    /// Returns the points where the standard price changes: prompt sizes in tokens, and minutes of the day in
    /// UTC.
    pub fn price_changes(&self) -> (Vec<u64>, Vec<u16>) {
        let above = self.standard.iter().filter_map(|entry| entry.long_prompt_rates.map(|(start, _)| start));
        let hours = self.standard.iter().filter_map(|entry| entry.hours);
        (above.collect(), hours.flat_map(|span| [span.from_minute, span.until_minute]).collect())
    }
}

/// Converts millionths of nano-dollars to nano-dollars, rounded half up.
pub fn round_half_up(millionths: u128) -> u64 {
    u64::try_from(millionths.saturating_add(TOKENS_PER_RATE / 2) / TOKENS_PER_RATE).unwrap_or(u64::MAX)
}

/// Returns the last entry that applies at `at`.
fn last_applicable(entries: &[PriceEntry], at: Moment) -> Option<&PriceEntry> {
    entries.iter().rev().find(|entry| entry.applies(at))
}

impl Rates {
    /// Returns the cost in millionths of nano-dollars. Returns `None` if the call has tokens of a kind
    /// without a price, or searches without a price. A part that is larger than its total counts as reported,
    /// because the provider bills it.
    fn token_cost(&self, tokens: &Tokens) -> Option<u128> {
        let Self { input, output, .. } = *self;
        let written = tokens.cache_write.saturating_add(tokens.cache_write_1h);
        let audio = tokens.prompt_audio.saturating_add(tokens.cached_audio);
        let plain = tokens.prompt.saturating_sub(tokens.cached).saturating_sub(written).saturating_sub(audio);
        let visible_and_hidden = tokens.reasoning.saturating_add(tokens.completion_audio);
        let as_text = |rate: Option<Rate>| rate.filter(|_| self.is_audio_as_text);
        // Reasoning without its own price costs as much as output.
        let parts = [
            (plain, input),
            (tokens.cached, self.cached.or(input)),
            (tokens.cache_write, self.cache_write.or(input)),
            (tokens.cache_write_1h, self.cache_write_1h.or(self.cache_write).or(input)),
            (tokens.prompt_audio, self.input_audio.or(as_text(input))),
            (tokens.cached_audio, self.cached_audio.or(self.input_audio).or(as_text(self.cached.or(input)))),
            (tokens.completion.saturating_sub(visible_and_hidden), output),
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

/// Error of a price in dollars that cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PriceError {
    /// The price is negative or not a finite number.
    #[error("a price is 0 or more dollars per million tokens, not {0}")]
    NotAPrice(f64),
    /// The price is above the highest plausible price.
    #[error("{0} dollars per million tokens is more than any model costs")]
    TooLarge(f64),
}

/// Maximum price per million tokens. A higher price is certainly in a wrong unit.
const HIGHEST_DOLLARS: f64 = 1_000_000.0;

/// Converts dollars per million tokens, as written in configurations, to a rate.
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

/// Formats nano-dollars as dollars, exactly, with nine decimal places (DESIGN 2).
///
/// ```
/// assert_eq!(endmark_context::dollars(10_600_000), "0.010600000");
/// ```
pub fn dollars(nano_usd: u64) -> String {
    format!("{}.{:09}", nano_usd / 1_000_000_000, nano_usd % 1_000_000_000)
}

/// Formats nano-dollars for display: whole cents for a dollar or more, otherwise two or three significant
/// digits.
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
    // Rounding unit: one cent, or the third significant digit.
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
