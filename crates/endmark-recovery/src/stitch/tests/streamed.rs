//! A continuation that is stitched while it comes: what flows is what the whole continuation says.

use std::collections::BTreeMap;

use endmark_text::detect::detect;

use super::super::{AskedFrom, MergeError, StitchStream, merge_chunks};
use super::generator::{JSON_KINDS, Kind, Random, STYLES, Style, TEXT_KINDS, continuation, document};
use super::properties::kind_format;

/// What became of the streams of one style.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    streams: usize,
    /// Those of which something flowed before the end.
    streamed: usize,
    /// Those that flowed, and were refused in the end.
    refused: usize,
    /// Those that flowed in another way than they were joined.
    retracted: usize,
}

fn measure(kinds: &[Kind], rounds: usize) -> BTreeMap<Style, Count> {
    let mut counts: BTreeMap<Style, Count> = BTreeMap::new();
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
                    let Some(flowed) = flow(initial, &again, &format, from, size) else { continue };
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

/// All that flows of a continuation that arrives in pieces of this size, behind the first part it keeps.
fn flow(
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

/// In most styles a model goes on; these are the ones in which it does not, or not from there.
fn continues_exactly(style: Style) -> bool {
    !matches!(style, Style::Answer | Style::Divergent | Style::Unescaped)
}

#[test]
fn streamed_json_equals_the_whole_continuation() {
    check(JSON_KINDS, 3);
}

#[test]
fn streamed_text_equals_the_whole_continuation() {
    check(TEXT_KINDS, 1);
}

fn check(kinds: &[Kind], rounds: usize) {
    let counts = measure(kinds, rounds);
    for (style, count) in &counts {
        assert_eq!(count.retracted, 0, "{style:?}: {count:?}");
        assert!(continues_exactly(*style) || count.refused == 0, "{style:?}: {count:?}");
    }
    let sum = |of: fn(&Count) -> usize| counts.values().map(of).sum::<usize>();
    assert!(sum(|count| count.refused) * 50 <= sum(|count| count.streamed), "{counts:?}");
    let clean = counts[&Style::Exact];
    assert!(clean.streamed * 2 >= clean.streams, "{clean:?}");
}
