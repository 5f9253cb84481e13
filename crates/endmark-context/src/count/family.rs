//! Families of models with the same tokenizer.

use super::Count;
use super::claude::{self, Generation};
use super::image::Dimensions;
use super::openai::{CL100K, O200K};

/// Models with the same vocabulary, as far as it is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// OpenAI's models since gpt-4o: `o200k_base`, published.
    O200k,
    /// gpt-4 and gpt-3.5: `cl100k_base`, published.
    Cl100k,
    /// OpenAI's models since gpt-6, whose vocabulary is not published. They are counted with `o200k_base`.
    LaterOpenAi,
    /// Claude 3 to 4.6.
    Claude3,
    /// Claude 4.7, which has more tokens for the same text.
    Claude47,
    /// Claude 4.8 and later.
    Claude48,
    /// Gemini and Gemma.
    Gemini,
    /// All other models.
    Other,
}

/// Percentage of the `o200k_base` count for unknown vocabularies. It is high because an underestimate would trigger the
/// emergency brake too late.
pub(super) const OTHER_PERCENT: u64 = 115;

impl Family {
    /// Returns the family of a model by its name, with or without a provider prefix.
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

    /// Returns the tokens of a text.
    pub fn tokens(self, text: &str) -> u64 {
        self.count(text, || false).tokens
    }

    /// Returns the tokens of a text, and whether the provider gets the same count.
    ///
    /// `is_stopped` is called every few kilobytes. When it returns true, the rest of the text is not counted.
    pub fn count(self, text: &str, is_stopped: fn() -> bool) -> Count {
        let o200k = || O200K.get().count(text, is_stopped);
        let estimated = |tokens| Count { tokens, exact: false };
        let claude = |generation| estimated(claude::tokens(text, generation, is_stopped));
        match self {
            Self::O200k => o200k(),
            Self::LaterOpenAi => estimated(o200k().tokens),
            Self::Cl100k => CL100K.get().count(text, is_stopped),
            Self::Claude3 => claude(Generation::Three),
            Self::Claude47 => claude(Generation::FourSeven),
            Self::Claude48 => claude(Generation::FourEight),
            Self::Gemini | Self::Other => {
                estimated(o200k().tokens.saturating_mul(OTHER_PERCENT).div_ceil(100))
            }
        }
    }

    /// Whether the provider gets the same count, for a text without words of more than 64 KiB.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::O200k | Self::Cl100k)
    }

    /// Whether its vocabulary is in memory. Reading it costs up to a tenth of a second.
    pub fn is_ready(self) -> bool {
        match self {
            Self::O200k | Self::LaterOpenAi | Self::Gemini | Self::Other => O200K.is_filled(),
            Self::Cl100k => CL100K.is_filled(),
            Self::Claude3 => Generation::Three.is_ready(),
            Self::Claude47 => Generation::FourSeven.is_ready(),
            Self::Claude48 => Generation::FourEight.is_ready(),
        }
    }

    /// Returns the name of the family.
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

    /// Returns the tokens of an image of this size.
    ///
    /// The formulas reproduce public measurements (data set `JOHNISKING/image-token-cost`): patches of a model-specific
    /// size, after scaling the image down to the model's limits.
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

/// Drops vocabularies that were not used since the last call.
///
/// A program that counts occasionally should call this every few minutes, because vocabularies need some ten megabytes
/// of memory.
pub fn drop_unused_vocabularies() {
    for shelf in [&O200K, &CL100K] {
        shelf.drop_unused();
    }
    claude::drop_unused();
}

/// Returns the version in a Claude name: `claude-3-5-sonnet`, `claude-opus-4-8`, `claude-fable-5.1`. A name without a
/// version is treated as the newest.
fn claude_version(name: &str) -> (u32, u32) {
    let numbers: Vec<u32> = name
        .split(|c: char| !c.is_ascii_digit())
        // A date is not a version.
        .filter(|digits| !digits.is_empty() && digits.len() <= 2)
        .filter_map(|digits| digits.parse().ok())
        .collect();
    match numbers[..] {
        [] => (u32::MAX, 0),
        [major] => (major, 0),
        [major, minor, ..] => (major, minor),
    }
}
