//! Whether what is said of a cut document is true of the whole one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Cut;
use crate::closer::Said;

/// What a closer did with a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// All that it says is in the document, or a beginning of it.
    TrueBeginning,
    /// True, but a member is missing that was there already.
    Dropped,
    /// A member that the document does not have.
    Invented,
    /// A value that the document does not have, or an unfinished one that is not marked by a closer that marks.
    Untrue,
    /// It says nothing.
    Nothing,
}

/// Judges what was said.
pub fn judge(said: Option<&Said>, cut: &Cut) -> Judgement {
    let Some(said) = said else { return Judgement::Nothing };
    if invents(&said.value, &cut.document) {
        return Judgement::Invented;
    }
    let is_true = match &said.unfinished {
        None => is_beginning(&said.value, &cut.document),
        Some(marked) => is_marked_beginning(&said.value, &cut.document, "", marked),
    };
    match cut.must_have {
        _ if !is_true => Judgement::Untrue,
        Some(name) if said.value.get(name).is_none() => Judgement::Dropped,
        _ => Judgement::TrueBeginning,
    }
}

/// Whether there is a name that is not in the document at the same place.
fn invents(said: &Value, meant: &Value) -> bool {
    match (said, meant) {
        (Value::Object(said), Value::Object(meant)) => {
            said.iter().any(|(name, said)| meant.get(name).is_none_or(|meant| invents(said, meant)))
        }
        (Value::Array(said), Value::Array(meant)) => {
            said.iter().zip(meant).any(|(said, meant)| invents(said, meant))
        }
        _ => false,
    }
}

/// Whether it is a beginning, for a closer that marks nothing: only what stands last may be unfinished.
fn is_beginning(said: &Value, meant: &Value) -> bool {
    let is_one = |index: usize, count: usize, said: &Value, meant: &Value| {
        if index + 1 == count { is_beginning(said, meant) } else { said == meant }
    };
    match (said, meant) {
        (Value::String(said), Value::String(meant)) => meant.starts_with(said.as_str()),
        (Value::Array(said), Value::Array(meant)) => {
            let mut pairs = said.iter().zip(meant).enumerate();
            said.len() <= meant.len()
                && pairs.all(|(index, (one, other))| is_one(index, said.len(), one, other))
        }
        (Value::Object(said), Value::Object(meant)) => {
            let mut pairs = said.iter().zip(meant).enumerate();
            said.len() <= meant.len()
                && pairs.all(|(index, (one, other))| {
                    one.0 == other.0 && is_one(index, said.len(), one.1, other.1)
                })
        }
        _ => said == meant,
    }
}

/// Whether it is a beginning where it is marked, and equal elsewhere.
fn is_marked_beginning(said: &Value, meant: &Value, pointer: &str, marked: &BTreeSet<String>) -> bool {
    let is_marked = marked.contains(pointer);
    match (said, meant) {
        (Value::String(said), Value::String(meant)) if is_marked => meant.starts_with(said.as_str()),
        // A number that is the whole text is whole, and marked as it may go on to any other.
        (Value::Number(_), Value::Number(_)) if is_marked && pointer.is_empty() => true,
        (Value::Array(said), Value::Array(meant)) => {
            let fits = said.len() == meant.len() || is_marked && said.len() < meant.len();
            let mut pairs = said.iter().zip(meant).enumerate();
            fits && pairs.all(|(index, (said, meant))| {
                is_marked_beginning(said, meant, &format!("{pointer}/{index}"), marked)
            })
        }
        (Value::Object(said), Value::Object(meant)) => {
            let fits = said.len() == meant.len() || is_marked && said.len() < meant.len();
            let mut pairs = said.iter().zip(meant);
            fits && pairs.all(|((said_name, said), (meant_name, meant))| {
                let step = meant_name.replace('~', "~0").replace('/', "~1");
                said_name == meant_name
                    && is_marked_beginning(said, meant, &format!("{pointer}/{step}"), marked)
            })
        }
        _ => said == meant,
    }
}
