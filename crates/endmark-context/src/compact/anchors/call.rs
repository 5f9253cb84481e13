//! Collects the anchors of a tool call: its arguments and its outcome.

use std::fmt::Write as _;

use serde_json::Value;

use super::text::{clip_line, is_error_line};
use super::{Anchor, AnchorKind, AnchorSource, ResultForm, add_result_anchors, tree};
use crate::compact::repair::is_placeholder;
use crate::conversation::{Call, ToolResult};

/// Maximum characters in the description of a call's arguments.
const MAX_ARGUMENTS_CHARS: usize = 160;
/// Maximum characters in the description of an outcome.
const MAX_OUTCOME_CHARS: usize = 120;
/// Names of arguments that contain a command.
const COMMAND_ARGUMENT_NAMES: [&str; 3] = ["command", "cmd", "script"];
/// Names of fields that contain an exit code.
const EXIT_CODE_FIELDS: [&str; 5] = ["exit_code", "exitCode", "exit_status", "returncode", "return_code"];
/// Phrases that precede an exit code in text.
const EXIT_CODE_PHRASES: [&str; 4] = ["exit code", "exit status", "exited with", "return code"];

/// Adds the values of the arguments, and the call with its outcome.
pub(super) fn add_call_anchors<'a>(call: &'a Call<'_>, outcome: String, anchors: &mut Vec<Anchor<'a>>) {
    let arguments = tree::parse(&call.arguments);
    match &arguments {
        Some(value) => tree::add_json_anchors(value, AnchorSource::Argument, anchors),
        None => super::text::add_exact_values(&call.arguments, AnchorSource::Argument, anchors),
    }
    anchors.push(Anchor {
        kind: AnchorKind::Command,
        key: describe_call(call, arguments.as_ref()).into(),
        value: outcome.into(),
        place: if arguments.as_ref().is_some_and(runs_program) {
            AnchorSource::Argument
        } else {
            AnchorSource::Result
        },
    });
}

/// Whether a call runs a program, judging by the name or the shape of an argument.
fn runs_program(arguments: &Value) -> bool {
    match arguments {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let named = COMMAND_ARGUMENT_NAMES.contains(&name.as_str());
            named || value.as_str().is_some_and(|text| text.contains(" --") || text.contains(" && "))
        }),
        _ => false,
    }
}

/// Returns a description of a call on one line: its name, and its arguments without their names.
pub(super) fn describe_call(call: &Call<'_>, parsed: Option<&Value>) -> String {
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
    match parsed {
        Some(value) => leaves(value, &mut arguments),
        None => arguments.push_str(&call.arguments),
    }
    let name = clip_line(&call.name, MAX_OUTCOME_CHARS);
    format!("{name}({})", clip_line(&arguments, MAX_ARGUMENTS_CHARS).replace(" → ", " "))
}

/// Returns a short description of the call's outcome.
pub(super) fn describe_outcome(result: Option<&ToolResult<'_>>) -> String {
    match result.filter(|result| !is_placeholder(&result.text)) {
        Some(result) => {
            describe_ending(result, &add_result_anchors(&result.text, result.is_error, &mut Vec::new()))
        }
        None => "no result".to_owned(),
    }
}

/// Returns a short description of how the call ended, from its result.
pub(super) fn describe_ending(result: &ToolResult<'_>, form: &ResultForm<'_>) -> String {
    let error = || match form {
        ResultForm::Json(_) => result.text.lines().find(|line| is_error_line(line)),
        ResultForm::Lines { first_error } => *first_error,
    };
    let error_line = || error().or_else(|| result.text.lines().find(|line| !line.trim().is_empty()));
    let clip = |line: &str| clip_line(line, MAX_OUTCOME_CHARS).into_owned();
    let code = match form {
        ResultForm::Json(Value::Object(fields)) => {
            EXIT_CODE_FIELDS.iter().find_map(|name| fields.get(*name)?.as_i64())
        }
        ResultForm::Json(_) => None,
        ResultForm::Lines { .. } => exit_code(&result.text),
    };
    if let Some(code) = code {
        let mut outcome_text = format!("exit {code}");
        if let Some(line) = (code != 0).then(error_line).flatten() {
            let _ = write!(outcome_text, ": {}", clip(line));
        }
        return outcome_text;
    }
    if result.is_error {
        return format!("failed: {}", error_line().map(clip).unwrap_or_default());
    }
    match form {
        ResultForm::Json(Value::Array(items)) => format!("{} items", items.len()),
        ResultForm::Json(_) => "ok".to_owned(),
        ResultForm::Lines { first_error: Some(line) } => clip(line),
        ResultForm::Lines { first_error: None } => match result.text.lines().count() {
            0 | 1 => super::clip_line(&result.text, MAX_OUTCOME_CHARS / 2).into_owned(),
            lines => format!("{lines} lines"),
        },
    }
}

fn exit_code(text: &str) -> Option<i64> {
    // An exit code is near the beginning or the end. In the middle of a long output, such phrases are usually
    // unrelated.
    let lines = || text.lines().take(3).chain(text.lines().rev().take(3));
    lines().find_map(|line| {
        line.bytes().find(u8::is_ascii_digit)?;
        let lower = line.to_ascii_lowercase();
        let find = |words: &&str| memchr::memmem::find(lower.as_bytes(), words.as_bytes());
        let at = EXIT_CODE_PHRASES.iter().find_map(|words| Some(find(words)? + words.len()))?;
        let digits = lower.get(at..)?.trim_start_matches(|sign: char| !sign.is_ascii_digit() && sign != '-');
        let end = digits.find(|sign: char| !sign.is_ascii_digit() && sign != '-').unwrap_or(digits.len());
        digits.get(..end)?.parse().ok()
    })
}
