//! Whether an answer speaks to its reader about the reply, rather than being the rest of it (PC-4).

use super::joint::Joint;
use super::register::{self, Around};
use super::seam::AskedFrom;
use crate::Format;

/// From here on an answer reads as one of its own, and as a remark about the text, in bits.
const ANSWERS: f64 = 1.5;
const LEAVES: f64 = 2.5;

/// Whether an answer that proves no seam reads as an apology, a question back, a refusal or a statement about the reply.
pub(crate) fn speaks_of_the_reply(initial: &str, answer: &str) -> bool {
    let joint = Joint::new(initial, answer, &Format::Text, AskedFrom::Unknown);
    let around = Around::of(&joint);
    let text = answer.trim();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.lines().next().unwrap_or_default();
    let leaves = |part: &str| register::reads_as_leave(&joint, &around, "\n\n", part);
    register::answers(&joint, &around) > ANSWERS || leaves(first) > LEAVES || leaves(line) > LEAVES
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "The harbour lay quiet in the grey morning, and the gulls had not yet found the boa";

    #[test]
    fn what_speaks_about_the_reply_is_told() {
        for answer in [
            "It looks like my last reply was cut off. Could you tell me where you would like me to continue?",
            "(nothing further)",
            "I'm sorry, but I can't continue that.",
            "There is nothing more to add.",
            "The reply was already complete.",
            "As an AI language model, I cannot see the previous message.",
            "I don't have access to the earlier message.",
        ] {
            assert!(speaks_of_the_reply(TEXT, answer), "{answer}");
        }
    }

    #[test]
    fn a_rest_does_not() {
        for answer in [
            "ts that came in with the tide.",
            " all of them.",
            "vessels were lying still.",
            "5;\n    print(x)\n}",
        ] {
            assert!(!speaks_of_the_reply(TEXT, answer), "{answer}");
        }
    }
}
