//! Supervises a run from its first attempt to its end.

use std::fs::{DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, Instant};

use endmark_guard::{
    AgentStream, AgentUsage, Artifact, AttemptEnd, AttemptJudgement, AttemptResult, AttemptVerdict, Finding,
    ProcessEnd, RetryPrompt, RiskRule, Run, RunEvent, RunStep, State, StopCause, TokenUsage,
};
use endmark_process::{
    CommandEnd, CommandInput, CommandPlan, EndSignals, ForcedEnd, GroupKeeper, ProcessExit, TimeLimits,
    run as run_process,
};
use endmark_store::Recorder;

use crate::artifact::{JudgedArtifact, inspect};
use crate::call::{AgentCommand, AgentSession, can_choose_session, can_resume};
use crate::identity::session_id;
use crate::listening::{AttemptListener, RunInProgress, judge_bypass};
use crate::record::{LiveRunRecord, RecordWriter};
use crate::report::AgentRun;
use crate::task::{RunObserver, Task};

/// The outcome of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// The report of the run.
    pub run: AgentRun,
    /// The findings in the artifact.
    pub findings: Vec<Finding>,
    /// Warnings for the user, whatever the outcome is.
    pub warnings: Vec<String>,
    /// The signal that stopped the supervisor. `None` if it was not stopped.
    pub signal: Option<i32>,
    /// The error if the agent could not be started.
    pub start_error: Option<io::Error>,
}

/// Supervises a run until it ends. If there is a recorder, the run is in the store before its agent is
/// started.
pub async fn supervise(
    task: &Task,
    recorder: Option<Recorder>,
    watch: &mut dyn RunObserver,
    signals: &mut EndSignals,
) -> RunOutcome {
    let rule = RiskRule {
        threshold: task.guard.criteria().token_usage_warning_threshold,
        limit_tokens: task.limit_tokens,
    };
    let run = match &task.resumed {
        Some(taken_up) => Run::resume(task.limits, rule, taken_up.before),
        None => Run::new(task.limits, rule),
    };
    let mut scene = RunInProgress {
        task,
        run,
        live_record: LiveRunRecord::new(task),
        writer: None,
        watch,
        started_at: Instant::now(),
    };
    scene.live_record.copy_state(&scene.run);
    scene.live_record.set_seconds(scene.seconds());
    record_start(&mut scene, recorder).await;
    let mut memory = NextAttempt::new(&mut scene);
    let mut last = None;
    let mut outcome = SupervisionEnd::default();
    while let RunStep::Start(_) = scene.run.next_step() {
        let attempt = match run_attempt(&mut scene, &mut memory, signals).await {
            Ok(attempt) => attempt,
            Err(error) => {
                outcome.start_error = Some(error);
                scene.handle(RunEvent::NotStarted);
                break;
            }
        };
        outcome.signal = attempt.signal;
        report_attempt_end(&mut scene, &attempt);
        if scene.run.next_step() != RunStep::Done {
            memory.prepare(&scene, &attempt);
        }
        last = Some(attempt);
    }
    if let Some(writer) = scene.writer.take() {
        writer.close(scene.watch).await;
    }
    let mut warnings = last.as_ref().map(|last| last.attempt_warnings(scene.run.state())).unwrap_or_default();
    if scene.run.limit_tokens().is_none() && scene.run.token_usage().total > 0 {
        warnings
            .push("the limit of the model's context is unknown, so no context risk was computed".to_owned());
    }
    RunOutcome {
        run: scene.live_record.report(),
        findings: last.map(|last| last.artifact.report.findings().to_vec()).unwrap_or_default(),
        warnings,
        signal: outcome.signal,
        start_error: outcome.start_error,
    }
}

#[derive(Default)]
struct SupervisionEnd {
    signal: Option<i32>,
    start_error: Option<io::Error>,
}

/// Records the run, and creates the folder for the agent's output.
async fn record_start(scene: &mut RunInProgress<'_>, recorder: Option<Recorder>) {
    if let Some(recorder) = recorder {
        let writer = RecordWriter::open(recorder.clone());
        writer.enqueue(&scene.live_record, &[]);
        // Wait for the commit before anything is started. A run that is not in the store could get lost.
        writer.close(scene.watch).await;
        scene.writer = Some(RecordWriter::open(recorder));
    }
    if let Some(folder) = &scene.task.transcripts
        && let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(folder)
    {
        scene.watch.warn(&format!("the agent's output cannot be saved in `{}`: {error}", folder.display()));
    }
}

fn first_session(task: &Task) -> AgentSession {
    if !can_choose_session(task.agent, &task.command) {
        return AgentSession::Fresh;
    }
    session_id().map_or(AgentSession::Fresh, AgentSession::Chosen)
}

/// The session and the prompt of the next attempt.
struct NextAttempt {
    session: AgentSession,
    /// Number of tokens that the session has used so far.
    used_tokens: TokenUsage,
    /// The cost of the session so far in billionths of a dollar. `None` if it is unknown.
    cost_nanodollars: Option<u64>,
    prompt: Option<String>,
    /// Whether the prompt lists what is missing.
    is_retry: bool,
}

/// An attempt that has ended, with its results.
struct FinishedAttempt {
    judgement: AttemptJudgement,
    stream: AgentStream,
    usage: AgentUsage,
    artifact: JudgedArtifact,
    end: CommandEnd,
    stop_cause: Option<StopCause>,
    signal: Option<i32>,
    /// Whether the attempt has resumed a session.
    was_resumed: bool,
}

impl FinishedAttempt {
    fn attempt_warnings(&self, state: State) -> Vec<String> {
        if state != State::Succeeded {
            return Vec::new();
        }
        let what = match self.end.end {
            ProcessExit::Exited(0) => return Vec::new(),
            ProcessExit::Exited(code) => format!("the agent's exit code was {code}"),
            ProcessExit::Killed(_) | ProcessExit::Unknown if self.stop_cause.is_some() => {
                "the agent had to be stopped".to_owned()
            }
            ProcessExit::Killed(_) | ProcessExit::Unknown => "the agent did not end by itself".to_owned(),
        };
        vec![format!("the artifact is finished, but {what}")]
    }
}

/// Variable with the id of the run.
pub(crate) const RUN_VARIABLE: &str = "ENDMARK_RUN";
/// Variable with the number of the attempt, counted from 1.
const ATTEMPT_VARIABLE: &str = "ENDMARK_ATTEMPT";
/// Variable with the prompt that lists what is missing. It is only set for a retry.
const RETRY_PROMPT_VARIABLE: &str = "ENDMARK_RETRY_PROMPT";

/// The environment variables that a supervised agent and its commands get.
pub const AGENT_VARIABLES: [&str; 3] = [RUN_VARIABLE, ATTEMPT_VARIABLE, RETRY_PROMPT_VARIABLE];

/// Runs the agent once, and checks the artifact afterwards.
async fn run_attempt(
    scene: &mut RunInProgress<'_>,
    next_attempt: &mut NextAttempt,
    signals: &mut EndSignals,
) -> io::Result<FinishedAttempt> {
    let task = scene.task;
    let number = scene.run.attempt() + 1;
    let words = task.gateway.as_ref().map_or(task.command.as_slice(), |between| between.command());
    let call = AgentCommand::new(task.agent, words, &next_attempt.session, next_attempt.prompt.as_deref());
    let (program, arguments) =
        call.words.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut variables = vec![
        (RUN_VARIABLE.to_owned(), task.id.clone().into()),
        (ATTEMPT_VARIABLE.to_owned(), number.to_string().into()),
    ];
    if let Some(prompt) = next_attempt.prompt.as_ref().filter(|_| next_attempt.is_retry) {
        variables.push((RETRY_PROMPT_VARIABLE.to_owned(), prompt.into()));
    }
    variables.extend(task.gateway.iter().flat_map(|between| between.variables().to_vec()));
    let left = Duration::from_secs(task.limits.seconds.get()).saturating_sub(scene.duration());
    let keeper = GroupKeeper::start()?;
    let plan = CommandPlan {
        program,
        arguments,
        variables: &variables,
        withheld: task.gateway.as_ref().map_or(&[], |between| between.withheld_variables()),
        folder: Some(&task.folder),
        stdin: write_input_file(call.input.as_deref())?,
        limits: TimeLimits {
            total: Some(task.max_attempt_time.min(left)),
            max_silence: Some(task.max_silence),
            exit_grace: task.exit_grace,
            grace: task.grace,
        },
        keeper: Some(&keeper),
    };
    let was_resumed = matches!(next_attempt.session, AgentSession::Resumed(_));
    let stream =
        AgentStream::new(task.agent).continuing_from(next_attempt.used_tokens, next_attempt.cost_nanodollars);
    let mut listening = AttemptListener::new(scene, stream);
    let ended = run_process(plan, &mut listening, signals).await;
    let (mut stream, received_before) = listening.finish();
    // From here on, no process of the group can change the artifact.
    drop(keeper);
    let end = ended?;
    let is_used_up = task.gateway.as_ref().is_some_and(|between| between.has_refused_for_budget());
    let stopped = match end.forced {
        // If the budget is used up, another attempt is impossible, regardless of what the agent did after the
        // refusal.
        _ if is_used_up => Some(StopCause::Ceiling),
        Some(ForcedEnd::TimedOut) if left <= task.max_attempt_time => Some(StopCause::Ceiling),
        Some(ForcedEnd::TimedOut) => Some(StopCause::Time),
        Some(ForcedEnd::Silent) => Some(StopCause::Silence),
        Some(ForcedEnd::OutputHeldOpen) => Some(StopCause::DidNotExit),
        Some(ForcedEnd::Stopped) => Some(StopCause::Ceiling),
        Some(ForcedEnd::Signalled(_)) | None => None,
    };
    let process = match end.end {
        ProcessExit::Exited(code) => ProcessEnd::Exited(code),
        ProcessExit::Killed(signal) => ProcessEnd::Killed(signal),
        ProcessExit::Unknown => ProcessEnd::Unknown,
    };
    let signal = match end.forced {
        Some(ForcedEnd::Signalled(signal)) => Some(signal.as_raw()),
        _ => None,
    };
    let judged = stream.finish(AttemptEnd { process, stop_cause: stopped });
    let judged = judge_bypass(task, &stream, received_before).unwrap_or(judged);
    let usage = attempt_usage(scene, &stream).await;
    let judged_artifact = inspect_artifact(scene);
    Ok(FinishedAttempt {
        judgement: judged,
        stream,
        usage,
        artifact: judged_artifact,
        end,
        stop_cause: stopped,
        signal,
        was_resumed,
    })
}

/// Returns the usage that the gateway has measured, or the usage that the agent reports if there is no
/// gateway.
async fn attempt_usage(scene: &mut RunInProgress<'_>, stream: &AgentStream) -> AgentUsage {
    let reported = stream.usage().clone();
    let Some(gateway) = &scene.task.gateway else { return reported };
    match gateway.take_usage().await {
        Ok(Some(counted)) => AgentUsage {
            model: reported.model.or(counted.model),
            context_tokens: reported.context_tokens,
            cost_nanodollars: counted.cost_nanodollars.or(reported.cost_nanodollars),
            ..counted
        },
        Ok(None) if gateway.has_refused_for_budget() => reported,
        Ok(None) => {
            let message = "no call of the agent used the gateway, so the usage is the agent's own report";
            scene.watch.warn(message);
            reported
        }
        Err(error) => {
            scene
                .watch
                .warn(&format!("the usage is the agent's own report, because the ledger has none: {error}"));
            reported
        }
    }
}

/// Reads and checks the artifact. If it cannot be read, shows a warning.
fn inspect_artifact(scene: &mut RunInProgress<'_>) -> JudgedArtifact {
    let task = scene.task;
    match inspect(&task.folder.join(&task.artifact), &task.guard) {
        Ok(seen) => seen,
        Err(error) => {
            scene.watch.warn(&format!("`{}` cannot be read: {error}", task.artifact.display()));
            JudgedArtifact {
                text: None,
                report: endmark_guard::Assessment::missing(),
                fingerprint: error.to_string(),
            }
        }
    }
}

/// Returns standard input with this text. The text is written to an unnamed temporary file.
fn write_input_file(text: Option<&str>) -> io::Result<CommandInput> {
    let Some(text) = text else { return Ok(CommandInput::Empty) };
    let mut file: File = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(CommandInput::File(file))
}

/// Reports the end of an attempt to the state machine.
fn report_attempt_end(scene: &mut RunInProgress<'_>, over: &FinishedAttempt) {
    scene.live_record.set_process(None);
    scene.live_record.set_session(&over.stream);
    scene.live_record.set_judgement(&over.judgement, over.artifact.report.findings());
    if let Some(model) = &over.usage.model {
        scene.run.learn_limit(scene.task.models.find(model).and_then(|model| model.context_tokens));
    }
    let event = if over.signal.is_some() {
        RunEvent::Interrupted
    } else {
        RunEvent::Ended(AttemptResult {
            checks_pass: over.artifact.report.findings().is_empty(),
            fingerprint: over.artifact.fingerprint.clone(),
            verdict: over.judgement.verdict,
            usage: over.usage.clone(),
            run_seconds: scene.seconds(),
            was_stopped_at_ceiling: over.stop_cause == Some(StopCause::Ceiling),
        })
    };
    scene.handle(event);
}

impl NextAttempt {
    /// Prepares the first attempt. Its prompt is the task, or a list of what is missing if the run is
    /// resumed.
    fn new(scene: &mut RunInProgress<'_>) -> Self {
        let task = scene.task;
        let mut next_attempt = Self {
            session: first_session(task),
            used_tokens: TokenUsage::default(),
            cost_nanodollars: None,
            prompt: task.prompt.clone(),
            is_retry: false,
        };
        if let Some(resumed) = task.resumed.as_ref().filter(|taken_up| taken_up.has_begun) {
            if let Some(session) = resumed.session.clone().filter(|_| can_resume(task.agent, &task.command)) {
                next_attempt.session = AgentSession::Resumed(session);
                next_attempt.used_tokens = resumed.session_usage;
            }
            let judged_artifact = inspect_artifact(scene);
            let evidence = ["its supervisor was killed, which also ended the agent".to_owned()];
            next_attempt.set_retry_prompt(
                scene,
                &judged_artifact,
                scene.run.attempt() + 1,
                AttemptVerdict::Crashed,
                &evidence,
                "",
            );
        }
        next_attempt
    }

    /// Chooses the session and the prompt for the attempt after this one.
    fn prepare(&mut self, scene: &RunInProgress<'_>, over: &FinishedAttempt) {
        let task = scene.task;
        // If resuming the session failed, do not resume it again.
        let is_lost = over.was_resumed
            && over.judgement.verdict == AttemptVerdict::Crashed
            && !over.stream.has_events();
        let can_continue = can_resume(task.agent, &task.command) && !is_lost;
        if let Some(session) = over.stream.session().filter(|_| can_continue) {
            self.session = AgentSession::Resumed(session.to_owned());
            self.used_tokens = over.stream.session_usage();
            self.cost_nanodollars = over.stream.session_cost_nanodollars();
        } else {
            self.session = first_session(task);
            self.used_tokens = TokenUsage::default();
            self.cost_nanodollars = None;
        }
        let AttemptJudgement { verdict, evidence } = &over.judgement;
        self.set_retry_prompt(
            scene,
            &over.artifact,
            scene.run.attempt(),
            *verdict,
            evidence,
            over.stream.last_message(),
        );
    }

    /// Sets a prompt that states what is missing and how the last attempt ended.
    fn set_retry_prompt(
        &mut self,
        scene: &RunInProgress<'_>,
        seen: &JudgedArtifact,
        attempt: u32,
        verdict: AttemptVerdict,
        evidence: &[String],
        reported: &str,
    ) {
        let task = scene.task;
        let is_fresh = !matches!(self.session, AgentSession::Resumed(_));
        let path = task.artifact.display().to_string();
        let artifact = seen.text.as_deref().map(|text| Artifact::read_file(text, &path));
        let prompt = RetryPrompt {
            path: &path,
            artifact: artifact.as_ref(),
            report: &seen.report,
            attempt: (attempt, scene.run.limits().attempts.get()),
            verdict,
            evidence,
            last_message: reported,
            task: task.prompt.as_deref().filter(|_| is_fresh),
        };
        self.prompt = Some(prompt.text());
        self.is_retry = true;
    }
}
