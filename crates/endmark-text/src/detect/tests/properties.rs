//! Checks PC-1 for all cuts of generated documents, and PC-2 for any chunks.

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::json_documents::{Atom, AtomKind, document, source};
use crate::detect::{Detector, detect, detect_strict};
use crate::{Format, Open, Truncation, Verdict};

fn formats() -> [Format; 7] {
    let marker = Format::Marker("}]".to_owned());
    [Format::Json, Format::Jsonl, Format::Markdown, Format::Tags, Format::Text, Format::Auto, marker]
}

/// Whether another parser accepts `text` as one JSON value.
fn is_value(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

fn is_beyond_repair(text: &[u8]) -> bool {
    let mut detector = Detector::new(&Format::Json);
    detector.push(text);
    // The other parser is strict, and rejects a raw control character in a string.
    detector.is_malformed() || detector.control_character().is_some()
}

/// Whether `text` is only a byte order mark.
fn is_byte_order_mark(text: &[u8]) -> bool {
    text == "\u{FEFF}".as_bytes()
}

/// Returns how many of the first `cut` bytes of a document are settled.
fn settled_end(atoms: &[Atom], cut: usize) -> usize {
    let mut start = 0;
    let mut settled = 0;
    for atom in atoms {
        let end = start + atom.source.len();
        if start >= cut {
            break;
        }
        settled = match atom.kind {
            AtomKind::Whitespace if settled == 0 => 0,
            AtomKind::Whitespace => end.min(cut),
            AtomKind::Fixed if end <= cut => end,
            AtomKind::Number if end < cut => end,
            AtomKind::Fixed | AtomKind::Number => start,
        };
        start = end;
    }
    settled
}

/// Generates text that often resembles JSON, Markdown or broken UTF-8.
fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            &b"{"[..], b"}", b"[", b"]", b":", b",", b"\"", b"\\", b"\\u", b"\\uD83D", b"\\uDE00", b"d8", b"1", b"-", b"0",
            b".", b"e", b"E+", b"true", b"null", b"fals", b" ", b"\n", b"\"a\"", b"{\"a\":", b"```", b"json", b"~~~", b"x",
            b"> ", b"\xEF\xBB\xBF", b"\xC3", b"\xA9", b"\xE2\x82", b"\xAC", b"\xF0\x9F", b"\x98\x80", b"\xED\xA0", b"\xFF",
            b"The quick brown fox,", b"\x1F", b"\t", b"<", b"</", b"<a", b"<a>", b"</a>", b"/>", b" b='", b"<!--", b"-->", b"<![CDATA[", b"]]>",
            b"- ", b"    ", b"| a |", b"|-|", b"[x](", b"<script>", b"<?", b"\r\n",
        ]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..3),
        1 => "[a-zA-Z\\u{e9}\\u{4e2d} ]{180,240}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Returns a short text that completes the truncated `text` to a value, if one is found.
fn complete(text: &[u8], truncation: &Truncation) -> Option<Vec<u8>> {
    const TOKENS: [&[u8]; 29] = [
        b"",
        b"\"",
        b"n\"",
        b"u0000\"",
        b"0000\"",
        b"000\"",
        b"00\"",
        b"0\"",
        b"C00\"",
        b"DC00\"",
        b"\x80\"",
        b"\xA0\"",
        b"\x80\x80\"",
        b"\xA0\x80\"",
        b"\x90\x80\x80\"",
        b"\x80\x80\x80\"",
        b"0",
        b"true",
        b"rue",
        b"ue",
        b"e",
        b"alse",
        b"lse",
        b"se",
        b"ull",
        b"ll",
        b"l",
        b"\xBB\xBF0",
        b"\xBF0",
    ];
    let closing = truncation.open.iter().rev().filter_map(|open| match open {
        Open::Object => Some(b'}'),
        Open::Array => Some(b']'),
        _ => None,
    });
    let closing: Vec<u8> = closing.collect();
    let without_mark = text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(text);
    for token in TOKENS {
        for rest in [&b""[..], b":0", b"\":0", b"0"] {
            let completed = [without_mark, token, rest, &closing].concat();
            if is_value(completed.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(&completed)) {
                return Some(completed);
            }
        }
    }
    None
}

proptest! {
    #[test]
    fn every_cut_is_settled_at_a_token_boundary(atoms in document()) {
        let text = source(&atoms);
        let mut detector = Detector::new(&Format::Json);
        for cut in 0..=text.len() {
            let prefix = &text.as_bytes()[..cut];
            let verdict = detector.verdict();
            prop_assert_eq!(&verdict, &detect(prefix, &Format::Json).verdict, "cut at {}", cut);
            match verdict {
                Verdict::Malformed { .. } => prop_assert!(false, "malformed when cut at {}: {:?}", cut, verdict),
                Verdict::Whole => prop_assert!(is_value(prefix), "whole when cut at {}", cut),
                Verdict::Truncated(found) => {
                    prop_assert!(!is_value(prefix), "truncated when cut at {}", cut);
                    prop_assert_eq!(found.truncation_index, settled_end(&atoms, cut), "cut at {}", cut);
                    prop_assert_eq!(found.balanced_index, 0);
                    prop_assert_eq!(found.last_valid_token.is_empty(), cut == 0, "cut at {}", cut);
                    let before = &text[..found.truncation_index];
                    let token = found.last_valid_token.as_str();
                    prop_assert!(
                        found.truncation_index == 0
                            || before.ends_with(token)
                            || before.trim_ascii_end().ends_with(token)
                            || before.trim_ascii().is_empty(),
                        "{:?} is not what {:?} ends in", token, before
                    );
                }
            }
            if let Some(byte) = text.as_bytes().get(cut) {
                detector.push(&[*byte]);
            }
        }
        prop_assert!(detector.is_whole());
    }

    #[test]
    fn consecutive_documents_are_never_malformed(documents in prop::collection::vec(document(), 1..4)) {
        let text = documents.iter().map(|atoms| source(atoms)).collect::<Vec<_>>().join("\n");
        let ends: Vec<usize> = documents.iter().scan(0, |start, atoms| {
            let value = source(atoms);
            let end = *start + value.trim_ascii_end().len();
            *start += value.len() + 1;
            Some(end)
        }).collect();
        for cut in 0..=text.len() {
            let verdict = detect(&text.as_bytes()[..cut], &Format::Jsonl).verdict;
            prop_assert_ne!(verdict.name(), "malformed", "cut at {}", cut);
            if let Some(found) = verdict.truncation() {
                let last = ends.iter().rev().find(|end| **end <= found.truncation_index);
                prop_assert_eq!(found.balanced_index, last.copied().unwrap_or(0), "cut at {}", cut);
            }
        }
        prop_assert_eq!(detect(text.as_bytes(), &Format::Jsonl).verdict, Verdict::Whole);
    }

    #[test]
    fn the_verdict_does_not_depend_on_the_chunks(text in any_text(), mut splits in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        splits.sort_by_key(|split| split.index(text.len() + 1));
        for format in formats() {
            let expected = detect(&text, &format);
            let mut single_bytes = Detector::new(&format);
            for (cut, byte) in text.iter().enumerate() {
                if text.len() < 150 {
                    prop_assert_eq!(single_bytes.detection(), detect(&text[..cut], &format), "{} at {}", format, cut);
                }
                single_bytes.push(&[*byte]);
            }
            prop_assert_eq!(&single_bytes.detection(), &expected, "{} in single bytes", format);
            let mut chunks = Detector::new(&format);
            let mut start = 0;
            for split in &splits {
                let end = split.index(text.len() + 1);
                chunks.push(&text[start..end]);
                start = end;
            }
            chunks = chunks.clone();
            let saved = serde_json::to_string(&chunks).unwrap();
            let mut restored: Detector = serde_json::from_str(&saved).unwrap();
            prop_assert_eq!(restored.detection(), chunks.detection(), "{} restored from {}", format, saved);
            chunks.push(&text[start..]);
            restored.push(&text[start..]);
            prop_assert_eq!(&restored.detection(), &expected, "{} restored from {}", format, saved);
            prop_assert_eq!(restored.format().name(), format.name());
            prop_assert_eq!(&chunks.detection(), &expected, "{} in chunks", format);
            prop_assert_eq!(chunks.position(), text.len());
            prop_assert_eq!(chunks.is_whole(), expected.verdict.is_whole(), "{}", format);
            let malformed = expected.verdict.name() == "malformed" && !is_byte_order_mark(&text);
            prop_assert_eq!(chunks.is_malformed(), malformed, "{}", format);
        }
    }

    #[test]
    fn whole_texts_parse_and_truncated_texts_can_be_completed(text in any_text()) {
        let without_mark = text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(&text);
        match detect_strict(&text, &Format::Json).verdict {
            Verdict::Whole => prop_assert!(is_value(without_mark)),
            Verdict::Truncated(found) => {
                prop_assert!(!is_value(without_mark));
                prop_assert!(complete(&text, &found).is_some(), "nothing completes {:?}", String::from_utf8_lossy(&text));
            }
            Verdict::Malformed { index, .. } if is_byte_order_mark(&text) => prop_assert_eq!(index, 0),
            Verdict::Malformed { index, .. } => {
                prop_assert!(!is_value(without_mark));
                prop_assert!(!is_beyond_repair(&text[..index]));
                prop_assert!(is_beyond_repair(&text[..=index]));
            }
        }
    }
}
