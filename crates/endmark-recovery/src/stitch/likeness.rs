//! Estimates how likely units are to follow each other, from the text itself and from texts in general.
//!
//! Counts sequences of up to six units. It counts them once in a list of common words and a few lines of many kinds,
//! and for each seam in the surrounding text. If a long context is unknown, a shorter one is used.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::units::{Reading, Units};

/// The longest counted sequence.
const ORDER: usize = 6;
/// Number of slots for the sequences of general texts, and maximum for one text.
const GENERAL_SLOTS: usize = 1 << 19;
const SLOTS: usize = 1 << 17;
/// Slots that are examined for a sequence.
const PROBES: usize = 8;
/// Weight of the text itself in relation to general texts.
const OWN_TEXT_WEIGHT: f64 = 4.0;

/// Lines of many kinds, and common words of seven languages.
const PRIMER: &str = include_str!("primer.txt");
/// The usual elements of JSON.
const JSON_PRIMER: &str =
    r#"{"a": true, "b": false, "c": null}, {"d": [true, false, null, "e"], "f": {}}, [], "#;
const WORDS: &str = include_str!("words.txt");

/// Counted sequences: how often units followed contexts, and how many different units followed each context. This is
/// a hash table with open addressing, which identifies a sequence by 32 bits of its hash.
struct Counts {
    pairs: Vec<Entry>,
    contexts: Vec<Entry>,
}

/// The counts of one sequence.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    tag: u32,
    count: u16,
    /// How many different units followed. Contexts only.
    followers: u16,
}

impl Counts {
    /// Allocates space for this many different sequences, which must be a power of two.
    fn new(slots: usize) -> Self {
        Self { pairs: vec![Entry::default(); slots], contexts: vec![Entry::default(); slots] }
    }

    fn read(&mut self, text: &[u32]) {
        for end in 0..text.len() {
            self.count(&text[end.saturating_sub(ORDER - 1)..end], text[end]);
        }
    }

    fn count(&mut self, context: &[u32], next: u32) {
        let mut hashes = [START; ORDER];
        for length in 1..=context.len() {
            hashes[length] = extend_hash(hashes[length - 1], context[context.len() - length]);
        }
        // Update from the longest context down to the first known one. Shorter ones count the contexts that a unit
        // follows, and not how often it does.
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

    /// Returns how often any unit followed a context, how many different units did, and how often this unit did.
    fn look_up(&self, context: u64, pair: u64) -> (f64, f64, f64) {
        let all = find_entry(&self.contexts, context);
        if all.count == 0 {
            return (0.0, 0.0, 0.0);
        }
        (f64::from(all.count), f64::from(all.followers), f64::from(find_entry(&self.pairs, pair).count))
    }
}

/// Returns the first slot of the search for a sequence, and its tag, which is never 0.
fn place(slots: usize, hash: u64) -> (usize, u32) {
    let mixed = (hash ^ hash >> 31).wrapping_mul(0x9fb2_1c65_1e98_df25);
    let first = usize::try_from(mixed >> 40).unwrap_or(0) & (slots - 1);
    (first, u32::try_from(mixed & 0xffff_ffff).unwrap_or(0) | 1)
}

/// Returns the entry of a sequence, or a free entry. Returns `None` if the table is full there.
fn entry(table: &mut [Entry], hash: u64) -> Option<&mut Entry> {
    let (first, tag) = place(table.len(), hash);
    let mask = table.len() - 1;
    let index = (first..first + PROBES)
        .map(|at| at & mask)
        .find(|at| table[*at].tag == tag || table[*at].tag == 0)?;
    table[index].tag = tag;
    Some(&mut table[index])
}

fn find_entry(table: &[Entry], hash: u64) -> Entry {
    let (first, tag) = place(table.len(), hash);
    let mask = table.len() - 1;
    (first..first + PROBES)
        .map(|at| table[at & mask])
        .find(|entry| entry.tag == tag || entry.tag == 0)
        .unwrap_or_default()
}

const START: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the hash of a context that is one unit longer.
fn extend_hash(hash: u64, code: u32) -> u64 {
    (hash ^ u64::from(code)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
}

/// Returns the hash of a context and the unit after it.
fn combine_hash(hash: u64, next: u32) -> u64 {
    (hash ^ (u64::from(next) << 32)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(31)
}

/// Returns the counts of general texts.
fn text_counts() -> &'static Counts {
    static COUNTS: OnceLock<Counts> = OnceLock::new();
    COUNTS.get_or_init(|| {
        let mut counts = Counts::new(GENERAL_SLOTS);
        let mut read = |text: &str| counts.read(&Units::read(text, Reading::Plain).codes);
        // Each list begins with the most common words, which count for more.
        for (line, words) in WORDS.lines().enumerate() {
            let times = match line {
                0..=3 => 4,
                4..=12 => 2,
                _ => 1,
            };
            (0..times).for_each(|_| read(&format!(" {words} ")));
        }
        (0..3).for_each(|_| read(PRIMER));
        // A paragraph begins with a capital letter, or with the sign of a heading, list, table or block.
        for word in WORDS.split_whitespace().step_by(3) {
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

/// Returns the counts of general JSON. There are fewer than of general texts, because strings may have any content.
fn json_counts() -> &'static Counts {
    static COUNTS: OnceLock<Counts> = OnceLock::new();
    COUNTS.get_or_init(|| {
        let mut counts = Counts::new(1 << 16);
        counts.read(&Units::read(PRIMER, Reading::Content).codes);
        counts.read(&Units::read(JSON_PRIMER, Reading::Structure).codes);
        counts
    })
}

/// Whether a word is a common one, in any letter case.
pub(super) fn is_common(word: &str) -> bool {
    static KNOWN: OnceLock<HashSet<&'static str>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| WORDS.split_whitespace().collect());
    known.contains(word) || known.contains(word.to_lowercase().as_str())
}

/// How likely units are to follow each other near a seam.
pub(super) struct Likeness {
    own_counts: Counts,
    at_large: &'static Counts,
}

impl Likeness {
    /// Reads the text before the seam, and the text after it that is certain.
    pub(super) fn read(before: &[u32], after: &[u32], reading: Reading) -> Self {
        let slots = ((before.len() + after.len()) * ORDER * 2).next_power_of_two().clamp(1 << 10, SLOTS);
        let mut own = Counts::new(slots);
        own.read(before);
        own.read(after);
        let at_large = if reading == Reading::Plain { text_counts() } else { json_counts() };
        Self { own_counts: own, at_large }
    }

    /// Returns how unlikely it is, in bits, that `after` follows `before`.
    pub(super) fn bits(&self, before: &[u32], after: &[u32]) -> f64 {
        let mut text: Vec<u32> = before[before.len().saturating_sub(ORDER)..].to_vec();
        let mut bits = 0.0;
        for code in after {
            bits -= self.share(&text, *code).log2();
            text.push(*code);
        }
        bits
    }

    fn share(&self, text: &[u32], next: u32) -> f64 {
        let mut share = 1.0 / 400.0;
        let mut hash = START;
        for length in 0..ORDER.min(text.len() + 1) {
            if length > 0 {
                hash = extend_hash(hash, text[text.len() - length]);
            }
            let pair = combine_hash(hash, next);
            let (own, own_followers, own_these) = self.own_counts.look_up(hash, pair);
            let (others, other_followers, other_these) = self.at_large.look_up(hash, pair);
            let total = OWN_TEXT_WEIGHT * own + others;
            if total == 0.0 {
                break;
            }
            let these = (OWN_TEXT_WEIGHT * own_these + other_these).min(total);
            // A context that many different units have followed is likely to be followed by a new one.
            let open = 0.6 * (OWN_TEXT_WEIGHT * own_followers).max(other_followers) + 0.4;
            share = (these + open * share) / (total + open);
        }
        share
    }
}
