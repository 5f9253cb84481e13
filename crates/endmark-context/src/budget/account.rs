//! The amounts of one budget in one window: spent, held and left.

/// The amounts of one budget in its current window, in its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The total amount of the budget, including later increases.
    pub limit: u64,
    /// Total cost of finished calls.
    pub spent: u64,
    /// Highest possible total cost of the calls in progress.
    pub held: u64,
    /// The part of `held` that other instances hold, or that is not yet granted to any instance.
    pub held_elsewhere: u64,
    /// Whether the closing call was granted. If so, the budget counts as used up, even if an amount is left.
    pub is_closed: bool,
}

/// How much of a budget is spent, in steps that cause warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Less than 80 percent.
    #[default]
    Low,
    /// 80 percent or more.
    High,
    /// 95 percent or more.
    NearlyUsedUp,
}

impl Level {
    /// Returns the level in percent, as stored in the database. [`Level::Low`] is 0.
    pub fn percent(self) -> u8 {
        match self {
            Self::Low => 0,
            Self::High => 80,
            Self::NearlyUsedUp => 95,
        }
    }
}

impl Account {
    /// Returns the amount left, after holds.
    pub fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.spent).saturating_sub(self.held)
    }

    /// Returns the amount left after holds, plus the part that other instances may use.
    ///
    /// ```
    /// use endmark_context::budget::Account;
    /// let account = Account { limit: 100, spent: 10, held: 80, held_elsewhere: 50, ..Account::default() };
    /// assert_eq!((account.remaining(), account.remaining_anywhere()), (10, 60));
    /// ```
    pub fn remaining_anywhere(&self) -> u64 {
        self.remaining().saturating_add(self.held_elsewhere)
    }

    /// Whether a call with this highest possible cost may be made now.
    ///
    /// ```
    /// use endmark_context::budget::Account;
    /// let account = Account { limit: 100, spent: 60, held: 30, ..Account::default() };
    /// assert!(account.admits(10) && !account.admits(11));
    /// ```
    pub fn admits(&self, amount: u64) -> bool {
        !self.is_closed && amount <= self.remaining()
    }

    /// Whether a call with this highest possible cost would fit if no amount were held.
    ///
    /// If such a call is not admitted, calls in progress hold the rest. It may fit after they finish, because
    /// most calls cost far less than they hold.
    ///
    /// ```
    /// use endmark_context::budget::Account;
    /// let account = Account { limit: 100, spent: 60, held: 30, ..Account::default() };
    /// assert!(account.may_admit(40) && !account.may_admit(41));
    /// ```
    pub fn may_admit(&self, amount: u64) -> bool {
        Self { held: 0, ..*self }.admits(amount)
    }

    /// Whether a call with this highest possible cost becomes the closing call, because it does not fit into
    /// the unspent amount.
    ///
    /// A call that may cost more than the whole budget is refused instead: it does not show that the budget
    /// is used up.
    ///
    /// ```
    /// use endmark_context::budget::Account;
    /// let account = Account { limit: 100, spent: 60, ..Account::default() };
    /// assert!(account.is_closing_call(41) && !account.is_closing_call(40) && !account.is_closing_call(101));
    /// ```
    pub fn is_closing_call(&self, amount: u64) -> bool {
        !self.is_closed && !self.may_admit(amount) && amount <= self.limit
    }

    /// Returns the level that the cost of finished calls has reached.
    ///
    /// Holds do not count: most calls cost far less than they hold, so the warning would often be false.
    pub fn level(&self) -> Level {
        let used = u128::from(self.spent);
        let reaches = |percent: u128| used * 100 >= u128::from(self.limit) * percent;
        match (reaches(95), reaches(80)) {
            (true, _) => Level::NearlyUsedUp,
            (false, true) => Level::High,
            (false, false) => Level::Low,
        }
    }
}
