//! Evidence: lines of code that may look like anything, also like markers, findings and fields. (AR-1)

use endmark_text::CodeFence;

use super::grammar::{Event, any_field};
use super::lines::Line;
use crate::Evidence;

/// Evidence while its lines come.
#[derive(Debug)]
pub(super) struct Collecting {
    /// How far the word `evidence` is indented.
    indent: usize,
    style: Style,
    /// The code that is open, and how far it is indented.
    fence: Option<(CodeFence, usize)>,
    /// Other code has been opened in it, so that it may have been meant to end before that.
    pub(super) is_doubtful: bool,
    lines: Vec<String>,
    /// How many of them there were when code was closed last: behind that, a fence is around more of it.
    closed_with: usize,
}

/// How the lines of evidence stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Nothing has come yet, or text in the line of the word itself.
    Unset,
    /// Deeper than the word, or between fences.
    Apart,
    /// As deep as the word: up to a blank line, or to anything that is known.
    Flush,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It is evidence.
    Taken,
    /// It is blank: evidence may go on behind it, or not.
    Blank,
    /// The text stops before it is known what it is.
    Unknown,
    /// It is not evidence.
    Ended,
}

impl Collecting {
    /// Begins behind the word `evidence`, which is indented so far, with what stands in its line.
    pub(super) fn new(indent: usize, inline: &str) -> Self {
        // `evidence: |` is how YAML begins several lines.
        let inline = if inline == "|" { "" } else { inline };
        let fence = CodeFence::of(inline).map(|fence| (fence, indent));
        let is_text = fence.is_none() && !inline.is_empty();
        let lines: Vec<String> = is_text.then(|| inline.to_owned()).into_iter().collect();
        Self { indent, style: Style::Unset, fence, is_doubtful: false, closed_with: lines.len(), lines }
    }

    /// Evidence that is there in one piece.
    pub(super) fn of_text(text: &str) -> Self {
        let lines = text.lines().map(str::to_owned).collect();
        Self { indent: 0, style: Style::Apart, fence: None, is_doubtful: false, lines, closed_with: 0 }
    }

    /// Whether code is open, so that a blank line ends nothing.
    pub(super) fn is_open(&self) -> bool {
        self.fence.is_some()
    }

    /// Whether code is open that stands as deep as everything else, so that any line may be of it.
    pub(super) fn is_flush_code(&self) -> bool {
        self.fence.is_some_and(|(_, indent)| indent <= self.indent)
    }

    /// Whether one line is all of it and a field that is not known follows: `validation: pass`, or a block.
    pub(super) fn is_followed_by_field(&self, line: &Line<'_>) -> bool {
        let is_one_line = self.style == Style::Unset && self.lines.len() == 1 && self.fence.is_none();
        let is_flush = line.is_settled && line.indent() <= self.indent;
        let is_label = || line.text.contains(": ") || line.text.trim_end().ends_with(':');
        is_one_line && is_flush && is_label() && any_field(&line.text).is_some()
    }

    /// Looks at the next line. `around` is code that was opened before the finding and may be closed here.
    pub(super) fn step(&mut self, line: &Line<'_>, event: &Event<'_>, around: Option<CodeFence>) -> Step {
        let is_deeper = line.indent() > self.indent;
        // A fence that is cut may become a longer one, or code; white space may become anything.
        let is_told =
            matches!(event, Event::Head(..) | Event::Start | Event::End | Event::Checkpoint | Event::Turn);
        let is_flush = !is_deeper && self.fence.is_none() && !is_told;
        let signs = line.text.trim().trim_matches(['`', '~']);
        if !line.is_settled && (is_flush || signs.is_empty()) {
            return Step::Unknown;
        }
        if *event == Event::Blank {
            if !self.lines.is_empty() {
                self.taken(line);
            }
            return if self.is_open() || !line.is_empty() { Step::Taken } else { Step::Blank };
        }
        if let Some((fence, indent)) = self.fence {
            match event {
                // Code that is indented with a list ends with it.
                _ if !is_deeper && indent > self.indent => self.fence = None,
                Event::Fence(other) if fence.is_closed_by(*other) => {
                    self.fence = None;
                    self.closed_with = self.lines.len();
                    return Step::Taken;
                }
                Event::Fence(other) if other.is_like(fence) => {
                    self.is_doubtful = true;
                    return self.taken(line);
                }
                _ => return self.taken(line),
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
                self.taken(line)
            }
            Event::Text if self.style != Style::Apart && !self.is_behind_blank() => {
                self.style = Style::Flush;
                self.taken(line)
            }
            _ => Step::Ended,
        }
    }

    /// Whether a fence that is indented is one around evidence, and not a line of it.
    fn is_between_code(&self) -> bool {
        self.lines.iter().skip(self.closed_with).all(|line| line.trim().is_empty())
    }

    fn is_behind_blank(&self) -> bool {
        self.lines.last().is_some_and(|last| last.trim().is_empty())
    }

    fn taken(&mut self, line: &Line<'_>) -> Step {
        self.lines.push(line.outdented(self.columns()).to_owned());
        Step::Taken
    }

    /// How much indentation is none of a line's own.
    fn columns(&self) -> usize {
        match (self.fence, self.style) {
            (Some((_, indent)), _) => indent,
            (None, Style::Flush) => 0,
            (None, Style::Unset | Style::Apart) => self.indent + 2,
        }
    }

    /// All that came; none if that is nothing.
    pub(super) fn finish(self) -> Option<Evidence> {
        Evidence::of_lines(self.lines.iter().map(String::as_str))
    }
}
