//! `endmark read`: returns a part of an output that was stored in full (CX-5).

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use crate::arguments::read as arguments;
use crate::arguments::read::Read;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use endmark_config::Settings;
use endmark_context::cap::{DEFAULT_MAX_ITEMS, Limits};
use endmark_context::read::{Excerpt, Part, PartContent, PartLocation, RangeError};
use endmark_envelope::Warning;
use endmark_failure::{CommandError, ExitStatus};
use endmark_store::{CapRequest, Handle, LOCAL_USER, Reader, StoreError, read_error, record_read};
use serde::Serialize;
use serde_json::Value;

use crate::context::{Context, configuration_warnings};
use crate::view::answer::{Answer, Outcome, to_data};

/// Reads a part of a stored output.
pub(crate) fn run(context: &Context, arguments: &Read) -> Result<Outcome, CommandError> {
    let effective = context.load_configuration(arguments.store.overrides())?;
    let settings = &effective.settings;
    let limits = requested_limits(arguments, settings)?;
    let handle = Handle::parse_or_unknown(&arguments.handle)?;
    let part = requested_part(&arguments.part)?;
    let read = Reader::read_output(&settings.files.store, &handle, |reader| {
        let output = match reader.output(&handle, LOCAL_USER) {
            // A user who can read the store's file can also read the outputs that its gateway stores for clients.
            Err(StoreError::NoOutput { .. }) => reader.client_output(&handle),
            own => own,
        }?;
        let whole =
            StoredOutputInfo { format: output.format.clone(), bytes: output.bytes, lines: output.lines };
        Ok((output.part(&part, &limits), whole))
    });
    let (excerpt, whole) = read.map_err(|error| read_error(&error))?;
    let excerpt = excerpt.map_err(|error| CommandError::from(&error))?;
    let mut warnings = configuration_warnings(&effective);
    if let Err(error) = record_read(&settings.files.store, &handle) {
        let message = format!("cannot record that the output was read: {error}");
        warnings.push(Warning::notice("NOT_NOTED", message));
    }
    if let PartLocation::Page { page, pages, .. } = excerpt.location
        && page < pages
    {
        context.terminal.progress(&format!("Page {page} of {pages}; the next one is `--page {}`.", page + 1));
    }
    match &excerpt.content {
        PartContent::Bytes(bytes) if is_output_read_by_program(context) && str::from_utf8(bytes).is_err() => {
            io::stdout().lock().write_all(bytes).map_err(CommandError::Write)?;
            Ok(Outcome::Streamed(ExitStatus::Success))
        }
        _ => Ok(build_answer(&excerpt, &part, &whole, &handle)?.with_warnings(warnings).into()),
    }
}

/// Whether a program reads standard output. It gets binary data unchanged.
fn is_output_read_by_program(context: &Context) -> bool {
    !context.terminal.json && !io::stdout().is_terminal()
}

/// Returns the requested part, or the first page if none is requested.
fn requested_part(part: &arguments::Part) -> Result<Part, CommandError> {
    let span = |what: &str, text: &str| {
        text.parse().map_err(|error: RangeError| CommandError::Input {
            code: "bad_range",
            message: format!("--{what}: {error}"),
            hint: None,
        })
    };
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

/// Properties of the complete output.
struct StoredOutputInfo {
    format: String,
    bytes: u64,
    lines: u64,
}

/// Returns the part as text, or as Base64 if it is not text, with its metadata.
fn build_answer(
    excerpt: &Excerpt,
    part: &Part,
    output: &StoredOutputInfo,
    handle: &Handle,
) -> Result<Answer, CommandError> {
    let (text, bytes) = match &excerpt.content {
        PartContent::Bytes(bytes) => (str::from_utf8(bytes).ok(), bytes.as_slice()),
        PartContent::Capped(capped) => (Some(capped.text.as_str()), [].as_slice()),
    };
    let (format, capped) = match &excerpt.content {
        PartContent::Bytes(_) => (output.format.as_str(), None),
        PartContent::Capped(capped) => (capped.format.name(), Some(capped)),
    };
    let mut report = ReadReport {
        handle: handle.as_str(),
        text,
        base64: text.is_none().then(|| STANDARD.encode(bytes)),
        format,
        of_bytes: output.bytes,
        of_lines: output.lines,
        ..ReadReport::default()
    };
    match &excerpt.location {
        PartLocation::Page { page, pages, bytes } => {
            (report.page, report.pages) = (Some(*page), Some(*pages));
            report.bytes = Some([bytes.start, bytes.end]);
        }
        PartLocation::Bytes(bytes) => report.bytes = Some([bytes.start, bytes.end]),
        PartLocation::Lines(lines) => report.lines = Some(*lines),
        PartLocation::Value | PartLocation::Matches(_) => {}
    }
    match (part, &excerpt.location) {
        (Part::Grep(pattern), PartLocation::Matches(0)) => {
            return Ok(Answer::no(Value::Null, "not_found", format!("no line matches `{pattern}`"), None));
        }
        (Part::Grep(pattern), PartLocation::Matches(matches)) => {
            (report.pattern, report.matches) = (Some(pattern.as_str()), Some(*matches));
        }
        (Part::Pointer(pointer), _) => report.pointer = Some(pointer),
        _ => {}
    }
    let shown = text.map_or_else(|| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let mut answer = Answer::yes(to_data(&report)?, shown);
    answer.max_response_bytes = usize::MAX;
    Ok(answer.with_warnings(capped.into_iter().flat_map(|capped| capped.warnings.iter().cloned())))
}

fn requested_limits(arguments: &Read, settings: &Settings) -> Result<Limits, CommandError> {
    let limit = arguments.most.limit()?;
    let CapRequest { limits, .. } = settings.cap_request(limit, None, u64::MAX)?;
    let max_items = limits.max_items.max(DEFAULT_MAX_ITEMS);
    Ok(Limits { max_items, handle: Some(arguments.handle.clone()), ..limits })
}

/// Answer data: the requested part of an output. The field names are public.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReadReport<'a> {
    handle: &'a str,
    /// The part; null if it is not text.
    text: Option<&'a str>,
    /// The part, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The format of the stored output.
    format: &'a str,
    /// The byte range of the part; the end is exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u64>,
    /// The line range of the part; the end is inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'a str>,
    /// The number of matching lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<u64>,
    /// The size of the whole output in bytes.
    of_bytes: u64,
    of_lines: u64,
}
