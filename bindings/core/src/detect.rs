//! Whether a text is whole, and how a cut JSON text is closed.

use std::borrow::Cow;

use endmark::{CompleteError, Detection, Format, Hint, InToken, Verdict};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::offsets::Unit;
use crate::options::{NamedFormat, answer, format, input, parse};

/// The pointers of unfinished places have at most this many bytes in all; those nearest to the root are listed, and the last.
const MAX_POINTER_BYTES: usize = 1 << 17;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    format: String,
    #[serde(default)]
    marker: Option<String>,
    /// By the letter of the grammar: raw control characters in JSON strings are refused.
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    offsets: Unit,
}

/// What detection found.
#[derive(Serialize)]
pub(crate) struct ShownDetection<'d> {
    verdict: &'static str,
    truncation_index: Option<usize>,
    balanced_index: Option<usize>,
    last_valid_token: Option<&'d str>,
    open: Vec<Cow<'static, str>>,
    in_token: Option<&'static str>,
    index: Option<usize>,
    reason: Option<&'d str>,
    hint: Option<&'static str>,
    detected: Option<&'static str>,
}

impl<'d> ShownDetection<'d> {
    fn of(detection: &'d Detection, raw: &[u8], unit: Unit) -> Self {
        let found = Self::of_verdict(&detection.verdict, raw, unit);
        let detected = detection.detected.as_ref().map(Format::name);
        Self { hint: detection.hint.map(Hint::name), detected, ..found }
    }

    pub(crate) fn of_verdict(verdict: &'d Verdict, raw: &[u8], unit: Unit) -> Self {
        let cut = verdict.truncation();
        let (index, reason) = match verdict {
            Verdict::Malformed { index, reason } => (Some(unit.of(raw, *index)), Some(reason.as_str())),
            Verdict::Whole | Verdict::Truncated(_) => (None, None),
        };
        Self {
            verdict: verdict.name(),
            truncation_index: cut.map(|cut| unit.of(raw, cut.truncation_index)),
            balanced_index: cut.map(|cut| unit.of(raw, cut.balanced_index)),
            last_valid_token: cut.map(|cut| cut.last_valid_token.as_str()),
            open: cut.map(|cut| cut.open.iter().map(|open| open.sign()).collect()).unwrap_or_default(),
            in_token: cut.and_then(|cut| cut.in_token).map(InToken::name),
            index,
            reason,
            hint: None,
            detected: None,
        }
    }
}

pub(crate) fn detect(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, Options) = (input(inputs, 0)?, parse(options)?);
    let format = format(&options.format, options.marker.as_deref())?;
    let detection =
        if options.strict { endmark::detect_strict(raw, &format) } else { endmark::detect(raw, &format) };
    answer(&ShownDetection::of(&detection, raw, options.offsets))
}

#[derive(Serialize)]
struct Completed<'c> {
    text: &'c str,
    value: usize,
    unfinished: Vec<Unfinished<'c>>,
    unfinished_omitted: usize,
    escaped: usize,
}

#[derive(Serialize)]
struct Unfinished<'c> {
    pointer: &'c str,
    kind: &'static str,
    left_out: bool,
}

pub(crate) fn complete(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, NamedFormat) = (input(inputs, 0)?, parse(options)?);
    let completed = endmark::complete(raw, &options.read()?).map_err(|error| refused(&error))?;
    let of = |place: endmark::Unfinished<'_>| (place.pointer.len(), place.kind.name(), place.left_out);
    let places: Vec<_> = completed.unfinished().map(of).collect();
    let innermost = completed.unfinished().last().map_or("", |place| place.pointer);
    let mut bytes = 0;
    let is_listed = |place: &&(usize, _, _)| {
        bytes += place.0;
        bytes <= MAX_POINTER_BYTES
    };
    let mut listed: Vec<_> = places.iter().take_while(is_listed).collect();
    if listed.len() < places.len() {
        listed.extend(places.last());
    }
    // All other pointers are beginnings of the innermost one.
    let shown = |(end, kind, left_out): &(usize, &'static str, bool)| Unfinished {
        pointer: innermost.get(..*end).unwrap_or(innermost),
        kind,
        left_out: *left_out,
    };
    answer(&Completed {
        text: &completed.text,
        value: completed.value,
        unfinished_omitted: places.len() - listed.len(),
        unfinished: listed.into_iter().map(shown).collect(),
        escaped: completed.escaped,
    })
}

fn refused(error: &CompleteError) -> Failure {
    Failure::new(FailureKind::Malformed, error.code(), error)
}
