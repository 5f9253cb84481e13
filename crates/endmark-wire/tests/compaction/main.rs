//! Compaction of generated conversations, in every format and with every policy (CX-3). The tests check the
//! providers' rules on the edited bytes, with an independent implementation of the rules.
//!
//! `ENDMARK_HISTORIES` sets the number of generated conversations. The tests report a seed that fails.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failure of the test")]

mod history;
mod items;
mod rules;

use endmark_context::compact::{CompactionMode, CompactionResult, Policy, compact, violations};
use endmark_context::conversation::ConversationChanges;
use endmark_wire::conversation::Dialogue;
use endmark_wire::format::{FORMATS, WireFormat};

/// Default number of generated histories. It covers each kind of irregularity several times.
const DEFAULT_HISTORY_COUNT: u64 = 100;
/// Seeds of earlier failures: the compacted history was compacted again, or was longer than the original.
const REGRESSION_SEEDS: [u64; 6] = [244, 251, 3535, 4428, 4635, 7063];

fn count(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn policies() -> [Policy; 3] {
    let window = Policy { trigger_tokens: 600, budget_tokens: 800, keep_turns: 6, ..Policy::window(count) };
    let brake = Policy { trigger_tokens: 700, budget_tokens: 420, ..Policy::emergency(count) };
    let share = Policy { keep_share: Some(0.3), ..window };
    [window, brake, share]
}

fn compact_body(
    format: &'static dyn WireFormat,
    body: &[u8],
    policy: &Policy,
) -> (CompactionResult, Vec<u8>) {
    let dialogue = Dialogue::read(format, body).unwrap();
    let compacted = compact(dialogue.conversation(), policy);
    let edited = dialogue.edit(&compacted.edits).unwrap();
    (compacted, edited)
}

fn check(format: &'static dyn WireFormat, body: &[u8], policy: &Policy) -> bool {
    let dialogue = Dialogue::read(format, body).unwrap();
    let conversation = dialogue.conversation();
    let (compacted, edited) = compact_body(format, body, policy);
    if compacted.edits.is_empty() {
        assert_eq!(edited, body);
        return false;
    }
    let changes = ConversationChanges::new(conversation, &compacted.edits).unwrap();
    assert_eq!(violations(conversation, &changes), []);
    rules::check(format.name(), &edited);
    let receipt = &compacted.receipt;
    assert!(receipt.tokens_after < receipt.tokens_before, "{receipt:?}");
    // An image may have more tokens than bytes.
    assert!(edited.len() < body.len() || receipt.dropped.contains_key("media"), "{receipt:?}");
    // The user's first and newest messages do not change, nor does anything before the first.
    let raw = |at: usize| &body[conversation.turns[at].span.clone()];
    let own: Vec<usize> =
        (0..conversation.turns.len()).filter(|at| conversation.turns[*at].is_from_user()).collect();
    if let (Some(first), Some(newest)) = (own.first(), own.last()) {
        let end = conversation.turns[*first].span.end;
        assert!(edited.starts_with(&body[..end]), "the prefix has changed");
        let has_results = conversation.turns[*newest].parts.iter().any(|part| part.result().is_some());
        let is_unchanged = edited.windows(raw(*newest).len()).any(|window| window == raw(*newest));
        assert!(is_unchanged || has_results, "the newest message has changed");
    }
    // A second compaction does not change the result.
    let again = self::compact_body(format, &edited, policy);
    assert_eq!(String::from_utf8_lossy(&again.1), String::from_utf8_lossy(&edited), "not idempotent");
    true
}

/// Checks this many histories in every format with these policies. Fails if only a few are compacted.
fn check_all(histories: u64, policies: &[Policy]) {
    let mut made = vec![0_u64; policies.len()];
    for seed in (0..histories).chain(REGRESSION_SEEDS) {
        for format in FORMATS {
            let body = history::body(format.name(), seed);
            for (policy, made) in policies.iter().zip(&mut made) {
                let run = std::panic::AssertUnwindSafe(|| check(format, body.as_bytes(), policy));
                let Ok(is_made) = std::panic::catch_unwind(run) else {
                    panic!("seed {seed}, {}, {:?}, {:?}", format.name(), policy.mode, policy.keep_share);
                };
                *made += u64::from(is_made);
            }
        }
    }
    assert!(made.iter().all(|made| *made > histories), "{made:?} of {}", histories * 4);
}

fn history_count() -> u64 {
    std::env::var("ENDMARK_HISTORIES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(DEFAULT_HISTORY_COUNT)
}

#[test]
fn condensing_to_the_window_keeps_conversations_valid() {
    let [window, brake, _] = policies();
    check_all(history_count(), &[window, brake]);
}

/// A share of the window is the most common setting and the smallest target.
#[test]
fn condensing_to_a_share_keeps_conversations_valid() {
    let [.., share] = policies();
    check_all(history_count().min(5_000), &[share]);
}

/// If a conversation continues and is compacted repeatedly, it keeps its ledger, and its summaries are not
/// nested.
#[test]
fn a_second_compaction_extends_the_ledger() {
    for format in FORMATS {
        let policy =
            Policy { trigger_tokens: 900, budget_tokens: 1_200, keep_turns: 4, ..Policy::window(count) };
        let mut turns = vec![history::user(
            format.name(),
            "Move order QX-4417 to the warehouse in Porto; never touch QX-9000",
        )];
        let mut compactions = 0;
        for round in 0..120 {
            turns.extend(history::step(format.name(), round));
            let body = format!("[{}]", turns.join(","));
            let (compacted, edited) = self::compact_body(format, body.as_bytes(), &policy);
            compactions += u64::from(!compacted.edits.is_empty());
            let dialogue = Dialogue::read(format, &edited).unwrap();
            turns = dialogue
                .conversation()
                .turns
                .iter()
                .map(|turn| String::from_utf8(edited[turn.span.clone()].to_vec()).unwrap())
                .collect();
        }
        let all = turns.join("\n");
        assert!(compactions >= 3, "{}: {compactions}", format.name());
        assert_eq!(all.matches("[Endmark: ").count(), 1, "{all}");
        // An id from a result of the first rounds that every later round uses.
        assert!(all.contains("shelf-81c2"), "{}: {all}", format.name());
        assert!(all.contains("QX-4417") && all.contains("QX-9000"));
    }
}

#[test]
fn emergency_mode_writes_a_list_and_window_mode_sentences() {
    let steps = (0..12).flat_map(|round| history::step("anthropic_messages", round));
    let turns: Vec<String> =
        [history::user("anthropic_messages", "Move it")].into_iter().chain(steps).collect();
    let body = format!("[{}]", turns.join(","));
    let texts = [CompactionMode::Window, CompactionMode::Emergency].map(|mode| {
        let policy = Policy {
            mode,
            trigger_tokens: 300,
            budget_tokens: 2_000,
            keep_turns: 2,
            ..Policy::window(count)
        };
        let format = endmark_wire::format::find_by_name("anthropic_messages").unwrap();
        String::from_utf8(compact_body(format, body.as_bytes(), &policy).1).unwrap()
    });
    assert!(texts[0].contains("The assistant called ") && !texts[0].contains("- called "), "{}", texts[0]);
    assert!(texts[1].contains("- called ") && !texts[1].contains("The assistant called "), "{}", texts[1]);
}
