//! The options of a run, from the command line or a file of runs. They are checked before anything is started.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use endmark_context::Models;
use endmark_failure::CommandError;
use endmark_guard::{Agent, RunLimits};
use endmark_runs::{Task, missing_stream_options, run_id};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::limits;
use crate::arguments::run::{self as arguments, AgentChoice};
use crate::context::Context;
use crate::input::Input;

/// How long an agent may take to exit after its last event. opencode sometimes hangs there.
const EXIT_GRACE: Duration = Duration::from_secs(5);
/// Maximum size of an agent's stored output per attempt, in bytes.
const MAX_TRANSCRIPT_BYTES: u64 = 64 << 20;

/// The options of a run. Missing ones come from the defaults or the command line.
// Fields: one for each option.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RunOptions {
    /// A readable name for messages.
    pub(super) name: Option<String>,
    pub(super) template: Option<PathBuf>,
    pub(super) artifact: Option<PathBuf>,
    /// The agent's working directory; the artifact is relative to it.
    pub(super) folder: Option<PathBuf>,
    pub(super) agent: Option<AgentChoice>,
    #[serde(deserialize_with = "words", serialize_with = "as_words")]
    pub(super) command: Option<Vec<OsString>>,
    pub(super) prompt: Option<String>,
    pub(super) prompt_file: Option<PathBuf>,
    pub(super) max_attempts: Option<u32>,
    pub(super) max_time: Option<String>,
    pub(super) max_usd: Option<f64>,
    pub(super) attempt_time: Option<String>,
    pub(super) silence: Option<String>,
    pub(super) grace: Option<String>,
    pub(super) limit_tokens: Option<u64>,
    /// Whether the agent's calls go through a separate gateway.
    pub(super) through: Option<bool>,
    /// The folder for the agent's output.
    pub(super) output_folder: Option<PathBuf>,
}

fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<OsString>>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    Ok(Some(words.into_iter().map(OsString::from).collect()))
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn as_words<S: Serializer>(words: &Option<Vec<OsString>>, serializer: S) -> Result<S::Ok, S::Error> {
    let words = words.iter().flatten().map(|word| word.to_str());
    let words: Option<Vec<&str>> = words.collect();
    words.ok_or_else(|| S::Error::custom("a word of the command is not UTF-8"))?.serialize(serializer)
}

/// The data that all runs of one command share.
pub(super) struct SharedContext<'a> {
    pub(super) context: &'a Context,
    pub(super) models: Arc<Models>,
    /// Maps a run id to the folder for the agent's output.
    pub(super) transcripts: &'a dyn Fn(&str) -> PathBuf,
}

impl RunOptions {
    /// Reads the options from the command line.
    pub(super) fn from_arguments(arguments: &arguments::Run) -> Self {
        Self {
            name: None,
            template: arguments.template.clone(),
            artifact: arguments.artifact.clone(),
            folder: None,
            agent: arguments.agent,
            command: Some(arguments.command.clone()).filter(|command| !command.is_empty()),
            prompt: arguments.prompt.clone(),
            prompt_file: arguments.prompt_file.clone(),
            max_attempts: Some(arguments.max_attempts),
            max_time: Some(arguments.max_time.clone()),
            max_usd: arguments.max_usd,
            attempt_time: Some(arguments.attempt_time.clone()),
            silence: Some(arguments.silence.clone()),
            grace: Some(arguments.grace.clone()),
            limit_tokens: arguments.limit_tokens,
            through: Some(arguments.through),
            output_folder: None,
        }
    }

    /// Fills missing options from `other`.
    pub(super) fn with_defaults(self, other: &Self) -> Self {
        // `prompt` and `prompt_file` are alternatives: either one overrides both of `other`.
        let has_prompt = self.prompt.is_some() || self.prompt_file.is_some();
        let inherited =
            if has_prompt { (None, None) } else { (other.prompt.clone(), other.prompt_file.clone()) };
        Self {
            name: self.name,
            template: self.template.or_else(|| other.template.clone()),
            artifact: self.artifact.or_else(|| other.artifact.clone()),
            folder: self.folder.or_else(|| other.folder.clone()),
            agent: self.agent.or(other.agent),
            command: self.command.or_else(|| other.command.clone()),
            prompt: self.prompt.or(inherited.0),
            prompt_file: self.prompt_file.or(inherited.1),
            max_attempts: self.max_attempts.or(other.max_attempts),
            max_time: self.max_time.or_else(|| other.max_time.clone()),
            max_usd: self.max_usd.or(other.max_usd),
            attempt_time: self.attempt_time.or_else(|| other.attempt_time.clone()),
            silence: self.silence.or_else(|| other.silence.clone()),
            grace: self.grace.or_else(|| other.grace.clone()),
            limit_tokens: self.limit_tokens.or(other.limit_tokens),
            through: self.through.or(other.through),
            output_folder: self.output_folder.or_else(|| other.output_folder.clone()),
        }
    }

    /// Checks all options and returns a task that can be started.
    pub(super) fn check(self, shared: &SharedContext<'_>) -> Result<Task, CommandError> {
        let context = shared.context;
        let template = self.template.as_deref().ok_or_else(|| missing_option("template", "--template"))?;
        let artifact = self.artifact.as_deref().ok_or_else(|| missing_option("artifact", "--artifact"))?;
        let command = self.command.clone().filter(|command| !command.is_empty());
        let command = command.ok_or_else(|| missing_option("command", "--"))?;
        let guard = crate::criteria::guard_from_template(context, template)?;
        let agent = agent(self.agent, &command)?;
        let prompt = self.prompt(context, &command)?;
        let attempts = self.max_attempts.and_then(NonZeroU32::new).filter(|attempts| attempts.get() <= 1000);
        let attempts = attempts.ok_or_else(|| {
            CommandError::input("usage", "max_attempts is not in 1..=1000", "Write a number from 1 to 1000.")
        })?;
        let span = |option, value: &Option<String>| {
            limits::parse_seconds(option, value.as_deref().unwrap_or_default())
        };
        let limits = RunLimits {
            attempts,
            seconds: span("--max-time", &self.max_time)?,
            nanodollars: self.max_usd.map(limits::parse_nanodollars).transpose()?,
        };
        let attempt_time = span("--attempt-time", &self.attempt_time)?;
        let silence = span("--silence", &self.silence)?;
        let grace = span("--grace", &self.grace)?;
        let folder = std::env::current_dir().map_err(|error| super::system_error(&error))?;
        let folder = self.folder.as_ref().map_or(folder.clone(), |inner| folder.join(inner));
        check_artifact_location(&folder, artifact)?;
        let id = run_id().map_err(|error| super::system_error(&error))?;
        let transcripts = self.output_folder.clone().unwrap_or_else(|| (shared.transcripts)(&id));
        let absolute_task = self.absolute(&folder, &transcripts, prompt.clone());
        let task = Task {
            id,
            name: self.name,
            // If the options cannot be serialised, the run cannot be resumed later, but it can start.
            options_json: absolute_task.and_then(|absolute_task| serde_json::to_string(&absolute_task).ok()),
            resumed: None,
            agent,
            command,
            runs_through_gateway: self.through.unwrap_or(false),
            gateway: None,
            folder,
            artifact: artifact.to_owned(),
            template: Some(template.display().to_string()),
            guard,
            prompt,
            limits,
            limit_tokens: self.limit_tokens,
            models: Arc::clone(&shared.models),
            max_silence: Duration::from_secs(silence.get()),
            max_attempt_time: Duration::from_secs(attempt_time.get()),
            exit_grace: EXIT_GRACE,
            grace: Duration::from_secs(grace.get()),
            transcripts: Some(transcripts),
            max_transcript_bytes: MAX_TRANSCRIPT_BYTES,
        };
        Ok(task)
    }

    /// Returns the options with absolute paths and the prompt's text, so that the run can be resumed from any folder.
    fn absolute(&self, folder: &Path, transcripts: &Path, prompt: Option<String>) -> Option<Self> {
        let absolute = |path: &Path| std::path::absolute(path).ok();
        Some(Self {
            template: Some(absolute(self.template.as_deref()?)?),
            folder: Some(absolute(folder)?),
            output_folder: Some(absolute(transcripts)?),
            prompt,
            prompt_file: None,
            ..self.clone()
        })
    }

    fn prompt(&self, context: &Context, command: &[OsString]) -> Result<Option<String>, CommandError> {
        let prompt = match (&self.prompt, &self.prompt_file) {
            (Some(_), Some(_)) => {
                let message = "both a prompt and a prompt file are given";
                return Err(CommandError::input("usage", message, "Omit one of them."));
            }
            (Some(prompt), None) => Some(prompt.clone()),
            (None, Some(path)) => Some(Input::open_file(path, context.terminal)?.read_hand_written()?),
            (None, None) => None,
        };
        let is_wanted =
            command.iter().any(|word| word.to_str().is_some_and(|word| word.contains("{prompt}")));
        if is_wanted && prompt.is_none() {
            let message = "the command contains {prompt}, but no prompt is given";
            return Err(CommandError::input("usage", message, "Give it with --prompt or --prompt-file."));
        }
        Ok(prompt)
    }
}

fn missing_option(what: &str, option: &str) -> CommandError {
    let hint = format!("Set `{what}` in the file, or use `{option}` for all of its runs.");
    CommandError::input("usage", format!("{what} is missing"), hint)
}

/// Checks the folder and the artifact.
///
/// If the artifact could not be created, the agent would retry until no attempt is left.
fn check_artifact_location(folder: &Path, artifact: &Path) -> Result<(), CommandError> {
    let refuse = |what: String, hint: &str| Err(CommandError::input("usage", what, hint));
    if !folder.is_dir() {
        return refuse(format!("`{}` is not a folder", folder.display()), "Name an existing folder.");
    }
    let path = folder.join(artifact);
    if path.is_dir() || artifact.as_os_str().is_empty() {
        return refuse(format!("the artifact `{}` is a folder", artifact.display()), "Name a file in it.");
    }
    match path.parent() {
        Some(parent) if !parent.is_dir() => refuse(
            format!("the folder of the artifact `{}` does not exist", artifact.display()),
            "Create the folder first, or check the path.",
        ),
        _ => Ok(()),
    }
}

/// Returns the named agent, or the agent of a known program. Its command must print readable events.
fn agent(named: Option<AgentChoice>, command: &[OsString]) -> Result<Agent, CommandError> {
    let known = command.first().map_or(Agent::Plain, Task::agent_of_program);
    let agent = named.map_or(known, Agent::from);
    match missing_stream_options(agent, command) {
        None => Ok(agent),
        Some(words) => Err(CommandError::input(
            "usage",
            format!("the command of `{}` does not print events in a readable format", agent.name()),
            format!(
                "Add `{words}` to it, or use `--agent plain`: then only its exit and the artifact count."
            ),
        )),
    }
}
