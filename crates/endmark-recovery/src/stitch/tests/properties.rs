//! Checks generated documents, cuts and styles: the result is never silently wrong, and it is exact if the
//! text determines it.

use std::collections::BTreeMap;

use endmark_text::Format;
use endmark_text::detect::detect;

use super::super::{AskedFrom, MergeError, merge_chunks};
use super::generator::{
    ContinuationStyle, DocumentKind, JSON_KINDS, Random, STYLES, TEXT_KINDS, continuation, document,
};

#[derive(Debug, Default, Clone, Copy)]
struct ResultCount {
    exact: usize,
    rejected: usize,
    wrong: usize,
}

pub(super) fn kind_format(kind: DocumentKind) -> Format {
    match kind {
        DocumentKind::ToolCall | DocumentKind::Records | DocumentKind::Nested => Format::Json,
        DocumentKind::Lines => Format::Jsonl,
        DocumentKind::Prose | DocumentKind::Markdown | DocumentKind::Code => Format::Text,
    }
}

fn same_value(format: &Format, left: &str, right: &str) -> bool {
    let values = |text: &str| -> Option<Vec<serde_json::Value>> {
        serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().ok()
    };
    left == right || *format != Format::Text && values(left).is_some_and(|left| Some(left) == values(right))
}

/// Whether the text alone determines the intended result. In other styles, it is unknown whether a space or a
/// few letters belong to the text.
fn is_decidable(style: ContinuationStyle, kind: DocumentKind, from: AskedFrom) -> bool {
    let in_text = TEXT_KINDS.contains(&kind);
    match style {
        ContinuationStyle::Exact => from != AskedFrom::Unknown,
        ContinuationStyle::RepeatedTwenty
        | ContinuationStyle::RepeatedLine
        | ContinuationStyle::RepeatedSixHundred
        | ContinuationStyle::Restart
        | ContinuationStyle::FencedRestart
        | ContinuationStyle::FenceOverlap => true,
        ContinuationStyle::Fence
        | ContinuationStyle::Preamble
        | ContinuationStyle::PreambleFence
        | ContinuationStyle::PreambleFenceOverlap
        | ContinuationStyle::PreambleRestart
        | ContinuationStyle::OpenObject
        | ContinuationStyle::OpenString
        | ContinuationStyle::OtherEscapes
        | ContinuationStyle::FenceRemark => !in_text,
        ContinuationStyle::Remark => !in_text && from != AskedFrom::Unknown,
        _ => false,
    }
}

/// Joins generated documents at random cuts in every style, and counts the results.
fn measure(
    kinds: &[DocumentKind],
    styles: &[ContinuationStyle],
    froms: &[AskedFrom],
    rounds: usize,
) -> BTreeMap<(ContinuationStyle, &'static str), ResultCount> {
    let mut counts: BTreeMap<(ContinuationStyle, &'static str), ResultCount> = BTreeMap::new();
    let mut random = Random::new(20);
    for kind in kinds {
        let format = kind_format(*kind);
        for _ in 0..rounds {
            let whole = document(*kind, &mut random);
            for style in styles {
                for from in froms {
                    let cut = whole.floor_char_boundary(whole.len() / 8 + random.below(whole.len() * 7 / 8));
                    let verdict = detect(&whole.as_bytes()[..cut], &format).verdict;
                    if format != Format::Text && verdict.is_whole() || !is_decidable(*style, *kind, *from) {
                        continue;
                    }
                    let settled = verdict.truncation().map_or(cut, |truncation| truncation.truncation_index);
                    if *style == ContinuationStyle::Exact && *from == AskedFrom::Token && settled != cut {
                        continue;
                    }
                    let Some(continuation) = continuation(*style, *kind, &whole, cut, settled, &mut random)
                    else {
                        continue;
                    };
                    let count = counts.entry((*style, from.name())).or_default();
                    match merge_chunks(&whole[..cut], &continuation, &format, *from) {
                        Ok(merged) if same_value(&format, &merged.text, &whole) => count.exact += 1,
                        Ok(merged) => {
                            count.wrong += 1;
                            println!(
                                "{style:?} {kind:?} {from:?}: {:?}\n + {continuation:?}\n = {merged:?}",
                                &whole[..cut]
                            );
                        }
                        Err(_) => count.rejected += 1,
                    }
                }
            }
        }
    }
    counts
}

fn total(counts: &BTreeMap<(ContinuationStyle, &'static str), ResultCount>) -> ResultCount {
    counts.values().fold(ResultCount::default(), |sum, count| ResultCount {
        exact: sum.exact + count.exact,
        rejected: sum.rejected + count.rejected,
        wrong: sum.wrong + count.wrong,
    })
}

const ALL: &[AskedFrom] = &[AskedFrom::Cut, AskedFrom::Token, AskedFrom::Unknown];

#[test]
fn json_is_exact_if_determined_and_never_silently_wrong() {
    let counts = measure(JSON_KINDS, STYLES, ALL, 6);
    let sum = total(&counts);
    assert_eq!(sum.wrong, 0, "{counts:#?}");
    assert!(sum.exact * 100 >= 98 * (sum.exact + sum.rejected), "{sum:?} {counts:#?}");
}

#[test]
fn text_is_exact_if_determined_and_never_silently_wrong() {
    let counts = measure(TEXT_KINDS, STYLES, &[AskedFrom::Cut, AskedFrom::Unknown], 8);
    let sum = total(&counts);
    assert_eq!(sum.wrong, 0, "{counts:#?}");
    assert!(sum.exact * 100 >= 96 * (sum.exact + sum.rejected), "{sum:?} {counts:#?}");
}

#[test]
fn exact_continuations_are_unchanged() {
    let kinds: Vec<DocumentKind> = JSON_KINDS.iter().chain(TEXT_KINDS).copied().collect();
    let counts = measure(&kinds, &[ContinuationStyle::Exact; 8], &[AskedFrom::Cut], 8);
    let sum = total(&counts);
    assert_eq!(sum.wrong, 0, "{counts:#?}");
    assert!(sum.exact * 100 >= 99 * (sum.exact + sum.rejected), "{sum:?}");
}

#[test]
fn other_documents_and_answers_are_never_taken_for_json() {
    let mut random = Random::new(5);
    for kind in JSON_KINDS {
        let format = kind_format(*kind);
        for _ in 0..6 {
            let whole = document(*kind, &mut random);
            for style in [ContinuationStyle::Divergent, ContinuationStyle::Answer] {
                let cut = whole.floor_char_boundary(whole.len() / 8 + random.below(whole.len() * 7 / 8));
                if detect(&whole.as_bytes()[..cut], &format).verdict.is_whole() {
                    continue;
                }
                let Some(continuation) = continuation(style, *kind, &whole, cut, cut, &mut random) else {
                    continue;
                };
                let found = merge_chunks(&whole[..cut], &continuation, &format, AskedFrom::Unknown);
                assert!(found.is_err(), "{:?} + {continuation:?} = {found:?}", &whole[..cut]);
            }
        }
    }
}

#[test]
fn long_and_repetitive_parts_take_linear_time() {
    let rows = "{\"a\": 0, \"b\": [0, 0]}, ".repeat(20_000);
    let initial = format!("[{rows}{{\"a\": 0, ");
    let merged = merge_chunks(&initial, "\"b\": [0, 0]}]", &Format::Json, AskedFrom::Cut).unwrap();
    assert!(merged.text.ends_with("{\"a\": 0, \"b\": [0, 0]}]"));
    let restarted = format!("{initial}\"b\": [0, 0]}}]");
    let merged = merge_chunks(&initial, &restarted, &Format::Json, AskedFrom::Cut).unwrap();
    assert_eq!(merged.text, restarted);
    let more = format!("\"b\": [0, 0]}}, {rows}{{}}]");
    let merged = merge_chunks(&initial, &more, &Format::Json, AskedFrom::Cut).unwrap();
    assert_eq!(merged.text, format!("{initial}{more}"), "rows that are all alike are not taken for repeated");
    let lines = "def f(x):\\n    return x + 1\\n".repeat(20_000);
    let (initial, more) =
        (format!("{{\"code\": \"{lines}def f("), format!("x):\\n    return x + 1\\n{lines}\"}}"));
    let merged = merge_chunks(&initial, &more, &Format::Json, AskedFrom::Cut).unwrap();
    assert_eq!(merged.text, format!("{initial}{more}"), "nor are lines of a string");
    let found = merge_chunks(&"ha ".repeat(50_000), &"ha ".repeat(50_000), &Format::Text, AskedFrom::Unknown);
    assert!(
        matches!(found, Err(MergeError::Ambiguous { .. } | MergeError::NoSeam { .. })),
        "periodic text decides nothing"
    );
}
