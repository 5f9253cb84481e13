//! `endmark detect`: checks whether a text is whole (PC-1).

mod closed_text;
mod state;

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use endmark_envelope::Warning;
use endmark_failure::{CommandError, to_single_line};
use endmark_text::detect::Detector;
use endmark_text::{Detection, DetectionReport, Format, Verdict, replace_lone_surrogates};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use closed_text::{ClosingProblem, ClosingResult};

use crate::arguments::Detect;
use crate::batch::{self, Field, LineAnswer, LineError};
use crate::context::Context;
use crate::format;
use crate::input::Input;
use crate::saved::{self, ReplySource, mid_sentence_reason};
use crate::view::answer::{Answer, Outcome, to_data};
use crate::view::paint::{Paint, Painter};

/// Checks one text, or one text per line.
pub(crate) fn run(context: &Context, arguments: &Detect) -> Result<Outcome, CommandError> {
    let format = format::from_arguments(&arguments.format)?;
    let input = Input::open(arguments.file.as_deref(), context.terminal)?;
    if arguments.batch {
        return batch::run(input, |line| answer_line(line, &format, arguments)).map(Outcome::Streamed);
    }
    let raw = input.read_bytes()?;
    if format == Format::Auto
        && arguments.state.is_none()
        && let Some(judged) = saved::judge_saved(&raw)
    {
        if arguments.complete || arguments.save_state.is_some() {
            return Err(CommandError::input(
                "saved_reply",
                "the input is a provider's saved reply, not the text inside it",
                "Use `--format json` to check the whole document, or extract its text into a file.",
            ));
        }
        let answered = DetectionAnswer {
            undecided_reason: judged.undecided_reason,
            ..DetectionAnswer::new(&judged.detection)
        };
        return answer(context, &answered, Some(&judged.reply)).map(Outcome::from);
    }
    let (detection, repairable) = detect_with(&state::detect(&raw, &format, arguments)?, arguments.lenient);
    if arguments.complete {
        return print_closed(&detection, &ClosingResult::new(&raw, &format, &detection)).map(Outcome::from);
    }
    let name = arguments.file.as_deref().map(Path::to_string_lossy);
    let undecided = mid_sentence_reason(&raw, &detection, name.as_deref());
    let answered = DetectionAnswer { detection: &detection, undecided_reason: undecided, repairable };
    answer(context, &answered, None).map(Outcome::from)
}

/// Returns the detection by the strict or the lenient grammar.
///
/// For a malformed text, also returns whether escaping its raw control characters would suffice.
fn detect_with(detector: &Detector, lenient: bool) -> (Detection, Option<bool>) {
    let detection = if lenient { detector.detection() } else { detector.strict_detection() };
    let is_malformed = matches!(detection.verdict, Verdict::Malformed { .. });
    (detection, is_malformed.then(|| detector.control_character().is_some() && !detector.is_malformed()))
}

/// The result for one text.
#[derive(Debug, Clone, Copy)]
struct DetectionAnswer<'a> {
    detection: &'a Detection,
    /// Why a text that reads as whole may still be cut.
    undecided_reason: Option<&'static str>,
    /// For a malformed text: whether it becomes whole or truncated when its raw control characters are escaped.
    repairable: Option<bool>,
}

impl<'a> DetectionAnswer<'a> {
    fn new(detection: &'a Detection) -> Self {
        Self { detection, undecided_reason: None, repairable: None }
    }

    /// `whole`, `undecided`, `truncated` or `malformed`.
    fn verdict(&self) -> &'static str {
        if self.undecided_reason.is_some() { "undecided" } else { self.detection.verdict.name() }
    }

    fn is_yes(&self) -> bool {
        self.undecided_reason.is_none() && self.detection.verdict.is_whole()
    }

    /// Returns why the text is not whole, if the offsets alone do not show it.
    fn reason(&self) -> Option<&'a str> {
        match &self.detection.verdict {
            Verdict::Malformed { reason, .. } => Some(reason),
            Verdict::Truncated(cut)
                if cut.truncation_index == 0 && cut.last_valid_token.trim().is_empty() =>
            {
                Some("the text is empty")
            }
            Verdict::Truncated(_) => None,
            Verdict::Whole => self.undecided_reason,
        }
    }

    /// Describes the result in one line.
    fn summary(&self) -> String {
        match (&self.detection.verdict, self.reason()) {
            (Verdict::Whole | Verdict::Truncated(_), Some(reason)) => format!("{}: {reason}", self.verdict()),
            (Verdict::Malformed { index, reason }, _) if self.repairable == Some(true) => {
                format!("malformed, repairable, at byte {index}: {reason}")
            }
            (verdict, _) => summary(verdict),
        }
    }
}

/// Builds a positive or negative answer, with the judged part of a saved reply.
fn answer(
    context: &Context,
    answered: &DetectionAnswer<'_>,
    reply: Option<&ReplySource>,
) -> Result<Answer, CommandError> {
    let data = to_data(&DetectReport { reply, ..DetectReport::new(answered, None, None) })?;
    let (mut text, mut message) = (describe(answered, context.terminal.output), answered.summary());
    if let Some(reply) = reply.map(ReplySource::describe) {
        text = text + "  of          " + &reply + "\n";
        message = message + "; " + &reply;
    }
    Ok(if answered.is_yes() {
        Answer::yes(data, text)
    } else {
        Answer::no_in_text(data, text, answered.verdict(), message)
    })
}

/// Prints the closed text to standard output.
///
/// The closed text omits unfinished parts, which are reported on standard error.
fn print_closed(detection: &Detection, closing: &ClosingResult) -> Result<Answer, CommandError> {
    let verdict = &detection.verdict;
    let (text, message, warning) = match closing.closed() {
        Ok(closed) => {
            let (unfinished, omitted) = (closed.describe_unfinished(), closed.completed.unfinished_omitted);
            let message = format!("{}; unfinished: {}", summary(verdict), display_unfinished(&unfinished));
            let warning = match verdict {
                _ if closed.escaped > 0 => Some(Warning::notice(
                    "CONTROL_CHARACTERS_ESCAPED",
                    format!("{} raw control characters in strings were escaped", closed.escaped),
                )),
                Verdict::Whole if unfinished.is_empty() => None,
                Verdict::Whole => {
                    Some(Warning::notice("MAY_GO_ON", "whole, but the number at its end may continue"))
                }
                _ if omitted == 0 => None,
                _ => Some(Warning::truncation(
                    "UNFINISHED_OMITTED",
                    format!("{omitted} open brackets are not listed"),
                )),
            };
            (closed.completed.text.clone(), message, warning)
        }
        Err(problem) => (String::new(), problem.message.clone(), None),
    };
    let is_closed = closing.closed().is_ok();
    let data = to_data(&DetectReport::new(&DetectionAnswer::new(detection), None, Some(closing)))?;
    let answer = match verdict {
        Verdict::Whole if is_closed => Answer::yes(data, text),
        Verdict::Whole => Answer::no(data, "not_closed", message, None),
        verdict => Answer { text, ..Answer::no(data, verdict.name(), message, None) },
    };
    Ok(answer.with_warnings(warning))
}

/// The fields of a batch line, in addition to its id.
const FIELDS: [Field; 6] = [
    Field::Text("format"),
    Field::Text("marker"),
    Field::Text("text"),
    Field::Text("base64"),
    Field::Flag("complete"),
    Field::Flag("lenient"),
];

/// One line of a batch.
#[derive(Deserialize)]
struct BatchRequest<'a> {
    #[serde(default)]
    id: Value,
    format: Option<String>,
    marker: Option<String>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    base64: Option<String>,
    /// Whether to return the closed text, too.
    complete: Option<bool>,
    /// Whether raw control characters in JSON strings are accepted.
    lenient: Option<bool>,
}

fn answer_line(line: &str, default: &Format, arguments: &Detect) -> Result<LineAnswer, LineError> {
    let line = &*replace_lone_surrogates(line);
    let request: BatchRequest<'_> = batch::parse_request(line, &FIELDS)?;
    let failed = |message: String| LineError { id: request.id.clone(), message };
    let format = format::find_format(request.format.as_deref(), request.marker.as_deref(), default)
        .map_err(|error| failed(error.to_string()))?;
    let raw = batch::decode_raw(request.text.as_deref(), request.base64.as_deref()).map_err(failed)?;
    let mut detector = Detector::new(&format);
    detector.push(&raw);
    let (detection, repairable) = detect_with(&detector, arguments.lenient || request.lenient == Some(true));
    let is_to_close = arguments.complete || request.complete == Some(true);
    let closing = is_to_close.then(|| ClosingResult::new(&raw, &format, &detection));
    let undecided = mid_sentence_reason(&raw, &detection, None);
    let answered = DetectionAnswer { detection: &detection, undecided_reason: undecided, repairable };
    let json = serde_json::to_string(&DetectReport::new(&answered, Some(&request.id), closing.as_ref()))
        .map_err(|error| failed(error.to_string()))?;
    Ok(LineAnswer { json, is_yes: answered.is_yes() })
}

/// Answer data of `detect`. The field names are public. Offsets are UTF-8 bytes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DetectReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    detection: DetectionReport<'a>,
    /// For a saved reply: the part that the offsets refer to, and the provider's finish reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<&'a ReplySource>,
    /// Present only if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<&'a ClosingResult>,
    /// Why the requested closed text is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_error: Option<&'a ClosingProblem>,
}

impl<'a> DetectReport<'a> {
    fn new(
        answered: &DetectionAnswer<'a>,
        id: Option<&'a Value>,
        closing: Option<&'a ClosingResult>,
    ) -> Self {
        let detection = DetectionReport {
            verdict: answered.verdict(),
            repairable: answered.repairable,
            reason: answered.reason(),
            ..DetectionReport::new(answered.detection)
        };
        Self {
            id,
            detection,
            reply: None,
            completed: closing,
            completed_error: closing.and_then(|closing| closing.closed().err()),
        }
    }
}

/// Describes the verdict in one line.
fn summary(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Whole => "whole".to_owned(),
        Verdict::Truncated(truncation) => {
            format!("truncated: settled up to byte {}", truncation.truncation_index)
        }
        Verdict::Malformed { index, reason } => format!("malformed at byte {index}: {reason}"),
    }
}

fn describe(answered: &DetectionAnswer<'_>, painter: Painter) -> String {
    let detection = answered.detection;
    let paint = match detection.verdict {
        Verdict::Whole if answered.is_yes() => Paint::Good,
        Verdict::Whole | Verdict::Truncated(_) => Paint::Doubt,
        Verdict::Malformed { .. } => Paint::Bad,
    };
    let line = answered.summary();
    let (word, rest) = line.split_at(answered.verdict().len());
    let mut text = format!("{}{rest}\n", painter.paint(paint, word));
    let mut detail = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}  {value}", painter.paint(Paint::Dim, &format!("{name:<10}")));
    };
    if let Some(truncation) = detection.verdict.truncation() {
        if !truncation.last_valid_token.is_empty() {
            detail("last token", &display_token(&truncation.last_valid_token));
        }
        if !truncation.open.is_empty() {
            detail("still open", &open_brackets(truncation));
        }
        if let Some(token) = truncation.in_token {
            detail("cut inside", token.name());
        }
        if truncation.balanced_index > 0 {
            detail("balanced", &format!("up to byte {}", truncation.balanced_index));
        }
    }
    if let Some(hint) = detection.hint {
        detail("hint", &hint.name().replace('_', " "));
    }
    // An empty text has no format.
    let is_empty = detection.verdict.truncation().is_some_and(|cut| cut.last_valid_token.is_empty());
    if let Some(detected) = detection.detected.as_ref().filter(|_| !is_empty) {
        detail("format", detected.name());
    }
    text
}

/// Maximum number of characters of the last token that are shown.
const MAX_SHOWN_TOKEN_CHARS: usize = 72;

fn display_token(token: &str) -> String {
    let more = token.chars().count().saturating_sub(MAX_SHOWN_TOKEN_CHARS);
    let end: String = token.chars().skip(more).collect();
    format!("{}{}", if more == 0 { "" } else { "…" }, to_single_line(&end))
}

/// Maximum number of characters of the unfinished parts that are shown.
const MAX_SHOWN_UNFINISHED_CHARS: usize = 400;

fn display_unfinished(places: &str) -> String {
    let mut characters = places.chars();
    let shown: String = characters.by_ref().take(MAX_SHOWN_UNFINISHED_CHARS).collect();
    format!("{}{}", to_single_line(&shown), if characters.next().is_some() { "…" } else { "" })
}

/// Maximum number of open brackets that are shown.
const MAX_SHOWN_BRACKETS: usize = 40;

fn open_brackets(truncation: &endmark_text::Truncation) -> String {
    let more = truncation.open.len().saturating_sub(MAX_SHOWN_BRACKETS);
    let innermost: Vec<Cow<'_, str>> = truncation.open.iter().skip(more).map(|open| open.opener()).collect();
    if more == 0 { innermost.join(" ") } else { format!("{more} more, then {}", innermost.join(" ")) }
}
