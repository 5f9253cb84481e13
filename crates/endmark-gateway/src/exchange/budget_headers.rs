//! Discloses the state of a client's budgets to that client (CX-7).

use endmark_context::budget::{Scope, Unit};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::ledger::FirstCallState;

/// The state of the client's budgets. Empty if the client has none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BudgetDisclosure {
    is_closing: bool,
    warning_percent: u8,
    least_left: Option<(Scope, Unit, u64)>,
}

impl BudgetDisclosure {
    pub(crate) fn new(first: &FirstCallState) -> Self {
        Self {
            is_closing: first.is_closing,
            warning_percent: first.warning_percent,
            least_left: first.least_left,
        }
    }

    /// Writes the state as response headers.
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap) {
        let mut set = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        if self.is_closing {
            set("x-endmark-budget", "closing".to_owned());
        } else if self.warning_percent > 0 {
            set("x-endmark-budget", format!("{}%", self.warning_percent));
        }
        if let Some((scope, unit, left)) = self.least_left {
            set("x-endmark-budget-remaining", format!("{} of {}", unit.format(left), scope.name()));
        }
    }
}
