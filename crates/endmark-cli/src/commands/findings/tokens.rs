//! The tokens of a text, really counted.

use endmark_findings::CountTokens;

/// The tokenizer of today's OpenAI models; others are within a few percent of it for code and English.
pub(super) struct O200kBase;

impl O200kBase {
    /// Its name.
    pub(super) const NAME: &str = "o200k_base";
}

impl CountTokens for O200kBase {
    fn count(&self, text: &str) -> u64 {
        endmark_context::count::Family::O200k.tokens(text)
    }
}
