//! Parses JSON strictly (RFC 8259) into the positions of its values, without copying them.

use std::ops::Range;

pub(crate) use endmark_text::json::Kind;
use endmark_text::json::{Visit, visit, without_byte_order_mark};

use crate::cap::marker::OmissionValue;

/// The position of a value or of a member's key, and the index of the next node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonNode {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    /// Index of the next node after all descendants of this one.
    pub(crate) next: u32,
    /// Number of items or members.
    pub(crate) count: u32,
    pub(crate) kind: Kind,
    /// Whether the value contains a list with more items than the limit.
    pub(crate) has_long_list: bool,
}

/// All nodes of a text. A node comes before its descendants, and the key of a member before its value.
#[derive(Debug, Default)]
pub(crate) struct JsonTape {
    nodes: Vec<JsonNode>,
    /// Indexes of the open containers.
    open: Vec<u32>,
}

/// Typical number of bytes per node. Memory is reserved accordingly, so nodes are not moved while they are
/// added.
const BYTES_PER_NODE: usize = 12;
/// Memory is reserved for at most this many nodes. A large text may have few nodes, for example one long
/// string.
const MAX_RESERVED_NODES: usize = 1 << 20;

impl JsonTape {
    /// Parses a text. Returns `None` if it is not exactly one JSON value. Marks lists with more than
    /// `max_items` items, and the containers around them.
    pub(crate) fn read(&mut self, text: &str, max_items: usize) -> Option<()> {
        self.nodes.clear();
        self.open.clear();
        // Positions are stored in four bytes.
        u32::try_from(text.len()).ok()?;
        self.nodes.reserve((text.len() / BYTES_PER_NODE).min(MAX_RESERVED_NODES));
        let bytes = without_byte_order_mark(text.as_bytes());
        let mark = text.len() - bytes.len();
        visit(bytes, &mut TapeRecorder { tape: self, text, mark, max_items }).ok().map(drop)
    }

    pub(crate) fn nodes(&self) -> &[JsonNode] {
        &self.nodes
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is checked to be shorter")]
    fn push(&mut self, kind: Kind, begin: usize, end: usize) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(JsonNode {
            begin: begin as u32,
            end: end as u32,
            next,
            count: 0,
            kind,
            has_long_list: false,
        });
    }

    /// Counts a complete value as an item of its container.
    fn count_item(&mut self) {
        if let Some(parent) = self.open.last() {
            self.nodes[*parent as usize].count += 1;
        }
    }
}

/// Receives the events of the parser, and records them as nodes.
struct TapeRecorder<'t> {
    tape: &'t mut JsonTape,
    text: &'t str,
    /// Size of the byte order mark in bytes, or 0.
    mark: usize,
    max_items: usize,
}

impl Visit for TapeRecorder<'_> {
    #[expect(clippy::cast_possible_truncation, reason = "the text is checked to be shorter")]
    fn begin_container(&mut self, kind: Kind, at: usize) {
        let at = at + self.mark;
        self.tape.open.push(self.tape.nodes.len() as u32);
        self.tape.push(kind, at, at + 1);
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is checked to be shorter")]
    fn end_container(&mut self, at: usize) {
        let Some(index) = self.tape.open.pop() else { return };
        let next = self.tape.nodes.len() as u32;
        // The marker of an earlier capping does not count as an item.
        let count = self.tape.nodes[index as usize].count as usize;
        let is_capped = count.checked_sub(1) == Some(self.max_items)
            && self.tape.ends_in_marker(index as usize, self.text);
        let node = &mut self.tape.nodes[index as usize];
        (node.end, node.next) = ((at + self.mark) as u32, next);
        node.has_long_list |= node.kind == Kind::Array && count > self.max_items && !is_capped;
        let has_long_list = node.has_long_list;
        if let Some(parent) = self.tape.open.last() {
            self.tape.nodes[*parent as usize].has_long_list |= has_long_list;
        }
        self.tape.count_item();
    }

    fn push_name(&mut self, span: Range<usize>) {
        self.tape.push(Kind::String, span.start + self.mark, span.end + self.mark);
    }

    fn push_scalar(&mut self, kind: Kind, span: Range<usize>) {
        self.tape.push(kind, span.start + self.mark, span.end + self.mark);
        self.tape.count_item();
    }
}

impl JsonTape {
    /// Whether the last item of the list that ends here is the marker of an earlier capping.
    fn ends_in_marker(&self, list: usize, text: &str) -> bool {
        let mut item = list + 1;
        while let Some(next) =
            self.nodes.get(item).map(|node| node.next as usize).filter(|next| *next < self.nodes.len())
        {
            item = next;
        }
        self.nodes.get(item).is_some_and(|last| {
            let JsonNode { begin, end, .. } = *last;
            OmissionValue::read(&text[begin as usize..end as usize]).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_accepted_by_tape(text: &str) -> bool {
        JsonTape::default().read(text, 500).is_some()
    }

    /// Whether `serde_json` accepts the text. Numbers outside its range and unpaired surrogates count as
    /// accepted.
    fn is_accepted_by_serde(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    }

    proptest! {
        #[test]
        fn the_tape_accepts_what_serde_json_accepts(text in "([\\[\\]{},:]|\"a\"|\"\\\\u00e9\"|1|-|0|\\.5|e3|true|null| ){0,12}") {
            prop_assert_eq!(is_accepted_by_tape(&text), is_accepted_by_serde(&text), "{}", text);
        }
    }

    #[test]
    fn whole_and_broken_texts_are_distinguished() {
        for text in ["1", " [ ] ", "{}", r#"{"a":[1,{"b":null}],"c":"\ud800"}"#, "-0.5e+3", "\u{FEFF}[]"] {
            assert!(is_accepted_by_tape(text), "{text}");
        }
        for text in [
            "",
            "[",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "[1]]",
            "[1}",
            "01",
            "1.",
            "\"a",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "tru",
            "[1 2]",
            "1 1",
            ".",
        ] {
            assert!(!is_accepted_by_tape(text), "{text}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(is_accepted_by_tape(&deep));
    }
}
