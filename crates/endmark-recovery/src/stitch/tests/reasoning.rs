//! Tests reasoning at the beginning of a continuation, elsewhere, and in parts.

use endmark_text::Format;

use crate::stitch::reasoning::{ContinuationBeginning, ReasoningSigns, SignWatch, continuation_beginning};
use crate::stitch::{AskedFrom, SeamStyle, StitchStream, merge_chunks, merge_with_known_signs};

const KINDS: [(&str, &str); 11] = [
    ("<think>", "</think>"),
    ("<Think>", "</Think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
];

fn pairs() -> [(Format, &'static str, &'static str); 4] {
    [
        (Format::Json, "{\"a\": \"hello wor", "ld\", \"b\": [1, 2]}"),
        (Format::Json, "{\"a\": [1, 2", ", 3], \"b\": true}"),
        (Format::Text, "The harbour has four ba", "sins and a lock, and the tide is measured twice a day."),
        (Format::Markdown, "# Report\n\n- The harbour has four ba", "sins.\n- It has a lock.\n"),
    ]
}

#[test]
fn leading_reasoning_is_removed_and_reported() {
    for (format, initial, rest) in pairs() {
        for (begin, end) in KINDS {
            for (thought, behind) in
                [("\nI go on after it.\n", "\n\n"), ("Go on.", ""), ("\n\n", "\n\n"), ("", "\n")]
            {
                let reasoning = [begin, thought, end, behind].concat();
                let merged =
                    merge_chunks(initial, &[&reasoning, rest].concat(), &format, AskedFrom::Cut).unwrap();
                assert_eq!(merged.text, [initial, rest].concat(), "{format} {reasoning:?}");
                assert_eq!(merged.seam.style, SeamStyle::Reasoning, "{format} {reasoning:?}");
                assert_eq!(merged.seam.dropped_bytes, reasoning.len());
                assert!(merged.seam.dropped.starts_with(begin));
            }
        }
    }
}

#[test]
fn reasoning_elsewhere_makes_the_seam_ambiguous() {
    for (format, initial, rest) in pairs() {
        for (begin, end) in KINDS {
            for from in [AskedFrom::Cut, AskedFrom::Unknown] {
                for at in 1..rest.len() {
                    let text = format!("{}{begin}Hm.{end}{}", &rest[..at], &rest[at..]);
                    if let Ok(merged) = merge_chunks(initial, &text, &format, from) {
                        assert!(!merged.text.contains(begin), "{format} {text}: {}", merged.text);
                        assert!(!merged.text.contains(end), "{format} {text}: {}", merged.text);
                    }
                }
                // The beginning of the reasoning may be in the prompt.
                let text = format!("Hm.\n{end}\n\n{rest}");
                if let Ok(merged) = merge_chunks(initial, &text, &format, from) {
                    assert_eq!(merged.text, [initial, rest].concat(), "{format} {text}");
                }
            }
        }
    }
}

#[test]
fn unfinished_reasoning_is_not_a_continuation() {
    for (format, initial, _) in pairs() {
        for text in
            ["<think>", "<think>I go on", "<think>Hm.</thi", "\n<thin", "<think>a</think>\n\n", "◁think▷Hm."]
        {
            let error = merge_chunks(initial, text, &format, AskedFrom::Cut).unwrap_err();
            assert_eq!(error.code(), "no_seam", "{format} {text}");
        }
    }
}

#[test]
fn a_text_with_a_reasoning_tag_may_repeat_it() {
    let about = "Models write `<think>` before and `</think>` behi";
    let rest = "nd what they think. A second `<think>` is never closed.";
    let merged = merge_chunks(about, rest, &Format::Text, AskedFrom::Cut).unwrap();
    assert_eq!(merged.text, [about, rest].concat());
    let (initial, rest) = ("{\"steps\": [\"write a <b> and ", "then <think>\", \"</think>\"]}");
    assert!(merge_chunks(initial, rest, &Format::Json, AskedFrom::Cut).is_err());
    let known = ReasoningSigns::from_text("Which steps are there? <think> is one.");
    let merged = merge_with_known_signs(initial, rest, &Format::Json, AskedFrom::Cut, known).unwrap();
    assert_eq!(merged.text, [initial, rest].concat());
    // A server that does not remove reasoning from the reply does not remove it from the rest either.
    let initial = "<think>\nFour.\n</think>\n\nThe harbour has four ba";
    let merged =
        merge_chunks(initial, "<think>Go on.</think>sins and a lock.", &Format::Text, AskedFrom::Cut);
    assert_eq!(merged.unwrap().text, "<think>\nFour.\n</think>\n\nThe harbour has four basins and a lock.");
}

#[test]
fn line_breaks_after_reasoning_may_belong_to_the_text() {
    let thought = "<think>Go on.</think>\n\n";
    for (initial, rest) in [
        ("The harbour is quiet.", "The boats lie still in it."),
        ("    x = open(path)", "y = x.read()\n    return y"),
    ] {
        let merged = merge_chunks(initial, &[thought, rest].concat(), &Format::Text, AskedFrom::Cut);
        assert!(merged.is_err(), "{merged:?}");
    }
    let merged = merge_chunks(
        "The harbour is quiet,",
        &[thought, " and wide."].concat(),
        &Format::Text,
        AskedFrom::Cut,
    );
    assert_eq!(merged.unwrap().text, "The harbour is quiet, and wide.");
}

#[test]
fn a_stream_releases_no_part_of_a_reasoning_tag() {
    let initial = "{\"a\": \"It was a quiet mor";
    let rest = "ning, and the gulls had not yet found the boats. Mira counted the nets twice, because her father had \
                taught her to count everything twice, and then once more. The tide came in while she did so. At nine the first boat put out, \
                and behind it the others, one after the other, until the harbour lay as empty as the market square on \
                a Sunday; nobody spoke, for nobody had slept.";
    let thought = "<think>Go on.</think>\n";
    for (text, expected) in [
        ([thought, "It was a quiet mor", rest, "\", \"b\": 1}"].concat(), [rest, "\", \"b\": 1}"].concat()),
        (["It was a quiet mor", rest, "<think>Hm.</think>", rest, "\"}"].concat(), rest.to_owned()),
        (["It was a quiet mor", rest, "<thi"].concat(), rest.to_owned()),
    ] {
        let mut stream = StitchStream::new(initial, &Format::Json, AskedFrom::Unknown);
        for (at, sign) in text.char_indices() {
            stream.push(&text[at..at + sign.len_utf8()]);
            if let Some(certain) = stream.certain() {
                assert!(expected.starts_with(certain.rest), "{}", certain.rest);
            }
        }
        assert_eq!(stream.certain().map(|certain| certain.rest), Some(expected.as_str()), "{text}");
    }
    let mut watch = SignWatch::new(ReasoningSigns::default());
    assert_eq!((watch.read("a < b"), watch.read("a < b <th"), watch.read("a < b <that")), (5, 6, 11));
    assert_eq!((watch.read("a < b <that <think>"), watch.read("a < b <that <think> more")), (12, 12));
}

#[test]
fn a_similar_tag_is_not_a_reasoning_tag() {
    let known = ReasoningSigns::default();
    for text in ["<", "[", "<thead>", "[THEN]", "<b>", "<thinker>"] {
        assert_eq!(continuation_beginning("", text, known, 4), ContinuationBeginning::Nothing, "{text}");
    }
    assert_eq!(continuation_beginning("", "<", known, 1), ContinuationBeginning::Unfinished);
}

/// Parts of a text give the same result with the positions of the whole text as on their own.
#[test]
fn reasoning_tags_are_found_once_for_all_parts() {
    use crate::stitch::reasoning::{ReasoningSigns, has_sign, has_sign_within, sign_places};

    let text = "<a> [[x] <think> é◁think▷ and [THI <|channel|>final<|message|> 海 </THOUGHT> [ <|start|>assistant, <thin";
    for known in [ReasoningSigns::default(), ReasoningSigns::from_text("<think> <|start|>assistant")] {
        let places = sign_places(text, known);
        for start in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            for end in (start..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let part = &text[start..end];
                assert_eq!(
                    has_sign_within(text, (start, end), known, &places),
                    has_sign(part, known),
                    "{part}"
                );
            }
        }
    }
}
