//! What agents say of themselves, line by line, and what of it can be believed. (CG-2, CG-4)
//!
//! An agent's exit code and its own "success" are never trusted alone: each reader knows how its agent reports a run that was
//! cut off as one that ended well. Bytes go in as they come; what is known up to now can be asked at any time.

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
use crate::usage::{TokenUsage, Usage};
use account::Account;
use lines::Lines;

/// An agent whose stream is known.
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
    /// Any command: nothing is known but how it ended.
    Plain,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Plain];

    /// The name that is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Plain => "plain",
        }
    }

    /// The agent with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// Nobody knows how.
    Unknown,
}

/// Why a process was made to end by its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedFor {
    /// Nothing came from it for too long.
    Silence,
    /// Its attempt took too long.
    Time,
    /// A ceiling of the run was reached.
    Ceiling,
    /// It said that it was done, and did not end.
    Lingering,
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptEnd {
    /// How the process ended.
    pub process: ProcessEnd,
    /// Why it was made to, if it was.
    pub stopped: Option<StoppedFor>,
}

/// What an attempt came to, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptJudgement {
    /// The one verdict.
    pub verdict: AttemptVerdict,
    /// How one knows, a sentence each; the first one decided.
    pub evidence: Vec<String>,
}

impl AttemptJudgement {
    /// The judgement of an attempt that had replies from elsewhere than the gateway of its run.
    pub fn bypassed(reported: u64, received: u64) -> Self {
        let evidence = format!(
            "the agent reports at least {reported} replies of a model, and the run's gateway received {received} requests for one"
        );
        Self::new(AttemptVerdict::Bypassed, evidence)
    }

    fn new(verdict: AttemptVerdict, evidence: impl Into<String>) -> Self {
        Self { verdict, evidence: vec![evidence.into()] }
    }
}

/// What is particular to one agent's stream.
trait Dialect: std::fmt::Debug {
    /// Takes the next event.
    fn event(&mut self, event: &Value, account: &mut Account);

    /// The verdict of what was said, once the stream is at its end.
    fn judge(&self, account: &Account, process: ProcessEnd) -> AttemptJudgement;
}

/// Reads the stream of one attempt.
///
/// ```
/// use endmark_guard::{Agent, AgentStream, AttemptEnd, AttemptVerdict, ProcessEnd};
///
/// let mut stream = AgentStream::new(Agent::Claude);
/// stream.push(br#"{"type":"system","subtype":"init","session_id":"s1","model":"m"}
/// {"type":"result","subtype":"success","is_error":false,"result":"","stop_reason":"tool_use","session_id":"s1"}
/// "#);
/// assert!(stream.is_over());
/// // It says "success" and has stopped in the middle of its work.
/// let judged = stream.finish(AttemptEnd { process: ProcessEnd::Exited(0), stopped: None });
/// assert_eq!(judged.verdict, AttemptVerdict::Truncated);
/// ```
#[derive(Debug)]
pub struct AgentStream {
    lines: Lines,
    dialect: Box<dyn Dialect + Send>,
    account: Account,
}

impl AgentStream {
    /// A stream of this agent, of which nothing has come yet.
    pub fn new(agent: Agent) -> Self {
        let dialect: Box<dyn Dialect + Send> = match agent {
            Agent::Claude => Box::new(claude::Claude::default()),
            Agent::Codex => Box::new(codex::Codex::default()),
            Agent::Gemini => Box::new(gemini::Gemini::default()),
            Agent::Opencode => Box::new(opencode::Opencode::default()),
            Agent::Plain => Box::new(plain::Plain),
        };
        let lines = if agent == Agent::Plain { Lines::ignored() } else { Lines::default() };
        Self { lines, dialect, account: Account::default() }
    }

    /// A stream in which a session goes on that has used this much already: some agents report the sum of the whole session, and what is
    /// known of the earlier attempts is not to count twice.
    #[must_use]
    pub fn going_on_from(mut self, used: TokenUsage, cost_nanodollars: Option<u64>) -> Self {
        (self.account.before, self.account.cost_before) = (used, cost_nanodollars);
        self
    }

    /// What the session used up to now, the attempts before this one included.
    pub fn session_usage(&self) -> TokenUsage {
        self.account.before.plus(self.account.usage.run)
    }

    /// What the session cost up to now, in billionths of a US dollar; none where that is not known of all of its attempts.
    pub fn session_cost_nanodollars(&self) -> Option<u64> {
        let before = if self.account.before.total == 0 { Some(0) } else { self.account.cost_before };
        before?.checked_add(self.account.usage.cost_nanodollars?)
    }

    /// Takes the next bytes of the agent's standard output.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { lines, dialect, account } = self;
        lines.push(bytes, |line| take(line, dialect.as_mut(), account));
    }

    /// The session's id, with which the agent can be asked to go on.
    pub fn session(&self) -> Option<&str> {
        self.account.session.as_deref()
    }

    /// What was used up to now.
    pub fn usage(&self) -> &Usage {
        &self.account.usage
    }

    /// How many replies of a model the agent reports, at least. Each had its own request, so that a gateway which all of the
    /// agent's requests go through has received no fewer. Codex and Gemini CLI do not report single calls: theirs count as one.
    pub fn model_calls(&self) -> u64 {
        self.account.model_calls
    }

    /// Whether the agent has said its last word; what comes behind it changes nothing.
    pub fn is_over(&self) -> bool {
        self.account.is_over
    }

    /// Whether anything came that is an event of this agent.
    pub fn has_events(&self) -> bool {
        self.account.events > 0
    }

    /// What the agent said last to whoever gave it its task.
    pub fn said(&self) -> &str {
        &self.account.said
    }

    /// Ends the stream, and says what the attempt came to.
    pub fn finish(&mut self, end: AttemptEnd) -> AttemptJudgement {
        let Self { lines, dialect, account } = self;
        let too_long = lines.finish(|line| take(line, dialect.as_mut(), account));
        let stuck = |why: &str| AttemptJudgement::new(AttemptVerdict::Stuck, why);
        let mut judged = match end.stopped {
            Some(StoppedFor::Silence) if !account.is_over => {
                stuck("nothing came from the agent for longer than it may be silent; it was stopped")
            }
            Some(StoppedFor::Time) if !account.is_over => AttemptJudgement::new(
                AttemptVerdict::TimedOut,
                "the attempt took longer than it may; it was stopped",
            ),
            Some(StoppedFor::Ceiling) if !account.is_over => AttemptJudgement::new(
                AttemptVerdict::Budget,
                "a ceiling of the run was reached; the agent was stopped",
            ),
            _ => dialect.judge(account, end.process),
        };
        if end.stopped == Some(StoppedFor::Lingering) {
            judged.evidence.push("the agent did not end behind its last event; it was stopped".to_owned());
        }
        match end.process {
            ProcessEnd::Exited(0) => {}
            ProcessEnd::Exited(code) => judged.evidence.push(format!("the exit code is {code}")),
            ProcessEnd::Killed(signal) if end.stopped.is_none() => {
                judged.evidence.push(format!("signal {signal} ended the process"));
            }
            ProcessEnd::Killed(_) => {}
            ProcessEnd::Unknown => judged.evidence.push("nobody knows how the process ended".to_owned()),
        }
        if too_long > 0 {
            judged.evidence.push(format!("{too_long} lines of the stream were too long to be read"));
        }
        judged
    }
}

/// Hands on a line that is an event; agents and what is wrapped around them print other lines, too.
fn take(line: &[u8], dialect: &mut dyn Dialect, account: &mut Account) {
    // Most that is no event does not begin like one, and an agent may print any amount of it.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return;
    }
    if let Ok(event @ Value::Object(_)) = serde_json::from_slice::<Value>(&replace_lone_surrogate_bytes(line))
    {
        dialect.event(&event, account);
    }
}
