//! Collects facts about a row: its scalar values by column, and whether it reports an error.

use crate::cap::error_signs;
use crate::cap::json::{JsonNode, Kind};

/// Nested values down to this level are treated as separate columns.
const MAX_COLUMN_LEVELS: usize = 3;
/// Initial value of the column hashes.
const ROOT_COLUMN_HASH: u64 = 0x517c_c1b7_2722_0a95;
/// Of a longer value, only this many bytes and the length are hashed.
const MAX_HASHED_BYTES: usize = 64;

/// One scalar value of a row.
#[derive(Debug, Clone, Copy)]
pub(in crate::cap) struct ColumnFact<'a> {
    pub(super) column: u64,
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// The facts about a row.
#[derive(Debug, Default)]
pub(in crate::cap) struct RowFacts<'a> {
    pub(super) list: Vec<ColumnFact<'a>>,
    /// Hash of the error's shape. `None` if the row does not report an error.
    pub(super) error: Option<u64>,
}

impl ColumnFact<'_> {
    /// Returns a hash of the value's text.
    pub(super) fn value_hash(self) -> u64 {
        let text = self.text.as_bytes();
        error_signs::update_hash(text.len() as u64, &text[..text.len().min(MAX_HASHED_BYTES)])
    }

    pub(super) fn number(self) -> Option<f64> {
        let number: Option<f64> =
            if self.kind == Kind::Number { self.text.trim().parse().ok() } else { None };
        number.filter(|number| number.is_finite())
    }
}

impl<'a> RowFacts<'a> {
    /// Collects the facts of a JSON value with all nested values. Searches for error words from
    /// the byte offset `hint` on.
    pub(in crate::cap) fn collect_json(
        &mut self,
        text: &'a str,
        nodes: &[JsonNode],
        node: usize,
        hint: Option<usize>,
    ) {
        self.clear();
        self.collect_value(text, nodes, node, ROOT_COLUMN_HASH, 0);
        let row = source(text, &nodes[node]);
        if hint.is_some_and(|hint| error_signs::reports_error_from(row, hint)) {
            self.error = Some(error_signs::line_shape(row));
        }
    }

    /// Collects the facts of a CSV record. Its fields have these column names.
    pub(in crate::cap) fn collect_record(
        &mut self,
        record: &str,
        fields: impl Iterator<Item = &'a str>,
        names: &[String],
    ) {
        self.clear();
        for (index, text) in fields.enumerate() {
            let column = error_signs::update_hash(ROOT_COLUMN_HASH, &index.to_le_bytes());
            let kind = field_kind(text);
            self.list.push(ColumnFact { column, kind, text });
            let is_error = names.get(index).is_some_and(|name| error_signs::is_error_key(name));
            if is_error && kind != Kind::Null && !EMPTY_VALUES.contains(&text) {
                self.error = Some(column);
            }
        }
        if error_signs::reports_error(record) {
            self.error = Some(error_signs::line_shape(record));
        }
    }

    /// Collects the facts of a row that does not have the format of the others.
    pub(in crate::cap) fn collect_unparsed(&mut self, row: &'a str) {
        self.clear();
        self.list.push(ColumnFact { column: 0, kind: Kind::String, text: row });
    }

    /// Records an error if the key names one and its value is not empty.
    pub(in crate::cap) fn note_key(&mut self, key: &str, is_there: bool) {
        if is_there && error_signs::is_error_key(key) {
            self.error = self.error.or(Some(ROOT_COLUMN_HASH));
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.error = None;
    }

    fn collect_value(&mut self, text: &'a str, nodes: &[JsonNode], index: usize, column: u64, depth: usize) {
        let node = &nodes[index];
        self.list.push(ColumnFact {
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
                error_signs::update_hash(column, key.as_bytes())
            } else {
                error_signs::update_hash(column, &item.to_le_bytes())
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

/// Whether a value is not empty. An `error` that is `null`, `false`, `0`, `""`, `[]` or `{}` is not an error.
pub(in crate::cap) fn has_content(text: &str, node: &JsonNode) -> bool {
    match node.kind {
        Kind::Array | Kind::Object => node.count > 0,
        _ => !EMPTY_VALUES.contains(&source(text, node)),
    }
}

/// Values that count as empty.
const EMPTY_VALUES: [&str; 7] = ["null", "false", "0", "\"\"", "", "\"none\"", "none"];

/// Returns a key as it is written, without quotation marks.
fn unquote_key(key: &str) -> &str {
    key.get(1..key.len() - 1).unwrap_or(key)
}

fn source<'a>(text: &'a str, node: &JsonNode) -> &'a str {
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
