//! The state machine of a supervised run. It processes events and returns the next step. (CG-3, CG-4)

use std::num::{NonZeroU32, NonZeroU64};

use crate::outcome::{AttemptFacts, AttemptVerdict, Ceiling, Decision, Reason, State, decide};
use crate::usage::{AgentUsage, ContextRisk, TokenUsage, risk};

/// The limits of a run. No limit can be 0, because 0 means "no limit" elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// The maximum number of attempts.
    pub attempts: NonZeroU32,
    /// The maximum time of all attempts together, in seconds.
    pub seconds: NonZeroU64,
    /// The maximum cost of all attempts together, in billionths of a US dollar.
    pub nanodollars: Option<NonZeroU64>,
}

/// Decides when a run's context is at risk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RiskRule {
    /// The share of the model's context from which a run is at risk (CG-1).
    pub threshold: f64,
    /// The model's context limit, if a source other than the agent states it.
    pub limit_tokens: Option<u64>,
}

/// The progress of a run before its supervisor was killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EarlierProgress {
    /// The number of finished attempts.
    pub finished_attempts: u32,
    /// The usage of all attempts, including the interrupted one.
    pub usage: TokenUsage,
    /// The cost of all attempts in billionths of a US dollar, if the agent reports it.
    pub nanodollars: Option<u64>,
    /// The elapsed time of the run, in seconds.
    pub seconds: u64,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    /// Whether the artifact meets its criteria.
    pub checks_pass: bool,
    /// Fingerprint of the artifact and its findings. Equal fingerprints mean that nothing changed.
    pub fingerprint: String,
    /// How the attempt ended.
    pub verdict: AttemptVerdict,
    /// The usage of the attempt.
    pub usage: AgentUsage,
    /// The elapsed time of the run with all its attempts.
    pub run_seconds: u64,
    /// Whether the attempt was stopped at a limit of the run.
    pub was_stopped_at_ceiling: bool,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The agent was started.
    Started,
    /// The usage of the current attempt, and the elapsed time of the run.
    Used(AgentUsage, u64),
    /// The attempt has ended.
    Ended(AttemptResult),
    /// The agent cannot be started.
    NotStarted,
    /// The run was interrupted from outside.
    Interrupted,
}

/// A notice about a run. CG-4 defines the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An attempt started.
    Started,
    /// A call exceeded the context threshold. Or only the sum of all calls is known and exceeds it.
    ContextRisk {
        /// Whether only the sum of all calls is known.
        is_sum: bool,
    },
    /// Another attempt will follow.
    RetryQueued(Reason),
    /// The run ended because the context is exhausted.
    ContextExhausted,
    /// The artifact is finished.
    Succeeded,
    /// The run was released with the artifact unchanged.
    Released(Reason),
    /// The agent failed.
    Failed(Reason),
}

impl Notice {
    /// Returns the name of the notice, as CG-4 defines it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "agent_run.started",
            Self::ContextRisk { .. } => "agent_run.context_risk",
            Self::RetryQueued(_) => "agent_run.retry_queued",
            Self::ContextExhausted => "agent_run.context_exhausted",
            Self::Succeeded => "agent_run.succeeded",
            Self::Released(_) => "agent_run.released",
            Self::Failed(_) => "agent_run.failed",
        }
    }
}

/// The next step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStep {
    /// Start the agent. The number of the attempt counts from 1.
    Start(u32),
    /// Wait for the agent.
    Wait,
    /// Stop the agent, because a limit of the run is reached. Its artifact is still checked.
    Stop,
    /// The run has ended.
    Done,
}

/// The number of consecutive attempts without any change after which a run ends.
const MAX_ATTEMPTS_WITHOUT_PROGRESS: u32 = 2;

/// One run, from `queued` to a final state.
///
/// ```
/// use std::num::{NonZeroU32, NonZeroU64};
/// use endmark_guard::{AgentUsage, AttemptResult, AttemptVerdict, Notice, Reason, RiskRule};
/// use endmark_guard::{Run, RunEvent, RunLimits, RunStep, State};
///
/// let limits = RunLimits { attempts: NonZeroU32::new(2).unwrap(), seconds: NonZeroU64::new(600).unwrap(), nanodollars: None };
/// let mut run = Run::new(limits, RiskRule { threshold: 0.85, limit_tokens: None });
/// let stub = AttemptResult {
///     checks_pass: false,
///     fingerprint: "stub".to_owned(),
///     verdict: AttemptVerdict::Whole,
///     usage: AgentUsage::default(),
///     run_seconds: 20,
///     was_stopped_at_ceiling: false,
/// };
/// assert_eq!(run.next_step(), RunStep::Start(1));
/// run.handle(RunEvent::Started);
/// assert_eq!(run.handle(RunEvent::Ended(stub.clone())), [Notice::RetryQueued(Reason::ContextGuardFail)]);
/// assert_eq!(run.next_step(), RunStep::Start(2));
/// run.handle(RunEvent::Started);
/// run.handle(RunEvent::Ended(AttemptResult { checks_pass: true, ..stub }));
/// assert_eq!((run.state(), run.next_step()), (State::Succeeded, RunStep::Done));
/// ```
#[derive(Debug, Clone)]
pub struct Run {
    limits: RunLimits,
    risk_rule: RiskRule,
    table_limit_tokens: Option<u64>,
    state: State,
    reason: Option<Reason>,
    attempt: u32,
    /// The usage of finished attempts.
    spent_tokens: TokenUsage,
    spent_nanodollars: Option<u64>,
    /// The usage of the current or last attempt.
    usage: AgentUsage,
    /// The context risk of that attempt.
    risk: ContextRisk,
    is_risk_reported: bool,
    seconds: u64,
    last_fingerprint: Option<String>,
    attempts_without_progress: u32,
}

impl Run {
    /// Creates a queued run.
    pub fn new(limits: RunLimits, rule: RiskRule) -> Self {
        Self {
            limits,
            risk_rule: rule,
            table_limit_tokens: None,
            state: State::Queued,
            reason: None,
            attempt: 0,
            spent_tokens: TokenUsage::default(),
            spent_nanodollars: None,
            usage: AgentUsage::default(),
            risk: ContextRisk::Unknown,
            is_risk_reported: false,
            seconds: 0,
            last_fingerprint: None,
            attempts_without_progress: 0,
        }
    }

    /// Resumes a run whose supervisor was killed. The usage and the time of the interrupted attempt count. It
    /// does not count as an attempt, because the agent did not cause the interruption.
    pub fn resume(limits: RunLimits, rule: RiskRule, before: EarlierProgress) -> Self {
        Self {
            attempt: before.finished_attempts,
            spent_tokens: before.usage,
            spent_nanodollars: before.nanodollars,
            seconds: before.seconds,
            ..Self::new(limits, rule)
        }
    }

    /// Returns the current state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the reason for the state, if it has one.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// Returns the number of the current or last attempt, from 1. Returns 0 before the first attempt.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the limits of the run.
    pub fn limits(&self) -> &RunLimits {
        &self.limits
    }

    /// Returns the usage of all attempts together.
    pub fn token_usage(&self) -> TokenUsage {
        if self.state == State::Running { self.spent_tokens.plus(self.usage.run) } else { self.spent_tokens }
    }

    /// Returns the cost of all attempts in billionths of a US dollar, if the agent reports it.
    pub fn nanodollars(&self) -> Option<u64> {
        let running = self.usage.cost_nanodollars.filter(|_| self.state == State::Running);
        match (self.spent_nanodollars, running) {
            (None, None) => None,
            (spent, running) => Some(spent.unwrap_or(0).saturating_add(running.unwrap_or(0))),
        }
    }

    /// Returns the usage of the current or last attempt.
    pub fn usage(&self) -> &AgentUsage {
        &self.usage
    }

    /// Returns the model's context limit in tokens, if it is known.
    pub fn limit_tokens(&self) -> Option<u64> {
        self.risk_rule.limit_tokens.or(self.usage.context_tokens).or(self.table_limit_tokens)
    }

    /// Sets the context limit from the model table, once the model is known. Limits from the user or the
    /// agent take precedence.
    pub fn learn_limit(&mut self, tokens: Option<u64>) {
        self.table_limit_tokens = tokens.or(self.table_limit_tokens);
    }

    /// Returns the context risk of the current or last attempt.
    pub fn risk(&self) -> ContextRisk {
        self.risk
    }

    /// Returns the next step.
    pub fn next_step(&self) -> RunStep {
        match self.state {
            State::Queued | State::RetryQueued => RunStep::Start(self.attempt.saturating_add(1)),
            State::Running if self.is_over_ceiling() => RunStep::Stop,
            State::Running => RunStep::Wait,
            State::Succeeded | State::Released | State::Failed => RunStep::Done,
        }
    }

    /// Processes an event and returns the notices to report. Ignores an event that does not apply in the
    /// current state.
    pub fn handle(&mut self, event: RunEvent) -> Vec<Notice> {
        match (self.state, event) {
            (State::Queued | State::RetryQueued, RunEvent::Started) => {
                self.state = State::Running;
                self.reason = None;
                self.attempt = self.attempt.saturating_add(1);
                self.usage = AgentUsage::default();
                self.risk = ContextRisk::Unknown;
                self.is_risk_reported = false;
                vec![Notice::Started]
            }
            (State::Queued | State::RetryQueued, RunEvent::NotStarted) => {
                self.finish(Decision::Fail(Reason::AgentCrash))
            }
            (State::Queued | State::RetryQueued | State::Running, RunEvent::Interrupted) => {
                self.add_attempt_usage();
                self.finish(Decision::Release(Reason::Interrupted))
            }
            (State::Running, RunEvent::Used(usage, seconds)) => self.add_usage(usage, seconds),
            (State::Running, RunEvent::Ended(attempted)) => self.note_end(attempted),
            _ => Vec::new(),
        }
    }

    fn add_usage(&mut self, usage: AgentUsage, seconds: u64) -> Vec<Notice> {
        self.usage = usage;
        self.seconds = self.seconds.max(seconds);
        self.risk = risk(&self.usage, self.risk_rule.threshold, self.limit_tokens());
        let is_sum = match self.risk {
            ContextRisk::Exceeded => false,
            ContextRisk::SumOnly => true,
            ContextRisk::None | ContextRisk::Unknown => return Vec::new(),
        };
        if std::mem::replace(&mut self.is_risk_reported, true) {
            return Vec::new();
        }
        vec![Notice::ContextRisk { is_sum }]
    }

    fn note_end(&mut self, result: AttemptResult) -> Vec<Notice> {
        let mut notices = self.add_usage(result.usage, result.run_seconds);
        let is_over_ceiling = self.is_over_ceiling();
        self.add_attempt_usage();
        if self.last_fingerprint.as_ref() == Some(&result.fingerprint) {
            self.attempts_without_progress += 1;
        } else {
            self.attempts_without_progress = 0;
            self.last_fingerprint = Some(result.fingerprint);
        }
        let ceiling = match (result.was_stopped_at_ceiling, is_over_ceiling) {
            (true, _) => Ceiling::Stopped,
            (false, true) => Ceiling::Reached,
            (false, false) => Ceiling::Below,
        };
        let decision = decide(AttemptFacts {
            checks_pass: result.checks_pass,
            verdict: result.verdict,
            is_at_risk: self.risk == ContextRisk::Exceeded,
            attempts_left: self.limits.attempts.get().saturating_sub(self.attempt),
            is_without_progress: self.attempts_without_progress >= MAX_ATTEMPTS_WITHOUT_PROGRESS,
            ceiling,
        });
        notices.extend(self.finish(decision));
        notices
    }

    /// Adds the usage of the attempt to the usage of the run.
    fn add_attempt_usage(&mut self) {
        if self.state == State::Running {
            self.spent_nanodollars = self.nanodollars();
            self.spent_tokens = self.spent_tokens.plus(self.usage.run);
        }
    }

    fn is_over_ceiling(&self) -> bool {
        self.seconds >= self.limits.seconds.get()
            || self
                .limits
                .nanodollars
                .is_some_and(|ceiling| self.nanodollars().is_some_and(|spent| spent >= ceiling.get()))
    }

    fn finish(&mut self, decision: Decision) -> Vec<Notice> {
        let (state, reason, notice) = match decision {
            Decision::Succeed => (State::Succeeded, None, Notice::Succeeded),
            Decision::Retry(reason) => (State::RetryQueued, Some(reason), Notice::RetryQueued(reason)),
            Decision::Release(reason) => (State::Released, Some(reason), Notice::Released(reason)),
            Decision::Fail(reason) => (State::Failed, Some(reason), Notice::Failed(reason)),
        };
        (self.state, self.reason) = (state, reason);
        if notice == Notice::Released(Reason::ContextExhaustion) {
            return vec![Notice::ContextExhausted, notice];
        }
        vec![notice]
    }
}

#[cfg(test)]
mod tests;
