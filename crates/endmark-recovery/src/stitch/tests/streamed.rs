//! Tests that a streamed continuation gives the same text as the whole continuation.

use std::collections::BTreeMap;

use endmark_text::detect::detect;

use super::super::{AskedFrom, MergeError, StitchStream, merge_chunks};
use super::generator::{
    ContinuationStyle, DocumentKind, JSON_KINDS, Random, STYLES, TEXT_KINDS, continuation, document,
};
use super::properties::kind_format;

/// The results of all streams in one style.
#[derive(Debug, Default, Clone, Copy)]
struct StreamCount {
    streams: usize,
    /// Streams from which some text was released before the end.
    streamed: usize,
    /// Streams from which text was released, but that were rejected in the end.
    refused: usize,
    /// Streams that released other text than the final join contains.
    retracted: usize,
}

fn measure(kinds: &[DocumentKind], rounds: usize) -> BTreeMap<ContinuationStyle, StreamCount> {
    let mut counts: BTreeMap<ContinuationStyle, StreamCount> = BTreeMap::new();
    let mut random = Random::new(7);
    for kind in kinds {
        let format = kind_format(*kind);
        for _ in 0..rounds {
            let whole = document(*kind, &mut random);
            for style in STYLES {
                for from in [AskedFrom::Cut, AskedFrom::Token, AskedFrom::Unknown] {
                    let cut = whole.floor_char_boundary(whole.len() / 8 + random.below(whole.len() * 5 / 8));
                    let verdict = detect(&whole.as_bytes()[..cut], &format).verdict;
                    let settled = verdict.truncation().map_or(cut, |truncation| truncation.truncation_index);
                    let Some(again) = continuation(*style, *kind, &whole, cut, settled, &mut random) else {
                        continue;
                    };
                    let count = counts.entry(*style).or_default();
                    count.streams += 1;
                    let initial = &whole[..cut];
                    let size = 1 + random.below(60);
                    let Some(flowed) = released_text(initial, &again, &format, from, size) else { continue };
                    count.streamed += 1;
                    match merge_chunks(initial, &again, &format, from) {
                        Ok(merged) => count.retracted += usize::from(!merged.text.starts_with(&flowed)),
                        Err(MergeError::StillTruncated { merged }) => {
                            count.retracted += usize::from(!merged.text.starts_with(&flowed));
                        }
                        Err(_) => count.refused += 1,
                    }
                }
            }
        }
    }
    counts
}

/// Returns the text that is released while a continuation arrives in chunks of this size, after the kept
/// first part.
fn released_text(
    initial: &str,
    again: &str,
    format: &endmark_text::Format,
    from: AskedFrom,
    size: usize,
) -> Option<String> {
    let mut stream = StitchStream::new(initial, format, from);
    let mut flowed: Option<String> = None;
    let mut rest = again;
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        rest = others;
        stream.push(piece);
        let certain = stream
            .certain()
            .map(|certain| format!("{}{}{}", &initial[..certain.keep], certain.glue, certain.rest));
        let grows = match (&flowed, &certain) {
            (Some(before), Some(now)) => now.starts_with(before),
            (Some(_), None) => false,
            (None, _) => true,
        };
        assert!(grows, "{flowed:?} was certain, and then {certain:?}");
        flowed = certain;
    }
    let mut at_once = StitchStream::new(initial, format, from);
    at_once.push(again);
    let at_once = at_once
        .certain()
        .map(|certain| format!("{}{}{}", &initial[..certain.keep], certain.glue, certain.rest));
    assert!(
        flowed.as_deref().unwrap_or("").starts_with(at_once.as_deref().unwrap_or("")),
        "{at_once:?} at once, {flowed:?} piece by piece"
    );
    flowed.filter(|flowed| flowed.len() > initial.len())
}

/// Whether a model that answers in this style continues exactly at the requested position.
fn continues_exactly(style: ContinuationStyle) -> bool {
    !matches!(style, ContinuationStyle::Answer | ContinuationStyle::Divergent | ContinuationStyle::Unescaped)
}

#[test]
fn streamed_json_equals_the_whole_continuation() {
    check(JSON_KINDS, 3);
}

#[test]
fn streamed_text_equals_the_whole_continuation() {
    check(TEXT_KINDS, 1);
}

fn check(kinds: &[DocumentKind], rounds: usize) {
    let counts = measure(kinds, rounds);
    for (style, count) in &counts {
        assert_eq!(count.retracted, 0, "{style:?}: {count:?}");
        assert!(continues_exactly(*style) || count.refused == 0, "{style:?}: {count:?}");
    }
    let sum = |of: fn(&StreamCount) -> usize| counts.values().map(of).sum::<usize>();
    assert!(sum(|count| count.refused) * 50 <= sum(|count| count.streamed), "{counts:?}");
    let clean = counts[&ContinuationStyle::Exact];
    assert!(clean.streamed * 2 >= clean.streams, "{clean:?}");
}
