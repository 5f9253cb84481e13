//! Detects answers that talk to the reader about the reply instead of continuing it (PC-4).

use endmark_text::Format;

use super::joint::Joint;
use super::register::{self, SurroundingText};
use super::seam::AskedFrom;

/// Minimum evidence, in bits, that an answer is a separate answer, that it is a remark about the text, and
/// that its first words are an announcement.
const MIN_ANSWER_BITS: f64 = 1.5;
const MIN_REMARK_BITS: f64 = 2.5;
const MIN_ANNOUNCEMENT_BITS: f64 = 0.0;

/// Whether an answer without a proven seam reads like an apology, a question, a refusal or a statement about
/// the reply.
pub(crate) fn is_about_reply(initial: &str, answer: &str) -> bool {
    let joint = Joint::new(initial, answer, &Format::Text, AskedFrom::Unknown);
    let around = SurroundingText::new(&joint);
    let text = answer.trim();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.lines().next().unwrap_or_default();
    let leaves = |part: &str| register::closing_remark_score(&joint, &around, "\n\n", part);
    register::separate_answer_evidence(&joint, &around) > MIN_ANSWER_BITS
        || leaves(first) > MIN_REMARK_BITS
        || leaves(line) > MIN_REMARK_BITS
}

/// Whether the first words of an answer are an announcement, and do not continue the text.
pub(crate) fn is_announcement(initial: &str, words: &str) -> bool {
    let joint = Joint::new(initial, words, &Format::Text, AskedFrom::Unknown);
    let around = SurroundingText::new(&joint);
    let start = words.len() - words.trim_start().len();
    let end =
        words.get(start..).and_then(|text| text.find('\n')).map_or(words.len(), |length| start + length);
    let (line, behind) = (words.get(start..end).unwrap_or_default(), words.get(end..).unwrap_or_default());
    register::announcement_bits(&joint, &around, line, end, behind) > MIN_ANNOUNCEMENT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "The harbour lay quiet in the grey morning, and the gulls had not yet found the boa";

    #[test]
    fn words_about_the_reply_are_detected() {
        for answer in [
            "It looks like my last reply was cut off. Could you tell me where you would like me to continue?",
            "(nothing further)",
            "I'm sorry, but I can't continue that.",
            "There is nothing more to add.",
            "The reply was already complete.",
            "As an AI language model, I cannot see the previous message.",
            "I don't have access to the earlier message.",
        ] {
            assert!(is_about_reply(TEXT, answer), "{answer}");
        }
    }

    #[test]
    fn a_continuation_is_not_about_the_reply() {
        for answer in [
            "ts that came in with the tide.",
            " all of them.",
            "vessels were lying still.",
            "5;\n    print(x)\n}",
        ] {
            assert!(!is_about_reply(TEXT, answer), "{answer}");
        }
    }

    #[test]
    fn an_announcement_is_distinguished_from_a_continuation() {
        for words in [
            "Sure, here is the rest:\n\n",
            "Here is the continuation:\n\n",
            "Continuing from where I left off:\n\n",
            "I apologize for the interruption. Here's the rest of it:\n\n",
            "Certainly! Here's the remaining part:\n",
            "Natürlich, hier ist der Rest:\n\n",
            "Well:\n\n",
        ] {
            assert!(is_announcement(TEXT, words), "{words}");
        }
        for words in [
            "ts that came in with the tide.\n\n",
            " all of them.\n",
            " in enumerate(harbour):\n",
            "        else:\n            print(f\"packet: {item}\")\n",
            "9,\n    \"count\": 12,\n",
        ] {
            assert!(!is_announcement(TEXT, words), "{words}");
        }
    }
}
