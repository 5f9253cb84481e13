//! Evidence: lines of code that may look like anything, also like markers, findings and fields.

use crate::Evidence;

use super::lines::{Line, indent, outdented};
use super::names::{self, Key};
use super::{heads, tags, words};

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

    /// Whether `other` is written with the same sign, and as long or longer.
    pub(super) fn is_alike(&self, other: Self) -> bool {
        other.sign == self.sign && other.count >= self.count
    }

    /// Whether `other` closes what this one opened.
    pub(super) fn is_closed_by(&self, other: Self) -> bool {
        self.is_alike(other) && !other.has_info
    }
}

/// How the lines of evidence stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Nothing has come yet.
    Unset,
    /// Text in the line of the word `evidence` itself, and nothing behind it.
    Inline,
    /// Between fences.
    Fenced,
    /// The fence was closed, and the evidence with it.
    Closed,
    /// A fence that stands deeper than the word `evidence` was closed: what is as deep is still evidence.
    Between,
    /// Deeper than the word `evidence`.
    Indented,
    /// As deep as that word: everything that is nothing else.
    Flush,
}

/// Evidence while its lines come.
#[derive(Debug)]
pub(super) struct Collecting {
    key_indent: usize,
    /// The word `evidence` is an item of a list.
    is_item: bool,
    style: Style,
    fence: Option<Fence>,
    lines: Vec<String>,
    /// Behind how many lines another piece of code began.
    reopened_at: Option<usize>,
    /// The line that closes the code that is open, where that has been looked for.
    closes_at: Option<usize>,
    /// A line could have been the beginning of a finding, and the text stopped before that was told: so is what follows.
    is_in_doubt: bool,
    /// It was cut where a turn of the conversation ended: what comes is passed over.
    is_stopped: bool,
    /// How many lines there were when the last code was closed.
    closed_with: usize,
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
    /// The text stops before it is known what it is.
    Unknown,
    /// It is not evidence.
    NotEvidence,
}

/// Whether a finding begins, where only the lines behind can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    Yes,
    No,
    /// The text stops before that is told.
    Unknown,
}

/// What stands in an open fence and looks like a finding with some of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// It is one: the fence was never closed.
    Finding,
    /// It is quoted: the fence is closed in this line.
    ClosedAt(usize),
    /// It does not look like one.
    Nothing,
    /// The text stops before that is told.
    Unknown,
}

/// What is around a line.
pub(super) trait Around {
    /// What begins here, in spite of an open fence.
    fn begins_finding(&self, fence: Fence) -> Begun;
    /// Whether a finding begins here that looks like the others and has the next number, or has some of its fields, or says
    /// others than the finding has.
    fn begins_next_finding(&self) -> Begins;
    /// Whether more code follows behind texts about it alone.
    fn is_between_code(&self) -> bool;
    /// Whether the finding lacks such a field, or the header does.
    fn is_new(&self, key: Key, is_after_blank: bool) -> bool;
}

impl Collecting {
    /// Begins behind the word `evidence`, which is indented so far, with what stands in its line.
    pub(super) fn new(key_indent: usize, is_item: bool, inline: &str) -> Self {
        let mut new = Self {
            key_indent,
            is_item,
            style: Style::Unset,
            fence: None,
            lines: Vec::new(),
            reopened_at: None,
            closes_at: None,
            is_in_doubt: false,
            is_stopped: false,
            closed_with: 0,
        };
        // `evidence: |` is how YAML begins several lines.
        let inline = inline.trim_end();
        let inline = if ["|", "|-", "|+", ">", ">-"].contains(&inline) { "" } else { inline };
        if let Some(fence) = Fence::of(inline) {
            new.fence = Some(Fence { indent: key_indent, ..fence });
            new.style = Style::Fenced;
        } else if !inline.is_empty() {
            new.style = Style::Inline;
            new.lines.push(inline.to_owned());
        }
        new
    }

    /// Evidence that is there in one piece.
    pub(super) fn of_text(text: &str) -> Self {
        let lines = text.lines().map(str::to_owned).collect();
        Self {
            key_indent: 0,
            is_item: false,
            style: Style::Closed,
            fence: None,
            lines,
            reopened_at: None,
            closes_at: None,
            is_in_doubt: false,
            is_stopped: false,
            closed_with: 0,
        }
    }

    /// Goes on with another piece of code.
    pub(super) fn reopen(&mut self, fence: Fence) {
        let is_behind_blank = self.lines.last().is_none_or(|last| last.trim().is_empty());
        if !is_behind_blank && !self.is_stopped {
            self.lines.push(String::new());
        }
        self.fence = Some(fence);
        self.style = Style::Fenced;
        self.reopened_at = Some(self.lines.len());
    }

    /// Whether code is open, so that a blank line ends nothing.
    pub(super) fn is_open(&self) -> bool {
        self.fence.is_some()
    }

    /// Whether text that is indented so far stands deeper than the word `evidence`.
    pub(super) fn is_deeper(&self, indent: usize) -> bool {
        indent > self.key_indent
    }

    /// Whether there may have been more of it where it stops: no fence has closed all that came.
    pub(super) fn may_be_cut(&self) -> bool {
        let is_closed =
            matches!(self.style, Style::Closed | Style::Between) && self.closed_with == self.lines.len();
        self.fence.is_some() || !is_closed
    }

    /// Whether code is open that stands as deep as everything else, so that any line may be of it.
    pub(super) fn is_flush_code(&self) -> bool {
        self.fence.is_some_and(|fence| fence.indent <= self.key_indent)
    }

    /// Takes no more of it, where some has come.
    pub(super) fn stop(&mut self) {
        self.is_stopped = self.style != Style::Unset;
    }

    pub(super) fn is_indented(&self) -> bool {
        matches!(self.style, Style::Indented | Style::Between)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether a line may be what follows the evidence: no code is open, or it has just been opened again.
    pub(super) fn may_end_before(&self, text: &str) -> bool {
        let is_behind_blank = || self.lines.last().is_some_and(|last| last.trim().is_empty());
        match (self.fence, self.style) {
            (Some(_), _) => self.reopened_at == Some(self.lines.len()),
            (None, Style::Unset) => false,
            (None, Style::Flush) => is_behind_blank(),
            (None, Style::Inline | Style::Fenced | Style::Closed | Style::Between | Style::Indented) => {
                indent(text) <= self.key_indent
            }
        }
    }

    /// Looks at the next line.
    pub(super) fn step(&mut self, line: &Line<'_>, text: &str, around: &impl Around) -> Step {
        if self.is_in_doubt {
            return Step::Unknown;
        }
        if text.trim().is_empty() {
            return self.blank(line, text);
        }
        // A fence that is cut may become a longer one, or code.
        if !line.is_settled && text.trim().trim_matches(['`', '~']).is_empty() {
            return Step::Unknown;
        }
        let is_deeper = indent(text) > self.key_indent;
        let step = match (self.fence, self.style) {
            (Some(fence), _) => self.in_fence(line, text, is_deeper, fence, around),
            (None, Style::Indented) if is_deeper => self.taken(text),
            (None, Style::Between) if is_deeper => self.between(line, text),
            (None, Style::Closed) if line.is_settled && is_of_code(text) && around.is_between_code() => {
                self.behind_code(text)
            }
            (None, Style::Fenced | Style::Closed | Style::Between | Style::Indented) => Step::NotEvidence,
            (None, Style::Inline) => self.behind_inline(line, text, is_deeper, around),
            (None, Style::Unset | Style::Flush) => self.flush(line, text, is_deeper, around),
        };
        self.is_in_doubt = step == Step::Unknown && line.is_settled;
        step
    }

    fn blank(&mut self, line: &Line<'_>, text: &str) -> Step {
        // The text stops in spaces, or within its next sign.
        if !line.is_settled {
            return Step::Unknown;
        }
        let is_kept = matches!(
            self.style,
            Style::Fenced | Style::Inline | Style::Indented | Style::Flush | Style::Between
        ) || self.style == Style::Closed && self.lines.len() > self.closed_with;
        if is_kept {
            // Behind the last line it is none of the evidence.
            self.closed_with +=
                usize::from(self.closed_with == self.lines.len() && self.fence.is_none() && !self.is_stopped);
            self.push(text);
        }
        // Spaces are a line of evidence in which nothing stands; nothing at all may be its end.
        let is_line = !line.is_empty() && is_kept || self.fence.is_some();
        if is_line { Step::Taken } else { Step::Blank }
    }

    fn in_fence(
        &mut self,
        line: &Line<'_>,
        text: &str,
        is_deeper: bool,
        fence: Fence,
        around: &impl Around,
    ) -> Step {
        let is_structure = is_structure(text);
        if is_structure && !is_deeper {
            if fence.indent > self.key_indent {
                self.fence = None;
                return Step::NotEvidence;
            }
            if self.closes_at.is_none_or(|closes_at| line.number > closes_at) {
                self.closes_at = None;
                match around.begins_finding(fence) {
                    Begun::Finding => {
                        self.fence = None;
                        return Step::NotEvidence;
                    }
                    Begun::Unknown if words::marker(text).is_none() => return Step::Unknown,
                    Begun::ClosedAt(closes_at) => self.closes_at = Some(closes_at),
                    Begun::Unknown | Begun::Nothing => {}
                }
            }
        }
        if !line.is_settled && !is_deeper && words::may_become_structure(text) {
            return Step::Unknown;
        }
        if Fence::of(text).is_some_and(|other| fence.is_closed_by(other)) {
            self.fence = None;
            if self.style == Style::Fenced {
                let is_deeper = fence.indent > self.key_indent;
                self.style = if is_deeper { Style::Between } else { Style::Closed };
                self.closed_with = self.lines.len();
                return Step::Taken;
            }
        }
        self.taken(text)
    }

    /// What follows code within what is indented: a text about it, but for a field, and more code, which is opened anew.
    fn between(&mut self, line: &Line<'_>, text: &str) -> Step {
        let is_label =
            |said: words::Said<'_>| said.is_plain && is_known(said) || names::is_of_remedy(said.name);
        let is_labelled = words::said(text).is_some_and(is_label) || is_other_field(text);
        if is_labelled || is_structure(text) || Fence::of(text).is_some() {
            return Step::NotEvidence;
        }
        // What is cut in the middle may become one of these.
        if line.is_settled { self.taken(text) } else { Step::Unknown }
    }

    /// A text between two pieces of code, set apart from them as they are from each other.
    fn behind_code(&mut self, text: &str) -> Step {
        if self.closed_with == self.lines.len() && !self.is_stopped {
            self.lines.push(String::new());
        }
        self.taken(text)
    }

    /// What follows text in the line of `evidence`: more of it where that is deeper or at once, or the code it speaks of.
    fn behind_inline(&mut self, line: &Line<'_>, text: &str, is_deeper: bool, around: &impl Around) -> Step {
        let is_label = |said: words::Said<'_>| said.is_plain && is_known(said);
        let is_labelled = words::said(text).is_some_and(is_label) || is_other_field(text);
        if is_labelled && (!is_deeper || words::said(text).is_some_and(|said| said.is_bold)) {
            return Step::NotEvidence;
        }
        let is_at_once = self.lines.len() == 1;
        if let Some(fence) = Fence::of(text) {
            let is_kept = is_deeper || fence.has_info || is_at_once;
            if is_kept && line.is_settled {
                self.style = Style::Fenced;
                self.fence = Some(fence);
                return Step::Taken;
            }
            return if line.is_settled { Step::NotEvidence } else { Step::Unknown };
        }
        if is_deeper {
            self.style = Style::Indented;
            return self.taken(text);
        }
        let is_next_item = self.is_item && words::item(text).is_some();
        if is_structure(text) || is_next_item || !is_at_once || tags::end_code(text, &self.lines) {
            return Step::NotEvidence;
        }
        if !line.is_settled {
            return Step::Unknown;
        }
        match around.begins_next_finding() {
            Begins::Yes => return Step::NotEvidence,
            Begins::Unknown => return Step::Unknown,
            Begins::No => {}
        }
        self.style = Style::Flush;
        self.taken(text)
    }

    fn flush(&mut self, line: &Line<'_>, text: &str, is_deeper: bool, around: &impl Around) -> Step {
        let is_after_blank = self.lines.last().is_some_and(|last| last.trim().is_empty());
        if !is_deeper {
            let is_other = words::marker(text).is_some() || is_other_field(text);
            if is_other || is_field(text, is_after_blank, around) || tags::end_code(text, &self.lines) {
                return Step::NotEvidence;
            }
            match around.begins_next_finding() {
                Begins::Yes => return Step::NotEvidence,
                Begins::Unknown => return Step::Unknown,
                Begins::No => {}
            }
            // What is cut in the middle may become a field, a finding or a marker.
            if !line.is_settled {
                return Step::Unknown;
            }
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
        self.taken(text)
    }

    fn taken(&mut self, text: &str) -> Step {
        self.push(text);
        if is_structure(text) { Step::TakenForEvidence } else { Step::Taken }
    }

    fn push(&mut self, text: &str) {
        let columns = match (self.style, self.fence) {
            (Style::Fenced, Some(fence)) => fence.indent,
            (Style::Inline | Style::Indented | Style::Between, _) => self.key_indent + 2,
            _ => 0,
        };
        if !self.is_stopped {
            self.lines.push(outdented(text, columns).to_owned());
        }
    }

    /// All that came; none if that is nothing.
    pub(super) fn finish(self) -> Option<Evidence> {
        Evidence::of_lines(self.lines.iter().map(String::as_str))
    }
}

fn is_structure(text: &str) -> bool {
    words::marker(text).is_some() || heads::head(text).is_some()
}

/// Whether a line may be a text about code: it is no field, no marker, no finding, and speaks of no other code.
pub(super) fn is_of_code(text: &str) -> bool {
    let is_other = |said: words::Said<'_>| {
        is_known(said) || !said.value.is_empty() || said.is_bold || names::is_of_remedy(said.name)
    };
    !is_structure(text)
        && !is_other_field(text)
        && !words::said(text).is_some_and(is_other)
        && Fence::of(text).is_none()
}

/// Whether a line is a field that the finding lacks, and not code that happens to look like one.
fn is_field(text: &str, is_after_blank: bool, around: &impl Around) -> bool {
    words::said(text)
        .is_some_and(|said| said.is_plain && said.key.is_some_and(|key| around.is_new(key, is_after_blank)))
}

/// Whether a name ends evidence: `method: "POST"` may be code.
fn is_known(said: words::Said<'_>) -> bool {
    said.key.is_some_and(|key| key != Key::Part)
}

/// Whether a line is a field that no finding has: its name is bold, or one that often follows evidence.
fn is_other_field(text: &str) -> bool {
    match words::said(text) {
        Some(said) => !is_known(said) && said.is_named && (said.is_bold || names::is_other_label(said.name)),
        None => words::has_emphasised_name(text),
    }
}
