//! Checks for placeholders instead of content.

use std::ops::Range;

use super::handoff::trim_markers;
use super::surroundings::{Sentence, find_words};
use crate::artifact::{Artifact, ArtifactKind, Block, BlockKind, normalise_title};
use crate::finding::{Check, UnplacedFinding};
use crate::phrases::{Phrase, PhraseScope, words};

const WHY: &str = "a placeholder instead of content";
const FIX: &str = "Write the content in its place.";

/// Words that are placeholders only if they are capitalised. In lower case they are ordinary words.
const CAPITAL_PLACEHOLDERS: &[&str] = &["todo", "tbd", "tba", "tbc", "fixme", "wip", "xxx"];

/// Checks the block around an anchor.
pub(crate) fn check_sentence(
    artifact: &Artifact<'_>,
    phrase: &Phrase,
    sentence: &Sentence<'_>,
    at: usize,
) -> Option<UnplacedFinding> {
    let (text, outline) = (sentence.text, artifact.outline());
    // In a code file, such a comment is only a note. The omission check finds missing code.
    if artifact.kind() != ArtifactKind::Markdown || sentence.block.kind == BlockKind::Comment {
        return None;
    }
    let range = match phrase.scope {
        PhraseScope::Section => return None,
        PhraseScope::Block => whole_block(artifact, sentence.block, at, phrase)?,
        PhraseScope::Brackets => find_brackets(sentence, at, phrase)?,
        PhraseScope::Sentence => sentence.find_covered_part(phrase, at)?,
        _ => sentence.find(phrase, at).map(|_| sentence.range.clone())?,
    };
    let is_placeholder_text = !outline.is_in_link(at)
        && !outline.is_in_span(at)
        && !sentence.is_quoted_at(at)
        && !sentence.is_about(range.start.max(sentence.range.start));
    is_placeholder_text.then(|| UnplacedFinding::new(Check::Placeholder, trim_markers(text, range), WHY, FIX))
}

/// Returns the whole block, or the value of a field in it.
fn whole_block(artifact: &Artifact<'_>, block: &Block, at: usize, phrase: &Phrase) -> Option<Range<usize>> {
    /// The maximum length of a placeholder block in bytes. A longer block is content.
    const MAX_PLACEHOLDER_BYTES: usize = 600;
    if block.kind == BlockKind::Heading || block.range.len() > MAX_PLACEHOLDER_BYTES {
        return None;
    }
    let (text, Range { start, end }) = (artifact.text(), block.range.clone());
    // In a table row, another cell may explain the abbreviation in this cell, so examine the whole line.
    let start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..text[end..].find('\n').map_or(text.len(), |newline| end + newline)];
    if is_definition(line) || line.contains([':', '|', '—']) && is_in_glossary(artifact, at) {
        return None;
    }
    let value = text[block.range.start..at].rfind([':', '：', '|', '—']).map(|sign| {
        let start = block.range.start + sign;
        start + text[start..].chars().next().map_or(1, char::len_utf8)..block.range.end
    });
    let is_whole_placeholder = |range: &Range<usize>| is_placeholder(phrase, text, &find_words(text, range));
    [Some(block.range.clone()), value].into_iter().flatten().find(is_whole_placeholder)
}

/// Returns whether a text explains an abbreviation, as in `TBD: to be determined`.
fn is_definition(block: &str) -> bool {
    let ranges = words(block);
    let Some((first, rest)) = ranges.split_first() else { return false };
    let short = block[first.clone()].to_lowercase();
    let meaning = rest.len().checked_sub(short.chars().count()).and_then(|from| rest.get(from..));
    let initials = meaning.unwrap_or_default().iter().filter_map(|word| block[word.clone()].chars().next());
    !short.is_empty() && initials.flat_map(char::to_lowercase).eq(short.chars())
}

/// Returns whether an offset is under the heading of a glossary.
fn is_in_glossary(artifact: &Artifact<'_>, at: usize) -> bool {
    let headings = artifact.outline().headings();
    let before = headings.partition_point(|heading| heading.range.start <= at);
    let title =
        before.checked_sub(1).and_then(|last| headings.get(last)).map(|it| normalise_title(&it.title));
    title.is_some_and(|title| ["glossary", "abbreviations", "acronyms", "terms"].contains(&title.as_str()))
}

/// Returns whether a phrase covers all of these words. Abbreviations such as `TBD` must be capitalised.
fn is_placeholder(phrase: &Phrase, text: &str, words: &[Range<usize>]) -> bool {
    let first = words.first().map_or("", |first| &text[first.clone()]);
    let is_in_capitals = CAPITAL_PLACEHOLDERS.iter().any(|sign| first.eq_ignore_ascii_case(sign));
    phrase.covers_all(text, words)
        && !(is_in_capitals && first.bytes().any(|letter| letter.is_ascii_lowercase()))
}

/// Returns the brackets around an offset and their content, if the content is a placeholder.
fn find_brackets(sentence: &Sentence<'_>, at: usize, phrase: &Phrase) -> Option<Range<usize>> {
    let (text, range) = (sentence.text, &sentence.range);
    let open = range.start + text[range.start..at].rfind(['[', '<', '{', '【', '［'])?;
    // Single braces do not count, only double ones such as `{{ name }}`.
    if text[open..].starts_with('{') && !text[..open].ends_with('{') {
        return None;
    }
    let close = at + text[at..range.end].find([']', '>', '}', '】', '］'])?;
    let inside = open + text[open..].chars().next()?.len_utf8()..close;
    // If the text contains further brackets or code marks, the two brackets do not form a pair.
    if text[inside.clone()].contains(['[', ']', '<', '>', '`']) {
        return None;
    }
    let after = &text[close..];
    let is_link = after.starts_with("](") || after.starts_with("][") || after.starts_with("]:");
    // A part of an address or a command, such as `/<your-name>`, is for the reader to fill in.
    let before = text[..open].chars().next_back();
    let stands_alone = before.is_none_or(|before| !before.is_alphanumeric() && !"/=@-_.\\$".contains(before));
    let end = close + text[close..].chars().next().map_or(0, char::len_utf8);
    (!is_link && stands_alone && is_placeholder(phrase, text, sentence.part_words(&inside)))
        .then_some(open..end)
}
