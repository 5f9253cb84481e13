//! The error of a call that its budgets do not admit.

use endmark_context::Moment;
use endmark_context::budget::{Account, Period, RemainingRate, Scope, Unit, Zone, rate_retry_seconds};
use endmark_store::{Claim, RefusingBudget};
use endmark_wire::format::WireFormat;
use http::HeaderMap;
use serde_json::{Value, json};

use super::KeyLimits;

/// Error of a call that its budgets do not admit.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NotAdmitted {
    /// The call does not fit into a budget.
    #[error("{}", budget_message(.claim, .account, *.resets_at, *.is_own))]
    UsedUp {
        claim: Box<Claim>,
        account: Account,
        /// When the budget resets, in seconds since 1970. `None` if it never does.
        resets_at: Option<u64>,
        /// Whether the budget was set for the key itself.
        is_own: bool,
        /// The time of the refusal.
        at: Moment,
    },
    /// The cost of the call is unknown.
    #[error(
        "there is a budget in dollars, and the model `{0}` has no price: give it one under [prices.\"{0}\"], or set [budget] unknown_price = \"count_tokens_only\""
    )]
    NoPrice(String),
    /// The store does not answer, so the spending is unknown.
    #[error(
        "the store that keeps the budgets fails ({0}): put it right, or set [budget] on_store_error = \"open\" to go on without"
    )]
    StoreFails(String),
}

impl NotAdmitted {
    pub(super) fn from_used_up(used_up: RefusingBudget, limits: KeyLimits, zone: &Zone, at: Moment) -> Self {
        let RefusingBudget { claim, mut account } = used_up;
        // Report the shares of other gateways only if the call can wait for them.
        if !account.may_admit(claim.amount) {
            account = Account {
                held: account.held.saturating_sub(account.held_elsewhere),
                held_elsewhere: 0,
                ..account
            };
        }
        let resets_at = Period::from_window(&claim.window).reset_seconds(at, zone);
        let is_own = limits.replaces(claim.scope, claim.unit);
        Self::UsedUp { claim: Box::new(claim), account, resets_at, is_own, at }
    }

    /// Whether calls in progress hold the remaining amount, so that this call may fit when they end.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::UsedUp { claim, account, .. } if account.may_admit(claim.amount))
    }

    /// Whether a rate limit refused the call.
    pub(crate) fn is_rate_limit(&self) -> bool {
        matches!(self, Self::UsedUp { claim, .. } if claim.scope == Scope::Rate)
    }

    /// Returns the seconds after which the rate limit may admit the call. Returns `None` if it never does.
    pub(crate) fn rate_retry_seconds(&self) -> Option<u64> {
        let Self::UsedUp { claim, account, at, .. } = self else { return None };
        (self.is_rate_limit() && claim.amount <= account.limit).then(|| rate_retry_seconds(claim.unit, *at))
    }

    /// Writes the refusing rate limit as response headers.
    pub(crate) fn write_rate_headers(&self, format: &dyn WireFormat, headers: &mut HeaderMap) {
        let Self::UsedUp { claim, account, at, .. } = self else { return };
        if self.is_rate_limit() {
            let rate = RemainingRate {
                unit: claim.unit,
                limit: account.limit,
                remaining: account.remaining_anywhere(),
            };
            super::rates::write_headers(&rate, *at, format, headers);
        }
    }

    /// Returns machine-readable details. Returns `None` if the reason is not a budget.
    pub(crate) fn details(&self) -> Option<Value> {
        let Self::UsedUp { claim, account, resets_at, .. } = self else { return None };
        Some(json!({
            "budget": claim.scope.name(),
            "subject": claim.subject,
            "window": claim.window,
            "unit": claim.unit.name(),
            "limit": account.limit,
            "spent": account.spent,
            "held": account.held,
            "needed": claim.amount,
            "resets_at": resets_at,
        }))
    }
}

/// Describes the rate limit, and states what to do.
fn rate_message(claim: &Claim, account: &Account) -> String {
    let owner = scope_owner(claim);
    let limit = claim.unit.format(account.limit);
    if claim.unit == Unit::Parallel {
        return format!(
            "the rate limit {owner} is {limit}: send this one again when another one is over, or raise the limit"
        );
    }
    if claim.amount > account.limit {
        return format!(
            "the rate limit {owner} is {limit} a minute, and this request may need {}: send less, name a smaller output \
             limit, or raise the limit",
            claim.unit.format(claim.amount)
        );
    }
    format!(
        "the rate limit {owner} is {limit} a minute: {} are left until the next minute, and this request may need {}; \
         send it again then, or raise the limit",
        claim.unit.format(account.remaining_anywhere()),
        claim.unit.format(claim.amount)
    )
}

fn scope_owner(claim: &Claim) -> String {
    match claim.scope {
        Scope::Session => format!("of the session {}", claim.subject),
        Scope::Key | Scope::Rate if claim.subject.is_empty() => "of requests without a key".to_owned(),
        Scope::Key | Scope::Rate => {
            format!("of the key {}", claim.subject.strip_prefix("key:").unwrap_or(&claim.subject))
        }
        Scope::Model => format!("of the model {}", claim.subject),
        Scope::All => "of all requests".to_owned(),
    }
}

/// Describes the budget and its state, and states what to do.
fn budget_message(claim: &Claim, account: &Account, resets_at: Option<u64>, is_own: bool) -> String {
    if claim.scope == Scope::Rate {
        return rate_message(claim, account);
    }
    let (owner, unit) = (scope_owner(claim), claim.unit);
    let window = match Period::from_window(&claim.window) {
        Period::Ever | Period::Minute => String::new(),
        Period::Day => format!(" on {}", claim.window),
        Period::Month => format!(" in {}", claim.window),
    };
    let is_temporary = account.may_admit(claim.amount);
    let is_too_large = !account.is_closed && claim.amount > account.limit;
    let how_to_raise = if is_own {
        "use a key with a larger budget: `endmark keys add NAME` makes one"
    } else {
        "raise its limit under [budget]"
    };
    let next = match (claim.scope, resets_at) {
        _ if is_temporary => {
            "other calls hold the rest: send it again when one of them is over, or name smaller output limits"
                .to_owned()
        }
        (Scope::Session, _) if is_too_large => {
            "it is larger than the whole budget: send less, name a smaller output limit, or raise [budget]"
                .to_owned()
        }
        (Scope::Session, _) => {
            let unit = if unit == Unit::NanoUsd { " --usd" } else { "" };
            format!("`endmark budget raise {} +N{unit}` adds to it", claim.subject)
        }
        (_, Some(at)) => format!("it resets at {at} (seconds since 1970), or {how_to_raise}"),
        (_, None) => how_to_raise.to_owned(),
    };
    let why = match account {
        Account { is_closed: true, .. } => "is used up",
        _ if is_temporary => "does not admit this request for now",
        _ => "does not admit this request",
    };
    format!(
        "the budget {owner}{window} {why}: {} spent and {} held of {}, and this request may need {}; {next}",
        unit.format(account.spent),
        unit.format(account.held),
        unit.format(account.limit),
        unit.format(claim.amount),
    )
}
