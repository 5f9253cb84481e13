//! Splits, joins and shortens CSV records (RFC 4180) as they are written.

use endmark_envelope::grapheme_boundary;

use super::super::limits::Limits;
use super::super::marker;

/// The delimiters that are tried.
pub(in crate::cap) const DELIMITERS: [char; 4] = [',', '\t', ';', '|'];

/// Whether a record continues on the next line, because a quotation mark is still open.
pub(in crate::cap) fn is_open(record: &str) -> bool {
    record.bytes().filter(|byte| *byte == b'"').count() % 2 == 1
}

/// Returns the fields of a record as they are written, including quotation marks, without the line break.
pub(in crate::cap) fn fields(record: &str, delimiter: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    record.trim_end_matches(['\n', '\r']).split(move |letter: char| {
        is_quoted ^= letter == '"';
        letter == delimiter && !is_quoted
    })
}

/// Decodes a field: removes its quotation marks.
pub(in crate::cap) fn decode_field(field: &str) -> String {
    let inside = field.strip_prefix('"').and_then(|field| field.strip_suffix('"'));
    inside.map_or_else(|| field.to_owned(), |inside| inside.replace("\"\"", "\""))
}

/// Encodes a text as a field. Adds quotation marks if it needs them.
pub(in crate::cap) fn encode_field(text: &str, delimiter: char) -> String {
    let needs = text.contains([delimiter, '"', '\n', '\r']);
    if needs { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns a record with this many fields. Only the first field has a text.
pub(in crate::cap) fn record_with_first_field(text: &str, delimiter: char, columns: usize) -> String {
    let mut record = encode_field(text, delimiter);
    record.extend(std::iter::repeat_n(delimiter, columns.saturating_sub(1)));
    record
}

/// Returns a record of at most `most`, with its longest fields cut between graphemes. Returns `None` if there
/// is no room.
pub(in crate::cap) fn shorten_record(
    record: &str,
    delimiter: char,
    most: usize,
    limits: &Limits,
) -> Option<String> {
    let all: Vec<&str> = fields(record, delimiter).collect();
    let share = most / all.len().max(1);
    let cut = |field: &str| {
        let text = decode_field(field);
        let chars = text.chars().count() as u64;
        let room = share.checked_sub(marker::string_marker(chars).len() + 3)?;
        let mut at = text.floor_char_boundary(room);
        // Encoding doubles quotation marks, so a field may be longer than its text.
        while at > 0 && limits.size(&encode_field(&text[..at], delimiter)) > room {
            at = text.floor_char_boundary(at - 1 - at / 8);
        }
        let shown = &text[..grapheme_boundary(&text, at)];
        let left_out = chars - shown.chars().count() as u64;
        Some(encode_field(&format!("{shown}{}", marker::string_marker(left_out)), delimiter))
    };
    let short =
        |field: &&str| if limits.size(field) < share { Some((*field).to_owned()) } else { cut(field) };
    let record: Option<Vec<String>> = all.iter().map(short).collect();
    record
        .map(|fields| fields.join(delimiter.to_string().as_str()) + "\n")
        .filter(|record| limits.size(record) <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_records_are_split_at_their_delimiters() {
        let record = "a,\"b, \"\"c\"\"\nd\",,e\r\n";
        assert_eq!(fields(record, ',').collect::<Vec<_>>(), ["a", "\"b, \"\"c\"\"\nd\"", "", "e"]);
        assert_eq!(decode_field("\"b, \"\"c\"\"\""), "b, \"c\"");
        assert_eq!(encode_field("b, \"c\"", ','), "\"b, \"\"c\"\"\"");
        assert!(is_open("a,\"b\n") && !is_open(record));
        assert_eq!(record_with_first_field("[… 1,234 x]", ',', 3), "\"[… 1,234 x]\",,");
        assert_eq!(record_with_first_field("[… 1,234 x]", ';', 2), "[… 1,234 x];");
        let cut =
            shorten_record(&format!("1,{}\n", "ab\"".repeat(100)), ',', 120, &Limits::default()).unwrap();
        assert!(cut.len() <= 124 && fields(&cut, ',').count() == 2 && cut.contains("left out …]"), "{cut}");
    }
}
