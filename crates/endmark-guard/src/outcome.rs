//! What a run came to, and what follows from it: the table of CG-3, in one function.

use serde::{Deserialize, Serialize};

/// Where a supervised run stands (CG-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is known, and nothing was started yet.
    Queued,
    /// Its agent is at work.
    Running,
    /// Its agent is to be started again.
    RetryQueued,
    /// The artifact is finished.
    Succeeded,
    /// The run was let go of with the artifact as it is.
    Released,
    /// The agent did not do its part.
    Failed,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::RetryQueued, Self::Succeeded, Self::Released, Self::Failed];

    /// The name that others rely on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::RetryQueued => "retry-queued",
            Self::Succeeded => "succeeded",
            Self::Released => "released",
            Self::Failed => "failed",
        }
    }

    /// The state with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Released | Self::Failed)
    }
}

/// Why a run is in its state (CG-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// The artifact does not meet its criteria.
    ContextGuardFail,
    /// It does not, and there is no room or no try left.
    ContextExhaustion,
    /// A ceiling on time, money or turns was reached.
    Budget,
    /// The agent hung, or its tries change nothing.
    Stalled,
    /// An attempt took longer than it may.
    AttemptTime,
    /// The agent ended without an end of its work.
    AgentCrash,
    /// The agent had a reply of a model that did not come through the gateway of its run.
    GatewayBypassed,
    /// Somebody stopped the supervisor.
    Interrupted,
    /// The supervisor was killed.
    SupervisorLost,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ContextGuardFail,
        Self::ContextExhaustion,
        Self::Budget,
        Self::Stalled,
        Self::AttemptTime,
        Self::AgentCrash,
        Self::GatewayBypassed,
        Self::Interrupted,
        Self::SupervisorLost,
    ];

    /// The name that others rely on.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContextGuardFail => "CONTEXT_GUARD_FAIL",
            Self::ContextExhaustion => "CONTEXT_EXHAUSTION",
            Self::Budget => "BUDGET",
            Self::Stalled => "STALLED",
            Self::AttemptTime => "ATTEMPT_TIME",
            Self::AgentCrash => "AGENT_CRASH",
            Self::GatewayBypassed => "GATEWAY_BYPASSED",
            Self::Interrupted => "INTERRUPTED",
            Self::SupervisorLost => "SUPERVISOR_LOST",
        }
    }

    /// The reason with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// How one attempt of an agent ended, by its stream and by how its process did (CG-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttemptVerdict {
    /// It came to its own end.
    Whole,
    /// It was cut off.
    Truncated,
    /// It stopped with work of its own left.
    WrappedUp,
    /// Its context is full.
    ContextExhausted,
    /// It reached a limit on turns or money of its own.
    Budget,
    /// It had to be stopped, since nothing came from it any more.
    Stuck,
    /// It had to be stopped, since it took longer than an attempt may.
    TimedOut,
    /// Its process or its stream broke off.
    Crashed,
    /// It had a reply of a model that did not come through the gateway of its run.
    Bypassed,
}

impl AttemptVerdict {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Whole,
        Self::Truncated,
        Self::WrappedUp,
        Self::ContextExhausted,
        Self::Budget,
        Self::Stuck,
        Self::TimedOut,
        Self::Crashed,
        Self::Bypassed,
    ];

    /// The name that others rely on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Truncated => "truncated",
            Self::WrappedUp => "wrapped_up",
            Self::ContextExhausted => "context_exhausted",
            Self::Budget => "budget",
            Self::Stuck => "stuck",
            Self::TimedOut => "timed_out",
            Self::Crashed => "crashed",
            Self::Bypassed => "bypassed",
        }
    }
}

/// What is known when an attempt is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Whether the artifact meets its criteria.
    pub checks_pass: bool,
    /// How the attempt itself ended.
    pub verdict: AttemptVerdict,
    /// Whether a call used more of the model's context than the threshold allows.
    pub is_at_risk: bool,
    /// How many further tries are allowed.
    pub tries_left: u32,
    /// Whether the last two tries changed neither the artifact nor what it lacks.
    pub is_without_progress: bool,
    /// How the run stands to its own ceilings.
    pub ceiling: Ceiling,
}

/// How a run stands to its ceilings on time and money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// It is below them.
    Below,
    /// It has reached one; the attempt came to its own end.
    Reached,
    /// The attempt was stopped at one.
    Stopped,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The run is over, and well.
    Succeed,
    /// The agent is started again.
    Retry(Reason),
    /// The run is over with the artifact as it is.
    Release(Reason),
    /// The run is over without one.
    Fail(Reason),
}

/// Decides by the artifact first, then by how the attempt ended (CG-3).
///
/// ```
/// use endmark_guard::{AttemptVerdict, Ceiling, Decision, Facts, Reason, decide};
///
/// let facts = Facts {
///     checks_pass: false,
///     verdict: AttemptVerdict::Whole,
///     is_at_risk: false,
///     tries_left: 1,
///     is_without_progress: false,
///     ceiling: Ceiling::Below,
/// };
/// assert_eq!(decide(facts), Decision::Retry(Reason::ContextGuardFail));
/// assert_eq!(decide(Facts { is_at_risk: true, ..facts }), Decision::Release(Reason::ContextExhaustion));
/// ```
pub fn decide(facts: Facts) -> Decision {
    // Its cost is not counted and its ceilings do not hold, so that no artifact makes up for it.
    if facts.verdict == AttemptVerdict::Bypassed {
        return Decision::Fail(Reason::GatewayBypassed);
    }
    if !facts.checks_pass {
        return unmet(facts);
    }
    // A limit of ours says nothing about the work: an artifact that passes was finished in time.
    if facts.ceiling == Ceiling::Stopped {
        return Decision::Succeed;
    }
    match facts.verdict {
        AttemptVerdict::Whole => Decision::Succeed,
        AttemptVerdict::Truncated | AttemptVerdict::WrappedUp => unmet(facts),
        AttemptVerdict::ContextExhausted => Decision::Release(Reason::ContextExhaustion),
        AttemptVerdict::Budget => Decision::Release(Reason::Budget),
        AttemptVerdict::Stuck => once_more(facts, Reason::Stalled),
        AttemptVerdict::TimedOut => once_more(facts, Reason::AttemptTime),
        AttemptVerdict::Crashed => once_more(facts, Reason::AgentCrash),
        AttemptVerdict::Bypassed => Decision::Fail(Reason::GatewayBypassed),
    }
}

/// What follows where the work is not done.
fn unmet(facts: Facts) -> Decision {
    // An agent that says itself that its context is full is over any threshold.
    let is_full = facts.is_at_risk || facts.verdict == AttemptVerdict::ContextExhausted;
    if is_full || facts.tries_left == 0 {
        Decision::Release(Reason::ContextExhaustion)
    } else if facts.ceiling != Ceiling::Below {
        Decision::Release(Reason::Budget)
    } else if facts.is_without_progress {
        Decision::Fail(Reason::Stalled)
    } else {
        Decision::Retry(Reason::ContextGuardFail)
    }
}

/// What follows where the agent did not do its part.
fn once_more(facts: Facts, reason: Reason) -> Decision {
    if facts.tries_left == 0 {
        Decision::Fail(reason)
    } else if facts.ceiling != Ceiling::Below {
        Decision::Release(Reason::Budget)
    } else {
        Decision::Retry(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: Facts = Facts {
        checks_pass: true,
        verdict: AttemptVerdict::Whole,
        is_at_risk: false,
        tries_left: 1,
        is_without_progress: false,
        ceiling: Ceiling::Below,
    };

    #[test]
    fn the_table_is_the_requirement() {
        use AttemptVerdict::{
            Budget, Bypassed, ContextExhausted, Crashed, Stuck, TimedOut, Truncated, Whole, WrappedUp,
        };
        use Decision::{Fail, Release, Retry, Succeed};
        let with = |verdict| Facts { verdict, ..FINE };
        let last = |facts: Facts| Facts { tries_left: 0, ..facts };
        let lacking = |verdict| Facts { checks_pass: false, verdict, ..FINE };
        for (facts, expected) in [
            (with(Whole), Succeed),
            (last(with(Whole)), Succeed),
            // The threshold alone is a warning.
            (Facts { is_at_risk: true, ..FINE }, Succeed),
            (with(Truncated), Retry(Reason::ContextGuardFail)),
            (last(with(WrappedUp)), Release(Reason::ContextExhaustion)),
            (with(ContextExhausted), Release(Reason::ContextExhaustion)),
            (with(Budget), Release(Reason::Budget)),
            (with(Stuck), Retry(Reason::Stalled)),
            (last(with(Stuck)), Fail(Reason::Stalled)),
            (with(TimedOut), Retry(Reason::AttemptTime)),
            (last(with(TimedOut)), Fail(Reason::AttemptTime)),
            (with(Crashed), Retry(Reason::AgentCrash)),
            (last(with(Crashed)), Fail(Reason::AgentCrash)),
            (with(Bypassed), Fail(Reason::GatewayBypassed)),
            (lacking(Bypassed), Fail(Reason::GatewayBypassed)),
            (lacking(Whole), Retry(Reason::ContextGuardFail)),
            (last(lacking(Whole)), Release(Reason::ContextExhaustion)),
            (Facts { is_at_risk: true, ..lacking(Whole) }, Release(Reason::ContextExhaustion)),
            (lacking(ContextExhausted), Release(Reason::ContextExhaustion)),
            (lacking(Crashed), Retry(Reason::ContextGuardFail)),
            (Facts { is_without_progress: true, ..lacking(Whole) }, Fail(Reason::Stalled)),
            (last(Facts { is_without_progress: true, ..lacking(Whole) }), Release(Reason::ContextExhaustion)),
            (Facts { ceiling: Ceiling::Reached, ..lacking(Whole) }, Release(Reason::Budget)),
            (Facts { ceiling: Ceiling::Reached, ..with(Crashed) }, Release(Reason::Budget)),
            (Facts { ceiling: Ceiling::Stopped, ..with(Stuck) }, Succeed),
        ] {
            assert_eq!(decide(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn names_come_back() {
        for state in State::ALL {
            assert_eq!(State::parse(state.name()), Some(state));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.name()), Some(reason));
        }
    }
}
