//! How many tokens a text has for a model, about.

use endmark_context::compact::Count;
use endmark_context::count::Family;

/// What counts the tokens of a text as this model has them.
pub(super) fn counter(model: &str) -> Count {
    match Family::of(model) {
        Family::O200k | Family::LaterOpenAi => |text| Family::O200k.tokens(text),
        Family::Cl100k => |text| Family::Cl100k.tokens(text),
        Family::Claude3 => |text| Family::Claude3.tokens(text),
        Family::Claude47 => |text| Family::Claude47.tokens(text),
        Family::Claude48 => |text| Family::Claude48.tokens(text),
        Family::Gemini => |text| Family::Gemini.tokens(text),
        Family::Other => |text| Family::Other.tokens(text),
    }
}
