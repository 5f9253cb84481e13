//! A JSON text as the places of its values: RFC 8259, strictly, without a copy of anything.

use crate::cap::marker::Omitted;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A value, or the key of a member: where it stands, and what follows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    /// The node behind it and all that is in it.
    pub(crate) next: u32,
    /// How many items or members it has.
    pub(crate) count: u32,
    pub(crate) kind: Kind,
    /// Whether a list of more than the allowed items is in it.
    pub(crate) has_long_list: bool,
}

/// The nodes of a text, each before what is in it; of a member the key is before the value.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    nodes: Vec<Node>,
    /// The brackets that are open.
    open: Vec<u32>,
}

/// How many bytes of a text a node has at least, in most texts: the nodes of a large one are not copied while they grow.
const BYTES_OF_A_NODE: usize = 12;
/// A larger text may have few nodes, as one long string.
const MOST_RESERVED_NODES: usize = 1 << 20;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

impl Tape {
    /// Reads a text that is one value; none where it is not. Lists of more than `max_items` are marked, and all that
    /// they are in.
    pub(crate) fn read(&mut self, text: &str, max_items: usize) -> Option<()> {
        self.nodes.clear();
        self.open.clear();
        // Places are kept in four bytes.
        u32::try_from(text.len()).ok()?;
        let bytes = text.as_bytes();
        self.nodes.reserve((bytes.len() / BYTES_OF_A_NODE).min(MOST_RESERVED_NODES));
        let mut at = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        let mut expected = Expected::Value;
        loop {
            at = skip_space(bytes, at);
            let byte = *bytes.get(at)?;
            match (expected, byte) {
                (Expected::ValueOrEnd, b']')
                | (Expected::KeyOrEnd, b'}')
                | (Expected::CommaOrEnd, b']' | b'}') => {
                    at += 1;
                    self.close(byte, text, at, max_items)?;
                    expected = Expected::CommaOrEnd;
                }
                (Expected::CommaOrEnd, b',') => {
                    at += 1;
                    expected = if self.is_in_object()? { Expected::Key } else { Expected::Value };
                    continue;
                }
                (Expected::Key | Expected::KeyOrEnd, b'"') => {
                    let end = string_end(bytes, at)?;
                    self.push(Kind::String, at, end);
                    at = skip_space(bytes, end);
                    (*bytes.get(at)? == b':').then_some(())?;
                    at += 1;
                    expected = Expected::Value;
                    continue;
                }
                (Expected::Value | Expected::ValueOrEnd, b'[' | b'{') => {
                    self.open.push(u32::try_from(self.nodes.len()).ok()?);
                    let is_object = byte == b'{';
                    self.push(if is_object { Kind::Object } else { Kind::Array }, at, at + 1);
                    at += 1;
                    expected = if is_object { Expected::KeyOrEnd } else { Expected::ValueOrEnd };
                    continue;
                }
                (Expected::Value | Expected::ValueOrEnd, _) => {
                    let (kind, end) = scalar(bytes, at)?;
                    self.push(kind, at, end);
                    at = end;
                    expected = Expected::CommaOrEnd;
                }
                _ => return None,
            }
            // A value ended.
            match self.open.last() {
                Some(parent) => self.nodes[*parent as usize].count += 1,
                None => return (skip_space(bytes, at) == bytes.len()).then_some(()),
            }
        }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn is_in_object(&self) -> Option<bool> {
        self.open.last().map(|parent| self.nodes[*parent as usize].kind == Kind::Object)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is checked to be shorter")]
    fn push(&mut self, kind: Kind, begin: usize, end: usize) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node {
            begin: begin as u32,
            end: end as u32,
            next,
            count: 0,
            kind,
            has_long_list: false,
        });
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is checked to be shorter")]
    fn close(&mut self, bracket: u8, text: &str, end: usize, max_items: usize) -> Option<()> {
        let index = self.open.pop()?;
        let next = self.nodes.len() as u32;
        // The marker of an earlier capping is no item.
        let count = self.nodes[index as usize].count as usize;
        let is_capped = count.checked_sub(1) == Some(max_items) && self.ends_in_marker(index as usize, text);
        let node = &mut self.nodes[index as usize];
        (node.kind == if bracket == b']' { Kind::Array } else { Kind::Object }).then_some(())?;
        (node.end, node.next) = (end as u32, next);
        node.has_long_list |= node.kind == Kind::Array && count > max_items && !is_capped;
        let has_long_list = node.has_long_list;
        if let Some(parent) = self.open.last() {
            self.nodes[*parent as usize].has_long_list |= has_long_list;
        }
        Some(())
    }
}

impl Tape {
    /// Whether the last item of the list that is being closed says what was left out of it.
    fn ends_in_marker(&self, list: usize, text: &str) -> bool {
        let mut item = list + 1;
        while let Some(next) =
            self.nodes.get(item).map(|node| node.next as usize).filter(|next| *next < self.nodes.len())
        {
            item = next;
        }
        self.nodes.get(item).is_some_and(|last| {
            let Node { begin, end, .. } = *last;
            Omitted::read(&text[begin as usize..end as usize]).is_some()
        })
    }
}

pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// The end of a string that begins here.
fn string_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', &bytes[at..])?;
        if bytes[at..found].iter().any(|byte| *byte < 0x20) {
            return None;
        }
        if bytes[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
        match bytes.get(found + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
            b'u' => {
                bytes.get(at..at + 4)?.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                at += 4;
            }
            _ => return None,
        }
    }
}

/// The kind and the end of a value without brackets that begins here.
fn scalar(bytes: &[u8], begin: usize) -> Option<(Kind, usize)> {
    let literal = |word: &[u8], kind| bytes[begin..].starts_with(word).then(|| (kind, begin + word.len()));
    match bytes[begin] {
        b'"' => Some((Kind::String, string_end(bytes, begin)?)),
        b't' => literal(b"true", Kind::Bool),
        b'f' => literal(b"false", Kind::Bool),
        b'n' => literal(b"null", Kind::Null),
        _ => Some((Kind::Number, number_end(bytes, begin)?)),
    }
}

fn number_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let some_digits = |from: usize| Some(digits(from)).filter(|end| *end > from);
    let mut at = begin + usize::from(bytes[begin] == b'-');
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { some_digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = some_digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = some_digits(at)?;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_whole(text: &str) -> bool {
        Tape::default().read(text, 500).is_some()
    }

    /// What is one JSON value for another parser, numbers beyond its range and lone surrogates aside.
    fn is_whole_for_serde(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    }

    proptest! {
        #[test]
        fn it_takes_what_another_parser_takes(text in "([\\[\\]{},:]|\"a\"|\"\\\\u00e9\"|1|-|0|\\.5|e3|true|null| ){0,12}") {
            prop_assert_eq!(is_whole(&text), is_whole_for_serde(&text), "{}", text);
        }
    }

    #[test]
    fn whole_and_broken_texts() {
        for text in ["1", " [ ] ", "{}", r#"{"a":[1,{"b":null}],"c":"\ud800"}"#, "-0.5e+3", "\u{FEFF}[]"] {
            assert!(is_whole(text), "{text}");
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
            assert!(!is_whole(text), "{text}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(is_whole(&deep));
    }
}
