//! Parses a valid document into a tree with positions, as a reference for closed texts.

use std::ops::Range;

/// A value of a document, or a key of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// The UTF-16 code units of the string, which can represent lone surrogates.
    String(Vec<u16>),
    /// The source of a number.
    Number(String),
    Literal(String),
    /// The elements, and the positions of the commas.
    Array(Vec<Node>, Vec<usize>),
    Object(Vec<(Node, Node)>, Vec<usize>),
}

/// Parses a valid document recursively. Panics on any other input.
pub(super) fn read(text: &str) -> Node {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    let node = reader.parse_value();
    reader.skip_blank();
    assert_eq!(reader.at, text.len(), "{text}");
    node
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip_blank(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blank();
        let is_there = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn parse_value(&mut self) -> Node {
        self.skip_blank();
        let start = self.at;
        let value = match self.bytes[start] {
            b'"' => self.parse_string(),
            b'[' => self.parse_array(),
            b'{' => self.parse_object(),
            byte => {
                let length = self.bytes[start..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
                self.at += length.count();
                let source = String::from_utf8(self.bytes[start..self.at].to_vec()).unwrap();
                if byte.is_ascii_alphabetic() { Value::Literal(source) } else { Value::Number(source) }
            }
        };
        Node { span: start..self.at, value }
    }

    fn parse_string(&mut self) -> Value {
        let start = self.at + 1;
        self.at = start;
        while self.bytes[self.at] != b'"' {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        Value::String(units(std::str::from_utf8(&self.bytes[start..self.at - 1]).unwrap()))
    }

    fn parse_array(&mut self) -> Value {
        self.at += 1;
        let (mut items, mut commas) = (Vec::new(), Vec::new());
        if !self.take(b']') {
            loop {
                items.push(self.parse_value());
                if !self.take(b',') {
                    break;
                }
                commas.push(self.at - 1);
            }
            assert!(self.take(b']'));
        }
        Value::Array(items, commas)
    }

    fn parse_object(&mut self) -> Value {
        self.at += 1;
        let (mut members, mut commas) = (Vec::new(), Vec::new());
        if !self.take(b'}') {
            loop {
                let name = self.parse_value();
                assert!(self.take(b':'));
                members.push((name, self.parse_value()));
                if !self.take(b',') {
                    break;
                }
                commas.push(self.at - 1);
            }
            assert!(self.take(b'}'));
        }
        Value::Object(members, commas)
    }
}

fn units(source: &str) -> Vec<u16> {
    let mut units = Vec::new();
    let mut rest = source;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character != '\\' {
            units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
            continue;
        }
        let length = if rest.starts_with('u') { 5 } else { 1 };
        units.push(match &rest[..1] {
            "u" => u16::from_str_radix(&rest[1..5], 16).unwrap(),
            "b" => 8,
            "f" => 12,
            "n" => 10,
            "r" => 13,
            "t" => 9,
            other => other.encode_utf16().next().unwrap(),
        });
        rest = &rest[length..];
    }
    units
}

/// Returns the expected marks if the document is cut at `cut`: pointer, kind, and whether the part is
/// omitted.
pub(super) fn marks(node: &Node, cut: usize) -> Vec<(String, &'static str, bool)> {
    let mut marks = Vec::new();
    collect(node, cut, String::new(), &mut marks);
    marks
}

fn collect(node: &Node, cut: usize, pointer: String, marks: &mut Vec<(String, &'static str, bool)>) {
    // A value after the cut is not marked, and a value that ends before the cut is finished.
    let touches = matches!(node.value, Value::Number(_)) && node.span.end == cut;
    if node.span.start >= cut || node.span.end <= cut && !touches {
        return;
    }
    match &node.value {
        Value::String(_) => marks.push((pointer, "string", false)),
        Value::Number(_) => marks.push((pointer, "number", true)),
        Value::Literal(_) => marks.push((pointer, "literal", true)),
        Value::Array(items, commas) => {
            marks.push((pointer.clone(), "array", false));
            for (index, item) in items.iter().enumerate() {
                collect(item, cut, format!("{pointer}/{index}"), marks);
                let begins_next = commas.get(index).is_some_and(|comma| *comma < cut);
                if begins_next && items[index + 1].span.start >= cut {
                    marks.push((format!("{pointer}/{}", index + 1), "element", true));
                }
            }
        }
        Value::Object(members, commas) => {
            marks.push((pointer.clone(), "object", false));
            for (index, (name, value)) in members.iter().enumerate() {
                let is_started = name.span.start < cut || index > 0 && commas[index - 1] < cut;
                let Value::String(units) = &name.value else { panic!("a name is a string") };
                let step = String::from_utf16_lossy(units).replace('~', "~0").replace('/', "~1");
                if is_started && name.span.end > cut {
                    marks.push((pointer.clone(), "member", true));
                } else if is_started && value.span.start >= cut {
                    marks.push((format!("{pointer}/{step}"), "key", true));
                }
                collect(value, cut, format!("{pointer}/{step}"), marks);
            }
        }
    }
}
