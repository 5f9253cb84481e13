//! Bytes of an output as they are: a page, or a range.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use endmark_context::read::{PAGE_LOOK_BEHIND_BYTES, Span, page_begin};
use endmark_store::{Handle, KeptOutput};

use super::{ReadPart, Report, failed};
use crate::answer::{Answer, to_data};
use crate::error::CommandError;

/// As much as is needed to see the end of a character.
const LOOK_AHEAD_BYTES: u64 = 64;

/// Bytes of an output.
pub(super) struct Slice {
    bytes: Vec<u8>,
    from: u64,
    page: Option<[u64; 2]>,
}

/// A page has at most so many bytes as the limit allows characters or tokens, of which each has a byte at the least.
pub(super) fn of_page(output: &KeptOutput<'_>, page: u64, most: usize) -> Result<Slice, CommandError> {
    // A page may begin a little before its place, and must not be longer for it.
    let look_behind = PAGE_LOOK_BEHIND_BYTES.min(most / 4);
    let step = (most - look_behind) as u64;
    let pages = output.bytes.div_ceil(step).max(1);
    if page == 0 || page > pages {
        let message = format!("there is no page {page}: the output has {pages}, from 1");
        return Err(CommandError::Input { code: "no_page", message, hint: None });
    }
    let begin = |page: u64| {
        let place = (page * step).min(output.bytes);
        if place == 0 || place == output.bytes {
            return Ok::<u64, CommandError>(place);
        }
        let first = place - place.min(look_behind as u64);
        let near = output.read(first..place + LOOK_AHEAD_BYTES).map_err(|error| failed(&error))?;
        let (before, behind) =
            near.split_at(usize::try_from(place - first).unwrap_or_default().min(near.len()));
        Ok(place - page_begin(before, behind) as u64)
    };
    let (from, to) = (begin(page - 1)?, begin(page)?);
    let bytes = output.read(from..to).map_err(|error| failed(&error))?;
    Ok(Slice { bytes, from, page: Some([page, pages]) })
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
