//! Computes the results of the block structure as if the text ended here.

use super::super::fence::Fence;
use super::super::html::{HtmlBlock, HtmlStep};
use super::super::row::TableRow;
use super::{Blocks, Container, LeafBlock, LineKind};
use crate::detect::MAX_POSITION;
use crate::{InToken, Open};

impl Blocks {
    /// Whether this state can occur after `position` bytes, as far as later code assumes. Used to check
    /// restored states.
    pub(in crate::detect) fn is_consistent(&self, position: usize) -> bool {
        let fits = |number: usize| number <= MAX_POSITION;
        let line = match self.line {
            LineKind::Signs(opening) | LineKind::Closing(opening) | LineKind::Info { opening, .. } => {
                opening.is_consistent()
            }
            LineKind::Html(start) => start.is_consistent(),
            LineKind::Marker { prefix, .. } => fits(prefix),
            LineKind::Digits { indent, .. } => fits(indent),
            _ => true,
        };
        let leaf = match self.leaf {
            LeafBlock::Html { block, line_start } => block.is_consistent() && fits(line_start),
            LeafBlock::Fence(fence) => fence.is_consistent(),
            LeafBlock::None | LeafBlock::Paragraph | LeafBlock::Table(_) => true,
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
            && self.head.is_none_or(TableRow::is_consistent)
            && self.inline.is_consistent()
            && self.mark <= 3
    }

    /// Returns the fence that was open after the last complete line.
    pub(in crate::detect) fn fence(&self) -> Option<&Fence> {
        match &self.leaf {
            LeafBlock::Fence(fence) => Some(fence),
            LeafBlock::None | LeafBlock::Paragraph | LeafBlock::Table(_) | LeafBlock::Html { .. } => None,
        }
    }

    /// Whether the text contains a construct that occurs only in Markdown.
    pub(in crate::detect) fn has_structure(&self) -> bool {
        self.structure || self.inline.complete
    }

    /// Whether the last block is a paragraph outside lists and quotations, and nothing is certainly open.
    pub(in crate::detect) fn ends_in_paragraph(&self) -> bool {
        let is_text = matches!(self.line, LineKind::Begin | LineKind::Text | LineKind::Digits { .. });
        let is_paragraph = is_text && matches!(self.leaf, LeafBlock::Paragraph) && self.rule.is_none();
        is_paragraph && self.containers.is_empty() && self.item.is_none() && self.open().is_none()
    }

    /// Returns the construct that is certainly open if the text ends here, the kind of token at the cut, and
    /// the start of the construct.
    pub(in crate::detect) fn open(&self) -> Option<(Open, InToken, usize)> {
        let fence = |sign: u8, length, start| {
            Some((Open::Fence { character: char::from(sign), length }, InToken::Code, start))
        };
        match (self.line, self.leaf) {
            (LineKind::Signs(_) | LineKind::Info { .. }, LeafBlock::Html { .. }) => None,
            (LineKind::Signs(opening), _) if opening.length >= 3 => {
                let fits = self
                    .lapsed
                    .is_some_and(|(sign, length)| sign == opening.sign && length <= opening.length);
                if fits { None } else { fence(opening.sign, opening.length, self.line_start) }
            }
            (LineKind::Info { opening, .. }, _) => fence(opening.sign, opening.length, self.line_start),
            (_, LeafBlock::Fence(open)) if open.doubtful || self.closes_fence() => None,
            (_, LeafBlock::Fence(open)) => fence(open.sign, open.length, open.line_start),
            (LineKind::InHtml { ends: true }, _) => None,
            (LineKind::Html(start), _) => match start.step(b'\n') {
                HtmlStep::Block(HtmlBlock::UntilSigns { markup, .. }) => {
                    Some((Open::Markup(markup), markup.in_token(), self.line_start))
                }
                _ => None,
            },
            (_, LeafBlock::Html { block: HtmlBlock::UntilSigns { markup, .. }, line_start }) => {
                Some((Open::Markup(markup), markup.in_token(), line_start))
            }
            (LineKind::Text, LeafBlock::Table(table)) if table.is_missing_row_end(&self.row) => {
                Some((Open::Row, InToken::Row, self.line_start))
            }
            _ => self.inline.open_link().map(|start| (Open::Link, InToken::Link, start)),
        }
    }
}
