//! Formatting correction: builds the prompt, and finds the document in the answer (PC-6).

mod kept_values;

pub(crate) use kept_values::{first_changed, first_lost, first_missing};

use std::fmt::Write as _;

use crate::SchemaProblem;
use endmark_text::detect::detect;
use endmark_text::{Format, Open, Truncation, Verdict};

/// Maximum number of problems that a prompt lists. A model that corrects these usually corrects the others,
/// too.
const MAX_LISTED_PROBLEMS: usize = 20;

/// Maximum number of characters of a validator's message in a prompt. Some validators quote the whole
/// document.
const MAX_MESSAGE_CHARS: usize = 500;

/// Returns the prompt that requests a corrected document (PC-6). It lists the problems, sorted by path and
/// then message, and demands that the answer is only the whole document.
///
/// ```
/// use endmark_recovery::{SchemaProblem, build_correction_prompt};
/// let problem = SchemaProblem { path: "/age".into(), message: "\"x\" is not of type \"integer\"".into() };
/// assert!(build_correction_prompt(&[problem]).contains("- /age: \"x\" is not of type \"integer\"\n"));
/// ```
pub fn build_correction_prompt(problems: &[SchemaProblem]) -> String {
    let sorted = sort_problems(problems.to_vec());
    let mut prompt = String::from("The JSON in your last reply is not what was asked for:\n");
    for problem in sorted.iter().take(MAX_LISTED_PROBLEMS) {
        let line = problem.to_string();
        // A message with several lines could look like several problems.
        let mut line: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(MAX_MESSAGE_CHARS) {
            line.truncate(end);
            line.push('…');
        }
        let _ = writeln!(prompt, "- {line}");
    }
    if let Some(more) = sorted.len().checked_sub(MAX_LISTED_PROBLEMS).filter(|more| *more > 0) {
        let _ = writeln!(prompt, "- and {more} more of the same kind");
    }
    prompt.push_str(
        "Return the corrected JSON document, complete from its first to its last character. \
         Keep everything in it that is already right. Output ONLY the JSON.",
    );
    prompt
}

/// Returns problems sorted by path and then message, without duplicates.
pub(crate) fn sort_problems(mut problems: Vec<SchemaProblem>) -> Vec<SchemaProblem> {
    problems.sort();
    problems.dedup();
    problems
}

/// Returns the only whole JSON document in a reply (PC-6): the reply itself, the content of the only code
/// fence with a document, or the text from the first to the last bracket. Returns `None` if there is no such
/// document, or if several fences contain one.
///
/// ```
/// use endmark_recovery::extract_json;
/// assert_eq!(extract_json("Here it is:\n```json\n{\"a\": 1}\n```\n"), Some("{\"a\": 1}"));
/// assert_eq!(extract_json("{\"a\": "), None);
/// ```
pub fn extract_json(reply: &str) -> Option<&str> {
    let reply = reply.trim();
    if is_whole(reply) {
        return Some(reply);
    }
    let mut fenced = fenced_blocks(reply).into_iter().filter(|block| is_whole(block));
    match (fenced.next(), fenced.next()) {
        (Some(only), None) => return Some(only),
        (Some(_), Some(_)) => return None,
        (None, _) => {}
    }
    let start = reply.find(['{', '['])?;
    let end = reply.rfind(['}', ']'])? + 1;
    reply.get(start..end).filter(|document| is_whole(document))
}

fn is_whole(text: &str) -> bool {
    detect(text.as_bytes(), &Format::Json).verdict.is_whole()
}

/// Returns the contents of the closed code fences. A line of JSON never begins like a fence, because JSON
/// strings contain no line breaks.
fn fenced_blocks(reply: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    for line in reply.split_inclusive('\n') {
        let end = at + line.len();
        if line.trim_start().starts_with("```") {
            open = match open {
                None => Some(end),
                Some(start) => {
                    blocks.extend(reply.get(start..at).map(str::trim));
                    None
                }
            };
        }
        at = end;
    }
    blocks
}

/// Returns the reason why a text is not a whole document, or `None` if it is one.
pub(crate) fn malformation(text: &str) -> Option<SchemaProblem> {
    let message = match detect(text.as_bytes(), &Format::Json).verdict {
        Verdict::Whole => return None,
        Verdict::Truncated(_) => "the JSON ends before it is complete".to_owned(),
        Verdict::Malformed { index, reason } => {
            format!("the text is not valid JSON at byte {index}: {reason}")
        }
    };
    Some(SchemaProblem { path: String::new(), message })
}

/// Closes all open elements of a valid beginning, so that a schema can report what is missing. The closed
/// text is used only for validation.
pub(crate) fn close_for_validation(text: &str) -> Option<String> {
    let verdict = detect(text.as_bytes(), &Format::Json).verdict;
    let cut = match verdict {
        Verdict::Whole => return Some(text.to_owned()),
        Verdict::Truncated(cut) => cut,
        Verdict::Malformed { index, .. } => {
            let valid = text.get(..text.floor_char_boundary(index))?;
            match detect(valid.as_bytes(), &Format::Json).verdict {
                Verdict::Truncated(cut) => cut,
                Verdict::Whole => return Some(valid.to_owned()),
                Verdict::Malformed { .. } => return None,
            }
        }
    };
    close(text.get(..cut.truncation_index)?, &cut)
}

fn close(settled: &str, cut: &Truncation) -> Option<String> {
    let mut brackets = String::new();
    let mut quote = "";
    for open in cut.open.iter().rev() {
        match open {
            Open::Object => brackets.push('}'),
            Open::Array => brackets.push(']'),
            Open::String => quote = "\"",
            // JSON never has these open constructs.
            Open::Fence { .. } | Open::Link | Open::Row | Open::Tag(_) | Open::Markup(_) => return None,
        }
    }
    let beginning = settled.trim_end();
    if beginning.is_empty() {
        return None;
    }
    let without_comma = beginning.strip_suffix(',').unwrap_or(beginning);
    // An open string is closed after its settled part. An incomplete key or member gets a value.
    let stem = if quote.is_empty() { without_comma } else { settled };
    ["", "null", ":null"]
        .into_iter()
        .map(|value| format!("{stem}{quote}{value}{brackets}"))
        .find(|document| is_whole(document))
}

#[cfg(test)]
mod tests;
