//! Families of models that have the same tokenizer.

use super::TokenCount;
use super::claude::{self, TokenizerVersion};
use super::image::Dimensions;
use super::openai::{CL100K, O200K};

/// Models that use the same vocabulary, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// OpenAI's models since gpt-4o. Their vocabulary `o200k_base` is published.
    O200k,
    /// gpt-4 and gpt-3.5. Their vocabulary `cl100k_base` is published.
    Cl100k,
    /// OpenAI's models since gpt-6. Their vocabulary is not published, so tokens are counted with
    /// `o200k_base`.
    LaterOpenAi,
    /// Claude 3 to 4.6.
    Claude3,
    /// Claude 4.7, which has more tokens for the same text than earlier versions.
    Claude47,
    /// Claude 4.8 and later.
    Claude48,
    /// Gemini and Gemma.
    Gemini,
    /// All other models.
    Other,
}

/// Percentage of the `o200k_base` count that is used for unknown vocabularies. It is above 100, because an
/// underestimate would trigger the emergency brake too late.
pub(super) const UNKNOWN_VOCABULARY_PERCENT: u64 = 115;

impl Family {
    /// Returns the family of a model. Its name may have a provider prefix.
    ///
    /// ```
    /// use endmark_context::count::Family;
    /// assert_eq!(Family::of("openrouter/openai/gpt-5-mini"), Family::O200k);
    /// assert_eq!(Family::of("claude-sonnet-4-5-20250929"), Family::Claude3);
    /// assert_eq!(Family::of("us.anthropic.claude-opus-4-8-v1:0"), Family::Claude48);
    /// assert_eq!(Family::of("my-model"), Family::Other);
    /// ```
    pub fn of(model: &str) -> Self {
        let name = model.trim().to_lowercase();
        let own = name.rsplit('/').next().unwrap_or(&name);
        if let Some(at) = own.find("claude") {
            return match claude_version(&own[at..]) {
                version if version < (4, 7) => Self::Claude3,
                version if version < (4, 8) => Self::Claude47,
                _ => Self::Claude48,
            };
        }
        if own.starts_with("gemini") || own.starts_with("gemma") {
            return Self::Gemini;
        }
        let is_o_series =
            own.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let begins = |names: &[&str]| names.iter().any(|begin| own.starts_with(begin));
        if is_o_series
            || begins(&["gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "chatgpt-4o", "codex-mini"])
        {
            Self::O200k
        } else if begins(&["gpt-4", "gpt-3.5", "gpt-35"]) {
            Self::Cl100k
        } else if begins(&["gpt-"]) {
            Self::LaterOpenAi
        } else {
            Self::Other
        }
    }

    /// Returns the number of tokens in a text.
    pub fn tokens(self, text: &str) -> u64 {
        self.count(text, || false).tokens
    }

    /// Returns the number of tokens in a text, and whether the provider gets exactly the same number.
    ///
    /// `is_stopped` is called every few kilobytes. Once it returns true, the rest of the text is not counted.
    pub fn count(self, text: &str, is_stopped: fn() -> bool) -> TokenCount {
        let o200k = || O200K.get().count(text, is_stopped);
        let estimated = |tokens| TokenCount { tokens, exact: false };
        let claude = |generation| estimated(claude::count_tokens(text, generation, is_stopped));
        match self {
            Self::O200k => o200k(),
            Self::LaterOpenAi => estimated(o200k().tokens),
            Self::Cl100k => CL100K.get().count(text, is_stopped),
            Self::Claude3 => claude(TokenizerVersion::Three),
            Self::Claude47 => claude(TokenizerVersion::FourSeven),
            Self::Claude48 => claude(TokenizerVersion::FourEight),
            Self::Gemini | Self::Other => {
                estimated(o200k().tokens.saturating_mul(UNKNOWN_VOCABULARY_PERCENT).div_ceil(100))
            }
        }
    }

    /// Whether counts for this family are exact, if the text has no word of more than 64 KiB.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::O200k | Self::Cl100k)
    }

    /// Whether the family's vocabulary is in memory. Loading it takes up to a tenth of a second.
    pub fn is_ready(self) -> bool {
        match self {
            Self::O200k | Self::LaterOpenAi | Self::Gemini | Self::Other => O200K.is_loaded(),
            Self::Cl100k => CL100K.is_loaded(),
            Self::Claude3 => TokenizerVersion::Three.is_ready(),
            Self::Claude47 => TokenizerVersion::FourSeven.is_ready(),
            Self::Claude48 => TokenizerVersion::FourEight.is_ready(),
        }
    }

    /// Returns the name of the family in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::LaterOpenAi => "openai_later",
            Self::Claude3 => "claude_3",
            Self::Claude47 => "claude_4_7",
            Self::Claude48 => "claude_4_8",
            Self::Gemini => "gemini",
            Self::Other => "other",
        }
    }

    /// Returns the number of tokens for an image of this size.
    ///
    /// The image is scaled down to the model's limits, and then divided into patches of a size that depends
    /// on the model. The formulas reproduce public measurements (data set `JOHNISKING/image-token-cost`).
    pub fn image_tokens(self, image: Dimensions) -> u64 {
        match self {
            Self::Claude3 => {
                let fitted = image.within_edge(1_568);
                fitted.patches(28).min(1_568) + if image.long_edge() > 2_000 { 32 } else { 0 }
            }
            Self::Claude47 | Self::Claude48 | Self::Other => {
                let fitted = image.within_edge(2_000);
                fitted.patches(28).min(4_784) + if image.long_edge() > 2_000 { 40 } else { 0 }
            }
            Self::LaterOpenAi => image.patches(32).min(10_000).saturating_mul(12).div_ceil(10),
            Self::O200k | Self::Cl100k => {
                85 + 170 * image.within_edge(2_048).with_short_edge(768).patches(512)
            }
            Self::Gemini if image.long_edge() <= 384 => 258,
            Self::Gemini => 258u64.saturating_mul(image.patches(768)).max(1_100),
        }
    }
}

/// Removes vocabularies from memory that were not used since the last call.
///
/// A program that counts occasionally should call this every few minutes, because vocabularies need some ten
/// megabytes of memory.
pub fn drop_unused_vocabularies() {
    for shelf in [&O200K, &CL100K] {
        shelf.drop_unused();
    }
    claude::drop_unused();
}

/// Returns the version in the name of a Claude model, such as `claude-3-5-sonnet`, `claude-opus-4-8` or
/// `claude-fable-5.1`. Treats a name without a version as the newest version.
fn claude_version(name: &str) -> (u32, u32) {
    let numbers: Vec<u32> = name
        .split(|c: char| !c.is_ascii_digit())
        // A longer number is a date, not a version.
        .filter(|digits| !digits.is_empty() && digits.len() <= 2)
        .filter_map(|digits| digits.parse().ok())
        .collect();
    match numbers[..] {
        [] => (u32::MAX, 0),
        [major] => (major, 0),
        [major, minor, ..] => (major, minor),
    }
}
