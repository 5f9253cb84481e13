//! Checks every cut of generated documents: the closed text is correct, and its unfinished parts are
//! marked.

use proptest::prelude::*;

use super::reference::{Node, Value, marks, read};
use crate::detect::detect;
use crate::detect::tests::json_documents::{document, source};
use crate::{CompleteError, CompletedText, Format, complete};

fn completion_marks(completed: &CompletedText) -> Vec<(String, &'static str, bool)> {
    completed
        .unfinished()
        .map(|place| (place.pointer.to_owned(), place.kind.name(), place.is_omitted))
        .collect()
}

/// Checks that `closed` does not contradict `complete`: unmarked values are equal, and marked values are
/// beginnings. Returns the first contradiction.
fn find_contradiction(
    closed: &Node,
    complete: &Node,
    pointer: &str,
    marks: &[(String, &'static str, bool)],
) -> Option<String> {
    let is_marked = |kind| marks.contains(&(pointer.to_owned(), kind, false));
    let wrong = || Some(format!("at `{pointer}`: {closed:?} is said of {complete:?}"));
    match (&closed.value, &complete.value) {
        (Value::String(said), Value::String(meant)) => {
            let is_true = if is_marked("string") { meant.starts_with(said) } else { meant == said };
            if is_true { None } else { wrong() }
        }
        (Value::Number(said), Value::Number(meant)) => {
            let is_true = if is_marked("number") { meant.starts_with(said.as_str()) } else { meant == said };
            if is_true { None } else { wrong() }
        }
        (Value::Literal(said), Value::Literal(meant)) if said == meant => None,
        (Value::Array(said, _), Value::Array(meant, _)) => {
            let is_long_enough = said.len() == meant.len() || is_marked("array") && said.len() < meant.len();
            if !is_long_enough {
                return wrong();
            }
            let pairs = said.iter().zip(meant).enumerate();
            pairs.into_iter().find_map(|(index, (said, meant))| {
                find_contradiction(said, meant, &format!("{pointer}/{index}"), marks)
            })
        }
        (Value::Object(said, _), Value::Object(meant, _)) => {
            let is_long_enough = said.len() == meant.len() || is_marked("object") && said.len() < meant.len();
            if !is_long_enough {
                return wrong();
            }
            said.iter().zip(meant).find_map(|((said_name, said), (meant_name, meant))| {
                let Value::String(units) = &meant_name.value else { return wrong() };
                if said_name.value != meant_name.value {
                    return wrong();
                }
                let step = String::from_utf16_lossy(units).replace('~', "~0").replace('/', "~1");
                find_contradiction(said, meant, &format!("{pointer}/{step}"), marks)
            })
        }
        _ => wrong(),
    }
}

/// Returns how many values begin before `cut` and can be kept in part.
fn values_before(node: &Node, cut: usize) -> usize {
    let inside = match &node.value {
        _ if node.span.start >= cut => return 0,
        Value::Number(_) if node.span.end == cut => return 0,
        Value::Number(_) | Value::Literal(_) if node.span.end > cut => return 0,
        Value::String(_) | Value::Number(_) | Value::Literal(_) => 0,
        Value::Array(items, _) => items.iter().map(|item| values_before(item, cut)).sum(),
        Value::Object(members, _) => members.iter().map(|(_, value)| values_before(value, cut)).sum(),
    };
    1 + inside
}

/// Checks one cut of a document. Returns the first violated property.
fn check(text: &str, tree: &Node, cut: usize) -> Result<(), String> {
    let prefix = &text.as_bytes()[..cut];
    let is_bare_number = matches!(tree.value, Value::Number(_));
    // A number that is the whole text is kept. It is marked unless something ends it.
    let expected = match &tree.value {
        Value::Number(_) if tree.span.end < cut => Vec::new(),
        Value::Number(_) => vec![(String::new(), "number", false)],
        _ => marks(tree, cut),
    };
    let completed = match complete(prefix, &Format::Json) {
        Ok(completed) => completed,
        Err(CompleteError::NoValue) => {
            let is_blank = tree.span.start >= cut;
            let is_open = matches!(tree.value, Value::Number(_) | Value::Literal(_)) && tree.span.end > cut;
            return if is_blank || is_open { Ok(()) } else { Err("no value is seen".to_owned()) };
        }
        Err(error) => return Err(error.to_string()),
    };
    let found = completion_marks(&completed);
    if found != expected {
        return Err(format!("{:?}: marked is {found:?}, not {expected:?}", completed.text));
    }
    let kept = completed.text.bytes().zip(prefix).take_while(|(one, other)| one == *other).count();
    if let Some(more) = completed.text.as_bytes()[kept..].iter().find(|byte| !b"\"]}".contains(byte)) {
        return Err(format!("{:?}: {more} does not close anything", completed.text));
    }
    let closed = read(&completed.text);
    let again = complete(completed.text.as_bytes(), &Format::Json);
    if !is_bare_number && !again.is_ok_and(|again| again.is_finished()) {
        return Err(format!("{:?} is not whole", completed.text));
    }
    if values_before(&closed, usize::MAX) < values_before(tree, cut) {
        return Err(format!("{:?} lacks what was there", completed.text));
    }
    if found.last().is_some_and(|(_, kind, _)| *kind == "string") {
        let settled =
            detect(prefix, &Format::Json).verdict.truncation().map_or(0, |cut| cut.truncation_index);
        if kept < settled {
            return Err(format!("{:?} lacks what is settled of its string", completed.text));
        }
    }
    // Another parser must read both or neither, because it rejects lone surrogates.
    let parses = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    if parses(text) && !parses(&completed.text) {
        return Err(format!("{:?} is no JSON elsewhere", completed.text));
    }
    find_contradiction(&closed, tree, "", &found).map_or(Ok(()), Err)
}

proptest! {
    #[test]
    fn every_cut_is_closed_correctly_and_marked(atoms in document()) {
        let text = source(&atoms);
        let tree = read(&text);
        for cut in 0..=text.len() {
            if let Err(problem) = check(&text, &tree, cut) {
                prop_assert!(false, "{:?} cut at {}: {}", text, cut, problem);
            }
        }
    }

    #[test]
    fn only_the_cut_one_of_many_documents_is_unfinished(
        documents in prop::collection::vec(document(), 1..4),
        at in any::<prop::sample::Index>(),
    ) {
        let before: String = documents[1..].iter().map(|atoms| source(atoms) + "\n").collect();
        let last = source(&documents[0]);
        let cut = at.index(last.len() + 1);
        let cut_text = format!("{before}{}", &String::from_utf8_lossy(&last.as_bytes()[..cut]).trim_end_matches('\u{FFFD}'));
        let many = complete(cut_text.as_bytes(), &Format::Jsonl);
        let alone = complete(&cut_text.as_bytes()[before.len()..], &Format::Jsonl);
        match (many, alone) {
            (Ok(many), Ok(alone)) => {
                prop_assert_eq!(&many.text, &format!("{before}{}", alone.text));
                prop_assert_eq!(completion_marks(&many), completion_marks(&alone));
                let expected = if many.is_finished() { 0 } else { documents.len() - 1 };
                prop_assert_eq!(many.value, expected);
            }
            (Ok(many), Err(CompleteError::NoValue)) => {
                prop_assert!(many.text.starts_with(&before));
                prop_assert!(many.unfinished().all(|place| place.is_omitted));
            }
            (many, alone) => prop_assert!(many.is_err() && alone.is_err() && before.is_empty(), "{:?} {:?}", many, alone),
        }
    }
}
