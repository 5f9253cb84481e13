use super::*;

fn proven_rest(so_far: &str, shown_len: usize, format: &Format, answer: &str) -> Option<String> {
    let question =
        PromptContext { so_far, shown_bytes: shown_len, quoted_from: 0, format, words: String::new() };
    match question.proof(answer, true) {
        SeamProof::Proven { rest_at, .. } => Some(answer[rest_at..].to_owned()),
        SeamProof::Doubtful { .. } | SeamProof::Nothing | SeamProof::Open => None,
    }
}

const TEXT: &str = "The harbour was quiet, and the boats";
const SHOWN: usize = 31;

/// PC-4: an answer that repeats the held part continues after it, whatever shown text precedes it in the
/// answer.
#[test]
fn the_held_part_proves_the_seam_and_its_white_space() {
    for (answer, rest) in [
        ("boats were lying still.", " were lying still."),
        ("The harbour was quiet, and the boats were.", " were."),
        ("and the boats\nwere.", "\nwere."),
        ("> **The harbour** was quiet, and the boats were.", " were."),
        ("Sure, here is the rest:\n\nThe harbour was quiet, and the boats were.", " were."),
        ("```\nThe harbour was quiet, and the boats were.", " were."),
        ("...boats were.", " were."),
    ] {
        assert_eq!(proven_rest(TEXT, SHOWN, &Format::Text, answer).as_deref(), Some(rest), "{answer}");
    }
}

#[test]
fn an_answer_without_the_held_part_proves_nothing() {
    for answer in [
        " were lying still.",
        "ships were.",
        "The harbour was quiet, and the ships were.",
        // After whitespace, this may be a second, equal word.
        " boats were lying.",
        "Well:\n\nboats were lying.",
    ] {
        assert_eq!(proven_rest(TEXT, SHOWN, &Format::Text, answer), None, "{answer}");
    }
}

/// A line of the rest may also occur before the cut. It is not a repetition: otherwise, the rest would lose
/// all text before that line.
#[test]
fn a_continuation_from_the_cut_may_repeat_an_earlier_line() {
    let text =
        "def one(nets):\n    for index, item in enumerate(nets):\n        if item.packet > limit and ind";
    let rest = "ex != 3:\n            break\n\n\ndef two(boats):\n    for index, item in enumerate(boats):\n        \
                if item.packet > limit and index != 4:\n            break\n";
    let shown = text.find("and ind").unwrap();
    assert_eq!(proven_rest(text, shown, &Format::Text, rest), None);
    let announced = format!("Sure, here is the rest:\n\nand ind{rest}");
    assert_eq!(proven_rest(text, shown, &Format::Text, &announced), None, "too little is repeated");
    let announced = format!("Sure, here is the rest:\n\nif item.packet > limit and ind{rest}");
    assert_eq!(proven_rest(text, shown, &Format::Text, &announced).as_deref(), Some(rest));
}

/// A passage that occurs several times does not determine a position.
#[test]
fn a_passage_that_occurs_several_times_proves_nothing() {
    let text = "la la la la la la la la";
    assert_eq!(proven_rest(text, 21, &Format::Text, "la la la la, and so on"), None);
    assert_eq!(proven_rest("[0, 0, 0, 0", 10, &Format::Json, "0, 0, 1]"), None);
}

/// Received whitespace is kept, and not duplicated.
#[test]
fn white_space_at_the_cut_is_not_repeated() {
    for (so_far, answer, rest) in [
        ("The harbour was quiet ", "harbour was quiet and grey.", "and grey."),
        ("The harbour was quiet  ", "harbour was quiet\nand grey.", "\nand grey."),
        ("The harbour was quiet\n", "harbour was quiet\n\n- and", "\n- and"),
        ("The harbour was quiet", "harbour was quiet and", " and"),
    ] {
        assert_eq!(proven_rest(so_far, 4, &Format::Text, answer).as_deref(), Some(rest), "{so_far:?}");
    }
    let quieter = "harbour was quieter than ever";
    assert_eq!(proven_rest("The harbour was quiet ", 4, &Format::Text, quieter), None);
    // This may continue the sentence or repeat its last word.
    assert_eq!(proven_rest("He said that ", 8, &Format::Text, "that it was."), None);
}

/// The proof does not depend on how the answer is split into chunks.
#[test]
fn a_proof_is_open_until_it_is_certain() {
    let question = PromptContext {
        so_far: TEXT,
        shown_bytes: SHOWN,
        quoted_from: 0,
        format: &Format::Text,
        words: String::new(),
    };
    let answer = "Sure, here is the rest:\n\nThe harbour was quiet, and the boats were.";
    let certain = answer.find(" were").unwrap();
    for end in 0..answer.len() {
        let proof = question.proof(&answer[..end], false);
        assert_eq!(matches!(proof, SeamProof::Proven { .. }), end >= certain, "{end}: {proof:?}");
        assert!(end >= certain || proof == SeamProof::Open, "{end}: {proof:?}");
    }
}

/// A model may escape raw characters, and may write any character as an escape or literally.
#[test]
fn json_is_compared_by_value() {
    for (so_far, answer, rest) in [
        ("{\"a\": \"line1\nli", r#"line1\nline2"}"#, r#"ne2"}"#),
        ("{\"a\": \"the first line\n", r#"the first line\nline2"}"#, r#"line2"}"#),
        ("{\"a\": \"the first line\n\t", r#"the first line\n\tline2"}"#, r#"line2"}"#),
        (r#"{"a": "line1\nli"#, "line1\nline2\"}", r#"ne2"}"#),
        (r#"{"a": "the first line\"#, r#"the first line\nline2"}"#, r#"nline2"}"#),
        (r#"{"a": "caf\u00e9 clo"#, r#"café closed"}"#, r#"sed"}"#),
        (r#"{"a": "the café clo"#, r#"the caf\u00e9 closed"}"#, r#"sed"}"#),
        (r#"{"a": "a little \ud83d\ude00 fa"#, r#"a little 😀 face"}"#, r#"ce"}"#),
        (r#"{"a": "a path\/to"#, r#"a path/to/it"}"#, r#"/it"}"#),
    ] {
        assert_eq!(proven_rest(so_far, 7, &Format::Json, answer).as_deref(), Some(rest), "{so_far} {answer}");
    }
    for (so_far, answer) in [
        // A quotation mark inside a string does not end the string, and a line feed inside it is significant.
        (r#"{"a": "he said \"yes"#, r#"he said "yes", "b": 1}"#),
        ("{\"a\": \"the first line\n", r#"the first line of it"}"#),
    ] {
        assert_eq!(proven_rest(so_far, 7, &Format::Json, answer), None, "{so_far} {answer}");
    }
}
