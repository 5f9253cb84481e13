//! How many tokens a further call may take.

use endmark_core::AskFailure;

use super::{Asker, Unanswered};

/// A limit that every model takes, and most contexts have room for.
const MODEST_LIMIT: u64 = 1_024;

impl Asker<'_> {
    pub(super) fn limit(&mut self, wanted: u64) -> Result<u64, Unanswered> {
        self.account.limit(wanted).ok_or_else(|| {
            Unanswered::Failed(AskFailure::Budget(
                "the request has used up [resume] max_extra_tokens".to_owned(),
            ))
        })
    }

    /// The limit for asking for all of the reply again: more than it had, or all that may be spent where it had none;
    /// never less than what it took.
    pub(super) fn more_room(&mut self) -> Result<u64, Unanswered> {
        let own = self.site.request.view().limit;
        let at_least = self.exchange.gateway.settings.resume.continuation_tokens;
        let wanted = own.map_or(u64::MAX, |own| self.wanted(own.saturating_mul(2).max(at_least)));
        let limit = self.limit(wanted)?;
        let taken = self.account.first().map_or(0, |usage| usage.completion);
        if limit < taken.max(own.unwrap_or(0)) {
            let why = format!(
                "the reply took {taken} tokens, and of [resume] max_extra_tokens no more than {limit} are left for it"
            );
            return Err(Unanswered::Failed(AskFailure::Budget(why)));
        }
        Ok(limit)
    }

    /// The limit to ask for: what is wanted, unless the upstream refused that; then no more than the client's
    /// own, which it took, or else a modest one.
    pub(super) fn wanted(&self, wanted: u64) -> u64 {
        match self.site.request.view().limit {
            _ if !self.refused.limit => wanted,
            Some(own) => own,
            None => wanted.min(MODEST_LIMIT),
        }
    }
}
