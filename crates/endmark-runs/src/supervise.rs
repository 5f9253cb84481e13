//! Supervises a run until it ends.

use std::fs::{DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, Instant};

use endmark_guard::{
    AgentStream, Artifact, AttemptEnd, AttemptJudgement, AttemptResult, AttemptVerdict, Finding, ProcessEnd,
    RetryPrompt, RiskRule, Run, RunEvent, RunStep, State, StopCause, TokenUsage, Usage,
};
use endmark_process::{CommandEnd, End, ForcedEnd, Keeper, Plan, Signals, Stdin, Times, run as run_process};
use endmark_store::Recorder;

use crate::artifact::{JudgedArtifact, inspect};
use crate::call::{Call, Session, can_choose, can_resume};
use crate::identity::session_id;
use crate::listening::{AttemptListener, RunInProgress, judge_bypass};
use crate::record::{RecordWriter, RunSheet};
use crate::report::AgentRun;
use crate::task::{Task, Watch};

/// Outcome of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// The report of the run.
    pub run: AgentRun,
    /// The findings in its artifact.
    pub findings: Vec<Finding>,
    /// Warnings, regardless of the outcome.
    pub warnings: Vec<String>,
    /// The signal that stopped the supervisor, if there was one.
    pub signal: Option<i32>,
    /// The error if the agent could not be started.
    pub start_error: Option<io::Error>,
}

/// Supervises a run until it ends. With a recorder, the run is in the store before its agent is started.
pub async fn supervise(
    task: &Task,
    recorder: Option<Recorder>,
    watch: &mut dyn Watch,
    signals: &mut Signals,
) -> RunOutcome {
    let rule = RiskRule {
        threshold: task.guard.criteria().token_usage_warning_threshold,
        limit_tokens: task.limit_tokens,
    };
    let run = match &task.resumed {
        Some(taken_up) => Run::resume(task.limits, rule, taken_up.before),
        None => Run::new(task.limits, rule),
    };
    let mut scene =
        RunInProgress { task, run, sheet: RunSheet::new(task), writer: None, watch, began: Instant::now() };
    scene.sheet.follow(&scene.run);
    scene.sheet.set_seconds(scene.seconds());
    enter(&mut scene, recorder).await;
    let mut memory = NextAttempt::new(&mut scene);
    let mut last = None;
    let mut outcome = Outcome::default();
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
        settle(&mut scene, &attempt);
        if scene.run.next_step() != RunStep::Done {
            memory.prepare(&scene, &attempt);
        }
        last = Some(attempt);
    }
    if let Some(desk) = scene.writer.take() {
        desk.close(scene.watch).await;
    }
    let mut warnings = last.as_ref().map(|last| last.warnings(scene.run.state())).unwrap_or_default();
    if scene.run.limit_tokens().is_none() && scene.run.token_usage().total > 0 {
        warnings
            .push("the limit of the model's context is unknown, so no context risk was computed".to_owned());
    }
    RunOutcome {
        run: scene.sheet.report(),
        findings: last.map(|last| last.artifact.report.findings().to_vec()).unwrap_or_default(),
        warnings,
        signal: outcome.signal,
        start_error: outcome.start_error,
    }
}

#[derive(Default)]
struct Outcome {
    signal: Option<i32>,
    start_error: Option<io::Error>,
}

/// Records the run, and creates the folder for the agent's output.
async fn enter(scene: &mut RunInProgress<'_>, recorder: Option<Recorder>) {
    if let Some(recorder) = recorder {
        let desk = RecordWriter::open(recorder.clone());
        desk.put(&scene.sheet, &[]);
        // Committed before anything is started, because a run that is not in the store could be lost.
        desk.close(scene.watch).await;
        scene.writer = Some(RecordWriter::open(recorder));
    }
    if let Some(folder) = &scene.task.transcripts
        && let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(folder)
    {
        scene.watch.warn(&format!("the agent's output cannot be saved in `{}`: {error}", folder.display()));
    }
}

fn first_session(task: &Task) -> Session {
    if !can_choose(task.agent, &task.command) {
        return Session::Fresh;
    }
    session_id().map_or(Session::Fresh, Session::Chosen)
}

/// Initial state of the next attempt.
struct NextAttempt {
    session: Session,
    /// Tokens that the session has used so far.
    used_tokens: TokenUsage,
    /// The cost of the session so far, if it is known.
    cost_nanodollars: Option<u64>,
    prompt: Option<String>,
    /// Whether the prompt lists what is missing.
    is_retry: bool,
}

/// An attempt that has ended.
struct FinishedAttempt {
    judgement: AttemptJudgement,
    stream: AgentStream,
    usage: Usage,
    artifact: JudgedArtifact,
    end: CommandEnd,
    stop_cause: Option<StopCause>,
    signal: Option<i32>,
    /// Whether the attempt resumed a session.
    was_resumed: bool,
}

impl FinishedAttempt {
    fn warnings(&self, state: State) -> Vec<String> {
        if state != State::Succeeded {
            return Vec::new();
        }
        let what = match self.end.end {
            End::Exited(0) => return Vec::new(),
            End::Exited(code) => format!("the agent's exit code was {code}"),
            End::Killed(_) | End::Unknown if self.stop_cause.is_some() => {
                "the agent had to be stopped".to_owned()
            }
            End::Killed(_) | End::Unknown => "the agent did not end by itself".to_owned(),
        };
        vec![format!("the artifact is finished, but {what}")]
    }
}

/// Environment variable with the run's id.
pub(crate) const RUN_VARIABLE: &str = "ENDMARK_RUN";
/// Environment variable with the number of the attempt, from 1.
const ATTEMPT_VARIABLE: &str = "ENDMARK_ATTEMPT";
/// Environment variable with the prompt that lists what is missing, set for a retry.
const RETRY_PROMPT_VARIABLE: &str = "ENDMARK_RETRY_PROMPT";

/// The environment variables for a supervised agent and its commands.
pub const AGENT_VARIABLES: [&str; 3] = [RUN_VARIABLE, ATTEMPT_VARIABLE, RETRY_PROMPT_VARIABLE];

/// Runs the agent once, and judges the artifact.
async fn run_attempt(
    scene: &mut RunInProgress<'_>,
    memory: &mut NextAttempt,
    signals: &mut Signals,
) -> io::Result<FinishedAttempt> {
    let task = scene.task;
    let number = scene.run.attempt() + 1;
    let words = task.gateway.as_ref().map_or(task.command.as_slice(), |between| between.command());
    let call = Call::new(task.agent, words, &memory.session, memory.prompt.as_deref());
    let (program, arguments) =
        call.words.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut variables = vec![
        (RUN_VARIABLE.to_owned(), task.id.clone().into()),
        (ATTEMPT_VARIABLE.to_owned(), number.to_string().into()),
    ];
    if let Some(prompt) = memory.prompt.as_ref().filter(|_| memory.is_retry) {
        variables.push((RETRY_PROMPT_VARIABLE.to_owned(), prompt.into()));
    }
    variables.extend(task.gateway.iter().flat_map(|between| between.variables().to_vec()));
    let left = Duration::from_secs(task.limits.seconds.get()).saturating_sub(scene.took());
    let keeper = Keeper::start()?;
    let plan = Plan {
        program,
        arguments,
        variables: &variables,
        withheld: task.gateway.as_ref().map_or(&[], |between| between.withheld()),
        folder: Some(&task.folder),
        stdin: write_input_file(call.input.as_deref())?,
        times: Times {
            total: Some(task.attempt_time.min(left)),
            silence: Some(task.silence),
            exit_grace: task.exit_grace,
            grace: task.grace,
        },
        keeper: Some(&keeper),
    };
    let was_resumed = matches!(memory.session, Session::Resumed(_));
    let stream = AgentStream::new(task.agent).continuing_from(memory.used_tokens, memory.cost_nanodollars);
    let mut listening = AttemptListener::new(scene, stream);
    let ended = run_process(plan, &mut listening, signals).await;
    let (mut stream, received_before) = listening.finish();
    // From here on no process of the group can change the artifact.
    drop(keeper);
    let end = ended?;
    let is_used_up = task.gateway.as_ref().is_some_and(|between| between.has_refused_for_budget());
    let stopped = match end.forced {
        // Without a remaining budget another attempt is impossible, whatever the agent did after the refusal.
        _ if is_used_up => Some(StopCause::Ceiling),
        Some(ForcedEnd::TimedOut) if left <= task.attempt_time => Some(StopCause::Ceiling),
        Some(ForcedEnd::TimedOut) => Some(StopCause::Time),
        Some(ForcedEnd::Silent) => Some(StopCause::Silence),
        Some(ForcedEnd::OutputHeldOpen) => Some(StopCause::DidNotExit),
        Some(ForcedEnd::Stopped) => Some(StopCause::Ceiling),
        Some(ForcedEnd::Signalled(_)) | None => None,
    };
    let process = match end.end {
        End::Exited(code) => ProcessEnd::Exited(code),
        End::Killed(signal) => ProcessEnd::Killed(signal),
        End::Unknown => ProcessEnd::Unknown,
    };
    let signal = match end.forced {
        Some(ForcedEnd::Signalled(signal)) => Some(signal.as_raw()),
        _ => None,
    };
    let judged = stream.finish(AttemptEnd { process, stop_cause: stopped });
    let judged = judge_bypass(task, &stream, received_before).unwrap_or(judged);
    let usage = attempt_usage(scene, &stream).await;
    let seen = look(scene);
    Ok(FinishedAttempt {
        judgement: judged,
        stream,
        usage,
        artifact: seen,
        end,
        stop_cause: stopped,
        signal,
        was_resumed,
    })
}

/// Returns the usage of an attempt, as measured by the gateway, or else as reported by the agent.
async fn attempt_usage(scene: &mut RunInProgress<'_>, stream: &AgentStream) -> Usage {
    let reported = stream.usage().clone();
    let Some(between) = &scene.task.gateway else { return reported };
    match between.take_usage().await {
        Ok(Some(counted)) => Usage {
            model: reported.model.or(counted.model),
            context_tokens: reported.context_tokens,
            cost_nanodollars: counted.cost_nanodollars.or(reported.cost_nanodollars),
            ..counted
        },
        Ok(None) if between.has_refused_for_budget() => reported,
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

/// Reads and judges the artifact.
fn look(scene: &mut RunInProgress<'_>) -> JudgedArtifact {
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

/// Returns standard input with this text, from an unnamed temporary file.
fn write_input_file(text: Option<&str>) -> io::Result<Stdin> {
    let Some(text) = text else { return Ok(Stdin::Empty) };
    let mut file: File = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Stdin::File(file))
}

/// Reports the end of an attempt to the state machine.
fn settle(scene: &mut RunInProgress<'_>, over: &FinishedAttempt) {
    scene.sheet.set_process(None);
    scene.sheet.set_session(&over.stream);
    scene.sheet.set_judgement(&over.judgement, over.artifact.report.findings());
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
    /// Prepares the first attempt, with the task, or with what is missing if the run is resumed.
    fn new(scene: &mut RunInProgress<'_>) -> Self {
        let task = scene.task;
        let mut memory = Self {
            session: first_session(task),
            used_tokens: TokenUsage::default(),
            cost_nanodollars: None,
            prompt: task.prompt.clone(),
            is_retry: false,
        };
        if let Some(taken_up) = task.resumed.as_ref().filter(|taken_up| taken_up.has_begun) {
            if let Some(session) = taken_up.session.clone().filter(|_| can_resume(task.agent, &task.command))
            {
                memory.session = Session::Resumed(session);
                memory.used_tokens = taken_up.session_usage;
            }
            let seen = look(scene);
            let evidence = ["its supervisor was killed, which also ended the agent".to_owned()];
            memory.ask(scene, &seen, scene.run.attempt() + 1, AttemptVerdict::Crashed, &evidence, "");
        }
        memory
    }

    /// Chooses the session and the prompt for the next attempt.
    fn prepare(&mut self, scene: &RunInProgress<'_>, over: &FinishedAttempt) {
        let task = scene.task;
        // If resuming the session failed, the next attempt does not resume it again.
        let is_lost = over.was_resumed
            && over.judgement.verdict == AttemptVerdict::Crashed
            && !over.stream.has_events();
        let can_continue = can_resume(task.agent, &task.command) && !is_lost;
        if let Some(session) = over.stream.session().filter(|_| can_continue) {
            self.session = Session::Resumed(session.to_owned());
            self.used_tokens = over.stream.session_usage();
            self.cost_nanodollars = over.stream.session_cost_nanodollars();
        } else {
            self.session = first_session(task);
            self.used_tokens = TokenUsage::default();
            self.cost_nanodollars = None;
        }
        let AttemptJudgement { verdict, evidence } = &over.judgement;
        self.ask(scene, &over.artifact, scene.run.attempt(), *verdict, evidence, over.stream.last_message());
    }

    /// Sets the prompt for the next attempt: what is missing, and how the last attempt ended.
    fn ask(
        &mut self,
        scene: &RunInProgress<'_>,
        seen: &JudgedArtifact,
        attempt: u32,
        verdict: AttemptVerdict,
        evidence: &[String],
        reported: &str,
    ) {
        let task = scene.task;
        let is_fresh = !matches!(self.session, Session::Resumed(_));
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
