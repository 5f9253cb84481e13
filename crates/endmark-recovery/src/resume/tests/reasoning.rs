//! Tests answers that begin with reasoning, for all kinds of joins.

use super::*;
use crate::{PromptedStream, ReasoningSigns};

const INITIAL: &str = "The harbour lay quiet in the grey morning, and the gulls had not yet found the boa";
const REST: &str = "ts that came in with the tide.";
const THOUGHT: &str = "<think>\nI go on after `boa`.\n</think>\n\n";

/// Returns the beginning of an answer to this prompt that proves its seam.
fn repeated_beginning(ask: &ResumeAsk) -> String {
    format!("{}boa", &ask.so_far[ask.so_far.find("and the gulls").unwrap()..ask.so_far.len() - 3])
}

#[test]
fn reasoning_is_removed_from_every_kind_of_join() {
    for join in [Join::Exact, STITCHED_FROM_CUT, Join::InMessage, Join::Shown, Join::Prompted] {
        let mut resume = text(limit(INITIAL));
        let again = if join == Join::Prompted { repeated_beginning(&ask(&resume)) } else { String::new() };
        resume.reply(normal(&[THOUGHT, &again, REST].concat()), join);
        assert_eq!(whole_result(&resume).0, [INITIAL, REST].concat(), "{join:?}");
        let seam = resume.seams().last().unwrap().clone();
        assert_eq!(seam.dropped_bytes, THOUGHT.len() + again.len(), "{join:?}");
        assert!(seam.dropped.starts_with("<think>"), "{join:?}");
    }
}

#[test]
fn reasoning_between_parts_is_removed() {
    let rest = "ts <think>Which ones?</think>that came in with the tide.";
    for join in [Join::Exact, STITCHED_FROM_CUT, Join::InMessage, Join::Shown, Join::Prompted] {
        let mut resume = text(limit(INITIAL));
        for _ in 0..2 {
            let ResumeStep::Ask(ask) = resume.next() else { break };
            let again = if join == Join::Prompted { repeated_beginning(&ask) } else { String::new() };
            resume.reply(normal(&[again.as_str(), rest].concat()), join);
        }
        assert_eq!(exhausted_result(&resume).cause, ExhaustedCause::Ambiguous, "{join:?}");
        // The request may have asked for this text.
        let policy = ResumePolicy {
            known: ReasoningSigns::from_text("Write <think> where you doubt."),
            ..ResumePolicy::default()
        };
        let mut resume = Resume::new(policy, None, limit(INITIAL));
        let again = if join == Join::Prompted { repeated_beginning(&ask(&resume)) } else { String::new() };
        resume.reply(normal(&[again.as_str(), rest].concat()), join);
        assert_eq!(whole_result(&resume).0, [INITIAL, rest].concat(), "{join:?}");
    }
}

#[test]
fn a_proven_answer_is_streamed_after_its_reasoning() {
    let resume = text(limit(INITIAL));
    let ask = ask(&resume);
    let rest = format!(
        "{REST}\n\nMira counted the nets twice, and then once more. {}",
        "The tide rose. ".repeat(100)
    );
    for thought in [THOUGHT, "<think></think>", ""] {
        let mut stream = PromptedStream::new(INITIAL, (ask.shown, &ask.prompt), &Format::Text);
        for sign in [thought, &repeated_beginning(&ask), &rest].concat().chars() {
            stream.push(&sign.to_string());
            let certain = stream.certain().map_or("", |certain| certain.rest);
            assert!(rest.starts_with(certain), "{certain}");
        }
        assert!(stream.certain().is_some_and(|certain| certain.rest.starts_with(REST)), "{thought}");
    }
}
