//! `endmark hook install`: adds hooks to an agent's settings, or removes them. Other hooks stay.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::Path;

use endmark_agents::hooks::{Change, HookKind, Installation, StopRequirement, plan};
use endmark_failure::{CommandError, to_single_line};
use serde::Serialize;

use crate::arguments::hook::{self as arguments, Install};
use crate::context::Context;
use crate::criteria;
use crate::view::answer::{Answer, to_data};
use crate::view::paint::{Paint, Painter};
use crate::view::terminal::ask;

/// How many bytes of the user's answer are read.
const MAX_CONFIRMATION_BYTES: u64 = 64;

/// The changes that were made, or would be made.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct InstallReport {
    agent: &'static str,
    /// `written`, `shown` with `--dry-run`, or `unchanged`.
    action: &'static str,
    /// The agent's settings.
    file: String,
    changes: Vec<Change>,
    notes: Vec<&'static str>,
}

/// Installs or removes hooks.
pub(super) fn run(context: &Context, arguments: &Install) -> Result<Answer, CommandError> {
    let installation = installation(arguments);
    let is_stop = installation.kinds()?.contains(&HookKind::Stop);
    if let Some(template) = arguments.held_to.template.as_deref().filter(|_| is_stop && !arguments.remove) {
        // A hook with an unreadable template would let every agent stop, so check the template now.
        criteria::guard_from_template(context, template)?;
    }
    let planned = plan(&installation, &context.environment)?;
    let path = planned.path();
    if planned.changes.is_empty() {
        let state = if arguments.remove { "has no such hook of Endmark" } else { "is already up to date" };
        let answer = format!("{} {state}; nothing was written.\n", path.display());
        return report(&installation, "unchanged", path, &[], answer);
    }
    let heading = if arguments.dry_run { "Would write to" } else { "Written to" };
    let mut answer = format!("{heading} {}:\n", path.display());
    answer.push_str(&describe_changes(&planned.changes, context.terminal.output));
    if !arguments.remove {
        for note in installation.notes() {
            let _ = writeln!(answer, "{note}");
        }
        answer.push_str("Check it with `endmark doctor --hooks`; `--remove` removes it again.\n");
    }
    if arguments.dry_run {
        return report(&installation, "shown", path, &planned.changes, answer);
    }
    if is_stop && !(arguments.remove || arguments.scope.project || arguments.scope.yes) {
        confirm(context, arguments, path)?;
    }
    planned.write()?;
    report(&installation, "written", path, &planned.changes, answer)
}

fn installation(arguments: &Install) -> Installation {
    let arguments::StopRequirement { artifact, template, min_lines, sections, attempts } =
        arguments.held_to.clone();
    Installation {
        agent: arguments.agent,
        kinds: arguments.kinds.clone(),
        is_for_project: arguments.scope.project,
        is_removal: arguments.remove,
        is_dry_run: arguments.dry_run,
        max_chars: arguments.most.chars,
        max_bytes: arguments.most.bytes,
        max_tokens: arguments.most.tokens,
        requirement: StopRequirement { artifact, template, min_lines, sections, attempts },
        findings: arguments.findings.clone(),
    }
}

/// Asks whether a hook `stop` may apply to every session of the user.
///
/// # Errors
/// If the user does not agree, or there is no terminal to ask at.
fn confirm(context: &Context, arguments: &Install, path: &Path) -> Result<(), CommandError> {
    let title = arguments.agent.title();
    let artifact = arguments.held_to.artifact.as_deref().unwrap_or(Path::new("the artifact")).display();
    let question = format!(
        "Each session of {title}, in every project, could stop only when `{artifact}` is finished. Write this into {}? [y/N]",
        path.display()
    );
    let input = io::stdin();
    if context.terminal.json || !input.is_terminal() {
        return Err(CommandError::input(
            "not_agreed",
            format!(
                "each session of {title}, in every project, could stop only when `{artifact}` is finished; nothing was written"
            ),
            "Use `--project` for this folder only, or `--yes` to confirm.",
        ));
    }
    ask(&question);
    let mut line = String::new();
    // A closed terminal counts as no.
    let read = input.lock().take(MAX_CONFIRMATION_BYTES).read_line(&mut line);
    if read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(CommandError::input("not_agreed", "nothing was written", "Use `--project` for this folder only."))
}

fn report(
    installation: &Installation,
    action: &'static str,
    file: &Path,
    changes: &[Change],
    text: String,
) -> Result<Answer, CommandError> {
    let data = to_data(&InstallReport {
        agent: installation.agent.name(),
        action,
        file: file.display().to_string(),
        changes: changes.to_vec(),
        notes: installation.notes(),
    })?;
    Ok(Answer::yes(data, text))
}

fn describe_changes(changes: &[Change], painter: Painter) -> String {
    let mut text = String::new();
    for change in changes {
        let (sign, paint) = if change.action == "added" { ("+", Paint::Good) } else { ("-", Paint::Bad) };
        let line = format!("{sign} hooks.{}: {}", change.event, to_single_line(&change.entry.to_string()));
        let _ = writeln!(text, "  {}", painter.paint(paint, &line));
    }
    text
}
