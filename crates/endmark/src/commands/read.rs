//! `endmark read`: a part of an output that was kept in full. (CX-5)

pub(crate) mod arguments;
mod lines;
mod slice;

use std::io::{self, Write};

use arguments::Read;
use endmark_context::cap::{Asked, Capped, Capper, DEFAULT_MAX_ITEMS, Limits, Unit};
use endmark_context::read::tool::Part;
use endmark_context::read::{Span, pointed_to};
use endmark_envelope::{FieldPath, Warning};
use endmark_store::{Handle, KeptOutput, Reader, Store, StoreError};
use serde::Serialize;

use super::cap::{LOCAL_USER, most, refused};
use crate::answer::{Answer, Outcome, to_data};
use crate::config::Settings;
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::runtime;

/// The largest output that a pointer can point into: it is read as a whole.
const LARGEST_DOCUMENT_BYTES: u64 = 256 << 20;

/// Reads a part of a kept output.
pub(crate) fn run(context: &Context, arguments: &Read) -> Result<Outcome, CommandError> {
    let effective = context.configuration(arguments.store.overrides())?;
    let settings = &effective.settings;
    let limits = limits(arguments, settings)?;
    let handle = Handle::parse(&arguments.handle).ok_or_else(|| unknown(&arguments.handle))?;
    let reader = Reader::open(&settings.store).map_err(|error| CommandError::of_store(&error))?;
    let output = match reader.output(&handle, LOCAL_USER) {
        // Who can read the store's file can read what its gateway keeps for its clients.
        Err(StoreError::NoOutput { .. }) => reader.output_of_a_client(&handle),
        own => own,
    };
    let output = output.map_err(|error| failed(&error))?;
    let read = part(&output, &typed(&arguments.part)?, limits, &handle)?;
    let mut warnings = configuration_warnings(&effective);
    warnings.extend(used(settings, &handle));
    if let Some([page, pages]) = read.page.filter(|[page, pages]| page < pages) {
        context.terminal.progress(&format!("Page {page} of {pages}; `--page {}` goes on.", page + 1));
    }
    match read.raw {
        Some(bytes) if !context.terminal.json => {
            io::stdout().lock().write_all(&bytes).map_err(CommandError::Write)?;
            Ok(Outcome::Streamed(Exit::Success))
        }
        _ => Ok(read.answer.with_warnings(warnings).into()),
    }
}

/// A part of an output, ready to be shown.
pub(super) struct ReadPart {
    /// The part, as text and with all there is to know about it.
    pub(super) answer: Answer,
    /// The part where it is no text.
    pub(super) raw: Option<Vec<u8>>,
    /// Which page of how many it is, if it is one.
    pub(super) page: Option<[u64; 2]>,
}

impl From<Answer> for ReadPart {
    fn from(answer: Answer) -> Self {
        Self { answer, raw: None, page: None }
    }
}

/// Reads a part of an output, within the limits.
pub(super) fn part(
    output: &KeptOutput<'_>,
    part: &Part,
    limits: Limits,
    handle: &Handle,
) -> Result<ReadPart, CommandError> {
    match part {
        Part::Pointer(pointer) => Ok(pointed(output, pointer, limits, handle)?.into()),
        Part::Lines(lines) => Ok(lines::between(output, *lines, reading(limits)?, handle)?.into()),
        Part::Grep(pattern) => Ok(lines::matching(output, pattern, reading(limits)?, handle)?.into()),
        Part::Bytes(bytes) => slice::of_bytes(output, *bytes, limits.most)?.answer(output, handle),
        Part::Page(page) => slice::of_page(output, *page, limits.most)?.answer(output, handle),
    }
}

/// The part that was typed; the first page where none was.
fn typed(part: &arguments::Part) -> Result<Part, CommandError> {
    Ok(if let Some(pointer) = &part.pointer {
        Part::Pointer(pointer.clone())
    } else if let Some(lines) = &part.lines {
        Part::Lines(span("lines", lines)?)
    } else if let Some(pattern) = &part.grep {
        Part::Grep(pattern.clone())
    } else if let Some(bytes) = &part.bytes {
        Part::Bytes(span("bytes", bytes)?)
    } else {
        Part::Page(part.page.unwrap_or(1))
    })
}

/// What a pointer points to, capped as JSON.
fn pointed(
    output: &KeptOutput<'_>,
    pointer: &str,
    limits: Limits,
    handle: &Handle,
) -> Result<Answer, CommandError> {
    let bad = |message: String| CommandError::Input { code: "bad_pointer", message, hint: None };
    if output.bytes > LARGEST_DOCUMENT_BYTES {
        return Err(bad(format!(
            "the output has more than {LARGEST_DOCUMENT_BYTES} bytes: read it by bytes, lines or pattern"
        )));
    }
    let bytes = output.read(0..u64::MAX).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("the output is no text".to_owned()))?;
    let value = pointed_to(&text, pointer).map_err(|error| bad(error.to_string()))?;
    let mut reading = Capper::new(Asked::Json, limits).map_err(|error| refused(&error))?.called(text_path());
    reading.push(value.as_bytes()).map_err(|error| refused(&error))?;
    let capped = reading.finish().map_err(|error| refused(&error))?;
    capped_answer(&capped, handle, Report { pointer: Some(pointer), ..Report::default() })
}

fn capped_answer(capped: &Capped, handle: &Handle, report: Report<'_>) -> Result<Answer, CommandError> {
    let report =
        Report { handle: handle.as_str(), text: Some(&capped.text), format: capped.format.name(), ..report };
    let mut answer = Answer::yes(to_data(&report)?, capped.text.clone());
    answer.max_response_bytes = usize::MAX;
    Ok(answer.with_warnings(capped.warnings.iter().cloned()))
}

fn reading(limits: Limits) -> Result<Capper, CommandError> {
    Ok(Capper::new(Asked::Auto, limits).map_err(|error| refused(&error))?.called(text_path()))
}

fn text_path() -> FieldPath {
    FieldPath::data().key("text")
}

fn limits(arguments: &Read, settings: &Settings) -> Result<Limits, CommandError> {
    let given = most(arguments.most.chars, arguments.most.bytes, arguments.most.tokens)
        .map_err(|message| CommandError::input("invalid_limit", message, "Give one limit."))?;
    let (most, unit) = given.unwrap_or((settings.cap.max_chars, Unit::Chars));
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let max_items = count(settings.cap.max_items).max(DEFAULT_MAX_ITEMS);
    let limits = Limits { most: count(most), unit, max_items, ..Limits::default() };
    limits.check().map_err(|error| refused(&error.into()))?;
    Ok(Limits { handle: Some(arguments.handle.clone()), ..limits })
}

fn span(what: &str, text: &str) -> Result<Span, CommandError> {
    text.parse().map_err(|error: endmark_context::read::RangeError| CommandError::Input {
        code: "bad_range",
        message: format!("--{what}: {error}"),
        hint: None,
    })
}

/// Its days begin anew; where that cannot be noted, it is said.
pub(super) fn used(settings: &Settings, handle: &Handle) -> Option<Warning> {
    let noted = || {
        let store = Store::open(&settings.store).map_err(|error| error.to_string())?;
        let noted = runtime::block_on(async {
            let noted = store.touch_output(handle).await;
            store.close().await;
            noted
        });
        noted.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    };
    let error: String = noted().err()?;
    Some(Warning::notice("NOT_NOTED", format!("that the output was read cannot be noted: {error}")))
}

pub(super) fn unknown(handle: &str) -> CommandError {
    failed(&StoreError::NoOutput { handle: handle.to_owned() })
}

pub(super) fn failed(error: &StoreError) -> CommandError {
    let code = match error {
        StoreError::NoOutput { .. } => "unknown_handle",
        StoreError::ExpiredOutput { .. } => "expired_handle",
        _ => return CommandError::of_store(error),
    };
    CommandError::Input { code, message: error.to_string(), hint: None }
}

/// A part of an output, under the names that others rely on.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report<'a> {
    handle: &'a str,
    /// The part; null where it is no text.
    text: Option<&'a str>,
    /// The part, where it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// What the part was taken for.
    format: &'a str,
    /// Bytes from the first number on and before the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u64>,
    /// Lines from the first number to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'a str>,
    /// How many lines match.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<u64>,
    /// Of all of it.
    of_bytes: Option<u64>,
    of_lines: Option<u64>,
}
