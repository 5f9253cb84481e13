//! Facts about a row: its scalar values by column, and whether it reports an error.

use crate::cap::error_signs;
use crate::cap::json::{Kind, Node};

/// Nested values up to this depth are separate columns.
const MAX_COLUMN_LEVELS: usize = 3;
/// Seed of the column hashes.
const ROOT: u64 = 0x517c_c1b7_2722_0a95;
/// Only this many bytes of a longer text are hashed, together with its length.
const LONGEST_VALUE_BYTES: usize = 64;

/// One value of a row.
#[derive(Debug, Clone, Copy)]
pub(in crate::cap) struct Fact<'a> {
    pub(super) column: u64,
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// Facts about a row.
#[derive(Debug, Default)]
pub(in crate::cap) struct Facts<'a> {
    pub(super) list: Vec<Fact<'a>>,
    /// The shape of the error that the row reports.
    pub(super) error: Option<u64>,
}

impl Fact<'_> {
    /// Returns a hash of the value.
    pub(super) fn collect_value(self) -> u64 {
        let text = self.text.as_bytes();
        error_signs::hash(text.len() as u64, &text[..text.len().min(LONGEST_VALUE_BYTES)])
    }

    pub(super) fn number(self) -> Option<f64> {
        let number: Option<f64> =
            if self.kind == Kind::Number { self.text.trim().parse().ok() } else { None };
        number.filter(|number| number.is_finite())
    }
}

impl<'a> Facts<'a> {
    /// Collects the facts of a JSON value and everything in it. Examines its words from the first hint of an error.
    pub(in crate::cap) fn collect_json(
        &mut self,
        text: &'a str,
        nodes: &[Node],
        node: usize,
        hint: Option<usize>,
    ) {
        self.clear();
        self.collect_value(text, nodes, node, ROOT, 0);
        let row = source(text, &nodes[node]);
        if hint.is_some_and(|hint| error_signs::reports_error_from(row, hint)) {
            self.error = Some(error_signs::shape(row));
        }
    }

    /// Collects the facts of a record from its fields and column names.
    pub(in crate::cap) fn collect_record(
        &mut self,
        record: &str,
        fields: impl Iterator<Item = &'a str>,
        names: &[String],
    ) {
        self.clear();
        for (index, text) in fields.enumerate() {
            let column = error_signs::hash(ROOT, &index.to_le_bytes());
            let kind = field_kind(text);
            self.list.push(Fact { column, kind, text });
            let is_error = names.get(index).is_some_and(|name| error_signs::is_error_key(name));
            if is_error && kind != Kind::Null && !EMPTY_VALUES.contains(&text) {
                self.error = Some(column);
            }
        }
        if error_signs::reports_error(record) {
            self.error = Some(error_signs::shape(record));
        }
    }

    /// Collects the facts of a row whose format differs from the others.
    pub(in crate::cap) fn collect_unlike(&mut self, row: &'a str) {
        self.clear();
        self.list.push(Fact { column: 0, kind: Kind::String, text: row });
    }

    /// Records that a key names an error, for a member with content.
    pub(in crate::cap) fn with_key(&mut self, key: &str, is_there: bool) {
        if is_there && error_signs::is_error_key(key) {
            self.error = self.error.or(Some(ROOT));
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.error = None;
    }

    fn collect_value(&mut self, text: &'a str, nodes: &[Node], index: usize, column: u64, depth: usize) {
        let node = &nodes[index];
        self.list.push(Fact {
            column,
            kind: node.kind,
            text: if node.count > 0 { "" } else { source(text, node) },
        });
        if depth == MAX_COLUMN_LEVELS || !matches!(node.kind, Kind::Object | Kind::Array) {
            return;
        }
        let is_object = node.kind == Kind::Object;
        let (mut child, mut item) = (index + 1, 0_u64);
        while child < node.next as usize && item < 64 {
            let (key, value) = if is_object { (source(text, &nodes[child]), child + 1) } else { ("", child) };
            let name = if is_object {
                error_signs::hash(column, key.as_bytes())
            } else {
                error_signs::hash(column, &item.to_le_bytes())
            };
            let own = &nodes[value];
            if is_object && error_signs::is_error_key(unquote_key(key)) && has_content(text, own) {
                self.error = Some(name);
            }
            self.collect_value(text, nodes, value, name, depth + 1);
            (child, item) = (own.next as usize, item + 1);
        }
    }
}

/// Whether a value has content. An `error` that is `null`, `false`, `0`, `""`, `[]` or `{}` is not an error.
pub(in crate::cap) fn has_content(text: &str, node: &Node) -> bool {
    match node.kind {
        Kind::Array | Kind::Object => node.count > 0,
        _ => !EMPTY_VALUES.contains(&source(text, node)),
    }
}

/// Values without content.
const EMPTY_VALUES: [&str; 7] = ["null", "false", "0", "\"\"", "", "\"none\"", "none"];

/// Returns a key as written, without its quotation marks.
fn unquote_key(key: &str) -> &str {
    key.get(1..key.len() - 1).unwrap_or(key)
}

fn source<'a>(text: &'a str, node: &Node) -> &'a str {
    &text[node.begin as usize..node.end as usize]
}

fn field_kind(text: &str) -> Kind {
    let first = text.trim_start().bytes().next();
    match first {
        None => Kind::Null,
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') if text.trim().parse::<f64>().is_ok() => Kind::Number,
        Some(_) => Kind::String,
    }
}
