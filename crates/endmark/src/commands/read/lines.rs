//! Lines of an output: between two numbers, or those that match a pattern.

use std::ops::ControlFlow;

use endmark_context::cap::{CapError, Capper};
use endmark_context::read::Span;
use endmark_store::{Handle, KeptOutput};
use regex::bytes::RegexBuilder;
use serde_json::Value;

use super::{Report, capped_answer, failed};
use crate::answer::Answer;
use crate::commands::cap::refused;
use crate::error::CommandError;

/// How much memory a compiled pattern may take.
const PATTERN_BYTES: usize = 4 << 20;

/// The lines from one number to another, within the limits.
pub(super) fn between(
    output: &KeptOutput<'_>,
    span: Span,
    mut reading: Capper,
    handle: &Handle,
) -> Result<Answer, CommandError> {
    let (from, to) = (span.from.unwrap_or(1), span.to.unwrap_or(u64::MAX).min(output.lines));
    if from == 0 || from > output.lines {
        let message = format!("there is no line {from}: the output has {}, from 1", output.lines);
        return Err(CommandError::Input { code: "bad_range", message, hint: None });
    }
    each_line(output, from - 1, |number, line| {
        if number >= from && number <= to {
            reading.push(line)?;
        }
        Ok(if number > to { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    let capped = reading.finish().map_err(|error| refused(&error))?;
    let report = Report { lines: Some([from, to]), ..of_all(output) };
    capped_answer(&capped, handle, report)
}

/// The lines that match a pattern, each behind its number, within the limits.
pub(super) fn matching(
    output: &KeptOutput<'_>,
    pattern: &str,
    mut reading: Capper,
    handle: &Handle,
) -> Result<Answer, CommandError> {
    let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build().map_err(|error| {
        let hint =
            "It is a regular expression of the Rust crate `regex`: no look-around, no back-references.";
        CommandError::input("bad_pattern", error.to_string(), hint)
    })?;
    let mut matches = 0;
    each_line(output, 0, |number, line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if regex.is_match(line.strip_suffix(b"\r").unwrap_or(line)) {
            matches += 1;
            reading.push(format!("{number}:").as_bytes())?;
            reading.push(line)?;
            reading.push(b"\n")?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if matches == 0 {
        return Ok(Answer::no(Value::Null, "not_found", format!("no line matches `{pattern}`"), None));
    }
    let capped = reading.finish().map_err(|error| refused(&error))?;
    let report = Report { pattern: Some(pattern), matches: Some(matches), ..of_all(output) };
    capped_answer(&capped, handle, report)
}

fn of_all(output: &KeptOutput<'_>) -> Report<'static> {
    Report { of_bytes: Some(output.bytes), of_lines: Some(output.lines), ..Report::default() }
}

/// Hands out lines with their numbers, from 1, beginning at the latest with the one behind so many line breaks.
fn each_line(
    output: &KeptOutput<'_>,
    behind: u64,
    mut take: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, CapError>,
) -> Result<(), CommandError> {
    let mut failure = None;
    let read = output.lines_from(behind, |number, line| {
        take(number, line).unwrap_or_else(|error| {
            failure = Some(error);
            ControlFlow::Break(())
        })
    });
    read.map_err(|error| failed(&error))?;
    failure.map_or(Ok(()), |error| Err(refused(&error)))
}
