//! Writes settings files that connect agents to a gateway. They are needed if an agent's settings override
//! its environment.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use endmark_failure::CommandError;
use endmark_guard::Agent;
use endmark_process::{MAX_WRITTEN_BYTES, read_regular_text};
use endmark_runs::Task;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::{Map, Value};
use tempfile::NamedTempFile;

use super::agents::{CLAUDE_SETTINGS, set_fields};

/// Variables with which Claude Code uses another service or key.
const CLAUDE_OTHER_SERVICE_VARIABLES: [&str; 4] =
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "ANTHROPIC_AUTH_TOKEN"];
/// Writes a settings file that connects an agent to the gateway, if the agent needs one. Only the owner can
/// access the file, because it contains the run's key.
pub(super) fn write_settings_file(
    task: &Task,
    variables: &[(String, OsString)],
) -> Result<Option<NamedTempFile>, CommandError> {
    if task.agent != Agent::Claude {
        return Ok(None);
    }
    let settings = claude_settings(task, variables)?;
    let written = tempfile::Builder::new().prefix("endmark-run-").suffix(".json").tempfile();
    let file = written.and_then(|mut file| file.write_all(settings.to_string().as_bytes()).map(|()| file));
    file.map(Some).map_err(|error| super::system_error(&error))
}

/// Returns the settings from the agent's command. Adds the variables to `env`, because it overrides the
/// environment.
fn claude_settings(task: &Task, variables: &[(String, OsString)]) -> Result<Value, CommandError> {
    let mut settings = match settings_argument(&task.command) {
        None => Value::Object(Map::new()),
        Some(text) if text.trim_start().starts_with('{') => parse(CLAUDE_SETTINGS, &text)?,
        Some(path) => read(&task.folder.join(path))?,
    };
    let elsewhere = CLAUDE_OTHER_SERVICE_VARIABLES.map(|name| (name.to_owned(), Value::from("")));
    let led = variables.iter().map(|(name, value)| (name.clone(), Value::from(value.to_string_lossy())));
    set_fields(&mut settings, &["env"], elsewhere.into_iter().chain(led).collect::<Map<_, _>>().into());
    Ok(settings)
}

/// Returns the value of the last option `--settings`, which is the one that Claude Code uses.
fn settings_argument(command: &[OsString]) -> Option<String> {
    let words: Vec<_> =
        command.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--").collect();
    let of = |(at, word): (usize, &std::borrow::Cow<'_, str>)| match word.strip_prefix(CLAUDE_SETTINGS)? {
        "" => words.get(at + 1).map(ToString::to_string),
        rest => rest.strip_prefix('=').map(str::to_owned),
    };
    words.iter().enumerate().filter_map(of).next_back()
}

fn read(path: &Path) -> Result<Value, CommandError> {
    let text = read_regular_text(path, MAX_WRITTEN_BYTES)
        .map_err(|source| CommandError::Read { path: path.to_owned(), source })?;
    parse(&path.display().to_string(), &text)
}

fn parse(what: &str, text: &str) -> Result<Value, CommandError> {
    // Both agents accept comments in their settings.
    let value =
        CstRootNode::parse(text, &ParseOptions::default()).ok().and_then(|root| root.to_serde_value());
    match value {
        Some(value) if value.is_object() => Ok(value),
        _ => Err(CommandError::input(
            "unfit_file",
            format!("the agent's settings `{what}` are not a JSON object"),
            "Correct them: the run adds the address of its gateway to them.",
        )),
    }
}
