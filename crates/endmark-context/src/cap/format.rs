//! Detects the format of a value from its first bytes.

use endmark_text::{Format as TextFormat, Verdict, detect::detect_strict};

use super::json::JsonTape;
use super::table::csv;

/// The detected or requested format of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Plain text, including logs.
    Text,
    /// A single JSON value.
    Json,
    /// JSON Lines: one JSON value per line.
    JsonLines,
    /// A table with a header line. The character separates the fields.
    Csv(char),
    /// A diff.
    Diff,
    /// A format that is not text. Only the format's name is shown.
    Binary(&'static str),
}

/// The format names that users may write. `auto` detects the format.
pub const FORMATS: [&str; 6] = ["auto", "text", "json", "jsonl", "csv", "diff"];

impl Format {
    /// Returns the format's name in responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Csv(_) => "csv",
            Self::Diff => "diff",
            Self::Binary(_) => "binary",
        }
    }
}

/// The format that the caller requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestedFormat {
    /// The format is detected.
    #[default]
    Auto,
    /// The value is text.
    Text,
    /// The value is one JSON value.
    Json,
    /// The value is JSON Lines.
    JsonLines,
    /// The value is CSV, with any delimiter.
    Csv,
    /// The value is a diff.
    Diff,
}

impl RequestedFormat {
    /// Returns the format for a name from [`FORMATS`]. Returns `None` for any other name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Auto, Self::Text, Self::Json, Self::JsonLines, Self::Csv, Self::Diff];
        FORMATS.iter().position(|format| *format == name).map(|index| all[index])
    }
}

/// The first bytes of files that are not text, with the name of the format. Each is specified by the format.
const SIGNATURES: [(&[u8], &str); 10] = [
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xFF\xD8\xFF", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF container"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1F\x8B", "gzip data"),
    (b"\x28\xB5\x2F\xFD", "Zstandard data"),
    (b"\x7FELF", "ELF program"),
    (b"SQLite format 3\0", "SQLite database"),
];

/// A value is binary if more than one byte in this many is invalid UTF-8 or an unusual control character.
const MAX_ODD_BYTE_DIVISOR: usize = 20;
/// A value with at most this many such bytes is never binary. A log may contain NUL bytes if its writer was
/// killed.
const MIN_ODD_BYTES: usize = 4;
/// A table has at least this many records.
const MIN_RECORDS: usize = 3;
/// A column name has at most this many words.
const LONGEST_NAME_WORDS: usize = 5;

/// Detects the format from the beginning of a value. `is_whole` states that this is the complete value.
pub(super) fn detect_format(beginning: &[u8], is_whole: bool, requested_format: RequestedFormat) -> Format {
    match requested_format {
        RequestedFormat::Text => return Format::Text,
        RequestedFormat::Json => return Format::Json,
        RequestedFormat::JsonLines => return Format::JsonLines,
        RequestedFormat::Diff => return Format::Diff,
        RequestedFormat::Csv | RequestedFormat::Auto => {}
    }
    let text = String::from_utf8_lossy(beginning);
    // The text after the last line break may be an incomplete line.
    let text = if is_whole { &*text } else { text.rsplit_once('\n').map_or(&*text, |(lines, _)| lines) };
    let text = text.trim_start_matches('\u{FEFF}');
    if requested_format == RequestedFormat::Csv {
        return Format::Csv(find_delimiter(text).unwrap_or(','));
    }
    if let Some(what) = binary_format_name(beginning) {
        return Format::Binary(what);
    }
    if text.trim_start().starts_with(['{', '[']) {
        if is_json_lines(text) {
            return Format::JsonLines;
        }
        match detect_strict(beginning, &TextFormat::Json).verdict {
            Verdict::Whole | Verdict::Truncated(_) => return Format::Json,
            Verdict::Malformed { .. } => {}
        }
    }
    if is_diff(text) {
        return Format::Diff;
    }
    detect_table(text).map_or(Format::Text, Format::Csv)
}

/// Returns the name of a binary format. Returns `None` for text. Runs in linear time.
pub(crate) fn binary_format_name(bytes: &[u8]) -> Option<&'static str> {
    let signature = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature));
    if let Some((_, what)) = signature {
        return Some(what);
    }
    let foreign = bytes.utf8_chunks().filter(|chunk| chunk.invalid().len() == 1).count();
    let controls = bytes.iter().filter(|byte| is_unusual_control(**byte)).count();
    let odd = foreign + controls;
    (odd > MIN_ODD_BYTES && odd * MAX_ODD_BYTE_DIVISOR > bytes.len()).then_some("binary data")
}

/// Whether terminals, editors and logs do not use this control character. They use BEL, BS, HT, LF, VT, FF,
/// CR and ESC.
fn is_unusual_control(byte: u8) -> bool {
    byte < b' ' && !(0x07..=0x0D).contains(&byte) && byte != 0x1B
}

/// Whether the text has at least two lines, all with a JSON array or object.
fn is_json_lines(text: &str) -> bool {
    let mut tape = JsonTape::default();
    let mut rows = text.lines().filter(|line| !line.trim().is_empty());
    let mut count = 0;
    rows.all(|row| {
        count += 1;
        row.trim_start_matches('\u{FEFF}').trim_start().starts_with(['{', '['])
            && tape.read(row, usize::MAX).is_some()
    }) && count >= 2
}

fn is_diff(text: &str) -> bool {
    let begins = ["diff --git ", "--- ", "Index: ", "diff -"].iter().any(|head| text.starts_with(head));
    begins && text.lines().any(|line| line.starts_with("@@ -") || line.starts_with("+++ "))
}

/// Returns the delimiter if the text is certainly a table: a header with column names, and records with the
/// same number of fields.
fn detect_table(text: &str) -> Option<char> {
    let delimiter = find_delimiter(text)?;
    let header: Vec<String> = csv::fields(text.lines().next()?, delimiter).map(csv::decode_field).collect();
    let is_name = |name: &String| {
        name.starts_with(|first: char| first.is_alphabetic() || first == '_' || first == '#')
            && name.split_whitespace().count() <= LONGEST_NAME_WORDS
            && !name.contains([':', '='])
    };
    let mut sorted = header.clone();
    sorted.sort();
    sorted.dedup();
    (header.iter().all(is_name) && sorted.len() == header.len()).then_some(delimiter)
}

/// Returns the delimiter for which all records have the same number of fields, at least two.
fn find_delimiter(text: &str) -> Option<char> {
    let mut records: Vec<String> = Vec::new();
    for line in text.lines() {
        match records.last_mut().filter(|record| csv::is_open(record)) {
            Some(record) => {
                record.push('\n');
                record.push_str(line);
            }
            None => records.push(line.to_owned()),
        }
    }
    // The last record may be incomplete, because only the beginning of the value is examined.
    records.pop_if(|record| csv::is_open(record));
    csv::DELIMITERS.into_iter().find(|delimiter| {
        let columns = records.first().map_or(0, |record| csv::fields(record, *delimiter).count());
        let is_like = |record: &String| csv::fields(record, *delimiter).count() == columns;
        columns > 1 && records.len() >= MIN_RECORDS && records.iter().all(is_like)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_detected_from_the_beginning() {
        for (text, expected) in [
            ("", Format::Text),
            ("Starting\nDone\n", Format::Text),
            ("[INFO] starting\n[ERROR] gone\n", Format::Text),
            ("[2026-11-24] starting\n", Format::Text),
            ("{\"a\": 1}", Format::Json),
            ("{\n  \"a\": 1\n}\n", Format::Json),
            ("[1,\n2]\n", Format::Json),
            ("{\"a\": 1}\n{\"a\": 2}\n", Format::JsonLines),
            ("id,name\n1,a\n2,\"b\nc\"\n", Format::Csv(',')),
            ("id\tname\n1\ta\n2\tb\n", Format::Csv('\t')),
            (
                "2026-11-24 10:00:00,123 INFO a\n2026-11-24 10:00:00,123 INFO a\n2026-11-24 10:00:01,123 INFO a\n",
                Format::Text,
            ),
            ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", Format::Diff),
            ("--- a\n+++ b\n@@ -1 +1 @@\n", Format::Diff),
            ("a\0b", Format::Text),
            ("\0\u{1}\0\u{2}\0\u{3}", Format::Binary("binary data")),
            ("\u{FEFF}id,name\n1,a\n2,b\n", Format::Csv(',')),
            ("\u{7F}ELF", Format::Binary("ELF program")),
        ] {
            assert_eq!(detect_format(text.as_bytes(), true, RequestedFormat::Auto), expected, "{text:?}");
        }
        assert_eq!(
            detect_format(b"\xFF\xD8\xFF\xE0", true, RequestedFormat::Auto),
            Format::Binary("JPEG image")
        );
        assert_eq!(detect_format(b"caf\xE9", true, RequestedFormat::Auto), Format::Text);
        let log = format!("{}\0\0\0\0\0 linker failed\n", "compiling a crate\n".repeat(100));
        assert_eq!(detect_format(log.as_bytes(), true, RequestedFormat::Auto), Format::Text);
        assert_eq!(detect_format(b"1;2\n3;4\n5;6", true, RequestedFormat::Csv), Format::Csv(';'));
        for (name, expected) in
            [("csv", Some(RequestedFormat::Csv)), ("auto", Some(RequestedFormat::Auto)), ("xml", None)]
        {
            assert_eq!(RequestedFormat::from_name(name), expected);
        }
    }
}
