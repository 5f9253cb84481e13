//! Parses evidence: lines of code that may look like markers, findings or fields. (AR-1)

use endmark_text::CodeFence;

use super::grammar::{Event, any_field};
use super::lines::Line;
use crate::Evidence;

/// Evidence that is being collected.
#[derive(Debug)]
pub(super) struct EvidenceCollector {
    /// The indentation of the word `evidence`.
    indent: usize,
    style: Style,
    /// The open code fence and its indentation.
    fence: Option<(CodeFence, usize)>,
    /// Another fence was opened inside, so the first one may have been intended to end before it.
    pub(super) is_doubtful: bool,
    lines: Vec<String>,
    /// The number of lines when the last fence was closed. A fence after that encloses more evidence.
    closed_with: usize,
}

/// The layout of evidence lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// No line yet, or only text after the word itself.
    Unset,
    /// Indented deeper than the word, or inside a fence.
    Apart,
    /// Indented like the word: ends at a blank line or at a known line.
    Flush,
}

/// The outcome of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
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
    /// Starts after the word `evidence` with its indentation and the rest of its line.
    pub(super) fn new(indent: usize, inline: &str) -> Self {
        // In YAML, `evidence: |` starts a multi-line value.
        let inline = if inline == "|" { "" } else { inline };
        let fence = CodeFence::parse(inline).map(|fence| (fence, indent));
        let is_text = fence.is_none() && !inline.is_empty();
        let lines: Vec<String> = is_text.then(|| inline.to_owned()).into_iter().collect();
        Self { indent, style: Style::Unset, fence, is_doubtful: false, closed_with: lines.len(), lines }
    }

    /// Creates complete evidence from a text.
    pub(super) fn from_text(text: &str) -> Self {
        let lines = text.lines().map(str::to_owned).collect();
        Self { indent: 0, style: Style::Apart, fence: None, is_doubtful: false, lines, closed_with: 0 }
    }

    /// Whether a fence is open, so that a blank line does not end the evidence.
    pub(super) fn is_open(&self) -> bool {
        self.fence.is_some()
    }

    /// Whether a fence is open at the indentation of the fields, so that any line may belong to it.
    pub(super) fn is_flush_code(&self) -> bool {
        self.fence.is_some_and(|(_, indent)| indent <= self.indent)
    }

    /// Whether the evidence is a single line and an unknown field follows: `validation: pass`, or a block.
    pub(super) fn is_followed_by_field(&self, line: &Line<'_>) -> bool {
        let is_one_line = self.style == Style::Unset && self.lines.len() == 1 && self.fence.is_none();
        let is_flush = line.is_settled && line.indent() <= self.indent;
        let is_label = || line.text.contains(": ") || line.text.trim_end().ends_with(':');
        is_one_line && is_flush && is_label() && any_field(&line.text).is_some()
    }

    /// Processes the next line. `around` is a fence that was opened before the finding and may be closed here.
    pub(super) fn step(&mut self, line: &Line<'_>, event: &Event<'_>, around: Option<CodeFence>) -> Step {
        let is_deeper = line.indent() > self.indent;
        // A cut fence may become a longer one or code, and white space may become anything.
        let is_told =
            matches!(event, Event::Head(..) | Event::Start | Event::End | Event::Checkpoint | Event::Turn);
        let is_flush = !is_deeper && self.fence.is_none() && !is_told;
        let signs = line.text.trim().trim_matches(['`', '~']);
        if !line.is_settled && (is_flush || signs.is_empty()) {
            return Step::Unknown;
        }
        if *event == Event::Blank {
            if !self.lines.is_empty() {
                self.take_line(line);
            }
            return if self.is_open() || !line.is_empty() { Step::Taken } else { Step::Blank };
        }
        if let Some((fence, indent)) = self.fence {
            match event {
                // A fence that is indented within a list ends with the list item.
                _ if !is_deeper && indent > self.indent => self.fence = None,
                Event::Fence(other) if fence.is_closed_by(*other) => {
                    self.fence = None;
                    self.closed_with = self.lines.len();
                    return Step::Taken;
                }
                Event::Fence(other) if other.is_like(fence) => {
                    self.is_doubtful = true;
                    return self.take_line(line);
                }
                _ => return self.take_line(line),
            }
        }
        match event {
            Event::Fence(fence) if !is_deeper && around.is_some_and(|around| around.is_closed_by(*fence)) => {
                Step::Ended
            }
            Event::Fence(fence) if !is_deeper || self.is_between_code() => {
                if !self.lines.is_empty() {
                    self.lines.push(String::new());
                }
                (self.fence, self.style) = (Some((*fence, line.indent())), Style::Apart);
                Step::Taken
            }
            _ if is_deeper => {
                if self.style == Style::Unset {
                    self.style = Style::Apart;
                }
                self.take_line(line)
            }
            Event::Text if self.style != Style::Apart && !self.follows_blank() => {
                self.style = Style::Flush;
                self.take_line(line)
            }
            _ => Step::Ended,
        }
    }

    /// Whether an indented fence encloses evidence, and is not one of its lines.
    fn is_between_code(&self) -> bool {
        self.lines.iter().skip(self.closed_with).all(|line| line.trim().is_empty())
    }

    fn follows_blank(&self) -> bool {
        self.lines.last().is_some_and(|last| last.trim().is_empty())
    }

    fn take_line(&mut self, line: &Line<'_>) -> Step {
        self.lines.push(line.outdent(self.columns()).to_owned());
        Step::Taken
    }

    /// Returns the indentation that is not part of a line's content.
    fn columns(&self) -> usize {
        match (self.fence, self.style) {
            (Some((_, indent)), _) => indent,
            (None, Style::Flush) => 0,
            (None, Style::Unset | Style::Apart) => self.indent + 2,
        }
    }

    /// Returns the evidence, or `None` if it is blank.
    pub(super) fn finish(self) -> Option<Evidence> {
        Evidence::from_lines(self.lines.iter().map(String::as_str))
    }
}
