//! Recovers a reply step by step. The caller makes the requests to its model, and passes the replies.

use endmark::{
    AskFailure, CutKind, Ending, ExhaustedCause, Format, Join, OnAmbiguous, Pipeline, PipelineOutcome,
    PipelinePolicy, PipelineResult, PipelineStep, Reply, RequestedReply, Restart, ResumeAsk, ResumeExhausted,
    ResumePolicy, SchemaProblem, Seam, Stop, Strategies, Validate, Verdict, replace_lone_surrogates,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::failure::Failure;
use crate::offsets::Unit;
use crate::options::{answer, format, input_text, parse, parse_asked_from, unknown_method, unknown_word};
use crate::stitch::{check_template, convert_seam};
use crate::stop;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options<'o> {
    /// The required format of the reply. Null if the request names no format.
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    marker: Option<String>,
    /// A JSON Schema for the reply, which then has to be JSON.
    #[serde(default, borrow)]
    schema: Option<&'o RawValue>,
    #[serde(default)]
    max_attempts: Option<u32>,
    #[serde(default)]
    max_corrections: Option<u32>,
    #[serde(default)]
    strategies: Option<Vec<String>>,
    #[serde(default)]
    on_ambiguous: Option<String>,
    #[serde(default)]
    restart: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
    /// Whether the client already has the reply so far, which therefore must not change.
    #[serde(default)]
    is_sent: bool,
    reply: ReplyOptions,
    #[serde(default)]
    offsets: Unit,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ReplyOptions {
    /// The stop reason, in Endmark's or the provider's spelling. Null if none was reported.
    #[serde(default)]
    stop: Option<String>,
    #[serde(default)]
    ending: Option<String>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    reasoned: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResumedOptions {
    reply: ReplyOptions,
    /// How the continuation was requested, for example `exact`.
    join: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedOptions {
    kind: String,
}

/// A JSON Schema. References are resolved only inside the schema.
struct Schema(jsonschema::Validator);

impl Schema {
    fn compile(text: &str) -> Result<Self, Failure> {
        let invalid = |error: String| Failure::invalid("invalid_schema", error);
        let value: Value = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        jsonschema::validator_for(&value).map(Self).map_err(|error| invalid(error.to_string()))
    }
}

impl Validate for Schema {
    fn validate(&self, json: &str) -> Vec<SchemaProblem> {
        let problem = |path: String, message: String| SchemaProblem { path, message };
        let value: Value = match serde_json::from_str(&replace_lone_surrogates(json)) {
            Ok(value) => value,
            Err(error) => return vec![problem(String::new(), error.to_string())],
        };
        let errors = self.0.iter_errors(&value);
        let mut problems: Vec<_> =
            errors.map(|error| problem(error.instance_path().to_string(), error.to_string())).collect();
        problems.sort();
        problems
    }
}

/// The recovery of a reply.
pub(crate) struct Recovery {
    pipeline: Pipeline,
    demanded: Option<Format>,
    unit: Unit,
    first_len: usize,
    /// End of the settled part of the first reply, in bytes. `None` if the reply is malformed.
    settled: Option<usize>,
}

impl Recovery {
    pub(crate) fn new(inputs: &[&[u8]], options: &str) -> Result<Self, Failure> {
        let (received, options): (_, Options<'_>) = (input_text(inputs, 0)?, parse(options)?);
        let demanded =
            options.format.as_deref().map(|name| format(name, options.marker.as_deref())).transpose()?;
        let schema = options.schema.map(|schema| Schema::compile(schema.get())).transpose()?;
        let validator = schema.map(|schema| Box::new(schema) as Box<dyn Validate + Send + Sync>);
        let policy = options.policy(received)?;
        let reply = options.reply.read(received, demanded.is_some())?;
        let found = endmark::detect(received.as_bytes(), demanded.as_ref().unwrap_or(&Format::Text)).verdict;
        let settled = match found {
            Verdict::Truncated(cut) => Some(cut.truncation_index),
            Verdict::Whole => Some(received.len()),
            Verdict::Malformed { .. } => None,
        };
        let pipeline = Pipeline::new(policy, demanded.clone(), validator, reply);
        Ok(Self { pipeline, demanded, unit: options.offsets, first_len: received.len(), settled })
    }

    pub(crate) fn call(&mut self, method: &str, inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
        match method {
            "next" => {}
            "resumed" => {
                let options: ResumedOptions = parse(options)?;
                let reply = options.reply.read(input_text(inputs, 0)?, self.demanded.is_some())?;
                self.pipeline.accept_continuation(reply, parse_join(&options.join)?);
            }
            "corrected" => {
                let reply: ReplyOptions = parse(options)?;
                self.pipeline.accept_correction(reply.read(input_text(inputs, 0)?, self.demanded.is_some())?);
            }
            "failed" => {
                let options: FailedOptions = parse(options)?;
                self.pipeline.note_failure(parse_failure(&options.kind, input_text(inputs, 0)?.to_owned())?);
            }
            _ => return Err(unknown_method(method)),
        }
        self.step()
    }

    fn step(&self) -> Result<String, Failure> {
        match self.pipeline.next() {
            PipelineStep::Resume(ask) => answer(&ShownAsk::new(&ask, self.unit)),
            PipelineStep::Correct(ask) => answer(&ShownCorrection {
                step: "correct",
                attempt: ask.attempt,
                prompt: &ask.prompt,
                text: &ask.text,
            }),
            PipelineStep::Done(outcome) => answer(&ShownOutcome::new(&outcome, self)),
        }
    }
}

impl Options<'_> {
    fn policy(&self, received: &str) -> Result<PipelinePolicy, Failure> {
        let default = PipelinePolicy::default();
        if let Some(template) = &self.prompt {
            check_template(template)?;
        }
        let strategies = match &self.strategies {
            None => Strategies::default(),
            Some(names) => Strategies::parse(names.iter().map(String::as_str))
                .map_err(|error| Failure::invalid("invalid_options", error))?,
        };
        let on_ambiguous = match self.on_ambiguous.as_deref() {
            None | Some("stop") => OnAmbiguous::Stop,
            Some("best") => OnAmbiguous::Best,
            Some(word) => return Err(unknown_word("on_ambiguous", word, "stop or best")),
        };
        let restart = match self.restart.as_deref() {
            None | Some("any") => Restart::Any,
            Some("same") => Restart::Same,
            Some("off") => Restart::Off,
            Some(word) => return Err(unknown_word("restart", word, "any, same or off")),
        };
        Ok(PipelinePolicy {
            resume: ResumePolicy {
                max_attempts: self.max_attempts.unwrap_or(default.resume.max_attempts),
                on_ambiguous,
                restart,
                strategies,
                prompt: self.prompt.clone(),
                sent: if self.is_sent { received.len() } else { 0 },
                room_to_restart: !self.is_sent,
                ..default.resume
            },
            max_corrections: self.max_corrections.unwrap_or(default.max_corrections),
            ..default
        })
    }
}

impl ReplyOptions {
    /// Builds the reply. `is_demanded` is whether a grammar is required.
    fn read(&self, received: &str, is_demanded: bool) -> Result<Reply, Failure> {
        let (stop, by_word) = stop::read(self.stop.as_deref(), is_demanded);
        let ending = match self.ending.as_deref() {
            None => by_word,
            // A stop reason that means a failure takes precedence over a clean end of the stream.
            Some("clean") if self.stop.is_some() => by_word,
            Some("clean") => Ending::Clean,
            Some("dropped") => Ending::Dropped,
            Some("stalled") => Ending::Stalled,
            Some("upstream_error") => Ending::UpstreamError,
            Some(word) => {
                return Err(unknown_word("ending", word, "clean, dropped, stalled or upstream_error"));
            }
        };
        let (output_tokens, limit) = (self.output_tokens, self.limit);
        Ok(Reply { text: received.to_owned(), ending, stop, output_tokens, limit, reasoned: self.reasoned })
    }
}

fn parse_join(name: &str) -> Result<Join, Failure> {
    Ok(match name {
        "exact" => Join::Exact,
        "prompted" => Join::Prompted,
        "shown" => Join::Shown,
        "in_message" => Join::InMessage,
        from => Join::Stitched(parse_asked_from(from).map_err(|_| {
            let known = "exact, in_message, prompted, shown, cut, token or unknown";
            Failure::invalid("invalid_join", format!("unknown `join`: `{name}`: use {known}"))
        })?),
    })
}

fn parse_failure(kind: &str, message: String) -> Result<AskFailure, Failure> {
    Ok(match kind {
        "rejected" => AskFailure::Rejected(message),
        "lost" => AskFailure::Lost(message),
        "unfit" => AskFailure::Unfit(message),
        "final" => AskFailure::Final(message),
        "budget" => AskFailure::Budget(message),
        _ => return Err(unknown_word("kind", kind, "rejected, lost, unfit, final or budget")),
    })
}

#[derive(Serialize)]
struct ShownAsk<'a> {
    step: &'static str,
    attempt: u32,
    cut: &'static str,
    wanted: &'static str,
    so_far: &'a str,
    shown: usize,
    prompt: &'a str,
}

impl<'a> ShownAsk<'a> {
    fn new(ask: &'a ResumeAsk, unit: Unit) -> Self {
        let wanted = match ask.wanted {
            RequestedReply::Rest => "rest",
            RequestedReply::Again => "again",
            RequestedReply::Restart => "restart",
        };
        let shown = unit.convert(ask.so_far.as_bytes(), ask.shown.length);
        let (so_far, prompt) = (ask.so_far.as_str(), ask.prompt.as_str());
        Self { step: "resume", attempt: ask.attempt, cut: ask.kind.name(), wanted, so_far, shown, prompt }
    }
}

#[derive(Serialize)]
struct ShownCorrection<'c> {
    step: &'static str,
    attempt: u32,
    prompt: &'c str,
    text: &'c str,
}

#[derive(Serialize)]
struct ShownOutcome<'o> {
    step: &'static str,
    result: &'static str,
    text: &'o str,
    attempts: u32,
    corrections: u32,
    cut: Option<&'static str>,
    /// The reason why a reply was forwarded unchanged: `refused`, `paused` or `unknown_word`.
    passed: Option<&'static str>,
    disclosed: bool,
    seams: Vec<Seam>,
    problems: Vec<ShownProblem<'o>>,
    exhausted: Option<ShownExhausted<'o>>,
    log: Option<LogRow>,
}

#[derive(Serialize)]
struct ShownProblem<'p> {
    path: &'p str,
    message: &'p str,
}

#[derive(Serialize)]
struct ShownExhausted<'e> {
    attempts: u32,
    merged_raw: &'e str,
    verified_len: usize,
    cause: &'static str,
    reason: &'e str,
    best: Option<&'e str>,
}

/// The data of a cut reply for `partial_completion_log`. Lengths are in bytes.
#[derive(Serialize)]
struct LogRow {
    truncation_index: Option<usize>,
    initial_chunk_length: usize,
    resume_attempts: u32,
    final_status: &'static str,
}

impl<'o> ShownOutcome<'o> {
    fn new(outcome: &'o PipelineOutcome, recovery: &Recovery) -> Self {
        let exhausted = match &outcome.result {
            PipelineResult::Exhausted(exhausted) => Some(ShownExhausted::new(exhausted, recovery.unit)),
            _ => None,
        };
        let is_valid = recovery.demanded != Some(Format::Json) || outcome.problems.is_empty();
        let is_resolved = match outcome.result {
            PipelineResult::Whole
            | PipelineResult::Resumed
            | PipelineResult::Restarted { .. }
            | PipelineResult::Corrected => true,
            PipelineResult::Invalid => is_valid,
            PipelineResult::Exhausted(_) | PipelineResult::Passed => false,
        };
        let is_passed = outcome.result == PipelineResult::Passed;
        let passed = outcome.pieces.last().filter(|_| is_passed);
        let shown = |seam: &Seam| convert_seam(seam, &outcome.text, recovery.unit);
        let problem =
            |problem: &'o SchemaProblem| ShownProblem { path: &problem.path, message: &problem.message };
        Self {
            step: "done",
            result: outcome.result.name(),
            text: &outcome.text,
            attempts: outcome.attempts,
            corrections: outcome.corrections,
            cut: outcome.cut.map(CutKind::name),
            passed: passed.and_then(|piece| piece.stop).map(Stop::name),
            disclosed: outcome.disclosed,
            seams: outcome.seams.iter().map(shown).collect(),
            problems: outcome.problems.iter().map(problem).collect(),
            exhausted,
            log: outcome.cut.map(|_| LogRow {
                truncation_index: recovery.settled,
                initial_chunk_length: recovery.first_len,
                resume_attempts: outcome.attempts,
                final_status: if is_resolved { "RESOLVED" } else { "EXHAUSTED" },
            }),
        }
    }
}

impl<'e> ShownExhausted<'e> {
    fn new(exhausted: &'e ResumeExhausted, unit: Unit) -> Self {
        Self {
            attempts: exhausted.attempts,
            merged_raw: &exhausted.merged_raw,
            verified_len: unit.convert(exhausted.merged_raw.as_bytes(), exhausted.verified_len),
            cause: ExhaustedCause::name(exhausted.cause),
            reason: &exhausted.reason,
            best: exhausted.best.as_deref(),
        }
    }
}
