//! Tests the hooks in agents' settings. Runs each command as its agent would, with an event that contains a
//! canary text, and checks whether the output contains the canary.

mod canary;
mod version;

use std::collections::BTreeSet;
use std::path::PathBuf;

use endmark_config::Environment;
use endmark_failure::{Check, CommandError};
use serde_json::Value;

use super::agent::{HookAgent, HookEvent, HookKind};
use super::install::is_own_command;
use crate::clients::{ConfigDocument, ConfigurationFile, Syntax};

/// A hook that was found in an agent's settings.
struct InstalledHook {
    agent: HookAgent,
    kind: HookKind,
    event: HookEvent,
    command: String,
    file: PathBuf,
}

/// Tests all of Endmark's hooks in the user's settings and in those of the project in the current folder.
pub async fn check_hooks(environment: &Environment) -> Result<Vec<Check>, CommandError> {
    let mut checks = Vec::new();
    for agent in HookAgent::ALL {
        let installed = match installed_hooks(environment, agent) {
            Ok(installed) => installed,
            Err(error) => {
                checks.push(Check::from_error(format!("hooks.{}", agent.name()), &error));
                continue;
            }
        };
        for hook in &installed {
            checks.push(try_hook(hook).await);
        }
        if !installed.is_empty() {
            checks.push(version::check_version(agent).await);
            // The test does not show whether the agent runs its hooks, or what it cuts before them.
            checks.extend(agent.notes().iter().map(|note| {
                Check::passed(format!("hooks.{}.note", agent.name()), format!("not checked: {note}"))
            }));
        }
    }
    if checks.is_empty() {
        let hint = "`endmark hook install --agent claude` adds a hook to Claude Code's settings.";
        checks.push(Check::failed("hooks", "no hook of Endmark is installed for this user or project", hint));
    }
    Ok(checks)
}

/// Returns Endmark's hooks in an agent's settings.
fn installed_hooks(environment: &Environment, agent: HookAgent) -> Result<Vec<InstalledHook>, CommandError> {
    let paths = [false, true].map(|is_project| agent.settings_path(is_project, environment));
    let mut installed = Vec::new();
    let mut checked_paths = BTreeSet::new();
    for path in paths.into_iter().flatten() {
        let file = ConfigurationFile::open(&path)?;
        let Some(text) =
            file.text.as_deref().filter(|_| checked_paths.insert(std::path::absolute(&file.path).ok()))
        else {
            continue;
        };
        let document = ConfigDocument::parse(Syntax::Jsonc, text).map_err(|error| {
            let message = format!("`{}` cannot be read: {error}", file.path.display());
            CommandError::input("unfit_file", message, "The agent cannot read it either: repair the file.")
        })?;
        for kind in HookKind::ALL {
            for &at in agent.events(kind) {
                let entries = document.list(&["hooks", at.event]).unwrap_or_default();
                let hooks = entries.iter().filter_map(|entry| entry.get("hooks")?.as_array()).flatten();
                let commands = hooks.filter_map(|hook| hook.get("command").and_then(Value::as_str));
                installed.extend(commands.filter(|command| is_own_command(command, kind)).map(|command| {
                    InstalledHook {
                        agent,
                        kind,
                        event: at,
                        command: command.to_owned(),
                        file: file.path.clone(),
                    }
                }));
            }
        }
    }
    Ok(installed)
}

async fn try_hook(hook: &InstalledHook) -> Check {
    let name = format!("hooks.{}.{}", hook.agent.name(), hook.kind.name());
    let place = format!("{} in `{}`", hook.event.event, hook.file.display());
    match canary::run_hook(hook.agent, hook.kind, &hook.command).await {
        Ok(found) => Check::passed(name, format!("{place}: {found}")),
        Err(reason) => Check::failed(
            name,
            format!("{place}: `{}` {reason}", hook.command),
            format!(
                "Run `endmark hook install --agent {} {}` again with this program, or remove the hook with `--remove`.",
                hook.agent.name(),
                hook.kind.name()
            ),
        ),
    }
}
