//! A candidate and its parts, in a response or in a chunk of a stream.

use std::borrow::Cow;

use endmark_context::count::TextTally;

use super::request::{FUNCTION_CALL, field_in_either_spelling};
use crate::json::{Kind, Value};

pub(super) const SIGNATURE: [&str; 2] = ["thoughtSignature", "thought_signature"];
const MEDIA_FIELDS: [&str; 4] = ["inlineData", "inline_data", "fileData", "file_data"];
const PARTIAL_ARGUMENTS: [&str; 2] = ["partialArgs", "partial_args"];
const WILL_CONTINUE: [&str; 2] = ["willContinue", "will_continue"];

/// Returns the candidates of a response with their numbers. The number of a candidate without one is its
/// position.
pub(super) fn candidates(root: Value<'_>) -> impl Iterator<Item = (u32, Value<'_>)> {
    let candidates = (0..).zip(root.field("candidates").into_iter().flat_map(Value::items));
    candidates.map(|(position, candidate)| {
        (candidate.field("index").and_then(number).unwrap_or(position), candidate)
    })
}

/// Returns the number of a candidate.
pub(super) fn number(index: Value<'_>) -> Option<u32> {
    index.as_u64().and_then(|index| u32::try_from(index).ok())
}

/// Returns the candidate with this number, if it is an object.
pub(super) fn candidate(root: Value<'_>, choice: u32) -> Option<Value<'_>> {
    let mut candidates = candidates(root);
    candidates.find(|(index, _)| *index == choice)?.1.as_kind(Kind::Object)
}

/// Returns the parts of a candidate.
pub(super) fn parts(candidate: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    candidate.at("content.parts").into_iter().flat_map(Value::items)
}

/// Returns the last part with content. Servers may send an empty text after a call, with or without its
/// signature.
pub(super) fn last_content_part<'a>(parts: impl Iterator<Item = Value<'a>>) -> Option<Value<'a>> {
    parts.filter(|part| part_text(*part).is_none_or(|text| !text.is_blank())).last()
}

/// Returns the text of a part that is not a thought.
pub(super) fn part_text(part: Value<'_>) -> Option<Value<'_>> {
    part.field("text").filter(|text| text.kind() == Kind::String && !is_thought(part))
}

/// Returns whether a part contains more than a text, a thought or a call, such as an image or the output of
/// the server's code. No request can contain such a part.
pub(super) fn has_extra(part: Value<'_>) -> bool {
    let shown = || ["text", "thought"].into_iter().chain(SIGNATURE).chain(FUNCTION_CALL);
    part.fields().any(|field| !shown().any(|name| field.has_name(name)))
}

/// Adds a part that is neither text nor a call to the tally: media, or code and its result.
pub(super) fn tally_other_part(part: Value<'_>, written: &mut TextTally) {
    if MEDIA_FIELDS.iter().any(|name| part.field(name).is_some()) {
        written.add_medium();
    } else if part_text(part).is_none() && part_call(part).is_none() && has_extra(part) {
        written.add(part.raw());
    }
}

/// Returns whether a candidate states the sources of its text, such as search results. They would not cover a
/// continuation.
pub(super) fn is_grounded(candidate: Value<'_>) -> bool {
    let has_any_value = |found: Value<'_>| found.fields().any(|field| !field.value.is_blank());
    let found = ["groundingMetadata", "urlContextMetadata"];
    found.into_iter().filter_map(|name| candidate.field(name)).any(has_any_value)
}

/// Returns the number of web searches that a candidate is billed for. Each query counts, but with models
/// before Gemini 3 all queries together count as one.
pub(super) fn web_searches(candidate: Value<'_>, model: &str) -> u64 {
    let queries = candidate.field("groundingMetadata").and_then(|found| found.field("webSearchQueries"));
    let queries = queries.map_or(0, |queries| queries.items().count() as u64);
    let is_one = ["gemini-1", "gemini-2"].iter().any(|old| model.starts_with(old));
    if is_one { queries.min(1) } else { queries }
}

/// Returns whether a part is a thought.
pub(super) fn is_thought(part: Value<'_>) -> bool {
    part.field("thought").and_then(Value::as_bool) == Some(true)
}

/// Returns the call in a part.
pub(super) fn part_call(part: Value<'_>) -> Option<Value<'_>> {
    field_in_either_spelling(part, FUNCTION_CALL)
        .map(|(_, call)| call)
        .filter(|call| call.kind() == Kind::Object)
}

/// Returns the signature of the thought that led to a part.
pub(super) fn part_signature(part: Value<'_>) -> Option<String> {
    field_in_either_spelling(part, SIGNATURE).and_then(|(_, signature)| signature.text()).map(Cow::into_owned)
}

/// Returns whether a call arrives in pieces. Each piece sets a single value in its arguments and is not text.
pub(super) fn is_in_pieces(call: Value<'_>) -> bool {
    field_in_either_spelling(call, PARTIAL_ARGUMENTS).is_some()
        || will_continue(call)
        || call.fields().next().is_none()
}

/// Returns whether the call states that more of it will follow.
pub(super) fn will_continue(call: Value<'_>) -> bool {
    field_in_either_spelling(call, WILL_CONTINUE).and_then(|(_, more)| more.as_bool()) == Some(true)
}

/// Returns the JSON of a call's arguments, or `{}` for a call without arguments. If the reply is cut directly
/// after the call, missing arguments mean that the server could not parse the received part.
pub(super) fn call_arguments(call: Value<'_>, is_cut: bool) -> &str {
    let arguments = call.field("args").filter(|args| args.kind() == Kind::Object);
    match arguments.filter(|args| args.fields().next().is_some()) {
        Some(arguments) => arguments.raw(),
        None if is_cut => "",
        None => arguments.map_or("{}", Value::raw),
    }
}
