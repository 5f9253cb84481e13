//! How many tokens a text has for a model, about.

use endmark_context::compact::Count;
use endmark_context::count::Family;

/// What counts the tokens of a text as this model has them.
pub(super) fn counter(model: &str) -> Count {
    match Family::of(model) {
        Family::O200k | Family::LaterOpenAi => |text| Family::O200k.tokens(text),
        Family::Cl100k => |text| Family::Cl100k.tokens(text),
        Family::EarlyClaude => |text| Family::EarlyClaude.tokens(text),
        Family::LateClaude => |text| Family::LateClaude.tokens(text),
        Family::Gemini => |text| Family::Gemini.tokens(text),
        Family::Other => |text| Family::Other.tokens(text),
    }
}
