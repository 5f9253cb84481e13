//! The results of the block structure, as if the text ended here.

use super::super::fence::Fence;
use super::super::html::{HtmlBlock, HtmlStep};
use super::super::row::Row;
use super::{Blocks, Container, Leaf, Line};
use crate::detect::MAX_POSITION;
use crate::{InToken, Open};

impl Blocks {
    /// Whether this state is reachable after `position` bytes, as far as later code relies on it.
    pub(in crate::detect) fn is_consistent(&self, position: usize) -> bool {
        let fits = |number: usize| number <= MAX_POSITION;
        let line = match self.line {
            Line::Signs(opening) | Line::Closing(opening) | Line::Info { opening, .. } => {
                opening.is_consistent()
            }
            Line::Html(start) => start.is_consistent(),
            Line::Marker { prefix, .. } => fits(prefix),
            Line::Digits { indent, .. } => fits(indent),
            _ => true,
        };
        let leaf = match self.leaf {
            Leaf::Html { block, line_start } => block.is_consistent() && fits(line_start),
            Leaf::Fence(fence) => fence.is_consistent(),
            Leaf::None | Leaf::Paragraph | Leaf::Table(_) => true,
        };
        let container = |container: &Container| match container {
            Container::Quote => true,
            Container::Item { width, .. } => fits(*width),
        };
        line && leaf
            && self.position == position
            && self.line_start <= position + 3
            && self.matched <= self.containers.len()
            && self.matched_quotes <= self.quotes
            && self.quotes == self.containers.iter().filter(|c| matches!(c, Container::Quote)).count()
            && self.consumed <= self.column
            && fits(self.column)
            && self.item.is_none_or(fits)
            && self.rule.is_none_or(|rule| fits(rule.count))
            && self.containers.iter().all(container)
            && self.row.is_consistent()
            && self.head.is_none_or(Row::is_consistent)
            && self.inline.is_consistent()
            && self.mark <= 3
    }

    /// Returns the fence that is open after the last complete line.
    pub(in crate::detect) fn fence(&self) -> Option<&Fence> {
        match &self.leaf {
            Leaf::Fence(fence) => Some(fence),
            Leaf::None | Leaf::Paragraph | Leaf::Table(_) | Leaf::Html { .. } => None,
        }
    }

    /// Whether the text has any construct that occurs only in Markdown.
    pub(in crate::detect) fn has_structure(&self) -> bool {
        self.structure || self.inline.complete
    }

    /// Whether the last block is a paragraph outside of lists and quotations, and nothing is open for certain.
    pub(in crate::detect) fn ends_in_paragraph(&self) -> bool {
        let is_text = matches!(self.line, Line::Begin | Line::Text | Line::Digits { .. });
        let is_paragraph = is_text && matches!(self.leaf, Leaf::Paragraph) && self.rule.is_none();
        is_paragraph && self.containers.is_empty() && self.item.is_none() && self.open().is_none()
    }

    /// Returns the construct that is certainly open if the text ends here, with the kind of token at the cut and its
    /// start.
    pub(in crate::detect) fn open(&self) -> Option<(Open, InToken, usize)> {
        let fence = |sign: u8, length, start| {
            Some((Open::Fence { sign: char::from(sign), length }, InToken::Code, start))
        };
        match (self.line, self.leaf) {
            (Line::Signs(_) | Line::Info { .. }, Leaf::Html { .. }) => None,
            (Line::Signs(opening), _) if opening.length >= 3 => {
                let fits = self
                    .lapsed
                    .is_some_and(|(sign, length)| sign == opening.sign && length <= opening.length);
                if fits { None } else { fence(opening.sign, opening.length, self.line_start) }
            }
            (Line::Info { opening, .. }, _) => fence(opening.sign, opening.length, self.line_start),
            (_, Leaf::Fence(open)) if open.doubtful || self.closes() => None,
            (_, Leaf::Fence(open)) => fence(open.sign, open.length, open.line_start),
            (Line::InHtml { ends: true }, _) => None,
            (Line::Html(start), _) => match start.step(b'\n') {
                HtmlStep::Block(HtmlBlock::UntilSigns { markup, .. }) => {
                    Some((Open::Markup(markup), markup.in_token(), self.line_start))
                }
                _ => None,
            },
            (_, Leaf::Html { block: HtmlBlock::UntilSigns { markup, .. }, line_start }) => {
                Some((Open::Markup(markup), markup.in_token(), line_start))
            }
            (Line::Text, Leaf::Table(table)) if table.is_missing_row_end(&self.row) => {
                Some((Open::Row, InToken::Row, self.line_start))
            }
            _ => self.inline.open_link().map(|start| (Open::Link, InToken::Link, start)),
        }
    }
}
