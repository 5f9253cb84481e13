//! Judges whether the value of a cut document agrees with the complete document.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Cut;
use crate::closer::ClosedText;

/// How a closer handled a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Everything in the value is also in the document, or is the beginning of something in the document.
    TrueBeginning,
    /// Correct, but a member is missing that was already in the cut document.
    Dropped,
    /// The value has a member that the document does not have.
    Invented,
    /// The value differs from the document, or a closer that marks unfinished values did not mark one.
    Untrue,
    /// The closer returned no value.
    Nothing,
}

/// Judges the result of a closer.
pub fn judge(closed: Option<&ClosedText>, cut: &Cut) -> Judgement {
    let Some(closed) = closed else { return Judgement::Nothing };
    if invents(&closed.value, &cut.document) {
        return Judgement::Invented;
    }
    let is_true = match &closed.unfinished {
        None => is_beginning(&closed.value, &cut.document),
        Some(marked) => is_marked_beginning(&closed.value, &cut.document, "", marked),
    };
    match cut.must_have {
        _ if !is_true => Judgement::Untrue,
        Some(name) if closed.value.get(name).is_none() => Judgement::Dropped,
        _ => Judgement::TrueBeginning,
    }
}

/// Whether the value has a member name that the document does not have in the same object.
fn invents(closed: &Value, intended: &Value) -> bool {
    match (closed, intended) {
        (Value::Object(closed), Value::Object(intended)) => closed
            .iter()
            .any(|(name, closed)| intended.get(name).is_none_or(|intended| invents(closed, intended))),
        (Value::Array(closed), Value::Array(intended)) => {
            closed.iter().zip(intended).any(|(closed, intended)| invents(closed, intended))
        }
        _ => false,
    }
}

/// Whether the value is a beginning of the document. Only its last value may be unfinished, because the
/// closer does not mark values.
fn is_beginning(closed: &Value, intended: &Value) -> bool {
    let is_one = |index: usize, count: usize, closed: &Value, intended: &Value| {
        if index + 1 == count { is_beginning(closed, intended) } else { closed == intended }
    };
    match (closed, intended) {
        (Value::String(closed), Value::String(intended)) => intended.starts_with(closed.as_str()),
        (Value::Array(closed), Value::Array(intended)) => {
            let mut pairs = closed.iter().zip(intended).enumerate();
            closed.len() <= intended.len()
                && pairs.all(|(index, (one, other))| is_one(index, closed.len(), one, other))
        }
        (Value::Object(closed), Value::Object(intended)) => {
            let mut pairs = closed.iter().zip(intended).enumerate();
            closed.len() <= intended.len()
                && pairs.all(|(index, (one, other))| {
                    one.0 == other.0 && is_one(index, closed.len(), one.1, other.1)
                })
        }
        _ => closed == intended,
    }
}

/// Whether the marked values are beginnings, and all other values are equal to those of the document.
fn is_marked_beginning(closed: &Value, intended: &Value, pointer: &str, marked: &BTreeSet<String>) -> bool {
    let is_marked = marked.contains(pointer);
    match (closed, intended) {
        (Value::String(closed), Value::String(intended)) if is_marked => {
            intended.starts_with(closed.as_str())
        }
        // If the text is only a number, the number is marked, because more digits could follow.
        (Value::Number(_), Value::Number(_)) if is_marked && pointer.is_empty() => true,
        (Value::Array(closed), Value::Array(intended)) => {
            let fits = closed.len() == intended.len() || is_marked && closed.len() < intended.len();
            let mut pairs = closed.iter().zip(intended).enumerate();
            fits && pairs.all(|(index, (closed, intended))| {
                is_marked_beginning(closed, intended, &format!("{pointer}/{index}"), marked)
            })
        }
        (Value::Object(closed), Value::Object(intended)) => {
            let fits = closed.len() == intended.len() || is_marked && closed.len() < intended.len();
            let mut pairs = closed.iter().zip(intended);
            fits && pairs.all(|((said_name, closed), (meant_name, intended))| {
                let step = meant_name.replace('~', "~0").replace('/', "~1");
                said_name == meant_name
                    && is_marked_beginning(closed, intended, &format!("{pointer}/{step}"), marked)
            })
        }
        _ => closed == intended,
    }
}
