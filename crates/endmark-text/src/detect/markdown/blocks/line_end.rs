//! Ends a line, which decides the kind of some lines.

use super::super::fence::FenceOpening;
use super::super::html::HtmlBlock;
use super::super::row::{TableRow, TableShape};
use super::{Blocks, Container, LeafBlock, LineKind};

impl Blocks {
    /// Ends the current line.
    pub(super) fn end_line(&mut self) {
        if let LineKind::Html(start) = self.line {
            self.step_html(start, b'\n');
        }
        if let LineKind::InHtml { ends: false } = self.line
            && let LeafBlock::Html { block, .. } = &mut self.leaf
        {
            block.step(b'\n');
        }
        if self.ends_as_rule() {
            self.begin_line();
            return;
        }
        match self.line {
            LineKind::Begin => self.end_blank_line(),
            LineKind::Signs(opening) if opening.length >= 3 => self.end_opening(&opening),
            LineKind::Info { opening, .. } => self.end_opening(&opening),
            LineKind::Closing(_) | LineKind::Closed if self.closes_fence() => self.close_fence(),
            LineKind::Closing(_) => self.add_fence_content(),
            LineKind::Heading(_) => {
                self.begin_heading();
                self.inline.reset();
            }
            LineKind::HeadingText => self.inline.reset(),
            LineKind::InHtml { ends: true } => self.close_leaf(),
            LineKind::Marker { prefix, .. } => {
                self.item = Some(prefix);
                self.end_blank_line();
            }
            LineKind::Signs(_) | LineKind::Digits { .. } | LineKind::Text => {
                self.begin_text();
                self.end_text();
            }
            LineKind::InHtml { ends: false } | LineKind::Closed | LineKind::Html(_) | LineKind::Other => {}
        }
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.line = LineKind::Begin;
        self.matched = 0;
        self.matched_quotes = 0;
        self.column = 0;
        self.consumed = 0;
        self.quote_space = false;
        self.item = None;
        self.rule = None;
        self.row = TableRow::default();
    }

    /// Whether the current line closes the fence if it ends here.
    pub(super) fn closes_fence(&self) -> bool {
        match (self.line, self.leaf) {
            (LineKind::Closing(closing), LeafBlock::Fence(fence)) => closing.length >= fence.length,
            (line, _) => matches!(line, LineKind::Closed),
        }
    }

    fn close_fence(&mut self) {
        self.leaf = LeafBlock::None;
        self.lapsed = None;
    }

    /// Ends the line if it is a thematic break or the underline of a heading. Returns whether it is.
    fn ends_as_rule(&mut self) -> bool {
        let Some(rule) = self.rule else { return false };
        let underline = rule.underlines && matches!(self.leaf, LeafBlock::Paragraph);
        let is_rule = rule.sign != b'=' && rule.count >= 3;
        if !underline && !is_rule || matches!(self.leaf, LeafBlock::Table(_)) && rule.sign == b'=' {
            return false;
        }
        self.containers.truncate(rule.depth);
        self.matched = self.matched.min(rule.depth);
        self.close_leaf();
        self.structure |= underline;
        true
    }

    fn end_opening(&mut self, opening: &FenceOpening) {
        if matches!(self.leaf, LeafBlock::Html { .. }) {
            // Parsers that allow fences in HTML blocks would see a fence here.
            self.lapsed = match self.lapsed {
                None => Some((opening.sign, opening.length)),
                Some(_) => None,
            };
            return;
        }
        self.open_fence(opening);
    }

    fn end_blank_line(&mut self) {
        let is_paragraph = matches!(self.leaf, LeafBlock::Paragraph) && self.matched == self.containers.len();
        if let Some(prefix) = self.item.take() {
            if is_paragraph {
                return self.end_text();
            }
            self.open_container(Container::Item { width: prefix + 1, blank: true });
            return;
        }
        let unmatched = self.containers.iter().skip(self.matched);
        // The search is slow in deep lists, so it runs only if an unmatched quotation is open.
        let quote = (self.quotes > self.matched_quotes)
            .then(|| unmatched.take_while(|container| matches!(container, Container::Item { .. })).count());
        if let Some(place) = quote {
            self.matched += place;
            if let LeafBlock::Fence(fence) = self.leaf {
                self.lapsed = Some((fence.sign, fence.length));
            }
            self.close_leaf();
        } else if let Some(Container::Item { blank: true, .. }) = self.containers.last() {
            self.matched = self.containers.len() - 1;
            self.close_leaf();
        }
        if matches!(
            self.leaf,
            LeafBlock::Paragraph | LeafBlock::Table(_) | LeafBlock::Html { block: HtmlBlock::UntilBlank, .. }
        ) {
            self.leaf = LeafBlock::None;
        }
        self.head = None;
        self.inline.reset();
    }

    /// Ends a line of a paragraph or a table.
    fn end_text(&mut self) {
        self.inline.step(b'\n', self.position);
        let row = self.row;
        match (&mut self.leaf, self.head) {
            (LeafBlock::Table(table), _) => {
                table.add(&row);
                self.inline.reset();
            }
            (LeafBlock::Paragraph, Some(head)) if row.is_delimiter_for(&head) => {
                self.leaf = LeafBlock::Table(TableShape::new(&head, &row));
                self.structure = true;
                self.head = None;
                self.inline.reset();
            }
            _ => self.head = Some(row),
        }
    }
}
