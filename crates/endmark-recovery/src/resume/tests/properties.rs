//! Checks properties that hold for all documents, cuts and model behaviours.

use endmark_text::Format;
use proptest::prelude::*;

use crate::{
    AskFailure, AskedFrom, Ending, ExhaustedCause, Join, OnAmbiguous, Reply, Resume, ResumeExhausted,
    ResumeOutcome, ResumePolicy, ResumeStep, Stop,
};

/// How a model, or the connection to it, reacts to a request.
#[derive(Debug, Clone)]
pub(crate) enum Behaviour {
    /// Continues the document by this many characters.
    ContinuesFor(usize, Ending),
    /// Continues the document to its end.
    Finishes,
    Answers(String, Option<Stop>, Ending),
    RepeatsLastBytes(usize),
    Fails(AskFailure),
}

pub(crate) fn behaviour() -> impl Strategy<Value = Behaviour> {
    let ending = prop_oneof![
        Just(Ending::Clean),
        Just(Ending::Clean),
        Just(Ending::Dropped),
        Just(Ending::Stalled),
        Just(Ending::UpstreamError),
        Just(Ending::OverCap),
        Just(Ending::Interrupted),
    ];
    let stop = prop_oneof![
        Just(None),
        Just(Some(Stop::Normal)),
        Just(Some(Stop::Limit)),
        Just(Some(Stop::Sequence)),
        Just(Some(Stop::Refused)),
    ];
    prop_oneof![
        4 => (0..40_usize, ending.clone()).prop_map(|(chars, ending)| Behaviour::ContinuesFor(chars, ending)),
        1 => Just(Behaviour::Finishes),
        3 => ("[\\]},:\"a-c0-9 \n\u{e9}\u{fffd}]{0,12}", stop, ending)
            .prop_map(|(text, stop, ending)| Behaviour::Answers(text, stop, ending)),
        2 => (1..20_usize).prop_map(Behaviour::RepeatsLastBytes),
        1 => Just(Behaviour::Fails(AskFailure::Rejected("no".to_owned()))),
        1 => Just(Behaviour::Fails(AskFailure::Lost("gone".to_owned()))),
        1 => Just(Behaviour::Fails(AskFailure::Unfit("other".to_owned()))),
        1 => Just(Behaviour::Fails(AskFailure::Unusable("an image".to_owned()))),
        1 => Just(Behaviour::Fails(AskFailure::Budget("none left".to_owned()))),
    ]
}

/// Generates a valid document of ordinary parts.
pub(crate) fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-zé€\u{1f600} ]{0,12}".prop_map(|text| format!("\"{text}\"")),
        (-1000..1000_i32).prop_map(|number| number.to_string()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("\"\\u00e9\\n\\\"\"".to_owned()),
    ];
    let value = leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(("[a-d]{1,5}", inner), 0..5).prop_map(|fields| {
                let fields: Vec<String> =
                    fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
                format!("{{{}}}", fields.join(", "))
            }),
        ]
    });
    value.prop_map(|value| format!("{{\"value\": {value}}}"))
}

/// Generates a document, and a beginning of it.
pub(crate) fn cut_document() -> impl Strategy<Value = (String, String)> {
    (document(), any::<prop::sample::Index>()).prop_map(|(document, cut)| {
        let chars = cut.index(document.chars().count());
        let beginning = document.chars().take(chars).collect();
        (document, beginning)
    })
}

/// Returns the answer to a request with the text `so_far`.
pub(crate) fn answer(behaviour: &Behaviour, document: &str, so_far: &str) -> Result<Reply, AskFailure> {
    let rest = document.strip_prefix(so_far).unwrap_or("\"rest\"}");
    Ok(match behaviour {
        Behaviour::ContinuesFor(chars, Ending::Clean) => {
            Reply::with_stop(rest.chars().take(*chars).collect::<String>(), Stop::Limit)
        }
        Behaviour::ContinuesFor(chars, ending) => {
            Reply::broken_off(rest.chars().take(*chars).collect::<String>(), *ending)
        }
        Behaviour::Finishes => Reply::with_stop(rest, Stop::Normal),
        Behaviour::Answers(text, stop, ending) => {
            Reply { stop: *stop, ..Reply::broken_off(text.clone(), *ending) }
        }
        Behaviour::RepeatsLastBytes(chars) => {
            let skipped = so_far.chars().count().saturating_sub(*chars);
            let repeated: String = so_far.chars().skip(skipped).collect();
            Reply::with_stop(format!("{repeated}{rest}"), Stop::Normal)
        }
        Behaviour::Fails(failure) => return Err(failure.clone()),
    })
}

/// Runs a resume to its end. Returns the resume and the number of its steps.
fn drive(
    policy: ResumePolicy,
    demanded: Option<Format>,
    (document, first): (&str, Reply),
    behaviours: &[Behaviour],
    join: Join,
) -> (Resume, ResumeOutcome) {
    let mut resume = Resume::new(policy, demanded, first);
    let mut behaviours = behaviours.iter().cycle();
    for _ in 0..100 {
        assert_eq!(resume.next(), resume.next(), "stable until it is fed");
        match (resume.next(), behaviours.next()) {
            (ResumeStep::Done(outcome), _) => return (resume, outcome),
            (ResumeStep::Ask(ask), Some(behaviour)) => match answer(behaviour, document, &ask.so_far) {
                Ok(reply) => resume.reply(reply, join),
                Err(failure) => resume.note_failure(failure),
            },
            (ResumeStep::Ask(_), None) => break,
        }
    }
    panic!("it does not end: {resume:?}");
}

fn check_exhausted(end: &ResumeExhausted, resume: &Resume, max_attempts: u32) -> Result<(), TestCaseError> {
    prop_assert!(end.attempts <= max_attempts);
    prop_assert!(end.verified_len <= end.merged_raw.len());
    prop_assert!(end.merged_raw.is_char_boundary(end.verified_len));
    prop_assert!(!end.reason.is_empty());
    // PC-5: all received bytes are kept, except those that a settled seam dropped.
    let received: usize = resume.history().iter().map(|piece| piece.text.len()).sum();
    let left_out: usize =
        resume.history().iter().flat_map(|piece| &piece.seam).map(|s| s.dropped_bytes).sum();
    let cut_characters: usize =
        resume.history().iter().map(|piece| piece.text.matches('\u{fffd}').count() * 3).sum();
    let said_again = match (end.cause, resume.history().last()) {
        (ExhaustedCause::NoProgress, Some(last)) => last.text.len(),
        _ => 0,
    };
    prop_assert!(
        end.merged_raw.len() + left_out + cut_characters + said_again >= received,
        "{end:?} {:?}",
        resume.history()
    );
    for piece in resume.history().iter().filter(|piece| piece.seam.is_none() && piece.join.is_some()) {
        let there = end.merged_raw.contains(&piece.text) || end.cause == ExhaustedCause::NoProgress;
        prop_assert!(there, "{:?} is not in {:?}", piece.text, end.merged_raw);
    }
    Ok(())
}

fn formats() -> impl Strategy<Value = Option<Format>> {
    prop_oneof![
        3 => Just(Some(Format::Json)),
        1 => Just(Some(Format::Jsonl)),
        1 => Just(Some(Format::Marker("<<END>>".to_owned()))),
        2 => Just(None),
    ]
}

fn joins() -> impl Strategy<Value = Join> {
    prop_oneof![
        2 => Just(Join::Exact),
        1 => Just(Join::Stitched(AskedFrom::Cut)),
        1 => Just(Join::Stitched(AskedFrom::Token)),
        1 => Just(Join::Stitched(AskedFrom::Unknown)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// PC-5: the resume ends within the permitted attempts. Sent text stays unchanged, and no received text
    /// is lost.
    #[test]
    fn every_resume_ends_within_its_bounds(
        (document, beginning) in cut_document(),
        demanded in formats(),
        join in joins(),
        max_attempts in 0..5_u32,
        sent in 0..20_usize,
        best in any::<bool>(),
        behaviours in prop::collection::vec(behaviour(), 1..6),
    ) {
        let on_ambiguous = if best { OnAmbiguous::Best } else { OnAmbiguous::Stop };
        let policy = ResumePolicy { max_attempts, on_ambiguous, sent, ..ResumePolicy::default() };
        let first = Reply::with_stop(beginning.clone(), Stop::Limit);
        let (resume, outcome) = drive(policy, demanded, (&document, first), &behaviours, join);
        let text = match &outcome {
            ResumeOutcome::Whole { text, attempts, .. } => {
                prop_assert!(*attempts <= max_attempts);
                text.clone()
            }
            ResumeOutcome::Exhausted(end) => {
                check_exhausted(end, &resume, max_attempts)?;
                prop_assert!(resume.verified_beginning().starts_with(&end.merged_raw[..end.verified_len]));
                resume.verified_beginning()
            }
            ResumeOutcome::Passed => beginning.clone(),
        };
        let sent = &beginning.as_bytes()[..sent.min(beginning.len())];
        prop_assert!(text.as_bytes().starts_with(sent), "{text:?}");
    }

    /// The continuations of the same message give the same document, however they are split.
    #[test]
    fn pieces_of_a_continued_message_form_the_document(
        (document, beginning) in cut_document(),
        demanded in prop_oneof![Just(Some(Format::Json)), Just(None)],
        sizes in prop::collection::vec(1..30_usize, 1..4),
    ) {
        let policy = ResumePolicy { max_attempts: 200, ..ResumePolicy::default() };
        let behaviours: Vec<Behaviour> = sizes
            .iter()
            .map(|chars| Behaviour::ContinuesFor(*chars, Ending::Clean))
            .chain([Behaviour::Finishes])
            .collect();
        let first = Reply::with_stop(beginning, Stop::Limit);
        let (resume, outcome) = drive(policy, demanded, (&document, first), &behaviours, Join::Exact);
        let ResumeOutcome::Whole { text, .. } = outcome else {
            // The last piece contains only whitespace.
            let end = resume.history().last().map(|piece| piece.text.trim().is_empty());
            prop_assert_eq!(end, Some(true), "{:?}", outcome);
            return Ok(());
        };
        prop_assert_eq!(text, document);
    }
}
