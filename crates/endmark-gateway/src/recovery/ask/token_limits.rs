//! Determines the output limits of further calls.

use endmark_recovery::{AskFailure, CutKind};

use super::{Asker, StepFailure};
use crate::recovery::account::TokenAccount;
use crate::recovery::case::RecoveryCase;

/// A limit that every model accepts and that fits into most contexts.
const SAFE_TOKEN_LIMIT: u64 = 1_024;

/// Whether the complete reply can be requested again, with a higher limit if the previous one was too low. This is
/// impossible if the client wrote the beginning itself.
pub(in crate::recovery) fn has_room_to_restart(
    case: &RecoveryCase<'_>,
    account: &TokenAccount,
    kind: CutKind,
) -> bool {
    let view = case.request.view();
    let used = used_tokens(account, view.limit);
    let left = account.remaining_tokens(kind);
    let is_enough = match kind {
        CutKind::Limit | CutKind::Empty => left > used,
        CutKind::Dropped | CutKind::Format | CutKind::Marker => left >= used,
        CutKind::Window => false,
    };
    is_enough && view.prefill.as_deref().unwrap_or("").is_empty()
}

/// Returns the output tokens of the reply as reported, or else the maximum that it may have used. The
/// client's limit may be far higher than that, because a server may end a reply earlier.
fn used_tokens(account: &TokenAccount, limit: Option<u64>) -> u64 {
    account.first_usage().map(|usage| usage.completion).filter(|taken| *taken > 0).or(limit).unwrap_or(0)
}

impl Asker<'_> {
    pub(super) fn reserve_limit(&mut self, wanted: u64) -> Result<u64, StepFailure> {
        self.account.reserve_limit(wanted, self.kind).map_err(|bound| {
            self.note_bound(bound);
            StepFailure::Failed(AskFailure::Budget(format!("the request has used up {bound}")))
        })
    }

    /// Returns the limit for requesting the complete reply again. It is higher than before, or the complete allowance
    /// if there was no limit. It is never below the tokens of the first reply.
    pub(super) fn reserve_restart_limit(&mut self) -> Result<u64, StepFailure> {
        let own = self.site.request.view().limit;
        let at_least = self.case.settings.resume.continuation_tokens;
        let wanted = own.map_or(u64::MAX, |own| self.requestable_limit(own.saturating_mul(2).max(at_least)));
        let limit = self.reserve_limit(wanted)?;
        let taken = used_tokens(self.account, own);
        if limit < taken {
            let bound = self.account.token_bound(self.kind);
            self.note_bound(bound);
            let why = format!(
                "the reply took {taken} tokens and has to come again as a whole, but {bound} leaves {limit}: allow more than {taken}"
            );
            return Err(StepFailure::Failed(AskFailure::Budget(why)));
        }
        Ok(limit)
    }

    /// Returns the limit to request: `wanted`, unless the upstream rejected it. In that case it is at most the
    /// client's own limit, which was accepted, or else [`SAFE_TOKEN_LIMIT`].
    pub(super) fn requestable_limit(&self, wanted: u64) -> u64 {
        match self.site.request.view().limit {
            _ if !self.refused_features.limit => wanted,
            Some(own) => own,
            None => wanted.min(SAFE_TOKEN_LIMIT),
        }
    }
}
