//! Parses evidence: lines of code that may look like markers, findings or fields. (AR-1)

use endmark_text::CodeFence;

use super::grammar::{LineEvent, parse_any_field};
use super::lines::Line;
use crate::Evidence;

/// Evidence that is being collected.
#[derive(Debug)]
pub(super) struct EvidenceCollector {
    /// The indentation of the word `evidence`.
    indent: usize,
    layout: EvidenceLayout,
    /// The open code fence and its indentation.
    fence: Option<(CodeFence, usize)>,
    /// Whether a second fence was opened inside the first one, which may have been meant to end before it.
    pub(super) is_doubtful: bool,
    lines: Vec<String>,
    /// The number of lines when the last fence was closed. The next fence encloses more evidence if only blank lines
    /// follow.
    lines_at_close: usize,
}

/// The layout of the evidence lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EvidenceLayout {
    /// There is no line yet, or only text in the line of the word `evidence`.
    Unset,
    /// The lines are indented deeper than the word, or inside a fence.
    SetApart,
    /// The lines are indented like the word. They end at a blank line or at a known line.
    Flush,
}

/// The effect of a line on evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EvidenceEffect {
    /// The line is evidence.
    Taken,
    /// The line is blank. Evidence may continue after it.
    Blank,
    /// The text ends before the line can be classified.
    Unknown,
    /// The line is not evidence.
    Ended,
}

impl EvidenceCollector {
    /// Starts evidence. `indent` is the indentation of the word `evidence`, and `inline` the rest of its line.
    pub(super) fn new(indent: usize, inline: &str) -> Self {
        // In YAML, `evidence: |` starts a multi-line value.
        let inline = if inline == "|" { "" } else { inline };
        let fence = CodeFence::parse(inline).map(|fence| (fence, indent));
        let is_text = fence.is_none() && !inline.is_empty();
        let lines: Vec<String> = is_text.then(|| inline.to_owned()).into_iter().collect();
        Self {
            indent,
            layout: EvidenceLayout::Unset,
            fence,
            is_doubtful: false,
            lines_at_close: lines.len(),
            lines,
        }
    }

    /// Creates complete evidence from a text.
    pub(super) fn from_text(text: &str) -> Self {
        let lines = text.lines().map(str::to_owned).collect();
        Self {
            indent: 0,
            layout: EvidenceLayout::SetApart,
            fence: None,
            is_doubtful: false,
            lines,
            lines_at_close: 0,
        }
    }

    /// Whether a fence is open, so that a blank line does not end the evidence.
    pub(super) fn is_open(&self) -> bool {
        self.fence.is_some()
    }

    /// Whether a fence is open that is indented like the fields, so that any line may belong to it.
    pub(super) fn is_flush_code(&self) -> bool {
        self.fence.is_some_and(|(_, indent)| indent <= self.indent)
    }

    /// Whether the evidence is a single line and this line is an unknown field: `validation: pass`, or a block.
    pub(super) fn is_followed_by_field(&self, line: &Line<'_>) -> bool {
        let is_one_line =
            self.layout == EvidenceLayout::Unset && self.lines.len() == 1 && self.fence.is_none();
        let is_flush = line.is_terminated && line.indent() <= self.indent;
        let is_label = || line.text.contains(": ") || line.text.trim_end().ends_with(':');
        is_one_line && is_flush && is_label() && parse_any_field(&line.text).is_some()
    }

    /// Processes the next line. `around` is a fence that was opened before the finding, which this line may close.
    pub(super) fn push_line(
        &mut self,
        line: &Line<'_>,
        event: &LineEvent<'_>,
        around: Option<CodeFence>,
    ) -> EvidenceEffect {
        let is_deeper = line.indent() > self.indent;
        // In a cut line, a fence may be the start of a longer one or of code, and white space the start of anything.
        let is_known_line = matches!(
            event,
            LineEvent::Head(..) | LineEvent::Start | LineEvent::End | LineEvent::Checkpoint | LineEvent::Turn
        );
        let is_flush = !is_deeper && self.fence.is_none() && !is_known_line;
        let signs = line.text.trim().trim_matches(['`', '~']);
        if !line.is_terminated && (is_flush || signs.is_empty()) {
            return EvidenceEffect::Unknown;
        }
        if *event == LineEvent::Blank {
            if !self.lines.is_empty() {
                self.take_line(line);
            }
            return if self.is_open() || !line.is_empty() {
                EvidenceEffect::Taken
            } else {
                EvidenceEffect::Blank
            };
        }
        if let Some((fence, indent)) = self.fence {
            match event {
                // A fence inside a list item ends with the item.
                _ if !is_deeper && indent > self.indent => self.fence = None,
                LineEvent::Fence(other) if fence.is_closed_by(*other) => {
                    self.fence = None;
                    self.lines_at_close = self.lines.len();
                    return EvidenceEffect::Taken;
                }
                LineEvent::Fence(other) if other.has_same_marker(fence) => {
                    self.is_doubtful = true;
                    return self.take_line(line);
                }
                _ => return self.take_line(line),
            }
        }
        match event {
            LineEvent::Fence(fence)
                if !is_deeper && around.is_some_and(|around| around.is_closed_by(*fence)) =>
            {
                EvidenceEffect::Ended
            }
            LineEvent::Fence(fence) if !is_deeper || self.is_between_code() => {
                if !self.lines.is_empty() {
                    self.lines.push(String::new());
                }
                (self.fence, self.layout) = (Some((*fence, line.indent())), EvidenceLayout::SetApart);
                EvidenceEffect::Taken
            }
            _ if is_deeper => {
                if self.layout == EvidenceLayout::Unset {
                    self.layout = EvidenceLayout::SetApart;
                }
                self.take_line(line)
            }
            LineEvent::Text if self.layout != EvidenceLayout::SetApart && !self.follows_blank() => {
                self.layout = EvidenceLayout::Flush;
                self.take_line(line)
            }
            _ => EvidenceEffect::Ended,
        }
    }

    /// Whether an indented fence would enclose more evidence here, instead of being one of its lines.
    fn is_between_code(&self) -> bool {
        self.lines.iter().skip(self.lines_at_close).all(|line| line.trim().is_empty())
    }

    fn follows_blank(&self) -> bool {
        self.lines.last().is_some_and(|last| last.trim().is_empty())
    }

    fn take_line(&mut self, line: &Line<'_>) -> EvidenceEffect {
        self.lines.push(line.outdent(self.base_indent()).to_owned());
        EvidenceEffect::Taken
    }

    /// Returns the number of columns of indentation that do not belong to the evidence.
    fn base_indent(&self) -> usize {
        match (self.fence, self.layout) {
            (Some((_, indent)), _) => indent,
            (None, EvidenceLayout::Flush) => 0,
            (None, EvidenceLayout::Unset | EvidenceLayout::SetApart) => self.indent + 2,
        }
    }

    /// Returns the evidence, or `None` if it is blank.
    pub(super) fn finish(self) -> Option<Evidence> {
        Evidence::from_lines(self.lines.iter().map(String::as_str))
    }
}
