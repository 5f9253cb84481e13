use endmark_text::{Truncation, Verdict};

use super::{CutKind, Evidence, Judgement, judge};
use crate::{Ending, Stop};

const WHOLE: Judgement = Judgement::Whole { disclosed: false };
const DISCLOSED: Judgement = Judgement::Whole { disclosed: true };
const LIMIT: Judgement = Judgement::Cut(CutKind::Limit);
const DROPPED: Judgement = Judgement::Cut(CutKind::Dropped);
const FORMAT: Judgement = Judgement::Cut(CutKind::Format);
const MARKER: Judgement = Judgement::Cut(CutKind::Marker);
const EMPTY: Judgement = Judgement::Cut(CutKind::Empty);
const PASSED: Judgement = Judgement::Passed;

const ENDINGS: [Ending; 7] = [
    Ending::Clean,
    Ending::UpstreamError,
    Ending::Stalled,
    Ending::Dropped,
    Ending::Cancelled,
    Ending::OverCap,
    Ending::Interrupted,
];
const BROKEN: &[Ending] = &[
    Ending::UpstreamError,
    Ending::Stalled,
    Ending::Dropped,
    Ending::Cancelled,
    Ending::OverCap,
    Ending::Interrupted,
];
const CLEAN: &[Ending] = &[Ending::Clean];

const STOPS: [Option<Stop>; 8] = [
    None,
    Some(Stop::Normal),
    Some(Stop::Sequence),
    Some(Stop::Limit),
    Some(Stop::Refused),
    Some(Stop::Paused),
    Some(Stop::Repetition),
    Some(Stop::Unknown),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grammar {
    Not,
    Whole,
    Truncated,
    Malformed,
}
use Grammar::{Malformed, Not, Truncated, Whole};
const GRAMMARS: [Grammar; 4] = [Not, Whole, Truncated, Malformed];

impl Grammar {
    fn verdict(self) -> Option<Verdict> {
        match self {
            Not => None,
            Whole => Some(Verdict::Whole),
            Truncated => Some(Verdict::Truncated(Truncation::default())),
            Malformed => Some(Verdict::Malformed { index: 0, reason: "wrong".to_owned() }),
        }
    }
}

/// Whether the output token count reaches the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenCount {
    Below,
    Reached,
}
const COUNTS: [TokenCount; 2] = [TokenCount::Below, TokenCount::Reached];

/// One row of the table: endings, stops, counts and verdicts, and the judgement of all their combinations.
struct TableRow {
    endings: &'static [Ending],
    stops: &'static [Option<Stop>],
    counts: &'static [TokenCount],
    grammars: &'static [Grammar],
    judged: Judgement,
}

/// The table of PC-8, and then the cases that it leaves open. In all of them text arrived, and no end marker
/// is required.
#[rustfmt::skip]
const TABLE: &[TableRow] = {
    use TokenCount::{Below, Reached};
    const ANY_COUNT: &[TokenCount] = &[Below, Reached];
    const ANY: &[Grammar] = &[Not, Whole, Truncated, Malformed];
    const NORMAL: Option<Stop> = Some(Stop::Normal);
    &[
        TableRow { endings: CLEAN,    stops: &[NORMAL],               counts: &[Below],   grammars: &[Not, Whole],             judged: WHOLE },
        TableRow { endings: CLEAN,    stops: &[Some(Stop::Sequence)], counts: ANY_COUNT,  grammars: ANY,                       judged: WHOLE },
        TableRow { endings: CLEAN,    stops: &[NORMAL],               counts: &[Below],   grammars: &[Truncated],              judged: FORMAT },
        TableRow { endings: CLEAN,    stops: &[Some(Stop::Limit), Some(Stop::Repetition)],    counts: ANY_COUNT,  grammars: &[Whole],                  judged: DISCLOSED },
        TableRow { endings: CLEAN,    stops: &[Some(Stop::Limit), Some(Stop::Repetition)],    counts: ANY_COUNT,  grammars: &[Truncated, Not],         judged: LIMIT },
        TableRow { endings: CLEAN,    stops: &[NORMAL],               counts: &[Reached], grammars: &[Truncated, Not],         judged: LIMIT },
        TableRow { endings: BROKEN,   stops: &[None],                 counts: ANY_COUNT,  grammars: &[Whole],                  judged: DISCLOSED },
        TableRow { endings: BROKEN,   stops: &[None],                 counts: ANY_COUNT,  grammars: &[Not, Truncated, Malformed], judged: DROPPED },
        TableRow { endings: &ENDINGS, stops: &[Some(Stop::Refused), Some(Stop::Paused), Some(Stop::Unknown)], counts: ANY_COUNT, grammars: ANY,     judged: PASSED },

        // A normal stop at the limit, although the text is whole in the required format.
        TableRow { endings: CLEAN,    stops: &[NORMAL],               counts: &[Reached], grammars: &[Whole],                  judged: WHOLE },
        // After a normal stop, malformed text is left to validation. After any other stop, it is a cut.
        TableRow { endings: CLEAN,    stops: &[NORMAL],               counts: ANY_COUNT,  grammars: &[Malformed],              judged: WHOLE },
        TableRow { endings: CLEAN,    stops: &[Some(Stop::Limit), Some(Stop::Repetition)],    counts: ANY_COUNT,  grammars: &[Malformed],              judged: LIMIT },
        // A clean end without a reason counts as a normal stop.
        TableRow { endings: CLEAN,    stops: &[None],                 counts: ANY_COUNT,  grammars: &[Whole, Malformed],       judged: WHOLE },
        TableRow { endings: CLEAN,    stops: &[None],                 counts: &[Below],   grammars: &[Not],                    judged: WHOLE },
        TableRow { endings: CLEAN,    stops: &[None],                 counts: &[Below],   grammars: &[Truncated],              judged: FORMAT },
        TableRow { endings: CLEAN,    stops: &[None],                 counts: &[Reached], grammars: &[Truncated, Not],         judged: LIMIT },
        // The stop reason arrived before the stream broke.
        TableRow { endings: BROKEN,   stops: &[Some(Stop::Sequence)], counts: ANY_COUNT,  grammars: ANY,                       judged: DISCLOSED },
        TableRow { endings: BROKEN,   stops: &[Some(Stop::Limit), Some(Stop::Repetition)],    counts: ANY_COUNT,  grammars: &[Whole],                  judged: DISCLOSED },
        TableRow { endings: BROKEN,   stops: &[Some(Stop::Limit), Some(Stop::Repetition)],    counts: ANY_COUNT,  grammars: &[Not, Truncated, Malformed], judged: LIMIT },
        TableRow { endings: BROKEN,   stops: &[NORMAL],               counts: ANY_COUNT,  grammars: &[Whole],                  judged: DISCLOSED },
        TableRow { endings: BROKEN,   stops: &[NORMAL],               counts: &[Below],   grammars: &[Not],                    judged: DISCLOSED },
        TableRow { endings: BROKEN,   stops: &[NORMAL],               counts: &[Reached], grammars: &[Not],                    judged: LIMIT },
        TableRow { endings: BROKEN,   stops: &[NORMAL],               counts: ANY_COUNT,  grammars: &[Truncated, Malformed],   judged: DROPPED },
    ]
};

/// PC-8: each combination is in exactly one row of the table, and is judged as this row states. After
/// reasoning without text, `limit` becomes `empty`. If an end marker is required, `format` becomes `marker`.
#[test]
fn every_combination_is_judged_by_the_table() {
    let mut judged = 0;
    for ending in ENDINGS {
        for stop in STOPS {
            for count in COUNTS {
                for grammar in GRAMMARS {
                    let rows: Vec<&TableRow> = TABLE
                        .iter()
                        .filter(|row| {
                            row.endings.contains(&ending)
                                && row.stops.contains(&stop)
                                && row.counts.contains(&count)
                                && row.grammars.contains(&grammar)
                        })
                        .collect();
                    assert_eq!(rows.len(), 1, "{ending:?} {stop:?} {count:?} {grammar:?}");
                    for (marker, has_text, reasoned) in flags() {
                        let expected = match rows[0].judged {
                            LIMIT if reasoned && !has_text => EMPTY,
                            FORMAT if marker => MARKER,
                            other => other,
                        };
                        let verdict = grammar.verdict();
                        let evidence = Evidence {
                            ending,
                            stop,
                            grammar: verdict.as_ref(),
                            marker,
                            output_tokens: Some(if count == TokenCount::Reached { 20 } else { 19 }),
                            limit: Some(20),
                            has_text,
                            reasoned,
                        };
                        assert_eq!(judge(&evidence), expected, "{evidence:?}");
                        judged += 1;
                    }
                }
            }
        }
    }
    assert_eq!(judged, 7 * 8 * 2 * 4 * 8);
}

fn flags() -> impl Iterator<Item = (bool, bool, bool)> {
    (0..8_u8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0))
}

/// PC-8: an unknown token count or limit proves nothing.
#[test]
fn an_unknown_count_or_limit_is_not_a_cut() {
    for (output_tokens, limit) in [(None, Some(20)), (Some(20), None), (None, None), (Some(19), Some(20))] {
        let evidence = Evidence {
            ending: Ending::Clean,
            stop: Some(Stop::Normal),
            grammar: None,
            marker: false,
            output_tokens,
            limit,
            has_text: true,
            reasoned: false,
        };
        assert_eq!(judge(&evidence), WHOLE);
    }
}
