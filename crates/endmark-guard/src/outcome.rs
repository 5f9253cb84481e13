//! The outcome of an attempt and the decision that follows: the table of CG-3 in one function.

use serde::{Deserialize, Serialize};

/// The state of a supervised run (CG-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The run was created, and its agent was not started yet.
    Queued,
    /// The agent is running.
    Running,
    /// The agent will be started again.
    RetryQueued,
    /// The artifact is finished.
    Succeeded,
    /// The run was released with the artifact unchanged.
    Released,
    /// The agent failed.
    Failed,
}

impl State {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::RetryQueued, Self::Succeeded, Self::Released, Self::Failed];

    /// Returns the stable machine-readable name.
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

    /// Returns the state with this name, or `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Returns whether the run has ended in this state.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Released | Self::Failed)
    }
}

/// The reason for a run's state (CG-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// The artifact does not meet its criteria.
    ContextGuardFail,
    /// The context is full or at risk, or the last attempt was used.
    ContextExhaustion,
    /// A limit on time, money or turns was reached.
    Budget,
    /// The agent hung, or its attempts changed nothing.
    Stalled,
    /// An attempt took longer than allowed.
    AttemptTime,
    /// The agent ended before its work was done.
    AgentCrash,
    /// The agent received a model reply that did not pass through the gateway of its run.
    GatewayBypassed,
    /// The supervisor was interrupted.
    Interrupted,
    /// The supervisor was killed.
    SupervisorLost,
}

impl Reason {
    /// All reasons.
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

    /// Returns the stable machine-readable name.
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

    /// Returns the reason with this name, or `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// How an attempt ended, according to its stream and its process (CG-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttemptVerdict {
    /// It ended by itself.
    Whole,
    /// It was cut off.
    Truncated,
    /// It stopped although its own to-do list has open points.
    WrappedUp,
    /// Its context is full.
    ContextExhausted,
    /// It reached its own limit on turns or money.
    Budget,
    /// It was stopped after too long a silence.
    Stuck,
    /// It was stopped because it exceeded the time limit of an attempt.
    TimedOut,
    /// Its process or its stream ended unexpectedly.
    Crashed,
    /// It received a model reply that did not pass through the gateway of its run.
    Bypassed,
}

impl AttemptVerdict {
    /// All verdicts.
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

    /// Returns the stable machine-readable name.
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

/// The facts about a finished attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptFacts {
    /// Whether the artifact meets its criteria.
    pub checks_pass: bool,
    /// How the attempt itself ended.
    pub verdict: AttemptVerdict,
    /// Whether a call used more of the model's context than the threshold allows.
    pub is_at_risk: bool,
    /// The number of further attempts allowed.
    pub attempts_left: u32,
    /// Whether the last two attempts changed neither the artifact nor its findings.
    pub is_without_progress: bool,
    /// The state of the run's own limits on time and money.
    pub ceiling: Ceiling,
}

/// The state of a run's limits on time and money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// No limit is reached.
    Below,
    /// A limit is reached, and the attempt ended by itself.
    Reached,
    /// The attempt was stopped at a limit.
    Stopped,
}

/// The decision after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The run ends successfully.
    Succeed,
    /// The agent is started again.
    Retry(Reason),
    /// The run ends with the artifact unchanged.
    Release(Reason),
    /// The run fails.
    Fail(Reason),
}

/// Decides what follows an attempt, first by the artifact and then by how the attempt ended (CG-3).
///
/// ```
/// use endmark_guard::{AttemptFacts, AttemptVerdict, Ceiling, Decision, Reason, decide};
///
/// let facts = AttemptFacts {
///     checks_pass: false,
///     verdict: AttemptVerdict::Whole,
///     is_at_risk: false,
///     attempts_left: 1,
///     is_without_progress: false,
///     ceiling: Ceiling::Below,
/// };
/// assert_eq!(decide(facts), Decision::Retry(Reason::ContextGuardFail));
/// assert_eq!(decide(AttemptFacts { is_at_risk: true, ..facts }), Decision::Release(Reason::ContextExhaustion));
/// ```
pub fn decide(facts: AttemptFacts) -> Decision {
    // If the agent bypasses the gateway, its cost is not counted and its limits are not enforced. A finished
    // artifact does not make up for that.
    if facts.verdict == AttemptVerdict::Bypassed {
        return Decision::Fail(Reason::GatewayBypassed);
    }
    if !facts.checks_pass {
        return decide_unfinished(facts);
    }
    // A limit of the run does not affect finished work: an artifact that passes was finished in time.
    if facts.ceiling == Ceiling::Stopped {
        return Decision::Succeed;
    }
    match facts.verdict {
        AttemptVerdict::Whole => Decision::Succeed,
        AttemptVerdict::Truncated | AttemptVerdict::WrappedUp => decide_unfinished(facts),
        AttemptVerdict::ContextExhausted => Decision::Release(Reason::ContextExhaustion),
        AttemptVerdict::Budget => Decision::Release(Reason::Budget),
        AttemptVerdict::Stuck => decide_after_failure(facts, Reason::Stalled),
        AttemptVerdict::TimedOut => decide_after_failure(facts, Reason::AttemptTime),
        AttemptVerdict::Crashed => decide_after_failure(facts, Reason::AgentCrash),
        AttemptVerdict::Bypassed => Decision::Fail(Reason::GatewayBypassed),
    }
}

/// Decides what follows an attempt that left the artifact unfinished.
fn decide_unfinished(facts: AttemptFacts) -> Decision {
    // An agent that reports a full context has exceeded any threshold.
    let is_full = facts.is_at_risk || facts.verdict == AttemptVerdict::ContextExhausted;
    if is_full || facts.attempts_left == 0 {
        Decision::Release(Reason::ContextExhaustion)
    } else if facts.ceiling != Ceiling::Below {
        Decision::Release(Reason::Budget)
    } else if facts.is_without_progress {
        Decision::Fail(Reason::Stalled)
    } else {
        Decision::Retry(Reason::ContextGuardFail)
    }
}

/// Decides what follows an attempt in which the agent failed.
fn decide_after_failure(facts: AttemptFacts, reason: Reason) -> Decision {
    if facts.attempts_left == 0 {
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

    const PASSING_FACTS: AttemptFacts = AttemptFacts {
        checks_pass: true,
        verdict: AttemptVerdict::Whole,
        is_at_risk: false,
        attempts_left: 1,
        is_without_progress: false,
        ceiling: Ceiling::Below,
    };

    #[test]
    fn the_decision_table_matches_the_specification() {
        use AttemptVerdict::{
            Budget, Bypassed, ContextExhausted, Crashed, Stuck, TimedOut, Truncated, Whole, WrappedUp,
        };
        use Decision::{Fail, Release, Retry, Succeed};
        let with = |verdict| AttemptFacts { verdict, ..PASSING_FACTS };
        let last = |facts: AttemptFacts| AttemptFacts { attempts_left: 0, ..facts };
        let lacking = |verdict| AttemptFacts { checks_pass: false, verdict, ..PASSING_FACTS };
        for (facts, expected) in [
            (with(Whole), Succeed),
            (last(with(Whole)), Succeed),
            // The threshold alone is only a warning.
            (AttemptFacts { is_at_risk: true, ..PASSING_FACTS }, Succeed),
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
            (AttemptFacts { is_at_risk: true, ..lacking(Whole) }, Release(Reason::ContextExhaustion)),
            (lacking(ContextExhausted), Release(Reason::ContextExhaustion)),
            (lacking(Crashed), Retry(Reason::ContextGuardFail)),
            (AttemptFacts { is_without_progress: true, ..lacking(Whole) }, Fail(Reason::Stalled)),
            (
                last(AttemptFacts { is_without_progress: true, ..lacking(Whole) }),
                Release(Reason::ContextExhaustion),
            ),
            (AttemptFacts { ceiling: Ceiling::Reached, ..lacking(Whole) }, Release(Reason::Budget)),
            (AttemptFacts { ceiling: Ceiling::Reached, ..with(Crashed) }, Release(Reason::Budget)),
            (AttemptFacts { ceiling: Ceiling::Stopped, ..with(Stuck) }, Succeed),
        ] {
            assert_eq!(decide(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn outcome_names_round_trip() {
        for state in State::ALL {
            assert_eq!(State::parse(state.name()), Some(state));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.name()), Some(reason));
        }
    }
}
