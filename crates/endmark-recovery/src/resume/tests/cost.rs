//! Tests the cost of an answer, measured in compared characters.

use endmark_text::Format;

use crate::resume::proof::compare::COMPARED_CHARACTERS;
use crate::resume::proof::{PromptContext, SeamProof};
use crate::{PromptExcerpt, PromptedStream, build_resume_prompt};

/// Returns the number of characters that `run` compares, and its result.
fn count_comparisons<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = COMPARED_CHARACTERS.get();
    let result = run();
    (COMPARED_CHARACTERS.get() - before, result)
}

/// A growing answer is read at lengths that increase by a factor, and not for each chunk.
#[test]
fn a_streamed_answer_of_one_phrase_is_read_a_few_times() {
    const DELTAS: usize = 4_000;
    let text = "word ".repeat(DELTAS);
    let shown = PromptExcerpt { length: text.len() - 5, quoted_from: text.len() - 200 };
    let prompt = build_resume_prompt(&text[shown.quoted_from..shown.length], &Format::Text, None);
    let mut stream = PromptedStream::new(&text, (shown, &prompt), &Format::Text);
    let (work, ()) = count_comparisons(|| (0..DELTAS).for_each(|_| stream.push("word ")));
    assert!(work < 20 * text.len(), "{work} signs for {} bytes", text.len());
}

/// In such a text, each position matches an answer of the same phrase up to its end.
#[test]
fn a_repetitive_text_does_not_need_quadratic_time() {
    for unit in ["`", "(", "\"a ", "<div>", "word ", "- ", "> *a* "] {
        let text = unit.repeat(6_000 / unit.len());
        // The answer continues, ends before the text does, or differs from the text at its end.
        for (end, answer, is_over) in [
            ("", text.clone(), true),
            ("", text.clone(), false),
            ("", unit.repeat(3_000 / unit.len()), true),
            ("", unit.repeat(3_000 / unit.len()) + "and the end", true),
            ("and", text.clone(), true),
            ("and", text.replace(' ', "  "), true),
        ] {
            let so_far = text.clone() + end;
            let question = PromptContext {
                so_far: &so_far,
                shown_bytes: so_far.len() - 3,
                quoted_from: so_far.len() - 200,
                format: &Format::Text,
                words: String::new(),
            };
            let (work, proof) = count_comparisons(|| question.proof(&answer, is_over));
            assert!(work < 600_000, "{work} signs for {unit:?}, {end:?}");
            assert!(!matches!(proof, SeamProof::Proven { .. }), "{unit:?}, {end:?}: {proof:?}");
        }
    }
}
