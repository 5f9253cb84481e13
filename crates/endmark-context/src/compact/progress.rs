//! Stops compacting a conversation after repeated attempts without success (CX-1).

use super::MIN_GAIN_TENTHS;
use super::receipt::{CompactionReceipt, NotCompacted};

/// After this many failed attempts in a row, compaction stops.
const MAX_FAILED_ATTEMPTS: u8 = 3;

/// The results of the latest attempts to compact a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionProgress {
    failed_attempts: u8,
    /// Tokens of the history at the latest attempt.
    tokens: u64,
    was_over_budget: bool,
    stop_reason: Option<NotCompacted>,
}

impl CompactionProgress {
    /// Returns why the latest attempts failed if compaction has stopped, otherwise `None`.
    pub fn stop_reason(&self) -> Option<NotCompacted> {
        self.stop_reason.filter(|_| self.failed_attempts >= MAX_FAILED_ATTEMPTS)
    }

    /// Stops compaction because a planned compaction could not be written. Another attempt would fail, too.
    pub fn stop_after_write_failure(&mut self, receipt: &CompactionReceipt) {
        *self = Self {
            failed_attempts: MAX_FAILED_ATTEMPTS,
            tokens: receipt.tokens_before,
            was_over_budget: true,
            stop_reason: Some(NotCompacted::NotWritten),
        };
    }

    /// Like [`Self::stop_reason`], for a history that now has `tokens` tokens.
    ///
    /// Attempts resume when a fifth of the history is new. They also resume when the history exceeds the
    /// budget for the first time, because more turns may be dropped then.
    pub(super) fn stop_reason_at(&self, tokens: u64, budget: u64) -> Option<NotCompacted> {
        let has_grown = tokens * (10 - MIN_GAIN_TENTHS) >= self.tokens * 10;
        let is_newly_over = tokens > budget && !self.was_over_budget;
        self.stop_reason().filter(|_| !has_grown && !is_newly_over)
    }

    /// Records the result of an attempt.
    pub(super) fn record(&mut self, receipt: &CompactionReceipt, budget: u64) {
        *self = match receipt.not_compacted {
            None => Self::default(),
            why => Self {
                failed_attempts: self.failed_attempts.saturating_add(1),
                tokens: receipt.tokens_before,
                was_over_budget: receipt.tokens_before > budget,
                stop_reason: why,
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PartSizes, Policy, compact_further};
    use super::*;
    use crate::conversation::{Content, Conversation, Part, Role, Turn};

    fn count(text: &str) -> u64 {
        text.len() as u64
    }

    /// Returns a conversation with a task of 1,000 tokens, which always stays, and this many short answers.
    fn conversation(answers: usize) -> Conversation<'static> {
        let say = |role, text: String| Turn {
            role,
            span: 0..0,
            parts: vec![Part { span: 0..0, content: Content::Text(text.into()) }],
        };
        let mut turns = vec![say(Role::User, "task".repeat(250))];
        turns.extend((0..answers).map(|_| say(Role::Assistant, "an answer ".repeat(2))));
        Conversation { turns, ..Conversation::default() }
    }

    fn attempt(answers: usize, budget_tokens: u64, progress: &mut CompactionProgress) -> bool {
        let conversation = conversation(answers);
        let policy = Policy { trigger_tokens: 800, budget_tokens, keep_turns: 2, ..Policy::window(count) };
        let sizes = PartSizes::of(&conversation, count);
        !compact_further(&conversation, &policy, &sizes, None, progress).edits.is_empty()
    }

    #[test]
    fn three_failed_attempts_stop_compaction_until_a_fifth_is_new() {
        let mut progress = CompactionProgress::default();
        for answers in 3..5 {
            assert!(!attempt(answers, 900, &mut progress));
            assert_eq!(progress.stop_reason(), None);
        }
        assert!(!attempt(5, 900, &mut progress));
        assert_eq!(progress.stop_reason(), Some(NotCompacted::TooLittleGain));
        let stopped = progress;
        for answers in 6..14 {
            assert!(!attempt(answers, 900, &mut progress));
            assert_eq!(progress, stopped, "{answers}: it is tried again");
        }
        assert!(attempt(60, 900, &mut progress));
        assert_eq!(progress, CompactionProgress::default());
    }

    #[test]
    fn a_compaction_that_cannot_be_written_is_not_retried_immediately() {
        let mut progress = CompactionProgress::default();
        progress.stop_after_write_failure(&CompactionReceipt {
            tokens_before: 1_070,
            ..CompactionReceipt::default()
        });
        assert_eq!(progress.stop_reason(), Some(NotCompacted::NotWritten));
        assert!(!attempt(3, 900, &mut progress));
        assert_eq!(progress.stop_reason(), Some(NotCompacted::NotWritten));
        assert!(attempt(60, 900, &mut progress));
    }

    #[test]
    fn a_stopped_compaction_resumes_after_enough_growth() {
        let mut progress = CompactionProgress::default();
        for answers in [3, 3, 3] {
            attempt(answers, 1_200, &mut progress);
        }
        assert!(progress.stop_reason().is_some());
        let stopped = progress;
        attempt(4, 1_200, &mut progress);
        assert_eq!(progress, stopped);
        attempt(10, 1_200, &mut progress);
        assert_ne!(progress, stopped);
    }
}
