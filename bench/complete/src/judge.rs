//! Judges whether the value of a cut document agrees with the complete document.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Cut;
use crate::closer::Said;

/// How a closer handled a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// All of the value is in the document, or is the beginning of something in it.
    TrueBeginning,
    /// Correct, but a member is missing that the cut document already had.
    Dropped,
    /// The value has a member that the document does not have.
    Invented,
    /// The value differs from the document, or an unfinished value is not marked by a closer that marks them.
    Untrue,
    /// The closer returned no value.
    Nothing,
}

/// Judges the result of a closer.
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

/// Whether the value has a name that the document does not have at the same place.
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

/// Whether the value is a beginning, for a closer without marks: only the last value may be unfinished.
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

/// Whether marked values are beginnings and all other values are equal.
fn is_marked_beginning(said: &Value, meant: &Value, pointer: &str, marked: &BTreeSet<String>) -> bool {
    let is_marked = marked.contains(pointer);
    match (said, meant) {
        (Value::String(said), Value::String(meant)) if is_marked => meant.starts_with(said.as_str()),
        // A number that is the whole text is marked, because more digits could follow.
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
