//! What a model reads of a result that was capped: a part of it, by the tool that it was offered. (CX-5)

use std::ops::ControlFlow;

use endmark_context::cap::{Asked, CapError, Capper, Limits, Way};
use endmark_context::read::tool::{DESCRIPTION, NAME, Part, SCHEMA, Wanted};
use endmark_context::read::{Span, pointed_to};
use endmark_store::{Handle, KeptOutput, Reader, StoreError};
use endmark_wire::own_tool::{CallAnswer, OwnTool};
use regex::bytes::RegexBuilder;

use super::Subject;

/// The tool, as requests offer it.
pub(crate) const READ_TOOL: OwnTool<'static> =
    OwnTool { name: NAME, description: DESCRIPTION, schema: SCHEMA };

/// The most characters of what one call reads: about 12,000 tokens, of which a turn may have a few.
const READ_LIMIT_CHARS: usize = 50_000;
/// How much memory a compiled pattern may take.
const PATTERN_BYTES: usize = 4 << 20;
/// The largest output that a pointer can point into: it is read as a whole.
const LARGEST_DOCUMENT_BYTES: u64 = 64 << 20;

/// Why there is nothing to be read; the model is shown it.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("{0}")]
    Asked(String),
    #[error(transparent)]
    Cap(#[from] CapError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Answers a call of the tool by what the client of this request may read.
pub(crate) async fn read(subject: &Subject<'_>, arguments: &str) -> CallAnswer {
    match wanted(subject, arguments).await {
        Ok(text) => CallAnswer { text, is_error: false },
        Err(error) => CallAnswer { text: error.to_string(), is_error: true },
    }
}

async fn wanted(subject: &Subject<'_>, arguments: &str) -> Result<String, Unread> {
    let wanted = Wanted::parse(arguments).map_err(|error| Unread::Asked(error.to_string()))?;
    let unknown = || StoreError::NoOutput { handle: wanted.handle.clone() };
    let handle = Handle::parse(&wanted.handle).ok_or_else(unknown)?;
    let cap = subject.settings.cap;
    let limits = Limits {
        most: cap.max_chars.min(READ_LIMIT_CHARS),
        handle: Some(wanted.handle),
        way: Way::Tool,
        ..Limits::default()
    };
    let (owner, read) = (subject.owner(), handle.clone());
    let work = move |reader: &Reader| Ok(part(&reader.output(&read, &owner)?, &wanted.part, &limits));
    let text = subject.patient(subject.store.read(work)).await??;
    if let Err(error) = subject.patient(subject.store.touch_output(&handle)).await {
        tracing::warn!(request = subject.id, %error, "that an output was read cannot be noted");
    }
    Ok(text)
}

fn part(output: &KeptOutput<'_>, part: &Part, limits: &Limits) -> Result<String, Unread> {
    match part {
        Part::Page(page) => {
            let pages = output.pages(limits.most);
            let read = output.page(*page, limits.most)?;
            let none = || Unread::Asked(format!("there is no page {page}: the output has {pages}, from 1"));
            let text = String::from_utf8_lossy(&read.ok_or_else(none)?.bytes).into_owned();
            Ok(if pages > 1 { format!("{text}\n[page {page} of {pages}]") } else { text })
        }
        Part::Bytes(span) => bytes(output, *span, limits.most as u64),
        Part::Lines(span) => lines(output, *span, limits),
        Part::Grep(pattern) => matching(output, pattern, limits),
        Part::Pointer(pointer) => {
            if output.bytes > LARGEST_DOCUMENT_BYTES {
                return Err(Unread::Asked("the output is too large for a pointer: read lines".to_owned()));
            }
            let all = output.read(0..u64::MAX)?;
            let value = pointed_to(&String::from_utf8_lossy(&all), pointer).map(str::to_owned);
            let value = value.map_err(|error| Unread::Asked(error.to_string()))?;
            let mut capper = Capper::new(Asked::Json, limits.clone())?;
            capper.push(value.as_bytes())?;
            Ok(capper.finish()?.text)
        }
    }
}

fn bytes(output: &KeptOutput<'_>, span: Span, most: u64) -> Result<String, Unread> {
    let (from, to) = (span.from.unwrap_or(0), span.to.unwrap_or(u64::MAX).min(output.bytes));
    if from >= to {
        let why = format!("byte {from} is behind the end: the output has {}", output.bytes);
        return Err(Unread::Asked(why));
    }
    if to - from > most {
        let why = format!("these are {} bytes, and at most {most} can be read at once", to - from);
        return Err(Unread::Asked(why));
    }
    Ok(String::from_utf8_lossy(&output.read(from..to)?).into_owned())
}

fn lines(output: &KeptOutput<'_>, span: Span, limits: &Limits) -> Result<String, Unread> {
    let (from, to) = (span.from.unwrap_or(1), span.to.unwrap_or(u64::MAX).min(output.lines));
    if from == 0 || from > output.lines {
        let why = format!("there is no line {from}: the output has {}, from 1", output.lines);
        return Err(Unread::Asked(why));
    }
    let mut capper = Capper::new(Asked::Auto, limits.clone())?;
    let mut pushed = Ok(());
    output.lines_from(from - 1, |number, line| {
        if number >= from && number <= to {
            pushed = capper.push(line);
        }
        if number >= to || pushed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    pushed?;
    Ok(capper.finish()?.text)
}

fn matching(output: &KeptOutput<'_>, pattern: &str, limits: &Limits) -> Result<String, Unread> {
    let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
    let regex = regex.map_err(|error| Unread::Asked(error.to_string()))?;
    let mut capper = Capper::new(Asked::Text, limits.clone())?;
    let (mut pushed, mut has_any) = (Ok(()), false);
    output.lines_from(0, |number, line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if regex.is_match(line.strip_suffix(b"\r").unwrap_or(line)) {
            has_any = true;
            let numbered = [format!("{number}:").as_bytes(), line, b"\n"].concat();
            pushed = capper.push(&numbered);
        }
        if pushed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    pushed?;
    if !has_any {
        return Err(Unread::Asked(format!("no line matches `{pattern}`")));
    }
    Ok(capper.finish()?.text)
}
