//! `endmark hook install`: hooks into an agent's settings, next to those of others, and out again.

mod command;

use std::env;
use std::path::{Path, PathBuf};

use endmark_config::Environment;
use endmark_failure::CommandError;
use serde::Serialize;
use serde_json::Value;

use super::agent::{At, HookAgent, HookKind};
use crate::clients::{ConfigurationFile, Document, Removal, Syntax, Unfit};

pub(super) use command::is_ours;

/// The only agent for which a limit is lowered is Codex.
const LIMIT_LOWERED: &str = "The limit was lowered to what Codex keeps of a hook's output: 10,000 characters, or 2,500 tokens. Codex cuts \
    what is longer, and keeps no lines that report errors.";

/// An entry that comes or goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the fields are those of the answer, whose schema has their names")]
pub struct Change {
    pub event: &'static str,
    /// `added` or `removed`.
    pub action: &'static str,
    pub entry: Value,
}

/// Which hooks are to be written into an agent's settings, or taken out.
#[derive(Debug, Clone)]
pub struct Installation {
    /// Whose settings.
    pub agent: HookAgent,
    /// Which hooks; `tool` where none is named, or all where they are removed.
    pub kinds: Vec<HookKind>,
    /// Into the settings of the project in this folder, and not the user's own.
    pub is_for_project: bool,
    /// They are taken out.
    pub is_removal: bool,
    /// Nothing is written.
    pub is_dry_run: bool,
    /// The limit on results, in characters.
    pub max_chars: Option<u64>,
    /// In bytes.
    pub max_bytes: Option<u64>,
    /// In tokens.
    pub max_tokens: Option<u64>,
    /// What the hook `stop` holds the agent to.
    pub held_to: HeldTo,
    /// The hook `findings`, too; with a pattern, for sub-agents whose type matches it.
    pub findings: Option<String>,
}

impl Installation {
    /// The kinds that are meant.
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
            return Err(CommandError::input("no_such_hook", message, "Only Claude Code has that one."));
        }
        Ok(kinds)
    }

    /// What has to be known of the agent, and of the limit that was typed.
    pub fn notes(&self) -> Vec<&'static str> {
        let mut notes = self.agent.notes().to_vec();
        let is_for_tools =
            self.kinds.is_empty() && self.findings.is_none() || self.kinds.contains(&HookKind::Tool);
        if is_for_tools && !self.is_removal && command::is_limit_lowered(self) {
            notes.push(LIMIT_LOWERED);
        }
        notes
    }
}

/// What an agent has to hand over before it may stop.
#[derive(Debug, Clone, Default)]
pub struct HeldTo {
    /// The file that has to be whole.
    pub artifact: Option<PathBuf>,
    /// The template that it is held to.
    pub template: Option<PathBuf>,
    /// How many lines that are not blank it must have.
    pub min_lines: Option<u32>,
    /// Titles of the sections that it must have.
    pub sections: Vec<String>,
    /// After how many attempts the agent is let go.
    pub attempts: u32,
}

/// What is to change in an agent's settings.
pub struct Planned {
    file: ConfigurationFile,
    text: String,
    is_left_over: bool,
    /// The entries that come or go; none where the settings are as they are to be.
    pub changes: Vec<Change>,
}

impl Planned {
    /// The agent's settings.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Writes the settings. A file that has nothing but what was written here goes with it.
    pub fn write(&self) -> Result<(), CommandError> {
        self.file.put((!self.is_left_over).then_some(self.text.as_str()))
    }
}

/// Reads an agent's settings, and plans what is to change in them.
pub fn plan(arguments: &Installation, environment: &Environment) -> Result<Planned, CommandError> {
    let agent = arguments.agent;
    let path = agent.settings(arguments.is_for_project, environment).ok_or_else(|| {
        CommandError::input(
            "no_home",
            format!("nobody knows where the settings of {} are: HOME is not set", agent.title()),
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
    let wanted = wanted(environment, arguments, &kinds)?;
    let unfit = |error: Unfit| unfit(&file.path, &error);
    let (text, changes) = revised(found.unwrap_or_default(), arguments, &kinds, &wanted).map_err(unfit)?;
    let is_left_over = arguments.is_removal
        && !changes.is_empty()
        && text.trim() == "{}"
        && found == alone(arguments, &changes).map_err(unfit)?.as_deref();
    Ok(Planned { file, text, is_left_over, changes })
}

/// An entry that has to stand in the settings.
struct Wanted {
    kind: HookKind,
    at: At,
    entry: Value,
}

fn wanted(
    environment: &Environment,
    arguments: &Installation,
    kinds: &[HookKind],
) -> Result<Vec<Wanted>, CommandError> {
    if arguments.is_removal {
        return Ok(Vec::new());
    }
    let program = env::current_exe().map_err(|error| CommandError::Bug(error.to_string()))?;
    let program = command::program(&program, environment.get("PATH"));
    let mut wanted = Vec::new();
    for &kind in kinds {
        let command = command::of(&program, kind, arguments)?;
        let entry = |at: &At| {
            let mut entry = arguments.agent.entry(*at, kind, &command);
            let pattern =
                arguments.findings.as_deref().filter(|it| kind == HookKind::Findings && !it.is_empty());
            if let Some(pattern) = pattern {
                entry["matcher"] = pattern.into();
            }
            Wanted { kind, at: *at, entry }
        };
        wanted.extend(arguments.agent.events(kind).iter().map(entry));
    }
    Ok(wanted)
}

/// The settings with what is wanted, and without what stood there for it before.
fn revised(
    text: &str,
    arguments: &Installation,
    kinds: &[HookKind],
    wanted: &[Wanted],
) -> Result<(String, Vec<Change>), Unfit> {
    let mut document = Document::parse(Syntax::Jsonc, text)?;
    let mut changes = Vec::new();
    for &kind in kinds {
        for at in arguments.agent.events(kind) {
            let path = ["hooks", at.event];
            let entry = wanted.iter().find(|one| one.kind == kind && one.at == *at).map(|one| &one.entry);
            let ours = ours(&document, &path, kind);
            if ours.iter().eq(entry) {
                continue;
            }
            let is_removed = |hook: &Value| is_hook_of(hook, kind);
            document.remove_elements(&path, &Removal { within: "hooks", is_removed: &is_removed });
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

/// The entries of ours for an event, without the hooks of others in them.
fn ours(document: &Document, path: &[&str], kind: HookKind) -> Vec<Value> {
    let of_entry = |mut entry: Value| {
        let hooks = entry.get_mut("hooks")?.as_array_mut()?;
        hooks.retain(|hook| is_hook_of(hook, kind));
        (!hooks.is_empty()).then_some(entry)
    };
    document.list(path).unwrap_or_default().into_iter().filter_map(of_entry).collect()
}

fn is_hook_of(hook: &Value, kind: HookKind) -> bool {
    hook.get("command").and_then(Value::as_str).is_some_and(|command| is_ours(command, kind))
}

/// A file that has these entries alone, as it would have been written.
fn alone(arguments: &Installation, changes: &[Change]) -> Result<Option<String>, Unfit> {
    let mut document = Document::parse(Syntax::Jsonc, "")?;
    for kind in HookKind::ALL {
        for at in arguments.agent.events(kind) {
            for change in changes.iter().filter(|change| change.event == at.event) {
                document.append(&["hooks", at.event], &change.entry)?;
            }
        }
    }
    Ok(Some(document.text()))
}

fn unfit(path: &Path, error: &Unfit) -> CommandError {
    let message = format!("`{}` cannot be used: {error}", path.display());
    CommandError::input(
        "unfit_file",
        message,
        "Mend it, or put in by hand what --dry-run shows. Nothing was written.",
    )
}
