//! The end of a line, which decides the kind of some lines.

use super::super::fence::Opening;
use super::super::html::HtmlBlock;
use super::super::row::{Row, Table};
use super::{Blocks, Container, Leaf, Line};

impl Blocks {
    /// Ends the current line.
    pub(super) fn end_line(&mut self) {
        if let Line::Html(start) = self.line {
            self.step_html(start, b'\n');
        }
        if let Line::InHtml { ends: false } = self.line
            && let Leaf::Html { block, .. } = &mut self.leaf
        {
            block.step(b'\n');
        }
        if self.ends_as_rule() {
            self.begin_line();
            return;
        }
        match self.line {
            Line::Begin => self.end_blank_line(),
            Line::Signs(opening) if opening.length >= 3 => self.end_opening(&opening),
            Line::Info { opening, .. } => self.end_opening(&opening),
            Line::Closing(_) | Line::Closed if self.closes() => self.leave_fence(),
            Line::Closing(_) => self.pass_in_fence(),
            Line::Heading(_) => {
                self.begin_heading();
                self.inline.reset();
            }
            Line::HeadingText => self.inline.reset(),
            Line::InHtml { ends: true } => self.leave(),
            Line::Marker { prefix, .. } => {
                self.item = Some(prefix);
                self.end_blank_line();
            }
            Line::Signs(_) | Line::Digits { .. } | Line::Text => {
                self.begin_text();
                self.end_text();
            }
            Line::InHtml { ends: false } | Line::Closed | Line::Html(_) | Line::Other => {}
        }
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.line = Line::Begin;
        self.matched = 0;
        self.matched_quotes = 0;
        self.column = 0;
        self.consumed = 0;
        self.quote_space = false;
        self.item = None;
        self.rule = None;
        self.row = Row::default();
    }

    /// Whether the current line closes the fence if it ends here.
    pub(super) fn closes(&self) -> bool {
        match (self.line, self.leaf) {
            (Line::Closing(closing), Leaf::Fence(fence)) => closing.length >= fence.length,
            (line, _) => matches!(line, Line::Closed),
        }
    }

    fn leave_fence(&mut self) {
        self.leaf = Leaf::None;
        self.lapsed = None;
    }

    /// Ends a line that is a thematic break, or the underline of a heading.
    fn ends_as_rule(&mut self) -> bool {
        let Some(rule) = self.rule else { return false };
        let underline = rule.underlines && matches!(self.leaf, Leaf::Paragraph);
        let is_rule = rule.sign != b'=' && rule.count >= 3;
        if !underline && !is_rule || matches!(self.leaf, Leaf::Table(_)) && rule.sign == b'=' {
            return false;
        }
        self.containers.truncate(rule.depth);
        self.matched = self.matched.min(rule.depth);
        self.leave();
        self.structure |= underline;
        true
    }

    fn end_opening(&mut self, opening: &Opening) {
        if matches!(self.leaf, Leaf::Html { .. }) {
            // A reader that allows fences within HTML would see it as a fence.
            self.lapsed = match self.lapsed {
                None => Some((opening.sign, opening.length)),
                Some(_) => None,
            };
            return;
        }
        self.open_fence(opening);
    }

    fn end_blank_line(&mut self) {
        let is_paragraph = matches!(self.leaf, Leaf::Paragraph) && self.matched == self.containers.len();
        if let Some(prefix) = self.item.take() {
            if is_paragraph {
                return self.end_text();
            }
            self.enter(Container::Item { width: prefix + 1, blank: true });
            return;
        }
        let unmatched = self.containers.iter().skip(self.matched);
        // The search is slow in deep lists, so it runs only if there is a quotation.
        let quote = (self.quotes > self.matched_quotes)
            .then(|| unmatched.take_while(|container| matches!(container, Container::Item { .. })).count());
        if let Some(place) = quote {
            self.matched += place;
            if let Leaf::Fence(fence) = self.leaf {
                self.lapsed = Some((fence.sign, fence.length));
            }
            self.leave();
        } else if let Some(Container::Item { blank: true, .. }) = self.containers.last() {
            self.matched = self.containers.len() - 1;
            self.leave();
        }
        if matches!(
            self.leaf,
            Leaf::Paragraph | Leaf::Table(_) | Leaf::Html { block: HtmlBlock::UntilBlank, .. }
        ) {
            self.leaf = Leaf::None;
        }
        self.head = None;
        self.inline.reset();
    }

    /// Ends a line of a paragraph or a table.
    fn end_text(&mut self) {
        self.inline.step(b'\n', self.position);
        let row = self.row;
        match (&mut self.leaf, self.head) {
            (Leaf::Table(table), _) => {
                table.add(&row);
                self.inline.reset();
            }
            (Leaf::Paragraph, Some(head)) if row.delimits(&head) => {
                self.leaf = Leaf::Table(Table::new(&head, &row));
                self.structure = true;
                self.head = None;
                self.inline.reset();
            }
            _ => self.head = Some(row),
        }
    }
}
