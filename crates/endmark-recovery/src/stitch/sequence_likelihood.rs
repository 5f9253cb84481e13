//! Estimates how likely units are to follow each other, in this text and in general.
//!
//! Counts sequences of up to six units. General counts come from a list of common words and some sample
//! lines. For each seam, the surrounding text is counted as well. If a long context is unknown, a shorter one
//! is used.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::units::{Reading, Units};

/// Maximum length of counted sequences, in units.
const MAX_SEQUENCE_UNITS: usize = 6;
/// Number of slots for general sequences, and maximum number of slots for one text.
const GENERAL_SLOTS: usize = 1 << 19;
const MAX_TEXT_SLOTS: usize = 1 << 17;
/// Number of slots that are examined for a sequence.
const MAX_PROBED_SLOTS: usize = 8;
/// Weight of the text itself relative to the general counts.
const OWN_TEXT_WEIGHT: f64 = 4.0;

/// Sample lines of different kinds, and common words of seven languages.
const SAMPLE_TEXT: &str = include_str!("primer.txt");
/// The usual elements of JSON.
const SAMPLE_JSON: &str =
    r#"{"a": true, "b": false, "c": null}, {"d": [true, false, null, "e"], "f": {}}, [], "#;
const COMMON_WORDS: &str = include_str!("words.txt");

/// Counts how often units follow contexts, and how many different units follow each context. It is a hash
/// table with open addressing that identifies a sequence by 32 bits of its hash.
struct SequenceCounts {
    pairs: Vec<SequenceEntry>,
    contexts: Vec<SequenceEntry>,
}

/// The counts of one sequence.
#[derive(Debug, Clone, Copy, Default)]
struct SequenceEntry {
    tag: u32,
    count: u16,
    /// Number of different units that followed. Only for contexts.
    followers: u16,
}

impl SequenceCounts {
    /// Creates an empty table with this many slots, which must be a power of two.
    fn new(slots: usize) -> Self {
        Self { pairs: vec![SequenceEntry::default(); slots], contexts: vec![SequenceEntry::default(); slots] }
    }

    fn read(&mut self, text: &[u32]) {
        for end in 0..text.len() {
            self.count(&text[end.saturating_sub(MAX_SEQUENCE_UNITS - 1)..end], text[end]);
        }
    }

    fn count(&mut self, context: &[u32], next: u32) {
        let mut hashes = [INITIAL_HASH; MAX_SEQUENCE_UNITS];
        for length in 1..=context.len() {
            hashes[length] = extend_hash(hashes[length - 1], context[context.len() - length]);
        }
        // Update from the longest context down to the first known one. For shorter contexts, only the number
        // of different contexts before a unit counts, and not how often they occur.
        for hash in hashes[..=context.len()].iter().rev() {
            let Some(pair) = entry(&mut self.pairs, combine_hash(*hash, next)) else { continue };
            pair.count = pair.count.saturating_add(1);
            let is_new = pair.count == 1;
            if let Some(all) = entry(&mut self.contexts, *hash) {
                all.count = all.count.saturating_add(1);
                all.followers = all.followers.saturating_add(u16::from(is_new));
            }
            if !is_new {
                break;
            }
        }
    }

    /// Returns how often any unit followed a context, how many different units did, and how often this unit
    /// did.
    fn look_up(&self, context: u64, pair: u64) -> (f64, f64, f64) {
        let all = find_entry(&self.contexts, context);
        if all.count == 0 {
            return (0.0, 0.0, 0.0);
        }
        (f64::from(all.count), f64::from(all.followers), f64::from(find_entry(&self.pairs, pair).count))
    }
}

/// Returns the first slot to examine for a sequence, and its tag, which is never 0.
fn first_slot(slots: usize, hash: u64) -> (usize, u32) {
    let mixed = (hash ^ hash >> 31).wrapping_mul(0x9fb2_1c65_1e98_df25);
    let first = usize::try_from(mixed >> 40).unwrap_or(0) & (slots - 1);
    (first, u32::try_from(mixed & 0xffff_ffff).unwrap_or(0) | 1)
}

/// Returns the entry of a sequence or a free entry, or `None` if all examined slots are taken.
fn entry(table: &mut [SequenceEntry], hash: u64) -> Option<&mut SequenceEntry> {
    let (first, tag) = first_slot(table.len(), hash);
    let mask = table.len() - 1;
    let index = (first..first + MAX_PROBED_SLOTS)
        .map(|at| at & mask)
        .find(|at| table[*at].tag == tag || table[*at].tag == 0)?;
    table[index].tag = tag;
    Some(&mut table[index])
}

fn find_entry(table: &[SequenceEntry], hash: u64) -> SequenceEntry {
    let (first, tag) = first_slot(table.len(), hash);
    let mask = table.len() - 1;
    (first..first + MAX_PROBED_SLOTS)
        .map(|at| table[at & mask])
        .find(|entry| entry.tag == tag || entry.tag == 0)
        .unwrap_or_default()
}

const INITIAL_HASH: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the hash of a context extended by one unit.
fn extend_hash(hash: u64, code: u32) -> u64 {
    (hash ^ u64::from(code)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
}

/// Returns the hash of a context and its next unit.
fn combine_hash(hash: u64, next: u32) -> u64 {
    (hash ^ (u64::from(next) << 32)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(31)
}

/// Returns the counts of general texts.
fn text_counts() -> &'static SequenceCounts {
    static COUNTS: OnceLock<SequenceCounts> = OnceLock::new();
    COUNTS.get_or_init(|| {
        let mut counts = SequenceCounts::new(GENERAL_SLOTS);
        let mut read = |text: &str| counts.read(&Units::read(text, Reading::Plain).codes);
        // Each line begins with the most common words, which therefore count more.
        for (line, words) in COMMON_WORDS.lines().enumerate() {
            let times = match line {
                0..=3 => 4,
                4..=12 => 2,
                _ => 1,
            };
            (0..times).for_each(|_| read(&format!(" {words} ")));
        }
        (0..3).for_each(|_| read(SAMPLE_TEXT));
        // A paragraph begins with a capital letter, or with the marker of a heading, list, table or block.
        for word in COMMON_WORDS.split_whitespace().step_by(3) {
            let mut letters = word.chars();
            let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            for before in [".\n\n", ".\n", " "] {
                read(&format!("{before}{capital}{} ", letters.as_str()));
            }
        }
        for sign in ["# ", "## ", "- ", "* ", "1. ", "| ", "```", "> ", "**", "<", "//"] {
            (0..3).for_each(|_| read(&format!(".\n\n{sign}")));
        }
        counts
    })
}

/// Returns the counts of general JSON. There are fewer, because strings may contain any text.
fn json_counts() -> &'static SequenceCounts {
    static COUNTS: OnceLock<SequenceCounts> = OnceLock::new();
    COUNTS.get_or_init(|| {
        let mut counts = SequenceCounts::new(1 << 16);
        counts.read(&Units::read(SAMPLE_TEXT, Reading::Content).codes);
        counts.read(&Units::read(SAMPLE_JSON, Reading::Structure).codes);
        counts
    })
}

/// Whether a word is common, ignoring case.
pub(super) fn is_common(word: &str) -> bool {
    static KNOWN: OnceLock<HashSet<&'static str>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| COMMON_WORDS.split_whitespace().collect());
    known.contains(word) || known.contains(word.to_lowercase().as_str())
}

/// Estimates how likely units are to follow each other near a seam.
pub(super) struct SequenceLikelihood {
    own_counts: SequenceCounts,
    general_counts: &'static SequenceCounts,
}

impl SequenceLikelihood {
    /// Reads the text before the seam, and the text after it that does not depend on the candidate.
    pub(super) fn read(before: &[u32], after: &[u32], reading: Reading) -> Self {
        let slots = ((before.len() + after.len()) * MAX_SEQUENCE_UNITS * 2)
            .next_power_of_two()
            .clamp(1 << 10, MAX_TEXT_SLOTS);
        let mut own = SequenceCounts::new(slots);
        own.read(before);
        own.read(after);
        let at_large = if reading == Reading::Plain { text_counts() } else { json_counts() };
        Self { own_counts: own, general_counts: at_large }
    }

    /// Returns how unlikely it is, in bits, that `after` follows `before`.
    pub(super) fn bits(&self, before: &[u32], after: &[u32]) -> f64 {
        let mut text: Vec<u32> = before[before.len().saturating_sub(MAX_SEQUENCE_UNITS)..].to_vec();
        let mut bits = 0.0;
        for code in after {
            bits -= self.share(&text, *code).log2();
            text.push(*code);
        }
        bits
    }

    fn share(&self, text: &[u32], next: u32) -> f64 {
        let mut share = 1.0 / 400.0;
        let mut hash = INITIAL_HASH;
        for length in 0..MAX_SEQUENCE_UNITS.min(text.len() + 1) {
            if length > 0 {
                hash = extend_hash(hash, text[text.len() - length]);
            }
            let pair = combine_hash(hash, next);
            let (own, own_followers, own_these) = self.own_counts.look_up(hash, pair);
            let (others, other_followers, other_these) = self.general_counts.look_up(hash, pair);
            let total = OWN_TEXT_WEIGHT * own + others;
            if total == 0.0 {
                break;
            }
            let these = (OWN_TEXT_WEIGHT * own_these + other_these).min(total);
            // If many different units have followed a context, another new one is likely.
            let open = 0.6 * (OWN_TEXT_WEIGHT * own_followers).max(other_followers) + 0.4;
            share = (these + open * share) / (total + open);
        }
        share
    }
}
