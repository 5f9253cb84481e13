//! Compares detection with another parser on damaged documents. Every difference must have a known
//! explanation.
//!
//! The fuzz target `differential` compares more parsers on arbitrary bytes; `fuzz/README.md` lists the
//! differences.

use proptest::prelude::*;
use proptest::sample::Index;
use serde::de::IgnoredAny;

use super::json_documents::{document, source};
use crate::detect::detect_strict;
use crate::{Format, InToken, Verdict};

/// A way to damage a text.
#[derive(Debug, Clone)]
enum Damage {
    /// Inserts a piece of text.
    Insert(Index, &'static str),
    /// Removes characters.
    Remove(Index, usize),
    /// Repeats a piece of text.
    Repeat(Index, usize),
    /// Swaps two neighbouring characters.
    Swap(Index),
    /// Cuts off the end.
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\ude00", "0", "-", ".", "e", "+",
        "1e999", "true", "nul", " ", "\n", "\u{1}", "é", "\u{FEFF}", "x", "//",
    ]);
    prop_oneof![
        4 => (any::<Index>(), pieces).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        3 => (any::<Index>(), 1..4_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        1 => (any::<Index>(), 1..6_usize).prop_map(|(at, count)| Damage::Repeat(at, count)),
        1 => any::<Index>().prop_map(Damage::Swap),
        2 => any::<Index>().prop_map(Damage::Cut),
    ]
}

fn apply_damage(text: &str, damage: &Damage) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let count = characters.len();
    let place = |at: &Index| at.index(count + 1);
    match damage {
        Damage::Insert(at, piece) => drop(characters.splice(place(at)..place(at), piece.chars())),
        Damage::Remove(at, many) => drop(characters.drain(place(at)..count.min(place(at) + many))),
        Damage::Repeat(at, many) => {
            let piece = characters[place(at)..count.min(place(at) + many)].to_vec();
            characters.splice(place(at)..place(at), piece);
        }
        Damage::Swap(at) if place(at) + 1 < count => characters.swap(place(at), place(at) + 1),
        Damage::Swap(_) => {}
        Damage::Cut(at) => characters.truncate(place(at)),
    }
    characters.into_iter().collect()
}

/// Returns the other parser's verdict under detection's name for it, or the reason why the parser rejects the
/// text.
fn parse_with_other<'de, T: serde::Deserialize<'de>>(text: &'de str) -> Result<&'static str, String> {
    match serde_json::from_str::<T>(text) {
        Ok(_) => Ok("whole"),
        Err(error) if error.is_eof() => Ok("truncated"),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a rejection, or a difference in verdicts, has a known explanation.
fn is_explained(
    verdict: &Verdict,
    other: &Result<&'static str, String>,
    reads_values: bool,
    text: &str,
) -> bool {
    match (verdict, other) {
        (Verdict::Malformed { .. }, Err(_)) => true,
        // An escape with too few digits before the closing quote.
        (Verdict::Malformed { index, reason }, Ok("truncated")) => {
            reason == "not a hexadecimal digit" && text.len() - index < 4
        }
        (verdict, Ok(said)) => verdict.name() == *said,
        (verdict, Err(refusal)) => {
            let is_cut_number =
                verdict.truncation().is_some_and(|found| found.in_token == Some(InToken::Number));
            let is_surrogate = refusal.starts_with("lone leading surrogate")
                || refusal.starts_with("unexpected end of hex escape");
            refusal.starts_with("invalid number") && is_cut_number
                || reads_values && is_surrogate && text.to_ascii_lowercase().contains("\\ud")
                || reads_values && refusal.starts_with("number out of range") && text.contains(['e', 'E'])
        }
    }
}

/// Returns the first unexplained difference for a text, or `None`.
fn find_unexplained(text: &str) -> Option<String> {
    let verdict = detect_strict(text.as_bytes(), &Format::Json).verdict;
    let (ignored, value) =
        (parse_with_other::<IgnoredAny>(text), parse_with_other::<serde_json::Value>(text));
    let holds = is_explained(&verdict, &ignored, false, text) && is_explained(&verdict, &value, true, text);
    (!holds).then(|| format!("{text:?}: {verdict:?}, {ignored:?}, {value:?}"))
}

proptest! {
    #[test]
    fn detection_agrees_with_another_parser_on_damaged_documents(
        atoms in document(),
        damages in prop::collection::vec(damage(), 8..40),
    ) {
        let whole = source(&atoms);
        let mut all = whole.clone();
        for damage in &damages {
            // Check each damage alone, and all of them in sequence.
            all = apply_damage(&all, damage);
            for text in [&apply_damage(&whole, damage), &all] {
                // Detection allows a byte order mark only at the beginning, the other parser nowhere.
                if !text.starts_with('\u{FEFF}') {
                    prop_assert_eq!(find_unexplained(text), None);
                }
            }
        }
    }
}
