//! `endmark hook install`: adds hooks to an agent's settings, or removes them. Other hooks are kept.

mod command;

use std::env;
use std::path::{Path, PathBuf};

use endmark_config::Environment;
use endmark_failure::CommandError;
use serde::Serialize;
use serde_json::Value;

use super::agent::{HookAgent, HookEvent, HookKind};
use crate::clients::{ConfigDocument, ConfigurationFile, InnerListRemoval, Syntax, UneditableFile};

pub(super) use command::is_own_command;

/// Note for Codex. It is the only agent for which a requested limit may have to be lowered.
const LOWERED_LIMIT_NOTE: &str = "The limit was lowered because Codex keeps only 10,000 characters, or 2,500 tokens, of a hook's output. Codex cuts \
    longer output, and does not keep the lines that report errors.";

/// An added or removed entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the fields are those of the answer, and its schema has their names")]
pub struct Change {
    pub event: &'static str,
    /// `added` or `removed`.
    pub action: &'static str,
    pub entry: Value,
}

/// Which hooks to add to an agent's settings, or to remove from them.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The agent whose settings are changed.
    pub agent: HookAgent,
    /// The kinds of hooks. If empty, `tool` is added, or all kinds are removed.
    pub kinds: Vec<HookKind>,
    /// Whether to use the settings of the project in the current folder instead of the user's settings.
    pub is_for_project: bool,
    /// Whether to remove hooks instead of adding them.
    pub is_removal: bool,
    /// Whether to show the changes without writing them.
    pub is_dry_run: bool,
    /// Maximum size of results in characters.
    pub max_chars: Option<u64>,
    /// Maximum size of results in bytes.
    pub max_bytes: Option<u64>,
    /// Maximum size of results in tokens.
    pub max_tokens: Option<u64>,
    /// The artifact that the hook `stop` checks.
    pub requirement: StopRequirement,
    /// If given, the hook `findings` is added. A pattern restricts it to sub-agents of matching types.
    pub findings: Option<String>,
}

impl Installation {
    /// Returns the kinds of hooks to add or remove.
    pub fn kinds(&self) -> Result<Vec<HookKind>, CommandError> {
        let mut kinds = self.kinds.clone();
        kinds.extend(self.findings.as_ref().map(|_| HookKind::Findings));
        if kinds.is_empty() {
            kinds = if self.is_removal { HookKind::ALL.to_vec() } else { vec![HookKind::Tool] };
        }
        kinds.sort_unstable();
        kinds.dedup();
        let agent = self.agent;
        if let Some(kind) = kinds.iter().find(|kind| !self.is_removal && agent.events(**kind).is_empty()) {
            let message = format!("{} has no hook for `{}`", agent.title(), kind.name());
            return Err(CommandError::input("no_such_hook", message, "Only Claude Code has this hook."));
        }
        Ok(kinds)
    }

    /// Returns notes about the agent and about a lowered limit.
    pub fn notes(&self) -> Vec<&'static str> {
        let mut notes = self.agent.notes().to_vec();
        let is_for_tools =
            self.kinds.is_empty() && self.findings.is_none() || self.kinds.contains(&HookKind::Tool);
        if is_for_tools && !self.is_removal && command::is_limit_lowered(self) {
            notes.push(LOWERED_LIMIT_NOTE);
        }
        notes
    }
}

/// The artifact that an agent must finish before it may stop.
#[derive(Debug, Clone, Default)]
pub struct StopRequirement {
    /// The path of the artifact.
    pub artifact: Option<PathBuf>,
    /// The template that the artifact must follow.
    pub template: Option<PathBuf>,
    /// The required number of lines that are not blank.
    pub min_lines: Option<u32>,
    /// The titles of required sections.
    pub sections: Vec<String>,
    /// After this many attempts, the agent may stop anyway.
    pub attempts: u32,
}

/// The planned changes of an agent's settings.
pub struct PlannedChanges {
    file: ConfigurationFile,
    text: String,
    has_leftovers: bool,
    /// The added and removed entries. Empty if nothing changes.
    pub changes: Vec<Change>,
}

impl PlannedChanges {
    /// Returns the path of the agent's settings.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Writes the settings. Removes the file if it would become empty.
    pub fn write(&self) -> Result<(), CommandError> {
        self.file.write_or_remove((!self.has_leftovers).then_some(self.text.as_str()))
    }
}

/// Reads an agent's settings and plans the changes.
pub fn plan(arguments: &Installation, environment: &Environment) -> Result<PlannedChanges, CommandError> {
    let agent = arguments.agent;
    let path = agent.settings_path(arguments.is_for_project, environment).ok_or_else(|| {
        CommandError::input(
            "no_home",
            format!("the settings of {} cannot be found: HOME is not set", agent.title()),
            "Set HOME, or use --project.",
        )
    })?;
    let kinds = arguments.kinds()?;
    let file = if arguments.is_dry_run {
        ConfigurationFile::open(&path)
    } else {
        ConfigurationFile::open_to_write(&path)
    }?;
    let found = file.text.as_deref();
    let wanted = required_entries(environment, arguments, &kinds)?;
    let unfit = |error: UneditableFile| uneditable_file_error(&file.path, &error);
    let (text, changes) =
        revise_settings(found.unwrap_or_default(), arguments, &kinds, &wanted).map_err(unfit)?;
    let is_left_over = arguments.is_removal
        && !changes.is_empty()
        && text.trim() == "{}"
        && found == text_with_only(arguments, &changes).map_err(unfit)?.as_deref();
    Ok(PlannedChanges { file, text, has_leftovers: is_left_over, changes })
}

/// An entry that the settings must contain.
struct RequiredEntry {
    kind: HookKind,
    event: HookEvent,
    entry: Value,
}

fn required_entries(
    environment: &Environment,
    arguments: &Installation,
    kinds: &[HookKind],
) -> Result<Vec<RequiredEntry>, CommandError> {
    if arguments.is_removal {
        return Ok(Vec::new());
    }
    let program = env::current_exe().map_err(|error| CommandError::Bug(error.to_string()))?;
    let program = command::program_word(&program, environment.get("PATH"));
    let mut wanted = Vec::new();
    for &kind in kinds {
        let command = command::build_command(&program, kind, arguments)?;
        let entry = |at: &HookEvent| {
            let mut entry = arguments.agent.settings_entry(*at, kind, &command);
            let pattern =
                arguments.findings.as_deref().filter(|it| kind == HookKind::Findings && !it.is_empty());
            if let Some(pattern) = pattern {
                entry["matcher"] = pattern.into();
            }
            RequiredEntry { kind, event: *at, entry }
        };
        wanted.extend(arguments.agent.events(kind).iter().map(entry));
    }
    Ok(wanted)
}

/// Returns the settings with the required entries. Earlier entries for the same purpose are removed.
fn revise_settings(
    text: &str,
    arguments: &Installation,
    kinds: &[HookKind],
    wanted: &[RequiredEntry],
) -> Result<(String, Vec<Change>), UneditableFile> {
    let mut document = ConfigDocument::parse(Syntax::Jsonc, text)?;
    let mut changes = Vec::new();
    for &kind in kinds {
        for at in arguments.agent.events(kind) {
            let path = ["hooks", at.event];
            let entry = wanted.iter().find(|one| one.kind == kind && one.event == *at).map(|one| &one.entry);
            let ours = own_entries(&document, &path, kind);
            if ours.iter().eq(entry) {
                continue;
            }
            let is_removed = |hook: &Value| is_own_hook(hook, kind);
            document
                .remove_elements(&path, &InnerListRemoval { column_key: "hooks", is_removed: &is_removed });
            let change = |action, entry| Change { event: at.event, action, entry };
            changes.extend(ours.into_iter().map(|entry| change("removed", entry)));
            if let Some(entry) = entry {
                document.append(&path, entry)?;
                changes.push(change("added", entry.clone()));
            }
        }
    }
    Ok((document.text(), changes))
}

/// Returns Endmark's entries for an event, without other hooks that they contain.
fn own_entries(document: &ConfigDocument, path: &[&str], kind: HookKind) -> Vec<Value> {
    let of_entry = |mut entry: Value| {
        let hooks = entry.get_mut("hooks")?.as_array_mut()?;
        hooks.retain(|hook| is_own_hook(hook, kind));
        (!hooks.is_empty()).then_some(entry)
    };
    document.list(path).unwrap_or_default().into_iter().filter_map(of_entry).collect()
}

fn is_own_hook(hook: &Value, kind: HookKind) -> bool {
    hook.get("command").and_then(Value::as_str).is_some_and(|command| is_own_command(command, kind))
}

/// Returns the text of a file that contains only these entries.
fn text_with_only(arguments: &Installation, changes: &[Change]) -> Result<Option<String>, UneditableFile> {
    let mut document = ConfigDocument::parse(Syntax::Jsonc, "")?;
    for kind in HookKind::ALL {
        for at in arguments.agent.events(kind) {
            for change in changes.iter().filter(|change| change.event == at.event) {
                document.append(&["hooks", at.event], &change.entry)?;
            }
        }
    }
    Ok(Some(document.text()))
}

fn uneditable_file_error(path: &Path, error: &UneditableFile) -> CommandError {
    let message = format!("`{}` cannot be used: {error}", path.display());
    CommandError::input(
        "unfit_file",
        message,
        "Repair it, or add the lines that --dry-run shows. Nothing was written.",
    )
}
