//! The log for people: one line per incomplete request or error. Repeated lines are counted.

use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use endmark_context::Moment;
use endmark_failure::to_single_line;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::view::paint::{Paint, Painter};

/// The target of the event that ends each request.
const ACCESS_TARGET: &str = "endmark::access";

/// Width of the first word of a line, in columns.
const FIRST_WORD_COLUMNS: usize = 10;

/// Formats events as lines.
pub(super) struct HumanReadableLines {
    painter: Painter,
    last: Mutex<LastLine>,
}

/// The newest line and its repetitions.
#[derive(Default)]
struct LastLine {
    /// The line without its time and request id.
    line: String,
    repetitions: u64,
    /// Repetitions that were not reported yet.
    unreported_repetitions: u64,
}

impl LastLine {
    /// Returns a line with the number of unreported repetitions, or an empty text without any.
    fn take_repetitions(&mut self, time: &str) -> String {
        let times = match std::mem::take(&mut self.unreported_repetitions) {
            0 => return String::new(),
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        format!("{time}  {:<FIRST_WORD_COLUMNS$} repeated {times} since the line above\n", "")
    }
}

/// The fields of an event.
#[derive(Default)]
struct EventFields {
    message: String,
    others: Vec<(&'static str, String)>,
}

impl EventFields {
    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.others.iter().position(|(other, _)| *other == name)?;
        Some(self.others.remove(at).1)
    }

    fn put(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            name => self.others.push((name, value)),
        }
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }
}

/// A line before formatting.
struct LogLine {
    word: String,
    paint: Paint,
    text: String,
    request: Option<String>,
    /// Whether the line is the summary of a finished request, which is never left out.
    is_request: bool,
}

impl HumanReadableLines {
    pub(super) fn new(colors: bool) -> Self {
        Self { painter: Painter::enabled_if(colors), last: Mutex::default() }
    }

    /// Formats a line. A repeated line is only counted, and its 1st, 10th, 100th, … repetition reports the
    /// count.
    fn format_line(&self, line: &LogLine, time: &str) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let this = format!("{} {}", line.word, line.text);
        if last.line == this && !line.is_request {
            last.repetitions += 1;
            last.unreported_repetitions += 1;
            return if is_power_of_ten(last.repetitions) {
                last.take_repetitions(time)
            } else {
                String::new()
            };
        }
        let mut text = last.take_repetitions(time);
        *last = LastLine { line: this, ..LastLine::default() };
        let word = self.painter.paint(line.paint, &format!("{:<FIRST_WORD_COLUMNS$}", line.word));
        let request = line.request.as_ref().map(|id| format!("  {id}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{time}  {word} {}{}", line.text, self.painter.paint(Paint::Dim, &request));
        text
    }
}

fn is_power_of_ten(number: u64) -> bool {
    number.checked_ilog10().is_some_and(|exponent| 10_u64.pow(exponent) == number)
}

impl<S, N> FormatEvent<S, N> for HumanReadableLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let line = if metadata.target() == ACCESS_TARGET {
            request_line(fields)
        } else {
            Some(event_line(*metadata.level(), metadata.target(), fields))
        };
        line.map_or(Ok(()), |line| writer.write_str(&self.format_line(&line, &local_time())))
    }
}

/// Returns the time with its zone.
fn local_time() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{} {hour:02}:{minute:02}:{second:02} UTC", Moment::from_unix_seconds(seconds).day())
}

/// Returns the line of a finished request.
///
/// Returns `None` if the gateway itself answered with an error, because the log already has a line with the reason.
fn request_line(mut fields: EventFields) -> Option<LogLine> {
    let outcome = fields.take("outcome").unwrap_or_default();
    let status = fields.take("status");
    let paint = match outcome.as_str() {
        "failed" | "refused" if status.is_none() => return None,
        "whole" => Paint::Good,
        "cut" | "exhausted" | "failed" => Paint::Bad,
        _ => Paint::Doubt,
    };
    let status = status.map(|status| format!("status {status}, ")).unwrap_or_default();
    let model = fields.take("model").unwrap_or_else(|| "a request".to_owned());
    let upstream = fields.take("upstream").unwrap_or_default();
    let calls = fields.take("calls").unwrap_or_default();
    let plural = if calls == "1" { "call" } else { "calls" };
    let took = fields.take("took_us").and_then(|took| took.parse::<u64>().ok()).unwrap_or_default();
    let (seconds, hundredths) = (took / 1_000_000, took % 1_000_000 / 10_000);
    let (model, upstream) = (to_single_line(&model), to_single_line(&upstream));
    let text = format!("{model} at {upstream}, {status}{calls} {plural}, {seconds}.{hundredths:02} s");
    Some(LogLine { word: outcome, paint, text, request: fields.take("request"), is_request: true })
}

/// Returns the line of any other event. At debug levels it names the target.
fn event_line(level: Level, target: &str, mut fields: EventFields) -> LogLine {
    let request = fields.take("request");
    let (word, paint) = match level {
        Level::ERROR => ("error", Paint::Bad),
        Level::WARN => ("warning", Paint::Doubt),
        Level::INFO => ("note", Paint::Dim),
        Level::DEBUG => ("debug", Paint::Dim),
        _ => ("trace", Paint::Dim),
    };
    let (word, paint, text) = match fields.take("refusal") {
        Some(refusal) => ("error", Paint::Bad, to_single_line(&refusal)),
        None if level > Level::INFO => (word, paint, format!("{target}: {}", describe_fields(&fields))),
        None => (word, paint, describe_fields(&fields)),
    };
    LogLine { word: word.to_owned(), paint, text, request, is_request: false }
}

fn describe_fields(fields: &EventFields) -> String {
    let mut text = to_single_line(&fields.message);
    for (at, (name, value)) in fields.others.iter().enumerate() {
        let sign = if at == 0 { ":" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{sign} {} {}", name.replace('_', " "), to_single_line(value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(word: &str, text: &str, is_of_request: bool) -> LogLine {
        LogLine {
            word: word.to_owned(),
            paint: Paint::Bad,
            text: text.to_owned(),
            request: None,
            is_request: is_of_request,
        }
    }

    #[test]
    fn a_repeated_line_is_counted_and_not_written() {
        let lines = HumanReadableLines::new(false);
        let mut written = String::new();
        for _ in 0..150 {
            written += &lines.format_line(&line("error", "the upstream is down", false), "T");
        }
        written += &lines.format_line(&line("note", "it is there again", false), "T");
        let all: Vec<&str> = written.lines().collect();
        assert_eq!((all.len(), all[0]), (6, "T  error      the upstream is down"), "{written}");
        assert!(all[1].ends_with("repeated once since the line above"), "{written}");
        for (line, times) in all[2..5].iter().zip([9, 90, 49]) {
            assert!(line.ends_with(&format!("repeated {times} times since the line above")), "{written}");
        }
        assert_eq!(all[5], "T  note       it is there again");
    }

    #[test]
    fn requests_are_never_collapsed_as_repetitions() {
        let lines = HumanReadableLines::new(false);
        let cut = || lines.format_line(&line("cut", "m at u, 1 call, 0.10 s", true), "T");
        assert_eq!(cut(), cut());
        let fields = |others: &[(&'static str, &str)]| EventFields {
            message: String::new(),
            others: others.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        };
        assert!(request_line(fields(&[("outcome", "failed")])).is_none());
        assert!(request_line(fields(&[("outcome", "refused")])).is_none());
        let answered =
            request_line(fields(&[("outcome", "failed"), ("status", "500"), ("calls", "1")])).unwrap();
        assert_eq!((answered.word.as_str(), answered.text.contains("status 500, 1 call")), ("failed", true));
    }
}
