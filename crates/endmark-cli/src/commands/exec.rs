//! `endmark exec`: runs any command with limits, and reports its true outcome in an envelope (EN-1 to EN-5).

use std::io;
use std::time::Instant;

use endmark_envelope::AnswerRight;
use endmark_exec::{ManifestTool, OutputCapping, ToolResponse};
use endmark_failure::{CommandError, ExitStatus};

use crate::arguments::exec::Exec;

use crate::context::{Context, configuration_warnings};
use crate::view::answer::Outcome;
use crate::view::terminal::JsonOutput;

/// Checks the input of a command, runs it, and always answers in an envelope.
pub(crate) fn run(context: &Context, arguments: &Exec) -> Result<Outcome, CommandError> {
    let started = Instant::now();
    let tool = ManifestTool::new(&arguments.command, arguments.manifest.as_deref())?;
    let tool = tool.with_cursor(arguments.cursor.as_deref())?;
    let capping = cap_plan(context, arguments)?;
    let progress = |message: &str| context.terminal.progress(message);
    let ran = tool.run(capping, context.terminal.quiet, &progress);
    let answered = ran.inspect_err(|_| watch_second_signal(context, started))?;
    write_envelope(context, &tool, answered, started).map(Outcome::Streamed)
}

/// Returns the limits of `--cap`, or `None` without it. Invalid limits are refused before the command starts.
fn cap_plan(context: &Context, arguments: &Exec) -> Result<Option<OutputCapping>, CommandError> {
    let most = &arguments.most;
    if !arguments.cap {
        if most.chars.or(most.bytes).or(most.tokens).is_some() {
            let message = "`--max-chars`, `--max-bytes` and `--max-tokens` are limits of `--cap`";
            return Err(CommandError::input("usage", message, "Add `--cap`."));
        }
        return Ok(None);
    }
    let effective = context.load_configuration(arguments.store.overrides())?;
    let settings = &effective.settings;
    let request = settings.cap_request(most.limit()?, arguments.max_items, u64::MAX)?;
    Ok(Some(OutputCapping::new(request, settings.keeper(), configuration_warnings(&effective))))
}

/// Lets a second signal end the process, because the runtime that watched signals has ended.
fn watch_second_signal(context: &Context, started: Instant) {
    if let Err(error) = endmark_envelope::answer_signals(started) {
        context.terminal.warn(&format!("cannot watch signals: {error}"));
    }
}

/// Writes the envelope. A partly written envelope is an error, even if the reader closed the pipe.
fn write_envelope(
    context: &Context,
    tool: &ManifestTool<'_>,
    answered: ToolResponse,
    started: Instant,
) -> Result<ExitStatus, CommandError> {
    let document = tool.into_document(answered, started.elapsed());
    let exit = ExitStatus::from_code(document.exit_code());
    // The command has finished. A signal must not replace this answer by one that reports no work.
    let _right = AnswerRight::claim_or_wait();
    watch_second_signal(context, started);
    document.write_to(&mut JsonOutput::new(io::stdout().lock())).map_err(CommandError::Partial)?;
    Ok(exit)
}
