//! Detects an answer that repeats the prompt, as small models do if they cannot continue.

use std::collections::HashMap;

/// Minimum number of letters in a sequence of whole words that rarely occurs by chance in both an answer and
/// its prompt. `the last valid token` and `last reply was cut off` are long enough.
const MIN_DISTINCTIVE_LETTERS: usize = 16;

/// Whether an answer contains a sequence of words from the prompt that does not occur in the text.
pub(super) fn repeats_prompt(question: &str, so_far: &str, answer: &str) -> bool {
    if answer.len() < MIN_DISTINCTIVE_LETTERS {
        return false;
    }
    let question_words: Vec<String> = words(question).collect();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, word) in question_words.iter().enumerate() {
        places.entry(word).or_default().push(at);
    }
    // The number of letters before each word of the prompt, and in total.
    let mut letters = vec![0];
    letters.extend(question_words.iter().scan(0, |sum, word| {
        *sum += word.chars().count();
        Some(*sum)
    }));
    let mut text: Option<String> = None;
    // An answer may repeat a sequence at every word, so each sequence is searched only once.
    let mut is_new: HashMap<(usize, usize), bool> = HashMap::new();
    // For each position in the prompt: how many words before it the answer has just repeated in order.
    let mut runs: HashMap<usize, usize> = HashMap::new();
    for word in words(answer) {
        let here = places.get(word.as_str()).map_or(&[][..], Vec::as_slice);
        runs = here
            .iter()
            .map(|at| (*at, at.checked_sub(1).and_then(|before| runs.get(&before)).map_or(1, |run| run + 1)))
            .collect();
        for (at, length) in &runs {
            let (start, end) = (at + 1 - length, at + 1);
            let is_telling = letters[end] - letters[start] >= MIN_DISTINCTIVE_LETTERS;
            if is_telling
                && *is_new.entry((start, end)).or_insert_with(|| {
                    let text = text.get_or_insert_with(|| join_spaced(words(so_far)));
                    !text.contains(&join_spaced(question_words[start..end].iter().cloned()))
                })
            {
                return true;
            }
        }
    }
    false
}

/// Returns the words of a text in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

/// Joins words, with a space before and after each one.
fn join_spaced(words: impl Iterator<Item = String>) -> String {
    words.fold(" ".to_owned(), |text, word| text + &word + " ")
}

#[cfg(test)]
mod tests {
    use super::repeats_prompt;

    const QUESTION: &str = "Your last reply was cut off. The last valid token that arrived is:\n\n\
                            Continue the text from the last valid token. Output ONLY the remaining text.";

    #[test]
    fn an_answer_that_repeats_the_prompt_is_detected() {
        for answer in [
            "The last valid token is \"bridge\".",
            "I see that my last reply was cut off.",
            "bridge was closed. Output only the remaining text.",
        ] {
            assert!(repeats_prompt(QUESTION, "The bridge was clo", answer), "{answer}");
        }
        for answer in ["sed, and the last of them was cut off.", "the text from the first page", ""] {
            assert!(!repeats_prompt(QUESTION, "The bridge was clo", answer), "{answer}");
        }
    }

    #[test]
    fn prompt_words_that_the_text_contains_are_allowed() {
        let text = "A parser stops at the last valid token, and";
        assert!(!repeats_prompt(QUESTION, text, " goes on behind the last valid token."));
    }

    #[test]
    fn repeated_shared_words_are_searched_once() {
        let text = format!("{} The last valid token that arrived is.", "word ".repeat(200_000));
        let answer = "The last valid token that arrived is. ".repeat(20_000);
        assert!(!repeats_prompt(QUESTION, &text, &answer));
        assert!(repeats_prompt(QUESTION, &text, &(answer + "Output only the remaining text.")));
    }
}
