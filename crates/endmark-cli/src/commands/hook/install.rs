//! `endmark hook install`: hooks into an agent's settings, next to those of others, and out again.

mod command;

use std::env;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::Path;

use endmark_failure::{CommandError, in_one_line};
use serde::Serialize;
use serde_json::Value;

use super::agent::At;
use super::arguments::{HookKind, Install};
use crate::answer::{Answer, to_data};
use crate::commands::setup::document::{Document, Removal, Syntax, Unfit};
use crate::commands::setup::file::ConfigurationFile;
use crate::context::Context;
use crate::terminal::{Paint, Painter, ask};

pub(in crate::commands) use command::is_ours;

/// The only agent for which a limit is lowered is Codex.
const LIMIT_LOWERED: &str = "The limit was lowered to what Codex keeps of a hook's output: 10,000 characters, or 2,500 tokens. Codex cuts \
    what is longer, and keeps no lines that report errors.";

/// The most that is read of an answer.
const ANSWER_BYTES: u64 = 64;

/// What was done, or is to be done.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::commands) struct Report {
    agent: &'static str,
    /// `written`, `shown` with `--dry-run`, or `unchanged`.
    action: &'static str,
    /// The agent's settings.
    file: String,
    changes: Vec<Change>,
    notes: Vec<&'static str>,
}

/// An entry that comes or goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Change {
    event: &'static str,
    /// `added` or `removed`.
    action: &'static str,
    entry: Value,
}

/// Writes hooks, or takes them out.
pub(super) fn run(context: &Context, arguments: &Install) -> Result<Answer, CommandError> {
    let agent = arguments.agent;
    let path = agent.settings(arguments.scope.project, &context.environment).ok_or_else(|| {
        CommandError::input(
            "no_home",
            format!("nobody knows where the settings of {} are: HOME is not set", agent.title()),
            "Set HOME, or use --project.",
        )
    })?;
    let kinds = kinds(arguments)?;
    let file = if arguments.dry_run {
        ConfigurationFile::open(&path)
    } else {
        ConfigurationFile::open_to_write(&path)
    }?;
    let found = file.text.as_deref();
    let wanted = wanted(context, arguments, &kinds)?;
    let unfit = |error: Unfit| unfit(&file.path, &error);
    let (text, changes) = revised(found.unwrap_or_default(), arguments, &kinds, &wanted).map_err(unfit)?;
    if changes.is_empty() {
        let said = if arguments.remove { "has no such hook of Endmark's" } else { "says it already" };
        let answer = format!("{} {said}; nothing was written.\n", file.path.display());
        return report(arguments, "unchanged", &file.path, Vec::new(), answer);
    }
    let heading = if arguments.dry_run { "Would be written to" } else { "Written to" };
    let mut answer = format!("{heading} {}:\n", file.path.display());
    answer.push_str(&lines(&changes, context.terminal.output));
    if !arguments.remove {
        for note in notes(arguments) {
            let _ = writeln!(answer, "{note}");
        }
        answer.push_str("`endmark doctor --hooks` looks whether it works; `--remove` takes it out again.\n");
    }
    if arguments.dry_run {
        return report(arguments, "shown", &file.path, changes, answer);
    }
    if kinds.contains(&HookKind::Stop)
        && !(arguments.remove || arguments.scope.project || arguments.scope.yes)
    {
        agreed(context, arguments, &file.path)?;
    }
    // A file that has nothing but what was written here goes with it.
    let is_left_over = arguments.remove
        && text.trim() == "{}"
        && found == alone(arguments, &changes).map_err(unfit)?.as_deref();
    file.put((!is_left_over).then_some(text.as_str()))?;
    report(arguments, "written", &file.path, changes, answer)
}

/// Asks whether every session of the user is to be held to the artifact.
///
/// # Errors
/// If the answer is not yes, or there is no terminal to ask at.
fn agreed(context: &Context, arguments: &Install, path: &Path) -> Result<(), CommandError> {
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
                "this would hold each session of {title}, in every project, to `{artifact}`; nothing was written"
            ),
            "`--project` writes it for this folder alone; `--yes` means it.",
        ));
    }
    ask(&question);
    let mut line = String::new();
    // A terminal that is closed says no.
    let read = input.lock().take(ANSWER_BYTES).read_line(&mut line);
    if read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(CommandError::input(
        "not_agreed",
        "nothing was written",
        "`--project` writes it for this folder alone.",
    ))
}

/// The kinds that are meant.
fn kinds(arguments: &Install) -> Result<Vec<HookKind>, CommandError> {
    let mut kinds = arguments.kinds.clone();
    if kinds.is_empty() {
        kinds = if arguments.remove { HookKind::ALL.to_vec() } else { vec![HookKind::Tool] };
    }
    kinds.sort_unstable();
    kinds.dedup();
    let agent = arguments.agent;
    if let Some(kind) = kinds.iter().find(|kind| !arguments.remove && agent.events(**kind).is_empty()) {
        let message = format!("{} has no hook for `{}`", agent.title(), kind.name());
        return Err(CommandError::input("no_such_hook", message, "Only Claude Code has that one."));
    }
    Ok(kinds)
}

/// An entry that has to stand in the settings.
struct Wanted {
    kind: HookKind,
    at: At,
    entry: Value,
}

fn wanted(context: &Context, arguments: &Install, kinds: &[HookKind]) -> Result<Vec<Wanted>, CommandError> {
    if arguments.remove {
        return Ok(Vec::new());
    }
    let program = env::current_exe().map_err(|error| CommandError::Bug(error.to_string()))?;
    let program = command::program(&program, context.environment.get("PATH"));
    let mut wanted = Vec::new();
    if let Some(template) = arguments.held_to.template.as_deref().filter(|_| kinds.contains(&HookKind::Stop))
    {
        // A hook that cannot read it lets every agent go.
        crate::commands::guard::of_template(context, template)?;
    }
    for &kind in kinds {
        let command = command::of(&program, kind, arguments)?;
        let entry = |at: &At| Wanted { kind, at: *at, entry: arguments.agent.entry(*at, kind, &command) };
        wanted.extend(arguments.agent.events(kind).iter().map(entry));
    }
    Ok(wanted)
}

/// The settings with what is wanted, and without what stood there for it before.
fn revised(
    text: &str,
    arguments: &Install,
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
fn alone(arguments: &Install, changes: &[Change]) -> Result<Option<String>, Unfit> {
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

fn report(
    arguments: &Install,
    action: &'static str,
    file: &Path,
    changes: Vec<Change>,
    text: String,
) -> Result<Answer, CommandError> {
    let data = to_data(&Report {
        agent: arguments.agent.name(),
        action,
        file: file.display().to_string(),
        changes,
        notes: notes(arguments),
    })?;
    Ok(Answer::yes(data, text))
}

/// What has to be known of the agent, and of the limit that was typed.
fn notes(arguments: &Install) -> Vec<&'static str> {
    let mut notes = arguments.agent.notes().to_vec();
    let is_for_tools = arguments.kinds.is_empty() || arguments.kinds.contains(&HookKind::Tool);
    if is_for_tools && !arguments.remove && command::is_limit_lowered(arguments) {
        notes.push(LIMIT_LOWERED);
    }
    notes
}

fn lines(changes: &[Change], painter: Painter) -> String {
    let mut text = String::new();
    for change in changes {
        let (sign, paint) = if change.action == "added" { ("+", Paint::Good) } else { ("-", Paint::Bad) };
        let line = format!("{sign} hooks.{}: {}", change.event, in_one_line(&change.entry.to_string()));
        let _ = writeln!(text, "  {}", painter.paint(paint, &line));
    }
    text
}

fn unfit(path: &Path, error: &Unfit) -> CommandError {
    let message = format!("`{}` cannot be used: {error}", path.display());
    CommandError::input(
        "unfit_file",
        message,
        "Mend it, or put in by hand what --dry-run shows. Nothing was written.",
    )
}
