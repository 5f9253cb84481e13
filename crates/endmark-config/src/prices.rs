//! Defines the user's own prices. (CX-6)

use endmark_context::{Rate, rate_from_dollars};
use endmark_setting::{ExpectedValue, RawSetting};
use serde_json::{Value, json};

use super::kinds::parse_rate;

/// The keys of a price.
pub(crate) const PRICE_KEYS: [&str; 4] = ["input", "cached_input", "output", "context_tokens"];

/// The prices of the models that match a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Price {
    /// The name of the models, in which `*` matches any characters.
    pub pattern: String,
    pub input: Option<Rate>,
    pub cached_input: Option<Rate>,
    pub output: Option<Rate>,
    pub context_tokens: Option<u64>,
}

impl Price {
    pub(crate) fn set(&mut self, key: &str, given: &RawSetting) -> Result<(), ExpectedValue> {
        match key {
            "input" => self.input = Some(parse_rate(given)?),
            "cached_input" => self.cached_input = Some(parse_rate(given)?),
            "output" => self.output = Some(parse_rate(given)?),
            _ => self.context_tokens = Some(given.count(1)?),
        }
        Ok(())
    }

    /// Returns the first required key that is missing, or `None` if the price is complete.
    pub fn missing_key(&self) -> Option<&'static str> {
        let required = [("input", self.input), ("output", self.output)];
        required.into_iter().find(|(_, rate)| rate.is_none()).map(|(key, _)| key)
    }

    /// Returns the keys with their values and descriptions.
    pub fn values(&self) -> [(&'static str, Value, &'static str); 4] {
        let dollars = |rate: Option<Rate>| json!(rate.map(to_dollars));
        [
            ("input", dollars(self.input), "dollars per million tokens of a prompt"),
            ("cached_input", dollars(self.cached_input), "dollars per million tokens read from a cache"),
            ("output", dollars(self.output), "dollars per million tokens of a reply"),
            ("context_tokens", json!(self.context_tokens), "tokens of a prompt and its reply together"),
        ]
    }
}

/// Converts a rate back to the dollars that the user wrote.
fn to_dollars(rate: Rate) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "checked just below")]
    let dollars = rate as f64 / 1e9;
    debug_assert_eq!(rate_from_dollars(dollars), Ok(rate));
    dollars
}
