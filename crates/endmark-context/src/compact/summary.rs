//! Writes the message that replaces condensed turns, and parses it when the conversation is compacted again
//! (CX-4).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use super::anchors::{Anchor, AnchorKind, AnchorSource, WordShape, add_exact_values, word_shape};
use super::groups::{CallGroups, OmittedStepsLine};
use super::ledger::{Ledger, LedgerEntry, LedgerLimits, NarrativeAnchors, normalise};
use super::narrative;
use super::policy::TokenCounter;
use super::relevance::Relevance;

const SUMMARY_PREFIX: &str = "[Endmark: ";
const MESSAGES_LABEL: &str = " earlier messages (";
const TOKENS_LABEL: &str = " tokens) in short; the first task may be finished]";
const NARRATIVE_HEADING: &str = "What happened:";
const VALUES_HEADING: &str = "Values:";
/// Key of values without a name.
const UNNAMED_KEY: &str = "(others)";

/// The sections of a summary with their headings, in the order in which they are written.
const SECTIONS: [(AnchorKind, &str); 5] = [
    (AnchorKind::UserLine, "The user said:"),
    (AnchorKind::Todo, "Still to do:"),
    (AnchorKind::Decision, "Decided:"),
    (AnchorKind::Error, "Errors:"),
    (AnchorKind::Command, "Calls:"),
];
const ITEM_PREFIX: &str = "- ";
const ARROW: &str = " → ";

/// The contents of a parsed summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ParsedSummary {
    /// Number of messages that it replaces.
    pub(super) messages: u64,
    /// Number of tokens that it replaces.
    pub(super) tokens: u64,
    /// The lines of the narrative.
    pub(super) lines: Vec<String>,
    /// The calls that have no line of their own.
    pub(super) earlier_calls: CallGroups,
    /// The anchors of all sections.
    pub(super) anchors: Vec<Anchor<'static>>,
}

/// Parses a summary that Endmark wrote. Returns `None` for any other text.
pub(super) fn read(text: &str) -> Option<ParsedSummary> {
    let (head, body) = text.split_once('\n').unwrap_or((text, ""));
    let (messages, rest) = head.strip_prefix(SUMMARY_PREFIX)?.split_once(MESSAGES_LABEL)?;
    let tokens = rest.strip_suffix(TOKENS_LABEL)?;
    let mut summary = ParsedSummary {
        messages: messages.parse().ok()?,
        tokens: tokens.parse().ok()?,
        ..ParsedSummary::default()
    };
    let mut section = "";
    for line in body.lines() {
        let is_title = [NARRATIVE_HEADING, VALUES_HEADING].contains(&line)
            || SECTIONS.iter().any(|(_, title)| *title == line);
        if is_title {
            section = line;
        } else if section == NARRATIVE_HEADING {
            if let Some(groups) = CallGroups::read(line) {
                summary.earlier_calls.merge(&groups);
            } else {
                summary
                    .anchors
                    .extend(narrative::parse_anchor(line).into_iter().flat_map(|it| with_values(&it)));
                summary.lines.push(line.to_owned());
            }
        } else if section == VALUES_HEADING {
            summary.anchors.extend(parse_values(line));
        } else if let Some((kind, _)) = SECTIONS.iter().find(|(_, title)| *title == section) {
            summary.anchors.extend(parse_item(*kind, line).into_iter().flat_map(|it| with_values(&it)));
        }
    }
    Some(summary)
}

fn parse_item(kind: AnchorKind, line: &str) -> Option<Anchor<'static>> {
    let line = line.strip_prefix(ITEM_PREFIX)?;
    let (key, value) = match kind {
        AnchorKind::Command => line.split_once(ARROW)?,
        _ => ("", line),
    };
    Some(Anchor { kind, key: key.into(), value: value.into(), place: AnchorSource::Ledger }.into_owned())
}

/// Returns an anchor. For a call, also returns the values in it, because a summary does not repeat them
/// elsewhere.
fn with_values(anchor: &Anchor<'_>) -> Vec<Anchor<'static>> {
    let mut anchors = vec![anchor.clone()];
    if anchor.kind == AnchorKind::Command {
        add_exact_values(&anchor.key, AnchorSource::Ledger, &mut anchors);
    }
    anchors.into_iter().map(Anchor::into_owned).collect()
}

fn parse_values(line: &str) -> Vec<Anchor<'static>> {
    let Some((key, values)) = line.split_once(": ") else { return Vec::new() };
    let key = if key == UNNAMED_KEY { "" } else { key };
    let anchor = |value: &str| {
        let kind = match word_shape(value) {
            WordShape::Url => AnchorKind::Url,
            WordShape::File => AnchorKind::File,
            WordShape::Number => AnchorKind::Number,
            WordShape::Identifier | WordShape::Date | WordShape::Word => AnchorKind::Identifier,
        };
        Anchor { kind, key: key.into(), value: value.into(), place: AnchorSource::Ledger }.into_owned()
    };
    // Every second piece is a value in quotation marks.
    let pieces = values.split('"').enumerate();
    let values = pieces.flat_map(|(number, piece)| match number % 2 {
        0 => piece.split_whitespace().collect::<Vec<_>>(),
        _ => vec![piece],
    });
    values.map(anchor).collect()
}

/// Returns a value as a summary writes it: in quotation marks if it contains white space.
fn format_value(entry: &LedgerEntry<'_>) -> String {
    if entry.value.contains(char::is_whitespace) {
        format!("\"{}\"", entry.value)
    } else {
        entry.value.to_string()
    }
}

/// A summary before it is fitted into its room.
#[derive(Debug)]
pub(super) struct SummaryDraft<'d> {
    pub(super) messages: u64,
    pub(super) tokens: u64,
    pub(super) lines: &'d [String],
    /// The calls that earlier summaries have already grouped.
    pub(super) earlier_calls: CallGroups,
    pub(super) ledger: &'d Ledger<'d>,
    pub(super) relevance: &'d Relevance,
    /// Maximum tokens for values. Values also get at most a quarter of the room, and the narrative comes
    /// first. If this is `None`, values come first.
    pub(super) most_value_tokens: Option<u64>,
}

/// A summary that was written within its room.
#[derive(Debug, Clone, Default)]
pub(super) struct WrittenSummary {
    pub(super) text: String,
    pub(super) tokens: u64,
    /// Number of anchors in the summary, by kind.
    pub(super) kept_anchors: BTreeMap<AnchorKind, u64>,
    /// Number of calls without a line of their own.
    pub(super) calls_left_out: u64,
}

/// If the narrative comes first, values get at most the room divided by this number.
const VALUES_DIVISOR: u64 = 4;

/// A narrative that needs at most the room divided by this number is kept completely, regardless of the
/// number of values.
const NARRATIVE_DIVISOR: u64 = 4;

/// The line that replaces omitted steps gets at most the narrative's room divided by this number.
const GROUPS_DIVISOR: u64 = 4;

/// The room is reduced at most this many times. This is needed because token counts of parts do not add up to
/// the count of the whole.
const ROOM_CORRECTIONS: usize = 4;

impl SummaryDraft<'_> {
    /// Writes the summary in at most `room` tokens. First, the oldest lines of the narrative are omitted,
    /// then entries of the ledger.
    pub(super) fn write(&self, room: u64, count: TokenCounter) -> WrittenSummary {
        let mut aim = room;
        let mut written = WrittenSummary::default();
        for _ in 0..ROOM_CORRECTIONS {
            written = self.write_once(aim, count);
            if written.tokens <= room {
                break;
            }
            aim = aim.saturating_sub(written.tokens - room + 1);
        }
        written
    }

    fn write_once(&self, room: u64, count: TokenCounter) -> WrittenSummary {
        let head = format!("{SUMMARY_PREFIX}{}{MESSAGES_LABEL}{}{TOKENS_LABEL}", self.messages, self.tokens);
        let room = room.saturating_sub(count(&head));
        let wanted = self.ledger.tokens() * 5 / 4;
        let for_values = self.most_value_tokens.map_or(room, |most| most.min(room / VALUES_DIVISOR));
        let mut left: u64 = room.saturating_sub(wanted.min(for_values));
        // Stop counting as soon as the narrative is certainly too long.
        let narrative_tokens = self.lines.iter().try_fold(0, |story, line| {
            Some(story + count(line) + 1).filter(|story| *story <= room / NARRATIVE_DIVISOR)
        });
        if let Some(story) = narrative_tokens {
            left = left.max(story);
        }
        let mut lines = self.newest_lines(left, count);
        let for_groups = left / GROUPS_DIVISOR;
        // The omitted lines add calls to the groups, so the groups become slightly longer.
        let for_groups = for_groups.min(self.omitted_calls(lines, &[], for_groups, count).1.tokens * 5 / 4);
        if for_groups > 0 {
            lines = self.newest_lines(left - for_groups, count);
        }
        let narrative_room = for_groups + lines.iter().map(|line| count(line) + 1).sum::<u64>();
        let in_narrative = narrative_anchors(lines);
        let room = LedgerLimits {
            total: room.saturating_sub(narrative_room),
            values: for_values,
            narrative: &in_narrative,
        };
        let entries = self.ledger.most_valuable(room, self.relevance, count);
        let mut kept: BTreeMap<AnchorKind, u64> = BTreeMap::new();
        for entry in &entries {
            *kept.entry(entry.kind).or_default() += 1;
        }
        let conclusions = lines.iter().filter(|line| narrative::is_conclusion(line)).count();
        kept.insert(AnchorKind::Conclusion, conclusions as u64);
        let (calls_left_out, left_out) = self.omitted_calls(lines, &entries, for_groups, count);
        kept.insert(AnchorKind::GroupedCall, left_out.calls);
        let mut text = head;
        if !lines.is_empty() || left_out.calls > 0 {
            let _ = write!(text, "\n{NARRATIVE_HEADING}");
            for line in Some(&left_out.text).filter(|text| !text.is_empty()).into_iter().chain(lines) {
                let _ = write!(text, "\n{line}");
            }
        }
        write_entries(&mut text, &entries, &in_narrative);
        WrittenSummary { tokens: count(&text), text, kept_anchors: kept, calls_left_out }
    }

    /// Returns as many of the newest lines as fit into `room` tokens.
    fn newest_lines(&self, room: u64, count: TokenCounter) -> &[String] {
        let mut left = room;
        let fits = |line: &&String| {
            let cost = count(line) + 1;
            left.checked_sub(cost).is_some_and(|rest| {
                left = rest;
                true
            })
        };
        let fitting = self.lines.iter().rev().take_while(fits).count();
        &self.lines[self.lines.len() - fitting..]
    }

    /// Returns the number of calls that these lines and entries do not contain, and the line with their
    /// groups. The line is empty if nothing is omitted.
    fn omitted_calls(
        &self,
        lines: &[String],
        entries: &[&LedgerEntry<'_>],
        room: u64,
        count: TokenCounter,
    ) -> (u64, OmittedStepsLine) {
        let without = &self.lines[..self.lines.len() - lines.len()];
        if without.is_empty() && self.earlier_calls == CallGroups::default() {
            return (0, OmittedStepsLine::default());
        }
        let written = entries.iter().filter(|entry| entry.kind == AnchorKind::Command);
        let written: HashSet<&str> = written.map(|entry| entry.key.as_ref()).collect();
        let mut groups = self.earlier_calls.clone();
        for (call, outcome, times) in without.iter().filter_map(|line| narrative::parse_call(line)) {
            if !written.contains(normalise(call.into()).as_ref()) {
                groups.add_call(call, outcome, times);
            }
        }
        (groups.calls(), groups.omitted_steps_line(room, count))
    }
}

/// Returns the anchors in these lines, including the values in their calls.
fn narrative_anchors(lines: &[String]) -> NarrativeAnchors<'static> {
    let anchors = lines.iter().filter_map(|line| narrative::parse_anchor(line));
    anchors.flat_map(|anchor| with_values(&anchor)).map(narrative_key).collect()
}

fn narrative_key(anchor: Anchor<'_>) -> (AnchorKind, Cow<'_, str>) {
    (anchor.kind, normalise(if anchor.kind == AnchorKind::Command { anchor.key } else { anchor.value }))
}

fn write_entries(text: &mut String, entries: &[&LedgerEntry<'_>], in_narrative: &NarrativeAnchors<'_>) {
    for (kind, title) in SECTIONS {
        let is_new = |entry: &&&LedgerEntry<'_>| entry.kind == kind && !entry.is_in_narrative(in_narrative);
        let mut of_kind = entries.iter().filter(is_new).peekable();
        if of_kind.peek().is_some() {
            let _ = write!(text, "\n{title}");
        }
        for entry in of_kind {
            let _ = match kind {
                AnchorKind::Command => write!(text, "\n{ITEM_PREFIX}{}{ARROW}{}", entry.key, entry.value),
                _ => write!(text, "\n{ITEM_PREFIX}{}", entry.value),
            };
        }
    }
    let calls = entries.iter().filter(|entry| entry.kind == AnchorKind::Command);
    let mut in_calls = Vec::new();
    calls.for_each(|call| add_exact_values(&call.key, AnchorSource::Ledger, &mut in_calls));
    let in_calls: NarrativeAnchors<'_> = in_calls.into_iter().map(narrative_key).collect();
    let is_new =
        |entry: &&LedgerEntry<'_>| !entry.is_in_narrative(in_narrative) && !entry.is_in_narrative(&in_calls);
    let lines = value_lines(entries.iter().copied().filter(is_new));
    if !lines.is_empty() {
        let _ = write!(text, "\n{VALUES_HEADING}\n{lines}");
    }
}

/// Returns the values in one line per key. The keys have the order of their first entries.
pub(super) fn value_lines<'e>(entries: impl Iterator<Item = &'e LedgerEntry<'e>>) -> String {
    let mut order: Vec<&str> = Vec::new();
    let mut by_key: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in entries.filter(|entry| SECTIONS.iter().all(|(kind, _)| *kind != entry.kind)) {
        let values = by_key.entry(&entry.key).or_default();
        if values.is_empty() {
            order.push(&entry.key);
        }
        values.push(format_value(entry));
    }
    // Write values without a name last.
    order.sort_by_key(|key| key.is_empty());
    let lines = order.into_iter().filter_map(|key| {
        let name = if key.is_empty() { UNNAMED_KEY } else { key };
        Some(format!("{name}: {}", by_key.get(key)?.join(" ")))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor<'a>(kind: AnchorKind, key: &'a str, value: &'a str) -> Anchor<'a> {
        Anchor { kind, key: key.into(), value: value.into(), place: AnchorSource::Ledger }
    }

    #[test]
    fn a_summary_round_trips() {
        let anchors = [
            anchor(AnchorKind::UserLine, "", "never touch ZX-1"),
            anchor(AnchorKind::Todo, "", "write the docs"),
            anchor(AnchorKind::Error, "", "error: no header"),
            anchor(AnchorKind::Command, "run(make)", "exit 2"),
            anchor(AnchorKind::Identifier, "order", "ord_1b1"),
            anchor(AnchorKind::Identifier, "order", "two words"),
            anchor(AnchorKind::File, "", "src/a.rs"),
            anchor(AnchorKind::Number, "total", "833"),
        ];
        let count = |text: &str| text.len() as u64 / 4;
        let mut ledger = Ledger::default();
        ledger.absorb(&anchors, 0, count);
        let lines = vec!["The assistant thought: well".to_owned()];
        let draft = SummaryDraft {
            messages: 7,
            tokens: 900,
            lines: &lines,
            earlier_calls: CallGroups::default(),
            ledger: &ledger,
            relevance: &Relevance::default(),
            most_value_tokens: None,
        };
        let written = draft.write(1_000, count);
        let summary = read(&written.text).unwrap();
        assert_eq!((summary.messages, summary.tokens, &summary.lines), (7, 900, &lines));
        for anchor in &anchors {
            assert!(summary.anchors.contains(anchor), "{anchor:?} in {}", written.text);
        }
        assert_eq!(summary.anchors.len(), anchors.len());
        assert!(draft.write(60, count).tokens <= 60);
    }

    /// A value in a kept call is written only there. It becomes an anchor again when the summary is parsed.
    #[test]
    fn values_of_kept_calls_are_written_once() {
        let anchors = [
            anchor(AnchorKind::Command, "run(make src/a.rs ord-17)", "exit 2"),
            anchor(AnchorKind::File, "", "src/a.rs"),
            anchor(AnchorKind::Identifier, "order", "ord-18"),
            anchor(AnchorKind::Identifier, "order", "ord-17"),
        ];
        let count = |text: &str| text.len() as u64 / 4;
        let mut ledger = Ledger::default();
        ledger.absorb(&anchors, 0, count);
        let narrated = ["The assistant called run(make src/a.rs ord-17) → exit 2".to_owned()];
        for lines in [&narrated[..], &[]] {
            let relevance = Relevance::default();
            let draft = SummaryDraft {
                messages: 7,
                tokens: 900,
                lines,
                earlier_calls: CallGroups::default(),
                ledger: &ledger,
                relevance: &relevance,
                most_value_tokens: None,
            };
            let text = draft.write(1_000, count).text;
            assert!(text.matches("src/a.rs").count() == 1 && text.ends_with("order: ord-18"), "{text}");
            let anchors = read(&text).unwrap().anchors;
            for value in ["src/a.rs", "ord-17", "ord-18"] {
                assert!(anchors.iter().any(|anchor| anchor.value == value), "{value}: {anchors:?}");
            }
        }
    }

    #[test]
    fn other_text_is_not_a_summary() {
        for text in [
            "",
            "[Endmark: 3 earlier messages",
            "[Endmark: x earlier messages (1 tokens) in short]\nValues:\na: b",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
