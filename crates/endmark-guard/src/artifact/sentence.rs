//! Finds sentences, and parts of sentences that can stand alone.

use std::ops::Range;

/// The maximum number of bytes to search before and after an offset.
const WINDOW_BYTES: usize = 500;

/// Characters that always end a sentence.
const FULL_STOPS: &[char] = &['。', '！', '？', '；', '।', '؟'];

/// Returns the sentence around an offset in a block. A long sentence is cut to the searched bytes.
pub(crate) fn sentence_at(text: &str, block: Range<usize>, offset: usize) -> Range<usize> {
    let start = floor(text, block.start.max(offset.saturating_sub(WINDOW_BYTES)));
    let end = floor(text, block.end.min(offset + WINDOW_BYTES)).max(offset);
    let before = &text[start..offset];
    // Search outwards from the offset, because most of the searched text belongs to other sentences.
    let begin =
        before.char_indices().rev().find_map(|at| sentence_end(before, at)).map_or(start, |end| start + end);
    let after = &text[offset..end];
    let stop = after.char_indices().find_map(|at| sentence_end(after, at)).map_or(end, |end| offset + end);
    begin..stop
}

/// Returns the offset after this character if it ends a sentence, otherwise `None`.
fn sentence_end(text: &str, (at, character): (usize, char)) -> Option<usize> {
    if character.is_ascii_alphanumeric() || character == ' ' {
        return None;
    }
    let end = at + character.len_utf8();
    let rest = &text[end..];
    let ends = match character {
        '.' | '!' | '?' | ';' | '…' => {
            let after = rest.trim_start_matches(['"', '\'', ')', ']', '*', '_', '”', '’', '»']);
            after.starts_with(char::is_whitespace) && !is_abbreviation(&text[..at])
        }
        '\n' => rest.trim_start_matches([' ', '\t']).starts_with('\n'),
        _ => FULL_STOPS.contains(&character),
    };
    ends.then_some(end)
}

/// Returns whether a full stop after this text ends an abbreviation.
fn is_abbreviation(before: &str) -> bool {
    let word = before
        .rsplit(|character: char| character.is_whitespace() || character == '(')
        .next()
        .unwrap_or_default();
    let letters = word.chars().filter(|character| character.is_alphabetic()).count();
    letters == 1
        || ["e.g", "i.e", "z.B", "d.h", "etc", "vs", "cf", "bzw", "p.ej"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns the parts of a sentence around an offset that can stand alone: the sentence itself, text in
/// brackets, and text between dashes and colons.
pub(crate) fn parts_around(text: &str, sentence: Range<usize>, offset: usize) -> Vec<Range<usize>> {
    let mut parts = vec![sentence.clone()];
    let begin = text[sentence.start..offset].rfind(['(', '[', '（', '【', '<', '{']);
    let end = text[offset..sentence.end].find([')', ']', '）', '】', '>', '}']);
    let is_pair = |inside: &str| !inside.contains(['(', ')', '[', ']', '（', '）', '【', '】']);
    if let (Some(begin), Some(end)) = (begin, end)
        && is_pair(&text[offset..offset + end])
        && is_pair(text[sentence.start + begin..offset].trim_start_matches(['(', '[', '（', '【']))
    {
        let sign = text[sentence.start + begin..].chars().next().map_or(1, char::len_utf8);
        parts.push(sentence.start + begin + sign..offset + end);
    }
    let is_break = |character: char| matches!(character, '—' | '–' | ':' | '：' | '|');
    let begin = text[sentence.start..offset].char_indices().rfind(|(_, character)| is_break(*character));
    let end = text[offset..sentence.end].find(is_break);
    let begin = begin.map_or(sentence.start, |(at, character)| sentence.start + at + character.len_utf8());
    let end = end.map_or(sentence.end, |at| offset + at);
    if (begin, end) != (sentence.start, sentence.end) {
        parts.push(begin..end);
    }
    parts
}

/// Returns whether an offset in a sentence is inside quotation marks.
pub(crate) fn is_quoted(text: &str, sentence: Range<usize>, offset: usize) -> bool {
    let (before, after) = (&text[sentence.start..offset], &text[offset..sentence.end]);
    let is_inside = |open: char, close: char| match before.rfind([open, close]) {
        Some(at) => before[at..].starts_with(open) && after.contains(close),
        None => false,
    };
    let straight = before.matches('"').count() % 2 == 1 && after.contains('"');
    let single = before.match_indices('\'').filter(|(at, _)| is_at_word_edge(before, *at)).count() % 2 == 1
        && after.match_indices('\'').any(|(at, _)| is_at_word_edge(after, at));
    straight
        || single
        || [
            ('“', '”'),
            ('„', '“'),
            ('„', '”'),
            ('«', '»'),
            ('»', '«'),
            ('‘', '’'),
            ('‚', '‘'),
            ('「', '」'),
            ('『', '』'),
            ('《', '》'),
            ('‹', '›'),
        ]
        .iter()
        .any(|(open, close)| is_inside(*open, *close))
}

/// Returns whether a character is at the edge of a word, as quotation marks are. An apostrophe is inside a
/// word.
fn is_at_word_edge(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + 1..].chars().next();
    !(before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric))
}

fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_split_at_their_ends() {
        let text = "One is here, e.g. this. Two (a. b) goes on? \"Three.\" 四。五 six";
        for (word, sentence) in
            [("this", "One is here, e.g. this."), ("goes", " Two (a. b) goes on?"), ("五", "五 six")]
        {
            assert_eq!(&text[sentence_at(text, 0..text.len(), text.find(word).unwrap())], sentence, "{word}");
        }
    }

    #[test]
    fn quotation_marks_of_many_languages_are_recognised() {
        for text in ["a \"x\" b", "a “x” b", "a „x“ b", "a «x» b", "a 'x' b", "a ‘x’ b", "「x」"]
        {
            assert!(is_quoted(text, 0..text.len(), text.find('x').unwrap()), "{text}");
        }
        for text in ["a \"b\" x \"c\"", "don't x it's", "x", "\"a x"] {
            assert!(!is_quoted(text, 0..text.len(), text.find('x').unwrap()), "{text}");
        }
    }

    #[test]
    fn brackets_dashes_and_colons_split_a_sentence() {
        let text = "Step 3: left (to be continued) here";
        let parts = parts_around(text, 0..text.len(), text.find("be").unwrap());
        assert!(parts.iter().any(|part| &text[part.clone()] == "to be continued"), "{parts:?}");
        assert!(
            parts.iter().any(|part| text[part.clone()].trim() == "left (to be continued) here"),
            "{parts:?}"
        );
    }
}
