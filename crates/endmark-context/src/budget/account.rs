//! One budget in one window: what is spent, held and left of it.

/// Where a budget stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// How much there is, with what was added since.
    pub limit: u64,
    /// What calls that are over did cost.
    pub spent: u64,
    /// The most that calls under way can cost.
    pub held: u64,
    /// Its closing call was granted: it is used up, whatever is left of it.
    pub is_closed: bool,
}

/// How far a budget is used up.
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
    /// In percent, as it is stored; 0 for the lowest.
    pub fn percent(self) -> u8 {
        match self {
            Self::Low => 0,
            Self::High => 80,
            Self::NearlyUsedUp => 95,
        }
    }
}

impl Account {
    /// What is left, holds taken off.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent).saturating_sub(self.held)
    }

    /// Whether a call that can cost so much may be made.
    ///
    /// ```
    /// use endmark_context::budget::Account;
    /// let account = Account { limit: 100, spent: 60, held: 30, is_closed: false };
    /// assert!(account.admits(10) && !account.admits(11));
    /// ```
    pub fn admits(&self, amount: u64) -> bool {
        !self.is_closed && amount <= self.left()
    }

    /// Whether a call that can cost so much fits by what is spent alone. Where it does and is not admitted, calls under way
    /// hold the rest: it may fit when they are over, since most cost far less than they hold.
    ///
    /// ```
    /// use endmark_context::budget::Account;
    /// let account = Account { limit: 100, spent: 60, held: 30, is_closed: false };
    /// assert!(account.may_admit(40) && !account.may_admit(41));
    /// ```
    pub fn may_admit(&self, amount: u64) -> bool {
        Self { held: 0, ..*self }.admits(amount)
    }

    /// Whether a call that can cost so much is the one to close it with: what is spent leaves no room for it. A call that is
    /// larger than the whole budget is refused, since it tells nothing of what is spent.
    ///
    /// ```
    /// use endmark_context::budget::Account;
    /// let account = Account { limit: 100, spent: 60, held: 0, is_closed: false };
    /// assert!(account.is_closed_by(41) && !account.is_closed_by(40) && !account.is_closed_by(101));
    /// ```
    pub fn is_closed_by(&self, amount: u64) -> bool {
        !self.is_closed && !self.may_admit(amount) && amount <= self.limit
    }

    /// How far it is used up by what calls did cost. A hold is the most that one can cost: most come to far less, and a
    /// warning of them would be one of nothing.
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
