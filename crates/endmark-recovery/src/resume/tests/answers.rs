//! PC-4: tests where an answer ends, which of its parts are removed, and which answers are not continuations.

use super::{exhausted_result, limit, normal};
use crate::{Join, Resume, ResumeOutcome, ResumePolicy, ResumeStep};

/// Returns the resume of a cut text after its first prompt got this answer.
fn resume_with(first: &str, answer: &str) -> Resume {
    let policy = ResumePolicy { max_attempts: 1, ..ResumePolicy::default() };
    let mut resume = Resume::new(policy, None, limit(first));
    resume.reply(normal(answer), Join::Prompted);
    resume
}

fn whole_text(first: &str, answer: &str) -> Option<String> {
    match resume_with(first, answer).next() {
        ResumeStep::Done(ResumeOutcome::Whole { text, .. }) => Some(text),
        ResumeStep::Done(_) | ResumeStep::Ask(_) => None,
    }
}

const CUT_TEXT: &str = "The harbour was quiet that morning, and the boa";
const CONTINUED_TEXT: &str = "The harbour was quiet that morning, and the boats were lying still.";

/// Losing words of the text would be worse than keeping a remark.
#[test]
fn the_end_of_a_proven_answer_is_the_end_of_the_text() {
    for end in [
        "The end.",
        "Everything else is in the appendix.",
        "That completes the reply.",
        "Se necesitan 186 litros de agua y un poco de paciencia.",
        "¿Quién habría pensado que la respuesta estaba tan cerca?",
        "Please confirm if everything is correct and if you would like to proceed.",
        "# Document",
        "```\nprint(1)\n```",
    ] {
        let text = format!("{CONTINUED_TEXT}\n\n{end}");
        assert_eq!(whole_text(CUT_TEXT, &text).as_deref(), Some(text.as_str()), "{end}");
    }
}

#[test]
fn closing_words_to_a_reader_are_removed_from_impersonal_text() {
    let long = "The gulls had not yet found the nets that hung on the wall of the old house. ".repeat(8);
    let received = format!("{long}{CUT_TEXT}");
    let remark = "\n\nLet me know if you need anything else.";
    assert_eq!(
        whole_text(&received, &format!("{CONTINUED_TEXT}{remark}")),
        Some(format!("{long}{CONTINUED_TEXT}"))
    );
    // A letter may legitimately end like this.
    let letter = "You know that you can see your boats from your house. ".repeat(8);
    let text = format!("{letter}{CONTINUED_TEXT}{remark}");
    assert_eq!(whole_text(&format!("{letter}{CUT_TEXT}"), &format!("{CONTINUED_TEXT}{remark}")), Some(text));
}

/// The content of the fence in an answer is the actual answer.
#[test]
fn a_fence_around_the_answer_is_removed_with_text_after_it() {
    for answer in [
        format!("```\n{CONTINUED_TEXT}\n```"),
        format!("Sure, here is the rest:\n\n```text\n{CONTINUED_TEXT}\n```\n"),
        format!("~~~\n{CONTINUED_TEXT}\n~~~\n\nThat completes the reply."),
    ] {
        assert_eq!(whole_text(CUT_TEXT, &answer).as_deref(), Some(CONTINUED_TEXT), "{answer}");
    }
    // The block after the rest has the same fence as the one with the cut. It does not enclose the rest.
    let received = "The boats:\n\n```python\ndef";
    let rest =
        "nets(boats):\n    return 1\n```\n\n## The nets\n\n```python\ndef boats(nets):\n    return 2\n```\n";
    assert_eq!(whole_text(received, rest), None);
}

/// An answer may respell the last word, but must not change a clause or a number.
#[test]
fn a_clause_or_number_never_replaces_another() {
    let received = "The harbour was quiet that morning, and 4";
    assert_eq!(
        whole_text(received, "The harbour was quiet that morning, and 512 boats were lying still."),
        None
    );
    assert_eq!(whole_text(received, "The harbour was quiet that morning, and boats were lying still."), None);
    let received = "火车晚点了234分钟，站台上几乎没有人。她把信放在桌子上，看着窗外的雨";
    let clause = "火车晚点了234分钟，站台上几乎没有人。她把信放在桌子上，苹果树今年开花很早。";
    assert_eq!(whole_text(received, clause), None);
    assert_eq!(whole_text("老房子的花园里", "但是很多人都忘记了，苹果树今年开花很早。"), None);
}

/// In a script without spaces, a clause is held back and proves the seam.
#[test]
fn a_clause_proves_the_seam_of_a_text_without_spaces() {
    let received = "火车晚点了234分钟，站台上几乎没有人。她把信放在桌子上";
    let text = "火车晚点了234分钟，站台上几乎没有人。她把信放在桌子上，看着窗外的雨。";
    let policy = ResumePolicy { max_attempts: 1, ..ResumePolicy::default() };
    let ResumeStep::Ask(ask) = Resume::new(policy, None, limit(received)).next() else {
        panic!("no question")
    };
    assert_eq!(&received[ask.shown.length..], "她把信放在桌子上");
    for space in ["", "\n\n", " "] {
        let (shown, rest) = text.split_at(ask.shown.length);
        assert_eq!(whole_text(received, &[shown, space, rest].concat()).as_deref(), Some(text), "{space:?}");
    }
}

/// An answer that repeats the words of the prompt is not a continuation.
#[test]
fn an_answer_that_recites_the_prompt_is_refused() {
    for answer in [
        "The harbour was quiet that morning, and the last valid token is:",
        "The harbour was quiet that morning, and the boats. Output ONLY the remaining text.",
    ] {
        let resume = resume_with(CUT_TEXT, answer);
        assert_eq!(resume.verified_beginning(), CUT_TEXT, "{answer}");
        assert!(exhausted_result(&resume).reason.contains("words of the prompt"), "{answer}");
    }
    let text = "A parser stops at the last valid token, and it goes on behind the last valid token.";
    assert_eq!(whole_text("A parser stops at the last valid token, and it go", text).as_deref(), Some(text));
}
