//! Evidence: lines of code that may look like anything, also like markers, findings and fields.

use crate::findings::Evidence;

use super::lines::{Line, indent, outdented};
use super::words::{self, Key};

/// A fence of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    sign: char,
    count: usize,
    indent: usize,
    pub(super) has_info: bool,
}

impl Fence {
    /// The fence that a line is.
    pub(super) fn of(text: &str) -> Option<Self> {
        let trimmed = text.trim();
        let sign = trimmed.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
        let info = trimmed.trim_start_matches(sign);
        let count = trimmed.len() - info.len();
        (count >= 3 && !info.contains('`')).then(|| Self {
            sign,
            count,
            indent: indent(text),
            has_info: !info.trim().is_empty(),
        })
    }

    /// Whether `other` closes what this one opened.
    pub(super) fn is_closed_by(&self, other: Self) -> bool {
        other.sign == self.sign && other.count >= self.count && !other.has_info
    }
}

/// How the lines of evidence stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Nothing has come yet.
    Unset,
    /// Between fences.
    Fenced,
    /// The fence was closed, and the evidence with it.
    Closed,
    /// Deeper than the word `evidence`.
    Indented,
    /// As deep as that word: everything that is nothing else.
    Flush,
}

/// Evidence while its lines come.
#[derive(Debug)]
pub(super) struct Collecting {
    key_indent: usize,
    style: Style,
    fence: Option<Fence>,
    lines: Vec<String>,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It is evidence.
    Taken,
    /// It is evidence, although it looks like a marker or a finding.
    TakenForEvidence,
    /// It is blank: nothing is known yet.
    Blank,
    /// It is not evidence.
    NotEvidence,
}

/// What is behind a line, where only that can tell.
pub(super) trait Ahead {
    /// Whether a finding with some of its fields begins here, in spite of an open fence.
    fn begins_finding(&self) -> bool;
}

impl Collecting {
    /// Begins behind the word `evidence`, which is indented so far, with what stands in its line.
    pub(super) fn new(key_indent: usize, inline: &str) -> Self {
        let mut new = Self { key_indent, style: Style::Unset, fence: None, lines: Vec::new() };
        let inline = inline.trim_end();
        if let Some(fence) = Fence::of(inline) {
            new.fence = Some(Fence { indent: key_indent, ..fence });
            new.style = Style::Fenced;
        } else if !inline.is_empty() {
            new.style = Style::Indented;
            new.lines.push(inline.to_owned());
        }
        new
    }

    /// Whether code is open, so that a blank line ends nothing.
    pub(super) fn is_open(&self) -> bool {
        self.fence.is_some()
    }

    /// Looks at the next line. `is_new` says whether the finding does not have such a field yet.
    pub(super) fn step(
        &mut self,
        line: &Line<'_>,
        text: &str,
        is_new: impl Fn(Key) -> bool,
        ahead: &impl Ahead,
    ) -> Step {
        if text.trim().is_empty() {
            let is_kept = matches!(self.style, Style::Fenced | Style::Indented | Style::Flush);
            if is_kept {
                self.push(text);
            }
            // Spaces are a line of evidence in which nothing stands; nothing at all may be its end.
            let is_line = !line.is_empty() && is_kept || self.fence.is_some();
            return if is_line { Step::Taken } else { Step::Blank };
        }
        // A fence that is cut may become a longer one, or code.
        if !line.is_settled && text.trim().trim_matches(['`', '~']).is_empty() {
            return Step::Taken;
        }
        let depth = indent(text);
        let is_deeper = depth > self.key_indent;
        let is_structure = words::marker(text).is_some() || words::head(text).is_some();
        if let Some(fence) = self.fence {
            let is_outside = fence.indent > self.key_indent && !is_deeper && is_structure;
            if is_outside || is_structure && !is_deeper && ahead.begins_finding() {
                self.fence = None;
                return Step::NotEvidence;
            }
            if Fence::of(text).is_some_and(|other| fence.is_closed_by(other)) {
                self.fence = None;
                if self.style == Style::Fenced {
                    self.style = Style::Closed;
                    return Step::Taken;
                }
            }
            self.push(text);
            return if is_structure { Step::TakenForEvidence } else { Step::Taken };
        }
        match self.style {
            Style::Fenced | Style::Closed => return Step::NotEvidence,
            Style::Indented if !is_deeper => return Step::NotEvidence,
            Style::Indented => {}
            Style::Unset | Style::Flush => {
                if !is_deeper && (is_structure || is_field(text, is_new)) {
                    return Step::NotEvidence;
                }
                if let Some(fence) = Fence::of(text) {
                    let is_first = self.style == Style::Unset;
                    self.fence = Some(fence);
                    self.style = if is_first { Style::Fenced } else { Style::Flush };
                    if !is_first {
                        self.push(text);
                    }
                    return Step::Taken;
                }
                if self.style == Style::Unset {
                    self.style = if is_deeper { Style::Indented } else { Style::Flush };
                }
            }
        }
        if !line.is_settled && !is_deeper && words::may_become_structure(text) {
            return Step::NotEvidence;
        }
        self.push(text);
        if is_structure { Step::TakenForEvidence } else { Step::Taken }
    }

    fn push(&mut self, text: &str) {
        let columns = match (self.style, self.fence) {
            (Style::Fenced, Some(fence)) => fence.indent,
            (Style::Indented, _) => self.key_indent + 2,
            _ => 0,
        };
        self.lines.push(outdented(text, columns).to_owned());
    }

    /// All that came; none if that is nothing.
    pub(super) fn finish(self) -> Option<Evidence> {
        Evidence::of_lines(self.lines.iter().map(String::as_str))
    }
}

/// Whether a line is a field that the finding lacks, and not code that happens to look like one.
fn is_field(text: &str, is_new: impl Fn(Key) -> bool) -> bool {
    words::said(text).is_some_and(|said| said.is_plain && said.key.is_some_and(is_new))
}
