//! Does the text stop in the middle of a sentence?

use std::collections::BTreeSet;
use std::sync::LazyLock;

use endmark_text::Format;
use endmark_text::detect::detect;

use crate::artifact::{Artifact, Block, BlockKind, Kind};
use crate::finding::{Check, Found};
use crate::phrases::{is_unspaced, words};

const WORDS: &str = include_str!("../../data/unfinished_words.txt");

/// Words that no sentence ends with, whatever its language.
static UNFINISHED: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let lists = WORDS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
    lists.flat_map(|(_, list)| list.split_whitespace()).collect()
});

/// From how many words on a block is prose, which has full stops.
const PROSE_WORDS: usize = 8;

/// How many blocks have to end in a full stop before one that does not is remarkable.
const LEAST_FINISHED: usize = 3;

/// The same where the text ends in a line end.
const LEAST_FINISHED_OF_LINES: usize = 10;

const FIX: &str = "Finish the sentence, and go on with what is to follow it.";

/// Why a paragraph stops that is not compared with others.
pub(crate) const WITHOUT_FULL_STOP: &str = "the text stops without a full stop";

/// Finds a last block that stops before its sentence does.
pub(crate) fn check(artifact: &Artifact<'_>) -> Option<Found> {
    let outline = artifact.outline();
    let last = outline.last().filter(|_| artifact.kind() == Kind::Markdown)?;
    if !matches!(last.kind, BlockKind::Paragraph | BlockKind::Item) || last.is_quoted {
        return None;
    }
    let text = artifact.text();
    // What is written behind the block and is no block, such as where links lead, comes after it.
    if !text[last.range.end..].trim().chars().all(|sign| "*_`)]\"'".contains(sign)) {
        return None;
    }
    let block = bare(&text[last.range.clone()]);
    let why = certain(block)
        .or_else(|| unlike_others(artifact, last, block))
        .or_else(|| without_full_stop(artifact, last))?;
    let line = block.lines().next_back().unwrap_or_default();
    let start = last.range.start + block.len() - line.len();
    let start = start + line.len() - line.trim_start().len();
    Some(Found::new(Check::MidSentence, start..last.range.start + block.len(), why, FIX))
}

/// A block without the white space behind it.
fn bare(block: &str) -> &str {
    block.trim_end()
}

/// What no sentence ends with.
fn certain(block: &str) -> Option<&'static str> {
    let closed = block.trim_end_matches(['*', '_', '`']);
    let last = closed.chars().next_back()?;
    let ranges = words(block);
    if ranges.len() < 3 {
        return None;
    }
    match last {
        '(' if closed.ends_with(":(") || closed.ends_with("=(") => {}
        ',' | '，' | '、' | '(' | '（' | '[' | '“' | '„' | '«' | '「' | '&' => {
            return Some("the text stops behind a sign that something has to follow");
        }
        ':' | '：' if !is_picture(closed) => {
            return Some("the text stops behind a colon, and what it announces is not there");
        }
        _ => {}
    }
    if last.is_alphanumeric() {
        let word = ranges.last().map(|range| block[range.clone()].to_lowercase())?;
        // A word in capitals is a name, and so is one in marks.
        let is_written_small =
            ranges.last().is_some_and(|range| !block[range.clone()].starts_with(char::is_uppercase));
        if is_written_small
            && closed.len() == block.len()
            && UNFINISHED.contains(word.as_str())
            && words_of_last_sentence(block) >= 4
        {
            return Some("the text stops at a word that something has to follow");
        }
    }
    let opened = block.matches('(').count() + block.matches('（').count();
    let closed = block.matches(')').count() + block.matches('）').count();
    let link = block.rfind("](").is_some_and(|at| !block[at..].contains(')'));
    let code = block.matches('`').count() % 2 == 1;
    if link || (last.is_alphanumeric() && (opened > closed || code)) {
        return Some("the text stops inside of brackets or marks that are not closed");
    }
    None
}

fn words_of_last_sentence(block: &str) -> usize {
    let from = block.rfind(['.', '!', '?', '。', ':']).map_or(0, |at| at + 1);
    block.get(from..).map_or(0, |sentence| words(sentence).len())
}

/// A block without a full stop where all that are like it have one.
fn unlike_others(artifact: &Artifact<'_>, last: &Block, block: &str) -> Option<&'static str> {
    let ends_in_address = block
        .rsplit(char::is_whitespace)
        .next()
        .is_some_and(|last| last.contains("://") || last.contains("]("));
    if ends_sentence(block) || !is_prose(block) || ends_in_address {
        return None;
    }
    let text = artifact.text();
    let alike = artifact
        .outline()
        .blocks()
        .iter()
        .filter(|other| other.kind == last.kind && other.range != last.range && !other.is_quoted);
    let (mut finished, mut unfinished) = (0_usize, 0_usize);
    for other in alike.map(|other| bare(&text[other.range.clone()])).filter(|other| is_prose(other)) {
        if ends_sentence(other) || other.ends_with([':', '：']) { finished += 1 } else { unfinished += 1 }
    }
    // A file that was closed in order ends in a line end; one that was not, hardly ever.
    let (needed, share) =
        if text.ends_with('\n') { (LEAST_FINISHED_OF_LINES, finished + 1) } else { (LEAST_FINISHED, 10) };
    (finished >= needed && unfinished * share <= finished)
        .then_some("the text stops without a full stop, and all before it ends in one")
}

/// A paragraph of prose that stops: what makes `endmark detect` answer `undecided`.
fn without_full_stop(artifact: &Artifact<'_>, last: &Block) -> Option<&'static str> {
    let is_paragraph = last.kind == BlockKind::Paragraph;
    let stops = is_paragraph && detect(artifact.body().as_bytes(), &Format::Markdown).hint.is_some();
    stops.then_some(WITHOUT_FULL_STOP)
}

fn is_prose(block: &str) -> bool {
    let begins = block.starts_with(|first: char| first.is_alphabetic() || "\"'“‘(*_«„「".contains(first));
    begins && words(block).len() >= PROSE_WORDS
}

fn ends_sentence(block: &str) -> bool {
    let bare = block
        .trim_end_matches(['*', '_', '`', '"', '\'', ')', ']', '”', '’', '»', '“', '」', '』', '）', '>']);
    let ends = bare.ends_with(['.', '!', '?', '…', '。', '！', '？', ';', '।', '؟', '~', '～']);
    ends || block.chars().next_back().is_some_and(|last| {
        !last.is_alphanumeric() && !is_unspaced(last) && !"-–—/,".contains(last) && bare.len() == block.len()
    })
}

/// Whether a text ends in the name of a picture, as in `:smile:`.
fn is_picture(text: &str) -> bool {
    let inner = text.strip_suffix(':').and_then(|before| before.rsplit(char::is_whitespace).next());
    inner.is_some_and(|inner| inner.starts_with(':'))
}
