//! A supervised run as a machine: it is fed what happened, and answers what to do next. (CG-3, CG-4)

use std::num::{NonZeroU32, NonZeroU64};

use crate::outcome::{AttemptVerdict, Ceiling, Decision, Facts, Reason, State, decide};
use crate::usage::{Risk, TokenUsage, Usage, risk};

/// Where a run ends at the latest. None of them can be 0, which elsewhere means "no limit".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// How often the agent is started.
    pub attempts: NonZeroU32,
    /// How long all attempts may take together.
    pub seconds: NonZeroU64,
    /// What all attempts may cost together, in billionths of a US dollar.
    pub nanodollars: Option<NonZeroU64>,
}

/// From which use of a model's context on a run is at risk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RiskRule {
    /// The share of the context (CG-1).
    pub threshold: f64,
    /// The model's limit, if it is known from elsewhere than the agent.
    pub limit_tokens: Option<u64>,
}

/// What was done of a run before its supervisor was killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    /// How many attempts came to an end.
    pub attempts_over: u32,
    /// What all of them used, with the one that was under way.
    pub usage: TokenUsage,
    /// What they cost, in billionths of a US dollar, as far as the agent says so.
    pub nanodollars: Option<u64>,
    /// How long the run had taken, in seconds.
    pub seconds: u64,
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// Whether the artifact meets its criteria.
    pub checks_pass: bool,
    /// What stands for the artifact and what it lacks: equal where nothing changed.
    pub fingerprint: String,
    /// How it ended.
    pub verdict: AttemptVerdict,
    /// What it used.
    pub usage: Usage,
    /// How long the run has taken up to now, with all its attempts.
    pub run_seconds: u64,
    /// Whether it was stopped at a ceiling of the run.
    pub was_stopped_at_ceiling: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The agent was started.
    Started,
    /// This much was used by the attempt under way, which has taken the run so long.
    Used(Usage, u64),
    /// The attempt is over.
    Ended(Attempted),
    /// The agent cannot be started at all.
    NotStarted,
    /// Somebody wants an end.
    Interrupted,
}

/// What is to be reported, under the names of CG-4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An attempt began.
    Started,
    /// A call used more of the context than the threshold; or only the sum of all calls is known, and is above.
    ContextRisk {
        /// Whether it is the sum alone.
        is_sum: bool,
    },
    /// There is to be another attempt.
    RetryQueued(Reason),
    /// The run is over for want of context.
    ContextExhausted,
    /// The artifact is finished.
    Succeeded,
    /// The run was let go of.
    Released(Reason),
    /// The agent did not do its part.
    Failed(Reason),
}

impl Notice {
    /// The event's name.
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

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStep {
    /// Start the agent: this is its attempt of that number, from 1.
    Start(u32),
    /// Wait for what the agent does.
    Wait,
    /// End the agent: a ceiling of the run is reached. Its artifact is judged all the same.
    Stop,
    /// Nothing.
    Done,
}

/// How many attempts in a row may change nothing.
const MOST_WITHOUT_PROGRESS: u32 = 2;

/// One run, from `queued` to a final state.
///
/// ```
/// use std::num::{NonZeroU32, NonZeroU64};
/// use endmark_guard::{AttemptVerdict, Attempted, Notice, Reason, RiskRule, Run, RunEvent, RunLimits, RunStep, State, Usage};
///
/// let limits = RunLimits { attempts: NonZeroU32::new(2).unwrap(), seconds: NonZeroU64::new(600).unwrap(), nanodollars: None };
/// let mut run = Run::new(limits, RiskRule { threshold: 0.85, limit_tokens: None });
/// let stub = Attempted {
///     checks_pass: false,
///     fingerprint: "stub".to_owned(),
///     verdict: AttemptVerdict::Whole,
///     usage: Usage::default(),
///     run_seconds: 20,
///     was_stopped_at_ceiling: false,
/// };
/// assert_eq!(run.next_step(), RunStep::Start(1));
/// run.handle(RunEvent::Started);
/// assert_eq!(run.handle(RunEvent::Ended(stub.clone())), [Notice::RetryQueued(Reason::ContextGuardFail)]);
/// assert_eq!(run.next_step(), RunStep::Start(2));
/// run.handle(RunEvent::Started);
/// run.handle(RunEvent::Ended(Attempted { checks_pass: true, ..stub }));
/// assert_eq!((run.state(), run.next_step()), (State::Succeeded, RunStep::Done));
/// ```
#[derive(Debug, Clone)]
pub struct Run {
    limits: RunLimits,
    rule: RiskRule,
    table_limit_tokens: Option<u64>,
    state: State,
    reason: Option<Reason>,
    attempt: u32,
    /// What attempts that are over used.
    spent: TokenUsage,
    spent_nanodollars: Option<u64>,
    /// What the attempt under way, or the last one, used.
    usage: Usage,
    /// The risk of that attempt, and whether it was reported.
    risk: Risk,
    is_risk_reported: bool,
    seconds: u64,
    last_fingerprint: Option<String>,
    without_progress: u32,
}

impl Run {
    /// A run that is queued.
    pub fn new(limits: RunLimits, rule: RiskRule) -> Self {
        Self {
            limits,
            rule,
            table_limit_tokens: None,
            state: State::Queued,
            reason: None,
            attempt: 0,
            spent: TokenUsage::default(),
            spent_nanodollars: None,
            usage: Usage::default(),
            risk: Risk::Unknown,
            is_risk_reported: false,
            seconds: 0,
            last_fingerprint: None,
            without_progress: 0,
        }
    }

    /// A run that is taken up again after its supervisor was killed. The attempt that was under way then was not the agent's to end: it
    /// counts for what it used and took, and not as a try.
    pub fn taken_up(limits: RunLimits, rule: RiskRule, before: Before) -> Self {
        Self {
            attempt: before.attempts_over,
            spent: before.usage,
            spent_nanodollars: before.nanodollars,
            seconds: before.seconds,
            ..Self::new(limits, rule)
        }
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why, where there is more to say than the state does.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The attempt under way, or the last one, from 1; 0 before the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Where it ends at the latest.
    pub fn limits(&self) -> &RunLimits {
        &self.limits
    }

    /// What all attempts used together.
    pub fn token_usage(&self) -> TokenUsage {
        if self.state == State::Running { self.spent.plus(self.usage.run) } else { self.spent }
    }

    /// What they cost, in billionths of a US dollar, as far as the agent says so.
    pub fn nanodollars(&self) -> Option<u64> {
        let running = self.usage.cost_nanodollars.filter(|_| self.state == State::Running);
        match (self.spent_nanodollars, running) {
            (None, None) => None,
            (spent, running) => Some(spent.unwrap_or(0).saturating_add(running.unwrap_or(0))),
        }
    }

    /// What the attempt under way, or the last one, used.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The model's limit, if anybody knows it.
    pub fn limit_tokens(&self) -> Option<u64> {
        self.rule.limit_tokens.or(self.usage.context_tokens).or(self.table_limit_tokens)
    }

    /// Takes the limit that a table has for the model, once its name is known; what the user or the agent says stands before it.
    pub fn learn_limit(&mut self, tokens: Option<u64>) {
        self.table_limit_tokens = tokens.or(self.table_limit_tokens);
    }

    /// Whether the attempt under way, or the last one, is or was about to run out of context.
    pub fn risk(&self) -> Risk {
        self.risk
    }

    /// What is to be done.
    pub fn next_step(&self) -> RunStep {
        match self.state {
            State::Queued | State::RetryQueued => RunStep::Start(self.attempt.saturating_add(1)),
            State::Running if self.is_over_ceiling() => RunStep::Stop,
            State::Running => RunStep::Wait,
            State::Succeeded | State::Released | State::Failed => RunStep::Done,
        }
    }

    /// Takes what happened; answers what is to be reported. What cannot happen in a state changes nothing.
    pub fn handle(&mut self, event: RunEvent) -> Vec<Notice> {
        match (self.state, event) {
            (State::Queued | State::RetryQueued, RunEvent::Started) => {
                self.state = State::Running;
                self.reason = None;
                self.attempt = self.attempt.saturating_add(1);
                self.usage = Usage::default();
                self.risk = Risk::Unknown;
                self.is_risk_reported = false;
                vec![Notice::Started]
            }
            (State::Queued | State::RetryQueued, RunEvent::NotStarted) => {
                self.finish(Decision::Fail(Reason::AgentCrash))
            }
            (State::Queued | State::RetryQueued | State::Running, RunEvent::Interrupted) => {
                self.settle();
                self.finish(Decision::Release(Reason::Interrupted))
            }
            (State::Running, RunEvent::Used(usage, seconds)) => self.used(usage, seconds),
            (State::Running, RunEvent::Ended(attempted)) => self.ended(attempted),
            _ => Vec::new(),
        }
    }

    fn used(&mut self, usage: Usage, seconds: u64) -> Vec<Notice> {
        self.usage = usage;
        self.seconds = self.seconds.max(seconds);
        self.risk = risk(&self.usage, self.rule.threshold, self.limit_tokens());
        let is_sum = match self.risk {
            Risk::Exceeded => false,
            Risk::SumOnly => true,
            Risk::None | Risk::Unknown => return Vec::new(),
        };
        if std::mem::replace(&mut self.is_risk_reported, true) {
            return Vec::new();
        }
        vec![Notice::ContextRisk { is_sum }]
    }

    fn ended(&mut self, attempted: Attempted) -> Vec<Notice> {
        let mut notices = self.used(attempted.usage, attempted.run_seconds);
        let is_over_ceiling = self.is_over_ceiling();
        self.settle();
        if self.last_fingerprint.as_ref() == Some(&attempted.fingerprint) {
            self.without_progress += 1;
        } else {
            self.without_progress = 0;
            self.last_fingerprint = Some(attempted.fingerprint);
        }
        let ceiling = match (attempted.was_stopped_at_ceiling, is_over_ceiling) {
            (true, _) => Ceiling::Stopped,
            (false, true) => Ceiling::Reached,
            (false, false) => Ceiling::Below,
        };
        let decision = decide(Facts {
            checks_pass: attempted.checks_pass,
            verdict: attempted.verdict,
            is_at_risk: self.risk == Risk::Exceeded,
            tries_left: self.limits.attempts.get().saturating_sub(self.attempt),
            is_without_progress: self.without_progress >= MOST_WITHOUT_PROGRESS,
            ceiling,
        });
        notices.extend(self.finish(decision));
        notices
    }

    /// The attempt's use becomes a part of the run's.
    fn settle(&mut self) {
        if self.state == State::Running {
            self.spent_nanodollars = self.nanodollars();
            self.spent = self.spent.plus(self.usage.run);
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
