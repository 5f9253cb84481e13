//! The blocks of a Markdown text in order. Quotations and code are marked.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::headings::Heading;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Paragraph,
    /// The text of a list item.
    Item,
    /// A table cell. `row` counts the rows of all tables in the text.
    Cell {
        row: usize,
    },
    Heading,
    /// Code. If `is_fenced`, it is between fences, and the closing fence may be missing.
    Code {
        is_closed: bool,
        is_fenced: bool,
    },
    /// HTML other than a comment.
    Html,
    /// An HTML comment in Markdown, or a comment in a code file.
    Comment,
    /// A thematic break.
    Rule,
}

impl BlockKind {
    /// Returns whether the block contains sentences for people.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Paragraph | Self::Item | Self::Cell { .. } | Self::Heading)
    }

    /// Returns whether the block counts as the content of a section.
    pub(crate) fn is_content(self) -> bool {
        matches!(self, Self::Paragraph | Self::Item | Self::Cell { .. } | Self::Code { .. } | Self::Html)
    }
}

/// A block without nested blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    pub(crate) range: Range<usize>,
    /// Whether the block is inside a quotation.
    pub(crate) is_quoted: bool,
}

/// The blocks of a text.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    blocks: Vec<Block>,
    headings: Vec<Heading>,
    /// The ranges of inline code and link targets.
    spans: Vec<Range<usize>>,
    /// The ranges of links and images, including their text.
    links: Vec<Range<usize>>,
    tables: Vec<Table>,
}

/// A table and its size.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) range: Range<usize>,
    /// The number of rows, without the header.
    pub(crate) rows: usize,
}

impl Outline {
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(crate) fn headings(&self) -> &[Heading] {
        &self.headings
    }

    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    pub(super) fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Returns the last block that is not a thematic break.
    pub(crate) fn last(&self) -> Option<&Block> {
        self.blocks.iter().rev().find(|block| block.kind != BlockKind::Rule)
    }

    /// Returns the block that contains an offset, and its index.
    pub(crate) fn block_at(&self, offset: usize) -> Option<(usize, &Block)> {
        let after = self.blocks.partition_point(|block| block.range.start <= offset);
        let index = after.checked_sub(1)?;
        let block = self.blocks.get(index)?;
        (offset < block.range.end).then_some((index, block))
    }

    /// Returns whether an offset is in inline code or a link target.
    pub(crate) fn is_in_span(&self, offset: usize) -> bool {
        contains_offset(&self.spans, offset)
    }

    /// Returns whether an offset is in a link or an image.
    pub(crate) fn is_in_link(&self, offset: usize) -> bool {
        contains_offset(&self.links, offset)
    }

    /// Returns the blocks under a heading, up to the next heading of the same or a higher level.
    pub(crate) fn blocks_under(&self, heading: usize) -> &[Block] {
        let Some(this) = self.headings.get(heading) else { return &[] };
        let next = self.headings[heading + 1..].iter().find(|next| next.level <= this.level);
        &self.blocks[this.block + 1..next.map_or(self.blocks.len(), |next| next.block)]
    }
}

/// Returns whether an offset is in one of these sorted ranges.
fn contains_offset(ranges: &[Range<usize>], offset: usize) -> bool {
    let after = ranges.partition_point(|range| range.start <= offset);
    after.checked_sub(1).and_then(|index| ranges.get(index)).is_some_and(|range| offset < range.end)
}

/// Parses Markdown from this offset.
pub(super) fn parse_markdown(text: &str, body: usize) -> Outline {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS;
    let mut builder = OutlineBuilder { text, ..OutlineBuilder::default() };
    for (event, range) in Parser::new_ext(&text[body..], options).into_offset_iter() {
        builder.take(&event, body + range.start..body + range.end);
    }
    builder.close();
    builder.outline
}

#[derive(Default)]
struct OutlineBuilder<'t> {
    text: &'t str,
    outline: Outline,
    quotes: usize,
    items: usize,
    row: usize,
    /// The open block and its range so far.
    open: Option<(BlockKind, Range<usize>)>,
    /// The words of the open heading, or of a paragraph that may be used as a heading.
    title: String,
    level: u8,
    bold: BoldState,
}

/// Whether a paragraph consists only of one run of bold text.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum BoldState {
    #[default]
    No,
    /// The paragraph is empty so far.
    Empty,
    Inside,
    /// The bold run has ended, and nothing follows it so far.
    Ended,
}

impl OutlineBuilder<'_> {
    fn take(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(*tag, range),
            Event::Text(text) => self.push_inline(Some(text), range),
            Event::Code(code) => {
                self.outline.spans.push(range.clone());
                self.push_inline(Some(code), range);
            }
            Event::Html(html) => self.push_html(html, range),
            Event::Rule => {
                self.close();
                self.push(BlockKind::Rule, range);
            }
            Event::SoftBreak | Event::HardBreak => self.push_inline(Some(" "), range),
            Event::TaskListMarker(_) => {}
            _ => self.push_inline(None, range),
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => {
                self.begin(if self.items > 0 { BlockKind::Item } else { BlockKind::Paragraph }, range);
                self.bold = BoldState::Empty;
            }
            Tag::Heading { level, .. } => {
                self.begin(BlockKind::Heading, range);
                self.level = level_number(*level);
            }
            Tag::CodeBlock(kind) => {
                self.close();
                let is_fenced = matches!(kind, CodeBlockKind::Fenced(_));
                let is_closed = !is_fenced || is_fence_closed(&self.text[range.clone()]);
                self.push(BlockKind::Code { is_closed, is_fenced }, range);
            }
            Tag::HtmlBlock | Tag::List(_) => self.close(),
            Tag::Table(_) => {
                self.close();
                self.outline.tables.push(Table { range, rows: 0 });
            }
            Tag::TableRow | Tag::TableHead => self.row += 1,
            Tag::TableCell => self.begin(BlockKind::Cell { row: self.row }, range),
            Tag::BlockQuote(_) => {
                self.close();
                self.quotes += 1;
            }
            Tag::Item | Tag::FootnoteDefinition(_) => {
                self.close();
                self.items += 1;
            }
            Tag::Strong => {
                self.bold = if self.bold == BoldState::Empty { BoldState::Inside } else { BoldState::No };
                self.extend(range);
            }
            Tag::Link { .. } | Tag::Image { .. } => {
                if self.outline.links.last().is_none_or(|last| last.end <= range.start) {
                    self.outline.links.push(range.clone());
                }
                self.push_inline(None, range);
            }
            _ => self.extend(range),
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::TableCell => self.close(),
            TagEnd::TableRow => {
                if let Some(table) = self.outline.tables.last_mut() {
                    table.rows += 1;
                }
            }
            TagEnd::BlockQuote(_) => {
                self.close();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::Item | TagEnd::FootnoteDefinition => {
                self.close();
                self.items = self.items.saturating_sub(1);
            }
            TagEnd::Strong if self.bold == BoldState::Inside => self.bold = BoldState::Ended,
            TagEnd::Link => {
                // In the source of a link, the target begins after the last bracket.
                let source = &self.text[range.clone()];
                if let Some(at) = source.rfind("](") {
                    self.outline.spans.push(range.start + at..range.end);
                }
            }
            _ => {}
        }
    }

    /// Adds inline content to the open block. In a tight list item, the first inline content begins the
    /// block.
    fn push_inline(&mut self, text: Option<&str>, range: Range<usize>) {
        // The text of a code block also arrives as events, but its block was already added.
        let in_code = self.outline.blocks.last().is_some_and(|last| {
            matches!(last.kind, BlockKind::Code { .. })
                && last.range.start <= range.start
                && range.end <= last.range.end
        });
        if in_code {
            return;
        }
        if self.open.is_none() {
            self.begin(if self.items > 0 { BlockKind::Item } else { BlockKind::Paragraph }, range.clone());
        }
        if self.bold != BoldState::Inside
            && text.is_none_or(|text| !text.trim().is_empty())
            && text != Some(":")
        {
            self.bold = BoldState::No;
        }
        self.title.push_str(text.unwrap_or_default());
        self.extend(range);
    }

    fn push_html(&mut self, html: &str, range: Range<usize>) {
        self.close();
        let (trimmed, before) = (html.trim(), self.outline.blocks.last_mut());
        if trimmed.is_empty() {
            return;
        }
        // The parser returns the lines of an HTML block one by one.
        let continues = before.filter(|before| {
            matches!(before.kind, BlockKind::Html | BlockKind::Comment)
                && self.text[before.range.end..range.start].trim().is_empty()
        });
        if let Some(before) = continues {
            let is_open = before.kind == BlockKind::Comment
                && !self.text[before.range.clone()].trim_end().ends_with("-->");
            if is_open {
                before.range.end = range.end;
                return;
            }
        }
        let kind = if trimmed.starts_with("<!--") { BlockKind::Comment } else { BlockKind::Html };
        if let Some((level, title)) = html_heading(trimmed) {
            self.push_heading(level, title, range.clone());
            self.push(BlockKind::Heading, range);
        } else {
            self.push(kind, range);
        }
    }

    fn begin(&mut self, kind: BlockKind, range: Range<usize>) {
        self.close();
        self.open = Some((kind, range.start..range.start));
        self.title.clear();
        self.bold = BoldState::No;
        if matches!(kind, BlockKind::Heading | BlockKind::Cell { .. }) {
            self.extend(range);
        }
    }

    fn extend(&mut self, range: Range<usize>) {
        if let Some((_, open)) = &mut self.open {
            open.end = open.end.max(range.end);
        }
    }

    fn close(&mut self) {
        let Some((kind, range)) = self.open.take() else { return };
        if range.is_empty() || self.text[range.clone()].trim().is_empty() {
            return;
        }
        let title = std::mem::take(&mut self.title);
        if kind == BlockKind::Heading {
            self.push_heading(self.level, title, range.clone());
        } else if self.bold == BoldState::Ended && kind == BlockKind::Paragraph && self.quotes == 0 {
            self.push_heading(Heading::BOLD_LEVEL, title, range.clone());
        }
        self.push(kind, range);
    }

    fn push_heading(&mut self, level: u8, title: String, range: Range<usize>) {
        let block = self.outline.blocks.len();
        self.outline.headings.push(Heading { level, range, title, block });
    }

    fn push(&mut self, kind: BlockKind, range: Range<usize>) {
        self.outline.blocks.push(Block { kind, range, is_quoted: self.quotes > 0 });
    }
}

fn level_number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Returns whether the last line of a code block is its closing fence.
fn is_fence_closed(block: &str) -> bool {
    let sign = block.chars().next().unwrap_or('`');
    let opened = block.len() - block.trim_start_matches(sign).len();
    let mut lines = block.trim_end().lines();
    let first = lines.next();
    let last = lines.next_back().map(|line| line.trim_start_matches(['>', ' ', '\t']).trim_end());
    first.is_some()
        && last.is_some_and(|last| last.len() >= opened && last.chars().all(|character| character == sign))
}

/// Returns the level and the words of an HTML heading such as `<h2>Summary</h2>`.
fn html_heading(html: &str) -> Option<(u8, String)> {
    let rest = html.strip_prefix("<h").or_else(|| html.strip_prefix("<H"))?;
    let level = rest.bytes().next().filter(|byte| (b'1'..=b'6').contains(byte))? - b'0';
    let (_, content) = rest.split_once('>')?;
    let (title, _) = content.split_once("</")?;
    let without_tags: Vec<&str> =
        title.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    let words = without_tags.concat();
    (!words.trim().is_empty()).then(|| (level, words.trim().to_owned()))
}
