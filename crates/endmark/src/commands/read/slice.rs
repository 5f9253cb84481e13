//! Bytes of an output as they are: a page, or a range.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use endmark_context::read::Span;
use endmark_store::{Handle, KeptOutput};

use super::{ReadPart, Report, failed};
use crate::answer::{Answer, to_data};
use crate::error::CommandError;

/// Bytes of an output.
pub(super) struct Slice {
    bytes: Vec<u8>,
    from: u64,
    page: Option<[u64; 2]>,
}

/// A page has at most so many bytes as the limit allows characters or tokens, of which each has a byte at the least.
pub(super) fn of_page(output: &KeptOutput<'_>, page: u64, most: usize) -> Result<Slice, CommandError> {
    let pages = output.pages(most);
    let read = output.page(page, most).map_err(|error| failed(&error))?;
    let read = read.ok_or_else(|| {
        let message = format!("there is no page {page}: the output has {pages}, from 1");
        CommandError::Input { code: "no_page", message, hint: None }
    })?;
    Ok(Slice { bytes: read.bytes, from: read.first_byte, page: Some([page, pages]) })
}

/// Bytes from one place to another, if they are no more than the limit.
pub(super) fn of_bytes(output: &KeptOutput<'_>, span: Span, most: usize) -> Result<Slice, CommandError> {
    let from = span.from.unwrap_or(0);
    let to = span.to.unwrap_or(u64::MAX).min(output.bytes);
    if from >= output.bytes && output.bytes > 0 {
        let message = format!("byte {from} is behind the end: the output has {}", output.bytes);
        return Err(CommandError::Input { code: "bad_range", message, hint: None });
    }
    if to.saturating_sub(from) > most as u64 {
        let message = format!("the range has {} bytes, and at most {most} are shown", to - from);
        let hint = format!("Read it in parts: `--bytes {from}:{}` is the first.", from + most as u64);
        return Err(CommandError::input("bad_range", message, hint));
    }
    let bytes = output.read(from..to).map_err(|error| failed(&error))?;
    Ok(Slice { bytes, from, page: None })
}

impl Slice {
    /// The text, or Base64 where it is none.
    pub(super) fn answer(self, output: &KeptOutput<'_>, handle: &Handle) -> Result<ReadPart, CommandError> {
        let text = str::from_utf8(&self.bytes).ok();
        let report = Report {
            handle: handle.as_str(),
            text,
            base64: text.is_none().then(|| STANDARD.encode(&self.bytes)),
            format: &output.format,
            bytes: Some([self.from, self.from + self.bytes.len() as u64]),
            page: self.page.map(|[page, _]| page),
            pages: self.page.map(|[_, pages]| pages),
            of_bytes: Some(output.bytes),
            of_lines: Some(output.lines),
            ..Report::default()
        };
        let mut answer = Answer::yes(to_data(&report)?, text.unwrap_or_default());
        answer.max_response_bytes = usize::MAX;
        let is_text = text.is_some();
        Ok(ReadPart { answer, page: self.page, raw: (!is_text).then_some(self.bytes) })
    }
}
