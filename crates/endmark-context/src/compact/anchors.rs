//! Finds the values in a turn that an agent may need again (CX-4).
//!
//! Values are recognised by their form and location, not by words of a particular system.

mod call;
mod shape;
mod text;
mod tree;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::repair::is_placeholder;
use crate::conversation::{CallPairs, Content, Conversation, PartPosition, Role, Turn};

pub(crate) use shape::{WordShape, is_unpronounceable, word_shape, words};
pub(crate) use text::{add_exact_values, clip_line, is_error_line};

/// The kind of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnchorKind {
    /// A line of the user: a request, a constraint or a decision.
    UserLine,
    /// An unfinished step of a plan.
    Todo,
    /// A decision of the model.
    Decision,
    /// A line that reports an error.
    Error,
    /// A tool call with its outcome.
    Command,
    /// A file.
    File,
    /// A URL.
    Url,
    /// An id, a name or a date. It is only useful if it is exact.
    Identifier,
    /// A number.
    Number,
    /// A statement or thought of the model. It is part of the narrative.
    Conclusion,
    /// Tool calls of which the summary keeps only the name, the outcome and the number.
    GroupedCall,
}

/// A value or line that a summary should keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor<'a> {
    pub(crate) kind: AnchorKind,
    /// Name of the field that contains the value, or the description of the call. Empty if there is neither.
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: Cow<'a, str>,
    pub(crate) place: AnchorSource,
}

impl Anchor<'_> {
    /// Returns an owned copy of the anchor.
    pub(crate) fn into_owned(self) -> Anchor<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Anchor { kind: self.kind, key: owned(self.key), value: owned(self.value), place: self.place }
    }
}

/// Where an anchor was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnchorSource {
    /// In a user's message.
    User,
    /// In a message of the model.
    Assistant,
    /// In the arguments of a tool call.
    Argument,
    /// In the result of a tool call.
    Result,
    /// In the ledger of an earlier summary.
    Ledger,
}

/// Returns the names of all arguments of tool calls in the conversation.
pub(crate) fn argument_names(conversation: &Conversation<'_>) -> HashSet<String> {
    let mut names = HashSet::new();
    for call in conversation.turns.iter().flat_map(Turn::calls) {
        tree::collect_names(&call.arguments, &mut names);
    }
    names
}

/// Returns the anchors of all turns. `own` returns the anchors of a turn that is an earlier summary.
pub(crate) fn anchors_by_turn<'c>(
    conversation: &'c Conversation<'_>,
    pairs: &CallPairs,
    own: impl Fn(usize) -> Option<Vec<Anchor<'c>>>,
) -> Vec<Vec<Anchor<'c>>> {
    // Start with the newest turn. A result then precedes its call, so it is parsed only once and its outcome
    // is known at the call.
    let mut outcomes = BTreeMap::new();
    let turns = (0..conversation.turns.len()).rev();
    let mut found: Vec<_> = turns
        .map(|turn| own(turn).unwrap_or_else(|| turn_anchors(conversation, pairs, turn, &mut outcomes)))
        .collect();
    found.reverse();
    found
}

/// Returns the anchors of a turn, in order. `outcomes` contains those of later results; those of this turn
/// are added.
fn turn_anchors<'c>(
    conversation: &'c Conversation<'_>,
    pairs: &CallPairs,
    position: usize,
    outcomes: &mut BTreeMap<PartPosition, String>,
) -> Vec<Anchor<'c>> {
    let mut anchors = Vec::new();
    let Some(turn) = conversation.turns.get(position) else { return anchors };
    for (part, standing) in turn.parts.iter().enumerate() {
        match &standing.content {
            Content::Text(text) if turn.role == Role::User => text::add_user_lines(text, &mut anchors),
            Content::Text(text) => text::add_assistant_lines(text, &mut anchors),
            Content::Call(call) => {
                let place = pairs.result_of(PartPosition { turn: position, part });
                let known = place.and_then(|place| outcomes.remove(&place));
                let outcome = known.unwrap_or_else(|| {
                    let result =
                        |at: PartPosition| conversation.turns.get(at.turn)?.parts.get(at.part)?.result();
                    call::describe_outcome(place.and_then(result))
                });
                call::add_call_anchors(call, outcome, &mut anchors);
            }
            Content::Result(result) if is_placeholder(&result.text) => {}
            Content::Result(result) => {
                let form = add_result_anchors(&result.text, result.is_error, &mut anchors);
                outcomes.insert(PartPosition { turn: position, part }, call::describe_ending(result, &form));
            }
            Content::Media(media) => anchors.extend(media.name.as_ref().map(|name| Anchor {
                kind: AnchorKind::File,
                key: Cow::default(),
                value: clip_line(name, text::MAX_VALUE_CHARS),
                place: AnchorSource::User,
            })),
            Content::Reasoning { .. }
            | Content::Server { .. }
            | Content::Reference { .. }
            | Content::Unknown { .. } => {}
        }
    }
    anchors
}

/// Adds the words of a text to `visible`.
pub(crate) fn add_words(text: &str, visible: &mut HashSet<String>) {
    for word in words(text) {
        if !visible.contains(word) {
            visible.insert(word.to_owned());
        }
    }
}

/// The parsed form of a tool result.
pub(crate) enum ResultForm<'r> {
    /// JSON.
    Json(Value),
    /// Any other text.
    Lines {
        /// The first line that reports an error.
        first_error: Option<&'r str>,
    },
}

/// Adds the anchors of a tool result to the list, and returns the form of the result.
pub(crate) fn add_result_anchors<'a>(
    text: &'a str,
    is_error: bool,
    anchors: &mut Vec<Anchor<'a>>,
) -> ResultForm<'a> {
    let Some(value) = tree::parse(text) else {
        return ResultForm::Lines { first_error: text::add_output_lines(text, is_error, anchors) };
    };
    tree::add_json_anchors(&value, AnchorSource::Result, anchors);
    if is_error {
        text::add_first_error(text, anchors);
    }
    ResultForm::Json(value)
}

#[cfg(test)]
mod tests;
