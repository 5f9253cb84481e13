//! Reads what a header states about its dimensions in `coverage` and `gaps`. (AR-1, AR-6)

use std::collections::{BTreeSet, HashSet};

use aho_corasick::AhoCorasick;

use super::checkpoint::parse_list;
use crate::placeholder::means_no_value;
use crate::vocabulary::{contains, fold};
use crate::{AgentResult, OtherField};

/// An entry of a list: `D1=✅`, `csrf: not reached`, `D3 ✗`.
struct CoverageEntry {
    /// The dimension. Empty if the entry is only a reason: `ran out of turns`.
    name: String,
    is_open: bool,
    is_done: bool,
}

impl AgentResult {
    /// Returns the dimensions that the agent declares as not done, in the fields `coverage` and `gaps` of its header.
    pub fn declared_gaps(&self) -> Vec<String> {
        read_gaps(&self.other, &self.dimensions)
    }
}

/// Returns the dimensions in `coverage`, then those that only `gaps` names.
pub(crate) fn read_dimensions(other: &[OtherField]) -> Vec<String> {
    let mut dimensions: Vec<String> = Vec::new();
    let entries = parse_entries(other, "coverage").into_iter().filter(|entry| !entry.name.is_empty());
    dimensions.extend(entries.map(|entry| entry.name));
    let mut gaps = read_gaps(other, &dimensions);
    let covered: HashSet<&String> = dimensions.iter().collect();
    gaps.retain(|gap| !covered.contains(gap));
    dimensions.extend(gaps);
    dimensions
}

/// Returns the dimensions that the agent declares as not done, in `coverage` or in `gaps`. `known` contains all
/// dimensions of the result.
fn read_gaps(other: &[OtherField], known: &[String]) -> Vec<String> {
    let words = |text: &str| format!("_{}_", fold(text));
    let known_words: Vec<String> = known.iter().map(|name| words(name)).collect();
    let named: Vec<usize> = (0..known.len()).filter(|index| known_words[*index].len() > 2).collect();
    // All names are searched for at once, so the cost is linear in the entries. Building the automaton fails only for
    // gigabytes of names.
    let finder = AhoCorasick::new(named.iter().map(|index| &known_words[*index])).ok();
    let coverage = parse_entries(other, "coverage");
    let done: HashSet<String> =
        coverage.iter().filter(|entry| entry.is_done).map(|entry| words(&entry.name)).collect();
    let covered = coverage.into_iter().filter(|entry| entry.is_open);
    let stated = parse_entries(other, "gaps");
    let has_reason = stated.iter().any(|entry| entry.name.is_empty());
    let mut gaps: Vec<String> = Vec::new();
    for entry in covered.chain(stated).filter(|entry| !entry.name.is_empty()) {
        // `the csrf checks were not reached` is about the known dimension `csrf`.
        let text = words(&entry.name);
        let found = finder.iter().flat_map(|finder| finder.find_overlapping_iter(&text));
        let about: BTreeSet<usize> = found.map(|found| named[found.pattern().as_usize()]).collect();
        if about.is_empty() {
            gaps.push(entry.name);
        }
        gaps.extend(about.into_iter().map(|index| known[index].clone()));
    }
    // A reason without a dimension may concern each one that is not declared done. If all are declared done, it may
    // concern any of them.
    if has_reason && gaps.is_empty() {
        let known_words = known.iter().zip(&known_words);
        let not_done = known_words.filter(|(_, words)| !done.contains(*words)).map(|(name, _)| name.clone());
        gaps.extend(not_done);
        if gaps.is_empty() {
            gaps.extend_from_slice(known);
        }
    }
    gaps.dedup();
    gaps
}

fn parse_entries(other: &[OtherField], name: &str) -> Vec<CoverageEntry> {
    let field = other.iter().find(|field| field.name == name);
    let items = field.map(|field| parse_list(&field.value.replace('\n', ","))).unwrap_or_default();
    items
        .iter()
        .filter(|item| !means_no_value(strip_punctuation(item)))
        .map(|item| parse_entry(item, name == "gaps"))
        .collect()
}

/// Splits an entry where its status begins: after `=` or `:`, or at a word or symbol for "not done".
fn parse_entry(item: &str, is_gap: bool) -> CoverageEntry {
    let item = item.trim_start_matches("- ");
    // A dimension's name may begin with such a word, as in `incomplete validation`. A gap may be a reason alone.
    let first = usize::from(!is_gap);
    let words = item.split_whitespace().map(|word| (word.as_ptr() as usize - item.as_ptr() as usize, word));
    let at_word = words.skip(first).find(|(_, word)| means_not_done(word)).map(|(at, _)| at);
    let separator = item.find(['=', ':']);
    let (name, status) = match (at_word, separator) {
        (Some(at), Some(separator)) if at < separator => item.split_at(at),
        (_, Some(separator)) => (&item[..separator], &item[separator + 1..]),
        (Some(at), None) => item.split_at(at),
        (None, None) => (item, ""),
    };
    let is_separator = |ch: char| !ch.is_alphanumeric() && (!ch.is_ascii() || " -(".contains(ch));
    let status = status.split_whitespace().next();
    let is_open = status.is_some_and(means_not_done);
    CoverageEntry {
        name: name.trim_end_matches(is_separator).trim().to_owned(),
        is_open,
        is_done: status.is_some() && !is_open,
    }
}

fn means_not_done(word: &str) -> bool {
    let word = strip_punctuation(word);
    let percent = word.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    contains("not_done", word) || percent.is_some_and(|percent| percent < 100.0)
}

/// Strips brackets, punctuation and the emoji variation selector from a word.
fn strip_punctuation(word: &str) -> &str {
    word.trim_matches(|ch: char| "()[]*_`.;,!\u{fe0f}".contains(ch) || ch.is_whitespace())
}
