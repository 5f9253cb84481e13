//! The block structure of Markdown, byte by byte: the containers of each line, and its kind.
//!
//! It follows `CommonMark` as far as that decides whether a fence, an HTML block, a paragraph or a table is open.
//! Each byte is examined once. The kind of a line is decided at the first byte that determines it.

mod answer;
mod line_end;

use serde::{Deserialize, Serialize};

use super::fence::{Fence, Opening};
use super::html::{HtmlBlock, HtmlStart, HtmlStep};
use super::inline::Inline;
use super::row::{Row, Table};

/// A container of lines.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Container {
    Quote,
    /// A list item. Its lines are indented by `width` columns. It is `blank` while it has no line.
    Item {
        width: usize,
        blank: bool,
    },
}

/// The block that the last line belongs to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Leaf {
    None,
    Paragraph,
    Table(Table),
    Fence(Fence),
    Html { block: HtmlBlock, line_start: usize },
}

/// The kind of the current line, as far as it has arrived.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Line {
    /// Whitespace and the signs of containers.
    Begin,
    /// Signs that may open a fence.
    Signs(Opening),
    /// After the signs of an opening fence. `inside` means within a fence whose end is uncertain.
    Info { opening: Opening, inside: bool },
    /// Signs that may close the fence.
    Closing(Opening),
    /// After signs that may close the fence, and whitespace.
    Closed,
    /// `#` signs that may begin a heading.
    Heading(u8),
    /// Bytes that may begin an HTML block.
    Html(HtmlStart),
    /// In an HTML block, and whether the block ends with this line.
    InHtml { ends: bool },
    /// A list item marker if whitespace follows, and whether such an item may interrupt a paragraph.
    Marker { prefix: usize, interrupts: bool },
    /// The digits of a list item marker.
    Digits { indent: usize, count: u8, is_one: bool },
    /// Text of a paragraph or a row.
    Text,
    /// Text of a heading.
    HeadingText,
    /// Anything else.
    Other,
}

/// A line that may be a thematic break, or the underline of a heading.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Rule {
    sign: u8,
    count: usize,
    /// Whether there is whitespace between its signs.
    gap: bool,
    /// Number of containers around it.
    depth: usize,
    /// Whether it may underline the paragraph before it.
    underlines: bool,
}

/// Follows the lines of a text.
// Fields: the state of one pass over lines, most of which may change with each line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::detect) struct Blocks {
    /// Bytes read so far.
    position: usize,
    line_start: usize,
    containers: Vec<Container>,
    /// Number of containers that contain the current line so far.
    matched: usize,
    /// Number of quotations among all containers, and among the matched ones.
    quotes: usize,
    matched_quotes: usize,
    /// The column of the next byte, and the column at which the containers' part of the line ends.
    column: usize,
    consumed: usize,
    /// Whether following whitespace belongs to the marker of a quotation.
    quote_space: bool,
    /// The list item that the line begins, as the width before its text.
    item: Option<usize>,
    line: Line,
    leaf: Leaf,
    rule: Option<Rule>,
    row: Row,
    /// The previous line of the paragraph.
    head: Option<Row>,
    inline: Inline,
    /// A fence that ended with its container. Its closing line may still follow.
    lapsed: Option<(u8, usize)>,
    /// Whether the last byte was a carriage return.
    after_return: bool,
    /// Number of byte order mark bytes at the beginning of the text.
    mark: usize,
    /// Whether the text has any construct that occurs only in Markdown.
    structure: bool,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            position: 0,
            line_start: 0,
            containers: Vec::new(),
            matched: 0,
            quotes: 0,
            matched_quotes: 0,
            column: 0,
            consumed: 0,
            quote_space: false,
            item: None,
            line: Line::Begin,
            leaf: Leaf::None,
            rule: None,
            row: Row::default(),
            head: None,
            inline: Inline::default(),
            lapsed: None,
            after_return: false,
            mark: 0,
            structure: false,
        }
    }
}

impl Blocks {
    /// Reads the next bytes of the text.
    pub(in crate::detect) fn push(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if matches!(self.line, Line::Other | Line::InHtml { ends: true }) {
                let skipped = memchr::memchr2(b'\n', b'\r', &bytes[at..]).unwrap_or(bytes.len() - at);
                self.position += skipped;
                at += skipped;
                if skipped > 0 {
                    continue;
                }
            }
            self.step(byte);
            self.position += 1;
            at += 1;
        }
    }

    fn step(&mut self, byte: u8) {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        if self.mark == self.position && MARK.get(self.mark) == Some(&byte) {
            self.mark += 1;
            self.line_start = self.mark;
            return;
        }
        match byte {
            b'\n' if self.after_return => {
                self.after_return = false;
                self.line_start = self.position + 1;
            }
            b'\n' | b'\r' => {
                self.after_return = byte == b'\r';
                self.end_line();
                self.line_start = self.position + 1;
            }
            _ => {
                self.after_return = false;
                self.step_in_line(byte);
            }
        }
    }

    fn step_in_line(&mut self, byte: u8) {
        let is_space = matches!(byte, b' ' | b'\t');
        match &mut self.rule {
            Some(rule) if is_space => rule.gap = true,
            Some(rule) if rule.sign == byte => {
                rule.count += 1;
                // Only a gap before another sign counts, not one at the end.
                if rule.gap {
                    rule.underlines = false;
                }
            }
            _ => self.rule = None,
        }
        if !matches!(self.line, Line::Begin) {
            self.row.step(byte);
            self.inline.step(byte, self.position);
        }
        match self.line {
            Line::Begin if is_space => {
                self.column = if byte == b'\t' { (self.column / 4 + 1) * 4 } else { self.column + 1 };
                return;
            }
            Line::Begin => self.begin(byte),
            Line::Signs(mut opening) => {
                if byte == opening.sign {
                    opening.length += 1;
                    self.line = Line::Signs(opening);
                } else if opening.length >= 3 {
                    opening.push_info(byte);
                    self.line = Line::Info { opening, inside: false };
                } else {
                    self.begin_text();
                }
            }
            Line::Info { mut opening, inside } => {
                if byte == b'`' && opening.sign == b'`' {
                    if inside { self.line = Line::Other } else { self.begin_text() }
                } else {
                    opening.push_info(byte);
                    self.line = Line::Info { opening, inside };
                }
            }
            Line::Closing(mut opening) => self.step_closing(byte, &mut opening),
            Line::Closed if is_space => {}
            Line::Closed => self.pass_in_fence(),
            Line::Heading(count) => match byte {
                b'#' if count < 6 => self.line = Line::Heading(count + 1),
                _ if is_space => self.begin_heading(),
                _ => self.begin_text(),
            },
            Line::Html(start) => self.step_html(start, byte),
            Line::InHtml { ends: false } => {
                if let Leaf::Html { block, .. } = &mut self.leaf {
                    self.line = Line::InHtml { ends: block.step(byte) };
                }
            }
            Line::Marker { prefix, interrupts } => {
                let in_paragraph =
                    matches!(self.leaf, Leaf::Paragraph) && self.matched == self.containers.len();
                if is_space && (interrupts || !in_paragraph) {
                    self.item = Some(prefix);
                    self.consumed = self.column;
                    self.line = Line::Begin;
                    self.column = if byte == b'\t' { (self.column / 4 + 1) * 4 } else { self.column + 1 };
                    return;
                }
                self.begin_text();
            }
            Line::Digits { indent, count, is_one } => match byte {
                b'0'..=b'9' if count < 9 => {
                    self.line = Line::Digits { indent, count: count + 1, is_one: false };
                }
                b'.' | b')' => {
                    let prefix = indent + usize::from(count) + 1;
                    self.line = Line::Marker { prefix, interrupts: is_one };
                }
                _ => self.begin_text(),
            },
            Line::InHtml { ends: true } | Line::Text | Line::HeadingText | Line::Other => {}
        }
        self.column += 1;
    }

    fn step_closing(&mut self, byte: u8, opening: &mut Opening) {
        let Leaf::Fence(fence) = self.leaf else { return };
        if byte == fence.sign {
            opening.length += 1;
            self.line = Line::Closing(*opening);
        } else if matches!(byte, b' ' | b'\t') && opening.length >= fence.length {
            self.line = Line::Closed;
        } else if fence.doubtful && opening.length >= 3 {
            opening.push_info(byte);
            self.line = Line::Info { opening: *opening, inside: true };
        } else {
            self.pass_in_fence();
        }
    }

    /// Returns the number of columns between the containers' part of the line and the next byte.
    fn take_indent(&mut self) -> usize {
        if std::mem::take(&mut self.quote_space) && self.column > self.consumed {
            self.consumed += 1;
        }
        self.column - self.consumed
    }

    /// Processes the first non-whitespace byte after the containers that the line has matched so far.
    fn begin(&mut self, byte: u8) {
        let mut indent = self.take_indent();
        if let Some(prefix) = self.item.take() {
            // Indented code may follow a marker. Then only one column belongs to the marker.
            let spaces = if indent > 4 { 1 } else { indent };
            self.enter(Container::Item { width: prefix + spaces, blank: false });
            self.consumed += spaces;
            indent -= spaces;
        }
        while let Some(container) = self.containers.get_mut(self.matched) {
            match container {
                Container::Quote if byte == b'>' && indent < 4 => {
                    self.matched += 1;
                    self.matched_quotes += 1;
                    self.consume_quote();
                    return;
                }
                Container::Item { width, blank } if indent >= *width => {
                    self.consumed += *width;
                    indent -= *width;
                    *blank = false;
                    self.matched += 1;
                }
                Container::Quote | Container::Item { .. } => break,
            }
        }
        let contained = self.matched == self.containers.len();
        match self.leaf {
            Leaf::Fence(fence) if contained => {
                let may_close = indent < 4 && byte == fence.sign;
                if may_close {
                    self.line = Line::Closing(Opening::new(byte, self.position));
                } else {
                    self.pass_in_fence();
                }
                return;
            }
            Leaf::Html { mut block, line_start } if contained => {
                let ends = block.step(byte);
                self.leaf = Leaf::Html { block, line_start };
                self.line = match block {
                    HtmlBlock::UntilBlank if matches!(byte, b'`' | b'~') => {
                        Line::Signs(Opening::new(byte, self.position))
                    }
                    _ => Line::InHtml { ends },
                };
                return;
            }
            Leaf::Fence(fence) => {
                self.lapsed = Some((fence.sign, fence.length));
                self.leave();
            }
            Leaf::Html { .. } | Leaf::Table(_) if !contained => self.leave(),
            _ => {}
        }
        self.classify(byte, indent);
    }

    /// Determines the kind of the line that begins with this byte, as far as it is known.
    fn classify(&mut self, byte: u8, indent: usize) {
        let in_paragraph = matches!(self.leaf, Leaf::Paragraph);
        let continues = in_paragraph && self.matched == self.containers.len();
        self.row = Row::default();
        if !in_paragraph {
            self.inline.reset();
        }
        self.row.step(byte);
        self.inline.step(byte, self.position);
        if indent >= 4 {
            if in_paragraph {
                self.line = Line::Text;
            } else {
                self.leave();
                self.line = Line::Other;
            }
            return;
        }
        if self.rule.is_none() && (matches!(byte, b'*' | b'-' | b'_') || continues && byte == b'=') {
            let underlines = continues && matches!(byte, b'-' | b'=');
            self.rule = Some(Rule { sign: byte, count: 1, gap: false, depth: self.matched, underlines });
        }
        self.line = match byte {
            b'>' => {
                self.enter(Container::Quote);
                self.consume_quote();
                return;
            }
            b'`' | b'~' => Line::Signs(Opening::new(byte, self.position)),
            b'#' => Line::Heading(1),
            b'<' => Line::Html(HtmlStart::new()),
            b'-' | b'+' | b'*' => Line::Marker { prefix: indent + 1, interrupts: true },
            b'0'..=b'9' => Line::Digits { indent, count: 1, is_one: byte == b'1' },
            _ => return self.begin_text(),
        };
    }

    fn consume_quote(&mut self) {
        self.line = Line::Begin;
        self.consumed = self.column + 1;
        self.quote_space = true;
        self.rule = None;
    }

    /// Closes the containers that do not contain the line.
    fn truncate(&mut self) {
        self.containers.truncate(self.matched);
        self.quotes = self.matched_quotes;
    }

    /// Closes the containers that do not contain the line, and the block before it.
    fn leave(&mut self) {
        self.truncate();
        self.leaf = Leaf::None;
        self.head = None;
        self.inline.reset();
    }

    fn enter(&mut self, container: Container) {
        self.leave();
        self.containers.push(container);
        self.matched += 1;
        self.quotes += usize::from(matches!(container, Container::Quote));
        self.matched_quotes = self.quotes;
        self.structure = true;
    }

    /// Treats the line as text of the paragraph or table before it, or of a new paragraph.
    fn begin_text(&mut self) {
        if matches!(self.leaf, Leaf::Html { .. }) {
            self.line = Line::InHtml { ends: false };
            return;
        }
        if !matches!(self.leaf, Leaf::Paragraph | Leaf::Table(_)) {
            self.truncate();
            self.leaf = Leaf::Paragraph;
            self.head = None;
        }
        self.line = Line::Text;
    }

    fn begin_heading(&mut self) {
        self.leave();
        self.structure = true;
        self.line = Line::HeadingText;
    }

    fn pass_in_fence(&mut self) {
        if let Leaf::Fence(fence) = &mut self.leaf {
            fence.empty = false;
        }
        self.line = Line::Other;
    }

    fn open_fence(&mut self, opening: &Opening) {
        let mut fence = opening.fence(self.line_start);
        let lapsed = self.lapsed.take();
        fence.doubtful = opening.is_bare()
            && lapsed.is_some_and(|(sign, length)| sign == fence.sign && length <= fence.length);
        self.leave();
        self.structure = true;
        self.leaf = Leaf::Fence(fence);
    }

    fn step_html(&mut self, start: HtmlStart, byte: u8) {
        // A tag that fills its line cannot interrupt a paragraph.
        let interrupts = |start: &HtmlStart| matches!(start, HtmlStart::Name { .. });
        match start.step(byte) {
            HtmlStep::Block(block) => {
                self.leave();
                self.leaf = Leaf::Html { block, line_start: self.line_start };
                self.line = Line::InHtml { ends: false };
            }
            HtmlStep::Open(next) if interrupts(&next) || !matches!(self.leaf, Leaf::Paragraph) => {
                self.line = Line::Html(next);
            }
            HtmlStep::Open(_) | HtmlStep::None => self.begin_text(),
        }
    }
}
