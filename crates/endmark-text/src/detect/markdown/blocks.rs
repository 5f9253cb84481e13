//! Tracks the block structure of Markdown byte by byte: the containers of each line, and its kind.
//!
//! It follows `CommonMark` as far as needed to know whether a fence, HTML block, paragraph or table is open.
//! Each byte is examined once. The kind of a line is decided at the first byte that determines it.

mod line_end;
mod results;

use serde::{Deserialize, Serialize};

use super::fence::{Fence, FenceOpening};
use super::html::{HtmlBlock, HtmlStart, HtmlStep};
use super::inline::InlineState;
use super::row::{TableRow, TableShape};

/// A block that contains other blocks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Container {
    Quote,
    /// A list item. Its lines are indented by `width` columns. `blank` means that it has no content yet.
    Item {
        width: usize,
        blank: bool,
    },
}

/// The kind of the innermost open block.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum LeafBlock {
    None,
    Paragraph,
    Table(TableShape),
    Fence(Fence),
    Html { block: HtmlBlock, line_start: usize },
}

/// The kind of the current line, as far as it is known.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum LineKind {
    /// Only whitespace and container markers so far.
    Begin,
    /// Backticks or tildes that may open a fence.
    Signs(FenceOpening),
    /// The info string after the characters that open a fence. `inside` means in a fence that may already be
    /// closed.
    Info { opening: FenceOpening, inside: bool },
    /// Characters that may close the fence.
    Closing(FenceOpening),
    /// Whitespace after characters that may close the fence.
    Closed,
    /// `#` signs that may begin a heading.
    Heading(u8),
    /// Bytes that may begin an HTML block.
    Html(HtmlStart),
    /// A line of an HTML block, and whether the block ends with this line.
    InHtml { ends: bool },
    /// A list item marker, if whitespace follows. `interrupts` means that such an item may interrupt a
    /// paragraph.
    Marker { prefix: usize, interrupts: bool },
    /// The digits of a list item marker.
    Digits { indent: usize, count: u8, is_one: bool },
    /// Text of a paragraph or a table row.
    Text,
    /// Text of a heading.
    HeadingText,
    /// Anything else.
    Other,
}

/// A line that may be a thematic break or the underline of a heading.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct RuleLine {
    sign: u8,
    count: usize,
    /// Whether whitespace follows one of its characters.
    gap: bool,
    /// Number of containers that contain the line.
    depth: usize,
    /// Whether it may underline the paragraph before it.
    underlines: bool,
}

/// Tracks the lines of a text.
// Fields: the state of one pass over the lines. Most fields may change with each line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::detect) struct Blocks {
    /// Bytes read so far.
    position: usize,
    line_start: usize,
    containers: Vec<Container>,
    /// Number of containers that are known to contain the current line.
    matched: usize,
    /// Number of quotations among all containers, and among those that contain the line.
    quotes: usize,
    matched_quotes: usize,
    /// The column of the next byte, and the column after the container markers and indentation.
    column: usize,
    consumed: usize,
    /// Whether a following whitespace character belongs to a quotation marker.
    quote_space: bool,
    /// The list item that this line begins, as the width of its marker and indentation.
    item: Option<usize>,
    line: LineKind,
    leaf: LeafBlock,
    rule: Option<RuleLine>,
    row: TableRow,
    /// The previous line of the paragraph, which may become the head of a table.
    head: Option<TableRow>,
    inline: InlineState,
    /// The character and length of a fence that ended with its container. Its closing line may still follow.
    lapsed: Option<(u8, usize)>,
    /// Whether the last byte was a carriage return.
    after_return: bool,
    /// Number of byte order mark bytes at the beginning of the text.
    mark: usize,
    /// Whether the text contains a construct that occurs only in Markdown.
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
            line: LineKind::Begin,
            leaf: LeafBlock::None,
            rule: None,
            row: TableRow::default(),
            head: None,
            inline: InlineState::default(),
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
            if matches!(self.line, LineKind::Other | LineKind::InHtml { ends: true }) {
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
                // Whitespace at the end of an underline is allowed.
                if rule.gap {
                    rule.underlines = false;
                }
            }
            _ => self.rule = None,
        }
        if !matches!(self.line, LineKind::Begin) {
            self.row.step(byte);
            self.inline.step(byte, self.position);
        }
        match self.line {
            LineKind::Begin if is_space => {
                self.column = if byte == b'\t' { (self.column / 4 + 1) * 4 } else { self.column + 1 };
                return;
            }
            LineKind::Begin => self.begin_content(byte),
            LineKind::Signs(mut opening) => {
                if byte == opening.sign {
                    opening.length += 1;
                    self.line = LineKind::Signs(opening);
                } else if opening.length >= 3 {
                    opening.push_info(byte);
                    self.line = LineKind::Info { opening, inside: false };
                } else {
                    self.begin_text();
                }
            }
            LineKind::Info { mut opening, inside } => {
                if byte == b'`' && opening.sign == b'`' {
                    if inside { self.line = LineKind::Other } else { self.begin_text() }
                } else {
                    opening.push_info(byte);
                    self.line = LineKind::Info { opening, inside };
                }
            }
            LineKind::Closing(mut opening) => self.step_closing(byte, &mut opening),
            LineKind::Closed if is_space => {}
            LineKind::Closed => self.add_fence_content(),
            LineKind::Heading(count) => match byte {
                b'#' if count < 6 => self.line = LineKind::Heading(count + 1),
                _ if is_space => self.begin_heading(),
                _ => self.begin_text(),
            },
            LineKind::Html(start) => self.step_html(start, byte),
            LineKind::InHtml { ends: false } => {
                if let LeafBlock::Html { block, .. } = &mut self.leaf {
                    self.line = LineKind::InHtml { ends: block.step(byte) };
                }
            }
            LineKind::Marker { prefix, interrupts } => {
                let in_paragraph =
                    matches!(self.leaf, LeafBlock::Paragraph) && self.matched == self.containers.len();
                if is_space && (interrupts || !in_paragraph) {
                    self.item = Some(prefix);
                    self.consumed = self.column;
                    self.line = LineKind::Begin;
                    self.column = if byte == b'\t' { (self.column / 4 + 1) * 4 } else { self.column + 1 };
                    return;
                }
                self.begin_text();
            }
            LineKind::Digits { indent, count, is_one } => match byte {
                b'0'..=b'9' if count < 9 => {
                    self.line = LineKind::Digits { indent, count: count + 1, is_one: false };
                }
                b'.' | b')' => {
                    let prefix = indent + usize::from(count) + 1;
                    self.line = LineKind::Marker { prefix, interrupts: is_one };
                }
                _ => self.begin_text(),
            },
            LineKind::InHtml { ends: true } | LineKind::Text | LineKind::HeadingText | LineKind::Other => {}
        }
        self.column += 1;
    }

    fn step_closing(&mut self, byte: u8, opening: &mut FenceOpening) {
        let LeafBlock::Fence(fence) = self.leaf else { return };
        if byte == fence.sign {
            opening.length += 1;
            self.line = LineKind::Closing(*opening);
        } else if matches!(byte, b' ' | b'\t') && opening.length >= fence.length {
            self.line = LineKind::Closed;
        } else if fence.doubtful && opening.length >= 3 {
            opening.push_info(byte);
            self.line = LineKind::Info { opening: *opening, inside: true };
        } else {
            self.add_fence_content();
        }
    }

    /// Returns the number of columns between the container markers and the next byte.
    fn take_indent(&mut self) -> usize {
        if std::mem::take(&mut self.quote_space) && self.column > self.consumed {
            self.consumed += 1;
        }
        self.column - self.consumed
    }

    /// Processes the first non-whitespace byte after the container markers matched so far.
    fn begin_content(&mut self, byte: u8) {
        let mut indent = self.take_indent();
        if let Some(prefix) = self.item.take() {
            // If more than four columns follow a marker, the text is indented code, and the marker includes
            // only one of them.
            let spaces = if indent > 4 { 1 } else { indent };
            self.open_container(Container::Item { width: prefix + spaces, blank: false });
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
            LeafBlock::Fence(fence) if contained => {
                let may_close = indent < 4 && byte == fence.sign;
                if may_close {
                    self.line = LineKind::Closing(FenceOpening::new(byte, self.position));
                } else {
                    self.add_fence_content();
                }
                return;
            }
            LeafBlock::Html { mut block, line_start } if contained => {
                let ends = block.step(byte);
                self.leaf = LeafBlock::Html { block, line_start };
                self.line = match block {
                    HtmlBlock::UntilBlank if matches!(byte, b'`' | b'~') => {
                        LineKind::Signs(FenceOpening::new(byte, self.position))
                    }
                    _ => LineKind::InHtml { ends },
                };
                return;
            }
            LeafBlock::Fence(fence) => {
                self.lapsed = Some((fence.sign, fence.length));
                self.close_leaf();
            }
            LeafBlock::Html { .. } | LeafBlock::Table(_) if !contained => self.close_leaf(),
            _ => {}
        }
        self.classify_line(byte, indent);
    }

    /// Determines the kind of the line from its first byte, as far as possible.
    fn classify_line(&mut self, byte: u8, indent: usize) {
        let in_paragraph = matches!(self.leaf, LeafBlock::Paragraph);
        let continues = in_paragraph && self.matched == self.containers.len();
        self.row = TableRow::default();
        if !in_paragraph {
            self.inline.reset();
        }
        self.row.step(byte);
        self.inline.step(byte, self.position);
        if indent >= 4 {
            if in_paragraph {
                self.line = LineKind::Text;
            } else {
                self.close_leaf();
                self.line = LineKind::Other;
            }
            return;
        }
        if self.rule.is_none() && (matches!(byte, b'*' | b'-' | b'_') || continues && byte == b'=') {
            let underlines = continues && matches!(byte, b'-' | b'=');
            self.rule = Some(RuleLine { sign: byte, count: 1, gap: false, depth: self.matched, underlines });
        }
        self.line = match byte {
            b'>' => {
                self.open_container(Container::Quote);
                self.consume_quote();
                return;
            }
            b'`' | b'~' => LineKind::Signs(FenceOpening::new(byte, self.position)),
            b'#' => LineKind::Heading(1),
            b'<' => LineKind::Html(HtmlStart::new()),
            b'-' | b'+' | b'*' => LineKind::Marker { prefix: indent + 1, interrupts: true },
            b'0'..=b'9' => LineKind::Digits { indent, count: 1, is_one: byte == b'1' },
            _ => return self.begin_text(),
        };
    }

    fn consume_quote(&mut self) {
        self.line = LineKind::Begin;
        self.consumed = self.column + 1;
        self.quote_space = true;
        self.rule = None;
    }

    /// Closes the containers that do not contain this line.
    fn close_unmatched_containers(&mut self) {
        self.containers.truncate(self.matched);
        self.quotes = self.matched_quotes;
    }

    /// Closes the containers that do not contain this line, and the open leaf block.
    fn close_leaf(&mut self) {
        self.close_unmatched_containers();
        self.leaf = LeafBlock::None;
        self.head = None;
        self.inline.reset();
    }

    fn open_container(&mut self, container: Container) {
        self.close_leaf();
        self.containers.push(container);
        self.matched += 1;
        self.quotes += usize::from(matches!(container, Container::Quote));
        self.matched_quotes = self.quotes;
        self.structure = true;
    }

    /// Treats the line as text: of the open paragraph or table, or of a new paragraph.
    fn begin_text(&mut self) {
        if matches!(self.leaf, LeafBlock::Html { .. }) {
            self.line = LineKind::InHtml { ends: false };
            return;
        }
        if !matches!(self.leaf, LeafBlock::Paragraph | LeafBlock::Table(_)) {
            self.close_unmatched_containers();
            self.leaf = LeafBlock::Paragraph;
            self.head = None;
        }
        self.line = LineKind::Text;
    }

    fn begin_heading(&mut self) {
        self.close_leaf();
        self.structure = true;
        self.line = LineKind::HeadingText;
    }

    fn add_fence_content(&mut self) {
        if let LeafBlock::Fence(fence) = &mut self.leaf {
            fence.empty = false;
        }
        self.line = LineKind::Other;
    }

    fn open_fence(&mut self, opening: &FenceOpening) {
        let mut fence = opening.fence(self.line_start);
        let lapsed = self.lapsed.take();
        fence.doubtful = opening.is_bare()
            && lapsed.is_some_and(|(sign, length)| sign == fence.sign && length <= fence.length);
        self.close_leaf();
        self.structure = true;
        self.leaf = LeafBlock::Fence(fence);
    }

    fn step_html(&mut self, start: HtmlStart, byte: u8) {
        // A complete tag on its own line cannot interrupt a paragraph.
        let interrupts = |start: &HtmlStart| matches!(start, HtmlStart::Name { .. });
        match start.step(byte) {
            HtmlStep::Block(block) => {
                self.close_leaf();
                self.leaf = LeafBlock::Html { block, line_start: self.line_start };
                self.line = LineKind::InHtml { ends: false };
            }
            HtmlStep::Open(next) if interrupts(&next) || !matches!(self.leaf, LeafBlock::Paragraph) => {
                self.line = LineKind::Html(next);
            }
            HtmlStep::Open(_) | HtmlStep::None => self.begin_text(),
        }
    }
}
