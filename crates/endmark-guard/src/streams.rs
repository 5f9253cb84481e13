//! Parses the event streams of agents, and decides which of their statements are reliable. (CG-2, CG-4)
//!
//! The exit code and the reported success of an agent are never trusted alone. Each parser covers the cases
//! in which its agent reports a cut-off run as a success. Bytes are pushed as they arrive, and the current
//! state can be read at any time.

mod account;
mod claude;
mod codex;
mod exhaustion;
mod gemini;
mod lines;
mod opencode;
mod plain;
mod tail;

#[cfg(test)]
mod tests;

use endmark_text::replace_lone_surrogate_bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outcome::AttemptVerdict;
use crate::usage::{AgentUsage, TokenUsage};
use account::AttemptState;
use lines::LineSplitter;

/// An agent with a known stream format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    /// Claude Code with `--output-format stream-json --verbose`.
    Claude,
    /// Codex with `exec --json`.
    Codex,
    /// Gemini CLI with `--output-format stream-json`.
    Gemini,
    /// opencode with `run --format json`.
    Opencode,
    /// Any other command. Only its exit is known.
    Plain,
}

impl Agent {
    /// All agents.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Plain];

    /// Returns the agent's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Plain => "plain",
        }
    }

    /// Returns the agent with this name, or `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// It is unknown how the process ended.
    Unknown,
}

/// Why the supervisor stopped a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// The agent was silent for too long.
    Silence,
    /// The attempt took too long.
    Time,
    /// A limit of the run was reached.
    Ceiling,
    /// The agent reported its end, but did not exit.
    DidNotExit,
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptEnd {
    /// How the process ended.
    pub process: ProcessEnd,
    /// Why the supervisor stopped the process, if it did.
    pub stop_cause: Option<StopCause>,
}

/// The verdict on an attempt, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptJudgement {
    /// The verdict.
    pub verdict: AttemptVerdict,
    /// The evidence, one sentence each. The first sentence was decisive.
    pub evidence: Vec<String>,
}

impl AttemptJudgement {
    /// Returns the judgement of an attempt whose agent received replies that did not pass through the gateway
    /// of its run.
    pub fn bypass(reported: u64, received: u64) -> Self {
        let evidence = format!(
            "the agent reports at least {reported} replies of a model, and the run's gateway received {received} requests for one"
        );
        Self::new(AttemptVerdict::Bypassed, evidence)
    }

    fn new(verdict: AttemptVerdict, evidence: impl Into<String>) -> Self {
        Self { verdict, evidence: vec![evidence.into()] }
    }
}

/// Parses the stream of one agent.
trait StreamParser: std::fmt::Debug {
    /// Processes the next event.
    fn read_event(&mut self, event: &Value, account: &mut AttemptState);

    /// Returns the verdict at the end of the stream.
    fn judge(&self, account: &AttemptState, process: ProcessEnd) -> AttemptJudgement;
}

/// Parses and judges the stream of one attempt.
///
/// ```
/// use endmark_guard::{Agent, AgentStream, AttemptEnd, AttemptVerdict, ProcessEnd};
///
/// let mut stream = AgentStream::new(Agent::Claude);
/// stream.push(br#"{"type":"system","subtype":"init","session_id":"s1","model":"m"}
/// {"type":"result","subtype":"success","is_error":false,"result":"","stop_reason":"tool_use","session_id":"s1"}
/// "#);
/// assert!(stream.is_over());
/// // It reports "success" but stopped in the middle of its work.
/// let judged = stream.finish(AttemptEnd { process: ProcessEnd::Exited(0), stop_cause: None });
/// assert_eq!(judged.verdict, AttemptVerdict::Truncated);
/// ```
#[derive(Debug)]
pub struct AgentStream {
    lines: LineSplitter,
    parser: Box<dyn StreamParser + Send>,
    account: AttemptState,
}

impl AgentStream {
    /// Creates an empty stream of this agent.
    pub fn new(agent: Agent) -> Self {
        let dialect: Box<dyn StreamParser + Send> = match agent {
            Agent::Claude => Box::new(claude::Claude::default()),
            Agent::Codex => Box::new(codex::Codex::default()),
            Agent::Gemini => Box::new(gemini::Gemini::default()),
            Agent::Opencode => Box::new(opencode::Opencode::default()),
            Agent::Plain => Box::new(plain::Plain),
        };
        let lines = if agent == Agent::Plain { LineSplitter::ignoring() } else { LineSplitter::default() };
        Self { lines, parser: dialect, account: AttemptState::default() }
    }

    /// Sets the usage of the session before this attempt. Some agents report the sum over the whole session,
    /// and the usage of earlier attempts must not count twice.
    #[must_use]
    pub fn continuing_from(mut self, used: TokenUsage, cost_nanodollars: Option<u64>) -> Self {
        (self.account.usage_before, self.account.cost_before) = (used, cost_nanodollars);
        self
    }

    /// Returns the usage of the whole session so far, including earlier attempts.
    pub fn session_usage(&self) -> TokenUsage {
        self.account.usage_before.plus(self.account.usage.run)
    }

    /// Returns the cost of the whole session so far, in billionths of a US dollar. Returns `None` if the cost
    /// of any attempt is unknown.
    pub fn session_cost_nanodollars(&self) -> Option<u64> {
        let before = if self.account.usage_before.total == 0 { Some(0) } else { self.account.cost_before };
        before?.checked_add(self.account.usage.cost_nanodollars?)
    }

    /// Processes the next bytes of the agent's standard output.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { lines, parser: dialect, account } = self;
        lines.push(bytes, |line| read_line(line, dialect.as_mut(), account));
    }

    /// Returns the id with which the session can be resumed.
    pub fn session(&self) -> Option<&str> {
        self.account.session.as_deref()
    }

    /// Returns the usage of this attempt so far.
    pub fn usage(&self) -> &AgentUsage {
        &self.account.usage
    }

    /// Returns the minimum number of model replies that the agent reports. Each reply needed its own request,
    /// so a gateway that receives all requests of the agent receives at least as many. Codex and Gemini CLI
    /// do not report single calls, so all their calls count as one.
    pub fn model_calls(&self) -> u64 {
        self.account.model_calls
    }

    /// Returns whether the agent has reported its end. Later events change nothing.
    pub fn is_over(&self) -> bool {
        self.account.is_over
    }

    /// Returns whether the stream contained any event of this agent.
    pub fn has_events(&self) -> bool {
        self.account.events > 0
    }

    /// Returns the agent's last message to the user.
    pub fn last_message(&self) -> &str {
        &self.account.last_message
    }

    /// Ends the stream and returns the judgement of the attempt.
    pub fn finish(&mut self, end: AttemptEnd) -> AttemptJudgement {
        let Self { lines, parser: dialect, account } = self;
        let too_long = lines.finish(|line| read_line(line, dialect.as_mut(), account));
        let stuck = |why: &str| AttemptJudgement::new(AttemptVerdict::Stuck, why);
        let mut judged = match end.stop_cause {
            Some(StopCause::Silence) if !account.is_over => {
                stuck("nothing came from the agent for longer than it may be silent; it was stopped")
            }
            Some(StopCause::Time) if !account.is_over => AttemptJudgement::new(
                AttemptVerdict::TimedOut,
                "the attempt took longer than it may; it was stopped",
            ),
            Some(StopCause::Ceiling) if !account.is_over => AttemptJudgement::new(
                AttemptVerdict::Budget,
                "a ceiling of the run was reached; the agent was stopped",
            ),
            _ => dialect.judge(account, end.process),
        };
        if end.stop_cause == Some(StopCause::DidNotExit) {
            judged.evidence.push("the agent did not end behind its last event; it was stopped".to_owned());
        }
        match end.process {
            ProcessEnd::Exited(0) => {}
            ProcessEnd::Exited(code) => judged.evidence.push(format!("the exit code is {code}")),
            ProcessEnd::Killed(signal) if end.stop_cause.is_none() => {
                judged.evidence.push(format!("signal {signal} ended the process"));
            }
            ProcessEnd::Killed(_) => {}
            ProcessEnd::Unknown => judged.evidence.push("it is unknown how the process ended".to_owned()),
        }
        if too_long > 0 {
            judged.evidence.push(format!("{too_long} lines of the stream were too long to be read"));
        }
        judged
    }
}

/// Parses a line and forwards it if it is an event. Agents and their wrappers also print other lines.
fn read_line(line: &[u8], dialect: &mut dyn StreamParser, account: &mut AttemptState) {
    // Do a cheap test first, because most other lines do not begin with `{`, and an agent may print any
    // number of them.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return;
    }
    if let Ok(event @ Value::Object(_)) = serde_json::from_slice::<Value>(&replace_lone_surrogate_bytes(line))
    {
        dialect.read_event(&event, account);
    }
}
