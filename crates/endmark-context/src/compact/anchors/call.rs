//! Anchors of a call: its arguments and its outcome.

use std::fmt::Write as _;

use serde_json::Value;

use super::text::{clip, is_error_line};
use super::{Anchor, AnchorKind, Source, tree};
use crate::compact::repair::is_absent;
use crate::conversation::{Call, ToolResult};

/// Longest description of a call's arguments, in characters.
const MAX_ARGUMENTS_CHARS: usize = 160;
/// Longest description of an outcome, in characters.
const MAX_OUTCOME_CHARS: usize = 120;
/// Argument names of commands to run.
const COMMAND_NAMES: [&str; 3] = ["command", "cmd", "script"];
/// Field names of exit codes in results.
const EXIT_NAMES: [&str; 5] = ["exit_code", "exitCode", "exit_status", "returncode", "return_code"];
/// Phrases before an exit code in text.
const EXIT_WORDS: [&str; 4] = ["exit code", "exit status", "exited with", "return code"];

/// Adds the values of the arguments, and the call with its outcome.
pub(super) fn anchors<'a>(
    call: &'a Call<'_>,
    result: Option<&ToolResult<'_>>,
    anchors: &mut Vec<Anchor<'a>>,
) {
    if !tree::anchors(&call.arguments, Source::Argument, anchors) {
        super::text::add_exact_values(&call.arguments, Source::Argument, anchors);
    }
    let place = if is_program(call) { Source::Argument } else { Source::Result };
    anchors.push(Anchor {
        kind: AnchorKind::Command,
        key: describe(call).into(),
        value: outcome(result).into(),
        place,
    });
}

/// Whether a call runs a program: the name or shape of an argument indicates a command.
fn is_program(call: &Call<'_>) -> bool {
    match tree::parse(&call.arguments) {
        Some(Value::Object(fields)) => fields.iter().any(|(name, value)| {
            let named = COMMAND_NAMES.contains(&name.as_str());
            named || value.as_str().is_some_and(|text| text.contains(" --") || text.contains(" && "))
        }),
        _ => false,
    }
}

/// Returns a call on one line: its name, and its arguments without their names.
pub(crate) fn describe(call: &Call<'_>) -> String {
    fn leaves(value: &Value, out: &mut String) {
        match value {
            Value::Object(fields) => fields.values().for_each(|value| leaves(value, out)),
            Value::Array(items) => items.iter().for_each(|item| leaves(item, out)),
            Value::Null => {}
            _ if out.len() > MAX_ARGUMENTS_CHARS * 4 => {}
            Value::String(text) => push(out, text),
            other => push(out, &other.to_string()),
        }
    }
    fn push(out: &mut String, text: &str) {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(text);
    }
    let mut arguments = String::new();
    match tree::parse(&call.arguments) {
        Some(value) => leaves(&value, &mut arguments),
        None => arguments.push_str(&call.arguments),
    }
    let name = clip(&call.name, MAX_OUTCOME_CHARS);
    format!("{name}({})", clip(&arguments, MAX_ARGUMENTS_CHARS).replace(" → ", " "))
}

/// Returns the outcome of a call in a few words.
pub(crate) fn outcome(result: Option<&ToolResult<'_>>) -> String {
    let Some(result) = result.filter(|result| !is_absent(&result.text)) else {
        return "no result".to_owned();
    };
    let tree = tree::parse(&result.text);
    let code = match &tree {
        Some(Value::Object(fields)) => EXIT_NAMES.iter().find_map(|name| fields.get(*name)?.as_i64()),
        Some(_) => None,
        None => exit_code(&result.text),
    };
    if let Some(code) = code {
        let mut outcome_text = format!("exit {code}");
        if let Some(line) = (code != 0).then(|| error_line(&result.text)).flatten() {
            let _ = write!(outcome_text, ": {line}");
        }
        return outcome_text;
    }
    if result.is_error {
        return format!("failed: {}", error_line(&result.text).unwrap_or_default());
    }
    match tree {
        Some(Value::Array(items)) => format!("{} items", items.len()),
        Some(_) => "ok".to_owned(),
        None => match (result.text.lines().count(), find_error_line(&result.text)) {
            (_, Some(line)) => line,
            (0 | 1, None) => clip(&result.text, MAX_OUTCOME_CHARS / 2).into_owned(),
            (lines, None) => format!("{lines} lines"),
        },
    }
}

fn exit_code(text: &str) -> Option<i64> {
    // The exit code is near the beginning or the end. Searching all of a long output would find unrelated phrases.
    let lines = || text.lines().take(3).chain(text.lines().rev().take(3));
    lines().find_map(|line| {
        let lower = line.to_ascii_lowercase();
        let at = EXIT_WORDS.iter().find_map(|words| Some(lower.find(words)? + words.len()))?;
        let digits = lower.get(at..)?.trim_start_matches(|sign: char| !sign.is_ascii_digit() && sign != '-');
        let end = digits.find(|sign: char| !sign.is_ascii_digit() && sign != '-').unwrap_or(digits.len());
        digits.get(..end)?.parse().ok()
    })
}

fn find_error_line(text: &str) -> Option<String> {
    let line = text.lines().find(|line| is_error_line(line))?;
    Some(clip(line, MAX_OUTCOME_CHARS).into_owned())
}

fn error_line(text: &str) -> Option<String> {
    find_error_line(text).or_else(|| {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        Some(clip(first, MAX_OUTCOME_CHARS).into_owned())
    })
}
