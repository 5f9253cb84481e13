//! The ledger of a summary (CX-4): merged anchors within a token limit, each with evidence of its usefulness.
//!
//! The next compaction starts from the ledger of the last summary, so a summary is never summarised again.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::anchors::{Anchor, AnchorKind, AnchorSource, WordShape, is_unpronounceable, word_shape};
use super::policy::TokenCounter;
use super::relevance::Relevance;

/// Words with which users restrict what the agent may do.
const CONSTRAINT_WORDS: [&str; 12] = [
    "must", "never", "only", "don't", "do not", "always", "not ", "without", "at least", "at most", "no ",
    "should",
];

/// Last words of field names that contain ids.
const ID_NAMES: [&str; 10] = ["id", "ids", "number", "code", "key", "ref", "uuid", "hash", "sha", "token"];

/// Maximum share of the ledger for lines of the user, in tenths.
const USER_LINES_TENTHS: u64 = 3;

/// If more than this many unreferenced values have the same name, each of them is worth less. They are
/// usually timestamps or trace ids of a log.
const BULK_VALUE_COUNT: u64 = 64;

/// A date has at least this many bytes. A time of day is shorter.
const MIN_DATE_BYTES: usize = 10;

/// 80 % of an anchor's worth is halved in this number of turns without a mention. The other 20 % stay.
const HALF_LIFE_TURNS: f64 = 24.0;

/// The merged anchors of several turns.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger<'l> {
    entries: Vec<LedgerEntry<'l>>,
    by_value: HashMap<(EntryGroup, Cow<'l, str>), usize, RandomState>,
    /// Approximate number of tokens of all entries.
    tokens: u64,
    /// A ledger of all turns. Its token counts are reused.
    token_source: Option<&'l Ledger<'l>>,
}

/// An anchor with evidence of its usefulness.
#[derive(Debug, Clone)]
pub(super) struct LedgerEntry<'l> {
    pub(super) kind: AnchorKind,
    pub(super) key: Cow<'l, str>,
    pub(super) value: Cow<'l, str>,
    /// The newest turn that contains the anchor.
    last: usize,
    in_arguments: u32,
    in_results: u32,
    by_assistant: u32,
    by_user: bool,
    was_kept: bool,
    /// Number of tokens of the entry without its key.
    tokens: u64,
    is_removed: bool,
}

/// Entries with the same text are merged if they belong to the same group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum EntryGroup {
    Value,
    Line(AnchorKind),
}

fn group(kind: AnchorKind) -> EntryGroup {
    match kind {
        AnchorKind::Identifier | AnchorKind::Number | AnchorKind::File | AnchorKind::Url => EntryGroup::Value,
        line => EntryGroup::Line(line),
    }
}

impl<'l> Ledger<'l> {
    /// Returns an empty ledger that reuses the token counts of another ledger.
    pub(super) fn with_counts_of(other: &'l Ledger<'l>) -> Self {
        Self {
            entries: Vec::with_capacity(other.entries.len()),
            by_value: HashMap::with_capacity_and_hasher(other.entries.len(), RandomState::default()),
            tokens: 0,
            token_source: Some(other),
        }
    }

    /// Merges the anchors of a turn into the ledger.
    pub(super) fn absorb(&mut self, anchors: &'l [Anchor<'_>], turn: usize, count: TokenCounter) {
        let plans = anchors.iter().any(is_plan_step);
        if plans {
            // A new plan replaces the previous plan completely.
            for entry in self.entries.iter_mut().filter(|entry| entry.kind == AnchorKind::Todo) {
                entry.is_removed = true;
            }
        }
        for anchor in anchors {
            self.add(anchor, turn, count);
        }
    }

    fn add(&mut self, anchor: &'l Anchor<'_>, turn: usize, count: TokenCounter) {
        let text: &str = if anchor.kind == AnchorKind::Command { &anchor.key } else { &anchor.value };
        let text = normalise(Cow::Borrowed(text));
        let name = (group(anchor.kind), text);
        let position = self.by_value.get(&name).copied().unwrap_or_else(|| {
            let (key, value) = match anchor.kind {
                AnchorKind::Command => (name.1.clone(), Cow::Borrowed(anchor.value.as_ref())),
                _ => (Cow::Borrowed(anchor.key.as_ref()), name.1.clone()),
            };
            let counted = self.token_source.and_then(|other| other.entries.get(*other.by_value.get(&name)?));
            let tokens = counted.map_or_else(|| count(&name.1) + 1, |entry| entry.tokens);
            self.tokens += tokens;
            let entry = LedgerEntry {
                kind: anchor.kind,
                key,
                value,
                last: turn,
                in_arguments: 0,
                in_results: 0,
                by_assistant: 0,
                by_user: false,
                was_kept: false,
                tokens,
                is_removed: false,
            };
            self.by_value.insert(name, self.entries.len());
            self.entries.push(entry);
            self.entries.len() - 1
        });
        let entry = &mut self.entries[position];
        (entry.last, entry.is_removed) = (entry.last.max(turn), false);
        match anchor.kind {
            AnchorKind::Command => entry.value = Cow::Borrowed(&anchor.value),
            _ if entry.key.is_empty() => entry.key = Cow::Borrowed(&anchor.key),
            _ => {}
        }
        match anchor.place {
            AnchorSource::User => entry.by_user = true,
            AnchorSource::Assistant => entry.by_assistant += 1,
            AnchorSource::Argument => entry.in_arguments += 1,
            AnchorSource::Result => entry.in_results += 1,
            AnchorSource::Ledger => entry.was_kept = true,
        }
    }

    /// Returns the approximate number of tokens of all entries.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Removes values that the kept turns already show.
    pub(super) fn remove_visible(&mut self, visible: &HashSet<String>) {
        for entry in self.entries.iter_mut().filter(|entry| group(entry.kind) == EntryGroup::Value) {
            if !entry.is_removed && visible.contains(entry.value.as_ref()) {
                entry.is_removed = true;
                self.tokens = self.tokens.saturating_sub(entry.tokens);
            }
        }
    }

    /// Returns the entries that were not removed.
    pub(super) fn entries(&self) -> impl Iterator<Item = &LedgerEntry<'l>> {
        self.entries.iter().filter(|entry| !entry.is_removed)
    }

    /// Returns the most useful entries per token that fit into this room, in their original order.
    pub(super) fn most_valuable(
        &self,
        room: LedgerLimits<'_>,
        relevance: &Relevance,
        count: TokenCounter,
    ) -> Vec<&LedgerEntry<'l>> {
        let mut of_key: HashMap<(&str, AnchorKind), u64, RandomState> = HashMap::default();
        let mut key_factors: HashMap<&str, f64, RandomState> = HashMap::default();
        for entry in self.entries().filter(|entry| entry.is_unreferenced()) {
            *of_key.entry((entry.key.as_ref(), entry.kind)).or_default() += 1;
        }
        let bulk_factor = |entry: &LedgerEntry<'_>| {
            let same_name_count =
                of_key.get(&(entry.key.as_ref(), entry.kind)).filter(|_| entry.is_unreferenced());
            as_float(same_name_count.copied().unwrap_or_default().max(BULK_VALUE_COUNT))
                / as_float(BULK_VALUE_COUNT)
        };
        let mut worth: Vec<(f64, usize)> = Vec::new();
        for (position, entry) in self.entries.iter().enumerate().filter(|(_, entry)| !entry.is_removed) {
            let cost = as_float(entry.tokens + 1).sqrt() * bulk_factor(entry);
            let factor = key_factors.entry(&entry.key).or_insert_with(|| key_factor(&entry.key, relevance));
            worth.push((entry.worth(*factor, relevance.turns) / cost, position));
        }
        worth.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut keys: HashSet<&str, RandomState> = HashSet::default();
        let mut sections: HashSet<AnchorKind> = HashSet::new();
        let (mut left, mut left_for_user_lines) = (room.total, room.total * USER_LINES_TENTHS / 10);
        let mut left_for_values = room.values;
        let mut chosen = Vec::new();
        for (_, position) in worth {
            let entry = &self.entries[position];
            let is_free = entry.is_in_narrative(room.narrative);
            let is_user_line = entry.kind == AnchorKind::UserLine;
            let is_value = group(entry.kind) == EntryGroup::Value || entry.kind == AnchorKind::Error;
            let fits = |cost: u64| {
                cost <= left
                    && !(is_user_line && cost > left_for_user_lines)
                    && !(is_value && cost > left_for_values)
            };
            // If the entry alone does not fit, the tokens of its label need not be counted.
            if !is_free && !fits(entry.tokens) {
                continue;
            }
            let label = match group(entry.kind) {
                EntryGroup::Value if keys.contains(entry.key.as_ref()) => 0,
                EntryGroup::Value => count(&entry.key) + 2,
                EntryGroup::Line(kind) if sections.contains(&kind) => 2,
                EntryGroup::Line(AnchorKind::Command) => 8 + count(&entry.value),
                EntryGroup::Line(_) => 6,
            };
            let cost = if is_free { 0 } else { entry.tokens + label };
            if !fits(cost) {
                continue;
            }
            left -= cost;
            left_for_user_lines -= if is_user_line { cost } else { 0 };
            left_for_values -= if is_value { cost } else { 0 };
            match group(entry.kind) {
                // A value that costs nothing is in the narrative, which does not contain its key.
                EntryGroup::Value => cost > 0 && keys.insert(entry.key.as_ref()),
                EntryGroup::Line(kind) => sections.insert(kind),
            };
            chosen.push(position);
        }
        chosen.sort_unstable();
        chosen.into_iter().map(|position| &self.entries[position]).collect()
    }
}

/// Returns the factor by which the name of a value increases the value's worth.
fn key_factor(key: &str, relevance: &Relevance) -> f64 {
    let last = key.rsplit(['_', '-', ' ', '.']).next().unwrap_or_default();
    let is_id = ID_NAMES.iter().any(|name| last.eq_ignore_ascii_case(name)) || key.ends_with("Id");
    let asked_for = if relevance.is_argument(key) { 2.0 } else { 1.0 };
    let id = if is_id { 1.5 } else { 1.0 };
    let topic = if relevance.is_topic(key) { 1.5 } else { 1.0 };
    asked_for * id * topic
}

/// Replaces double quotation marks, because a summary encloses values in them.
pub(super) fn normalise(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('"') { Cow::Owned(text.replace('"', "'")) } else { text }
}

fn is_plan_step(anchor: &Anchor<'_>) -> bool {
    anchor.kind == AnchorKind::Todo && anchor.place == AnchorSource::Argument
}

#[expect(clippy::cast_precision_loss, reason = "numbers of tokens and turns, far below what a float holds")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// Anchors that the narrative of a summary already contains.
pub(super) type NarrativeAnchors<'t> = HashSet<(AnchorKind, Cow<'t, str>), RandomState>;

/// The token limits of a ledger.
#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerLimits<'r> {
    /// Limit for all entries together.
    pub(super) total: u64,
    /// Limit for values and errors.
    pub(super) values: u64,
    /// Anchors that the narrative contains. They cost no tokens in the ledger.
    pub(super) narrative: &'r NarrativeAnchors<'r>,
}

impl LedgerEntry<'_> {
    /// Whether the narrative contains the entry.
    pub(super) fn is_in_narrative(&self, narrated: &NarrativeAnchors<'_>) -> bool {
        let entry_text = if self.kind == AnchorKind::Command { &self.key } else { &self.value };
        narrated.contains(&(self.kind, Cow::Borrowed(entry_text.as_ref())))
    }

    /// Whether the value occurs only in results, so that nothing refers to it.
    fn is_unreferenced(&self) -> bool {
        self.in_arguments == 0
            && self.by_assistant == 0
            && !self.by_user
            && group(self.kind) == EntryGroup::Value
    }

    /// Returns the estimated worth of the entry after this number of turns. It has no unit.
    fn worth(&self, key_factor: f64, turns: usize) -> f64 {
        let is_constraint = self.kind == AnchorKind::UserLine && self.is_constraint();
        let base = match self.kind {
            AnchorKind::UserLine if is_constraint => 40.0,
            AnchorKind::UserLine | AnchorKind::Url => 12.0,
            AnchorKind::Todo => 60.0,
            AnchorKind::Decision => 30.0,
            AnchorKind::Error => 25.0,
            AnchorKind::Command if self.in_arguments > 0 => 20.0,
            AnchorKind::Command => 4.0,
            AnchorKind::File => 14.0,
            AnchorKind::Identifier => match word_shape(&self.value) {
                // A word with separators but without a digit is usually one of a few fixed values, such as
                // `in_progress`.
                WordShape::Identifier
                    if self.value.bytes().any(|byte| byte.is_ascii_digit() || byte == b'@') =>
                {
                    16.0
                }
                WordShape::Identifier if self.value.bytes().all(|byte| byte.is_ascii_uppercase()) => 16.0,
                // The same time of day occurs in many contexts, but the same date in few.
                WordShape::Date if self.value.len() < MIN_DATE_BYTES => 3.0,
                WordShape::Date => 16.0,
                WordShape::Word if is_unpronounceable(&self.value, 4) => 16.0,
                _ => 8.0,
            },
            AnchorKind::Number | AnchorKind::Conclusion | AnchorKind::GroupedCall => 2.0,
        };
        let factor = key_factor
            * if self.by_user { 2.0 } else { 1.0 }
            * if self.was_kept { 1.5 } else { 1.0 }
            * (1.0 + 0.5 * f64::from(self.in_arguments.min(4)))
            * (1.0 + 0.3 * f64::from(self.by_assistant.min(4)))
            * (1.0 + 0.1 * f64::from(self.in_results.min(4)));
        let age = as_float(turns.saturating_sub(self.last) as u64);
        // A constraint applies until the user withdraws it, even if it is not mentioned again (CX-3).
        let fade = if is_constraint { 1.0 } else { 0.2 + 0.8 * (-age / HALF_LIFE_TURNS).exp2() };
        base * factor * fade
    }

    fn is_constraint(&self) -> bool {
        let line = self.value.to_lowercase();
        CONSTRAINT_WORDS.iter().any(|word| line.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor<'a>(kind: AnchorKind, key: &'a str, value: &'a str, place: AnchorSource) -> Anchor<'a> {
        Anchor { kind, key: key.into(), value: value.into(), place }
    }

    fn count(text: &str) -> u64 {
        text.len() as u64 / 3 + 1
    }

    fn absorb_all<'a>(turns: &'a [impl AsRef<[Anchor<'a>]>]) -> Ledger<'a> {
        let mut ledger = Ledger::default();
        for (turn, anchors) in turns.iter().enumerate() {
            ledger.absorb(anchors.as_ref(), turn, count);
        }
        ledger
    }

    fn kept_lines(ledger: &Ledger<'_>, room: u64) -> Vec<String> {
        let relevance = Relevance::default();
        ledger
            .most_valuable(ledger_limits(room), &relevance, count)
            .iter()
            .map(|entry| entry.value.to_string())
            .collect()
    }

    fn ledger_limits(all: u64) -> LedgerLimits<'static> {
        static NOTHING: std::sync::LazyLock<NarrativeAnchors<'static>> =
            std::sync::LazyLock::new(HashSet::default);
        LedgerLimits { total: all, values: all, narrative: &NOTHING }
    }

    #[test]
    fn calls_and_values_are_merged_and_the_newest_outcome_wins() {
        let call = |end| anchor(AnchorKind::Command, "run(make)", end, AnchorSource::Argument);
        let value = |key| anchor(AnchorKind::Identifier, key, "a-1", AnchorSource::Result);
        let turns = [[call("exit 2"), value("")], [call("exit 0"), value("order")]];
        let ledger = absorb_all(&turns);
        let entries: Vec<(&str, &str)> =
            ledger.entries().map(|entry| (entry.key.as_ref(), entry.value.as_ref())).collect();
        assert_eq!(entries, [("run(make)", "exit 0"), ("order", "a-1")]);
    }

    #[test]
    fn a_new_plan_replaces_the_previous_one() {
        let step = |text| anchor(AnchorKind::Todo, "", text, AnchorSource::Argument);
        let turns = [vec![step("one"), step("two")], vec![step("two")]];
        assert_eq!(kept_lines(&absorb_all(&turns), 100), ["two"]);
    }

    #[test]
    fn values_used_in_calls_are_kept_longer_than_other_values() {
        let numbers: Vec<String> = (0..50).map(|number| format!("{number}00")).collect();
        let seen = |number| anchor(AnchorKind::Number, "count", number, AnchorSource::Result);
        let argument = anchor(AnchorKind::Identifier, "order", "zx-9931", AnchorSource::Argument);
        let turns = [numbers.iter().map(|number| seen(number)).collect(), vec![argument]];
        let kept = kept_lines(&absorb_all(&turns), 12);
        assert!(kept.contains(&"zx-9931".to_owned()) && kept.len() < 5, "{kept:?}");
    }

    #[test]
    fn a_constraint_is_kept_longer_than_later_requests() {
        let wishes: Vec<String> = (0..80).map(|number| format!("Go on with order {number}.")).collect();
        let entry_text = |line| [anchor(AnchorKind::UserLine, "", line, AnchorSource::User)];
        let demand = "Send all of them only from the dock.";
        let lines = [demand].into_iter().chain(wishes.iter().map(String::as_str));
        let turns: Vec<_> = lines.map(entry_text).collect();
        let ledger = absorb_all(&turns);
        let mut relevance = Relevance::default();
        relevance.turns = turns.len();
        let kept = ledger.most_valuable(ledger_limits(200), &relevance, count);
        assert_eq!(kept.first().map(|entry| entry.value.as_ref()), Some(demand));
    }

    #[test]
    fn values_that_kept_turns_show_are_not_repeated() {
        let turns = [[anchor(AnchorKind::File, "", "src/a.rs", AnchorSource::Argument)]];
        let mut ledger = absorb_all(&turns);
        ledger.remove_visible(&HashSet::from(["src/a.rs".to_owned()]));
        assert_eq!((kept_lines(&ledger, 100).len(), ledger.tokens()), (0, 0));
    }
}
