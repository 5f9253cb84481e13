//! Supervises a run of an agent for another scheduler: reads the agent's output and artifact, and decides the
//! next step.

use std::num::{NonZeroU32, NonZeroU64};

use endmark::context::{Models, dollars};
use endmark::guard::{
    Agent, AgentStream, AgentUsage, Artifact, Assessment, AttemptEnd, AttemptJudgement, AttemptResult,
    ContextRisk, Guard, Notice, ProcessEnd, RetryPrompt, RiskRule, Run, RunEvent, RunLimits, RunStep, State,
    StopCause, TokenUsage,
};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::guard;
use crate::options::{answer, find_input, input_text, parse, unknown_method, unknown_word};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// The criteria for the artifact, the same as in the options of `guard`.
    criteria: guard::Options,
    /// The agent that writes the stream; `plain` for any other command.
    #[serde(default)]
    agent: Option<String>,
    max_attempts: NonZeroU32,
    #[serde(default)]
    max_seconds: Option<NonZeroU64>,
    /// The model's limit, if the caller knows it better than the agent or the table of models.
    #[serde(default)]
    limit_tokens: Option<u64>,
}

/// The usage of an attempt so far, reported by a custom agent.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Used {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    /// The largest single call: the sum of its input and its output.
    #[serde(default)]
    largest_call: Option<u64>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputOptions {
    /// Duration of the run in seconds, over all attempts.
    #[serde(default)]
    seconds: u64,
    #[serde(default)]
    usage: Option<Used>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndOptions {
    #[serde(default)]
    seconds: u64,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(default)]
    exit_code: Option<i32>,
    #[serde(default)]
    signal: Option<i32>,
    /// The reason why the agent was stopped.
    #[serde(default)]
    stopped: Option<String>,
    /// The path by which the agent knows the artifact. The retry prompt contains it.
    #[serde(default)]
    path: Option<String>,
    /// The task, for an agent that does not remember its last attempt.
    #[serde(default)]
    task: Option<String>,
}

/// A run, with the output stream of the current attempt.
pub(crate) struct AgentRun {
    guard: Guard,
    name: Option<String>,
    agent: Agent,
    stream: AgentStream,
    run: Run,
}

#[derive(Serialize)]
struct ShownRun<'r> {
    state: &'static str,
    reason: Option<&'static str>,
    /// The next step: `start`, `wait`, `stop` or `done`.
    step: &'static str,
    attempt: u32,
    /// The names of the events.
    events: Vec<&'static str>,
    token_usage: TokenUsage,
    usd: Option<String>,
    /// Null if the usage or the model's limit is unknown.
    context_exhaustion_risk: Option<bool>,
    session: Option<&'r str>,
    ended: Option<EndedAttempt<'r>>,
}

#[derive(Serialize)]
struct EndedAttempt<'r> {
    verdict: &'static str,
    evidence: &'r [String],
    report: &'r Assessment,
    retry_prompt: Option<String>,
}

impl AgentRun {
    pub(crate) fn new(options: &str) -> Result<Self, Failure> {
        let options: Options = parse(options)?;
        let name = options.agent.as_deref().unwrap_or("plain");
        let agent = Agent::parse(name)
            .ok_or_else(|| unknown_word("agent", name, &Agent::ALL.map(Agent::name).join(", ")))?;
        let seconds = options.max_seconds.unwrap_or(NonZeroU64::MAX);
        let limits = RunLimits { attempts: options.max_attempts, seconds, nanodollars: None };
        let (guard, name) = options.criteria.read()?;
        let threshold = guard.criteria().token_usage_warning_threshold;
        let run = Run::new(limits, RiskRule { threshold, limit_tokens: options.limit_tokens });
        Ok(Self { guard, name, agent, stream: AgentStream::new(agent), run })
    }

    pub(crate) fn call(&mut self, method: &str, inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
        match method {
            "started" => {
                self.stream = AgentStream::new(self.agent);
                let notices = self.run.handle(RunEvent::Started);
                self.to_json(&notices, None)
            }
            "output" => {
                let options: OutputOptions = parse(options)?;
                self.stream.push(find_input(inputs, 0)?);
                let usage = self.usage(options.usage);
                let notices = self.run.handle(RunEvent::Used(usage, options.seconds));
                self.to_json(&notices, None)
            }
            "ended" => self.note_end(inputs, parse(options)?),
            "interrupted" => {
                let notices = self.run.handle(RunEvent::Interrupted);
                self.to_json(&notices, None)
            }
            "not_started" => {
                let notices = self.run.handle(RunEvent::NotStarted);
                self.to_json(&notices, None)
            }
            _ => Err(unknown_method(method)),
        }
    }

    /// Returns the usage of the attempt, as the caller reported it. Without a report, it comes from the
    /// agent's stream.
    fn usage(&mut self, used: Option<Used>) -> AgentUsage {
        let usage = used.map_or_else(
            || self.stream.usage().clone(),
            |used| AgentUsage {
                run: TokenUsage::new(used.input, used.output),
                largest_call_tokens: used.largest_call,
                model: used.model,
                ..AgentUsage::default()
            },
        );
        let model = usage.model.as_deref().and_then(|model| Models::builtin().find(model));
        self.run.learn_limit(model.and_then(|model| model.context_tokens));
        usage
    }

    fn note_end(&mut self, inputs: &[&[u8]], options: EndOptions) -> Result<String, Failure> {
        let written = if inputs.is_empty() { None } else { Some(input_text(inputs, 0)?) };
        let stopped = options.stopped.as_deref().map(parse_stopped).transpose()?;
        let process = match (options.exit_code, options.signal) {
            (_, Some(signal)) => ProcessEnd::Killed(signal),
            (Some(code), None) => ProcessEnd::Exited(code),
            (None, None) => ProcessEnd::Unknown,
        };
        let judged = self.stream.finish(AttemptEnd { process, stop_cause: stopped });
        let artifact = written.map(|written| guard::artifact(written, self.name.as_deref()));
        let report =
            artifact.as_ref().map_or_else(Assessment::missing, |artifact| self.guard.judge(artifact));
        let checks: Vec<&str> = report.findings().iter().map(|finding| finding.check.name()).collect();
        let attempted = AttemptResult {
            checks_pass: report.findings().is_empty(),
            fingerprint: format!("{written:?} {}", checks.join(" ")),
            verdict: judged.verdict,
            usage: self.usage(options.usage),
            run_seconds: options.seconds,
            was_stopped_at_ceiling: stopped == Some(StopCause::Ceiling),
        };
        let notices = self.run.handle(RunEvent::Ended(attempted));
        let path = options.path.as_deref().or(self.name.as_deref()).unwrap_or("the artifact");
        let retry = self.retry(&judged, artifact.as_ref(), &report, path, options.task.as_deref());
        let ended = EndedAttempt {
            verdict: judged.verdict.name(),
            evidence: &judged.evidence,
            report: &report,
            retry_prompt: (self.run.state() == State::RetryQueued).then_some(retry),
        };
        self.to_json(&notices, Some(ended))
    }

    fn retry(
        &self,
        judged: &AttemptJudgement,
        artifact: Option<&Artifact<'_>>,
        report: &Assessment,
        path: &str,
        task: Option<&str>,
    ) -> String {
        let attempt = (self.run.attempt(), self.run.limits().attempts.get());
        let (verdict, evidence) = (judged.verdict, judged.evidence.as_slice());
        let message = self.stream.last_message();
        RetryPrompt { path, artifact, report, attempt, verdict, evidence, last_message: message, task }.text()
    }

    fn to_json(&self, notices: &[Notice], ended: Option<EndedAttempt<'_>>) -> Result<String, Failure> {
        let step = match self.run.next_step() {
            RunStep::Start(_) => "start",
            RunStep::Wait => "wait",
            RunStep::Stop => "stop",
            RunStep::Done => "done",
        };
        let risk = self.run.risk();
        answer(&ShownRun {
            state: self.run.state().name(),
            reason: self.run.reason().map(endmark::guard::Reason::name),
            step,
            attempt: self.run.attempt(),
            events: notices.iter().map(|notice| notice.name()).collect(),
            token_usage: self.run.token_usage(),
            usd: self.run.nanodollars().map(dollars),
            context_exhaustion_risk: (risk != ContextRisk::Unknown).then_some(risk == ContextRisk::Exceeded),
            session: self.stream.session(),
            ended,
        })
    }
}

fn parse_stopped(word: &str) -> Result<StopCause, Failure> {
    Ok(match word {
        "silence" => StopCause::Silence,
        "time" => StopCause::Time,
        "ceiling" => StopCause::Ceiling,
        "lingering" => StopCause::DidNotExit,
        _ => return Err(unknown_word("stopped", word, "silence, time, ceiling or lingering")),
    })
}
