//! The strategies to get the rest of a cut reply, and their order (PC-3, PC-5).

use std::fmt;

/// A strategy to get the rest of a cut reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Let the model continue its own unfinished message, if the server supports this.
    Prefill,
    /// Ask for the rest with a prompt.
    Prompt,
    /// Request the complete reply again, with a higher limit.
    Restart,
}

impl Strategy {
    /// All strategies, in their default order.
    pub const ALL: [Self; 3] = [Self::Prefill, Self::Prompt, Self::Restart];

    /// Returns the name that the configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Prompt => "prompt",
            Self::Restart => "restart",
        }
    }
}

/// Error for an invalid list of strategies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategiesError {
    /// The list contains an unknown name.
    #[error("unknown strategy `{0}`: use {known}", known = known_names())]
    Unknown(String),
    /// The list contains a strategy twice.
    #[error("the strategy `{0}` is listed twice")]
    Twice(&'static str),
    /// The list is empty.
    #[error("at least one strategy is needed: {known}; `[resume] mode = \"warn\"` asks for nothing", known = known_names())]
    None,
}

fn known_names() -> String {
    Strategy::ALL.map(|strategy| format!("`{}`", strategy.name())).join(", ")
}

/// The permitted strategies, in order of preference. The default is `prefill`, `prompt`, `restart` (PC-3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategies(Vec<Strategy>);

impl Default for Strategies {
    fn default() -> Self {
        Self(Strategy::ALL.to_vec())
    }
}

impl Strategies {
    /// Parses the names of strategies, in order of preference.
    ///
    /// Returns a [`StrategiesError`] for an unknown or repeated name, and for an empty list.
    ///
    /// ```
    /// use endmark_recovery::{Strategies, Strategy};
    /// let order = Strategies::parse(["prompt", "restart"])?;
    /// assert_eq!(order.ways(), [Strategy::Prompt, Strategy::Restart]);
    /// assert_eq!(
    ///     Strategies::parse(["pray"]).unwrap_err().to_string(),
    ///     "unknown strategy `pray`: use `prefill`, `prompt`, `restart`"
    /// );
    /// # Ok::<(), endmark_recovery::StrategiesError>(())
    /// ```
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, StrategiesError> {
        let mut ways: Vec<Strategy> = Vec::new();
        for name in names {
            let way = Strategy::ALL.into_iter().find(|way| way.name() == name.trim());
            let way = way.ok_or_else(|| StrategiesError::Unknown(name.to_owned()))?;
            if ways.contains(&way) {
                return Err(StrategiesError::Twice(way.name()));
            }
            ways.push(way);
        }
        if ways.is_empty() { Err(StrategiesError::None) } else { Ok(Self(ways)) }
    }

    /// Returns the strategies in order of preference.
    pub fn ways(&self) -> &[Strategy] {
        &self.0
    }

    /// Whether this strategy is permitted.
    pub fn has(&self, strategy: Strategy) -> bool {
        self.0.contains(&strategy)
    }

    /// Whether `one` is permitted, and `other` is not permitted or follows it.
    pub fn prefers(&self, one: Strategy, other: Strategy) -> bool {
        let place = |strategy| self.0.iter().position(|way| *way == strategy);
        match (place(one), place(other)) {
            (Some(one), Some(other)) => one < other,
            (one, None) => one.is_some(),
            (None, Some(_)) => false,
        }
    }
}

impl fmt::Display for Strategies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|way| way.name()).collect();
        formatter.write_str(&names.join(", "))
    }
}
