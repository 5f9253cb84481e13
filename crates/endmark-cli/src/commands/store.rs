//! `endmark store copy`: copies a store from one machine to several, and back.

use std::fmt::Write as _;

use endmark_context::budget::Unit;
use endmark_failure::CommandError;
use endmark_store::{CopyError, CopyProgress, CopyResult, CopySums, StoreLocation, copy_store, runtime};
use serde::Serialize;

use crate::arguments::store::{Copy, StoreCommand, StoreTool};
use crate::context::Context;
use crate::progress::ProgressMessages;
use crate::view::answer::{Answer, to_data};

/// The answer of `store copy`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StoreCopyReport {
    /// Whether the target has everything that should be copied.
    is_whole: bool,
    /// The content of the source.
    source: StoreSums,
    /// The content of the target that comes from the source.
    target: StoreSums,
    /// Keys that already existed in the target and differ; the target keeps its own.
    differing_keys: Vec<String>,
    /// Records that are not copied; they stay in the source.
    left_out: Vec<OmittedRecords>,
}

/// Counts and sums of a store.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StoreSums {
    /// Rows of calls.
    calls: u64,
    /// Prompt tokens of all calls, as reported.
    prompt_tokens: u64,
    /// Output tokens of all calls, as reported.
    output_tokens: u64,
    /// Budgets with spending; each window counts.
    budgets: u64,
    /// The sum spent in token budgets.
    spent_tokens: u64,
    /// The sum spent in dollar budgets, in nano-dollars.
    spent_nano_usd: u64,
    /// Keys, including revoked ones.
    keys: u64,
}

/// Records that were not copied.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OmittedRecords {
    /// The kind of records, such as `kept outputs`.
    what: &'static str,
    /// The number of records.
    count: u64,
}

/// Copies a store.
pub(crate) fn run(context: &Context, arguments: &StoreTool) -> Result<Answer, CommandError> {
    let StoreCommand::Copy(Copy { from, to }) = &arguments.command;
    let (from, to) = (parse_location(context, from)?, parse_location(context, to)?);
    let mut messages = ProgressMessages::new(context.terminal);
    let progress = |CopyProgress { rows, total }| messages.show(|| format!("{rows} of {total} calls"));
    let copied = runtime::block_on(copy_store(&from, &to, progress))?.map_err(|error| copy_error(&error))?;
    let data = to_data(&StoreCopyReport::new(&copied))?;
    let text = render_text(&copied);
    if copied.is_whole() {
        return Ok(Answer::yes(data, text));
    }
    let message = "the target differs from the source";
    Ok(Answer::no_in_text(data, text, "copy_differs", message).with_hint(
        "This is expected if the target was used since an earlier copy. Otherwise copy into a new file or an empty database.",
    ))
}

/// Parses the location of a store. `env:NAME` keeps a password out of the process list.
fn parse_location(context: &Context, typed: &str) -> Result<StoreLocation, CommandError> {
    let invalid = |message: String| {
        CommandError::input(
            "bad_location",
            message,
            "Write `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, or `env:NAME` for an environment variable with one of them.",
        )
    };
    let value = match typed.strip_prefix("env:") {
        None => typed.to_owned(),
        Some(name) => {
            let value = context.environment.get(name).map(str::to_owned);
            value.ok_or_else(|| invalid(format!("the environment variable `{name}` is not set")))?
        }
    };
    StoreLocation::parse(&value).map_err(|error| invalid(error.to_string()))
}

fn copy_error(error: &CopyError) -> CommandError {
    let (message, hint) =
        (error.to_string(), "`endmark store copy --help` explains what is copied, and when.");
    match error {
        CopyError::Store(error) => CommandError::from_store(error),
        CopyError::OtherContents { .. } => CommandError::input("store_not_empty", message, hint),
        CopyError::EmptySource { .. } => CommandError::input("nothing_to_copy", message, hint),
        CopyError::SameKind => CommandError::input("bad_location", message, hint),
        _ => CommandError::input("store_in_use", message, hint),
    }
}

impl StoreCopyReport {
    fn new(copied: &CopyResult) -> Self {
        let left_out = copied.omitted.iter().map(|(what, count)| OmittedRecords { what, count: *count });
        Self {
            is_whole: copied.is_whole(),
            source: StoreSums::new(&copied.source),
            target: StoreSums::new(&copied.target),
            differing_keys: copied.differing_keys.clone(),
            left_out: left_out.collect(),
        }
    }
}

impl StoreSums {
    fn new(sums: &CopySums) -> Self {
        let CopySums { rows, prompt_tokens, output_tokens, budgets, spent_tokens, spent_nano_usd, keys } =
            *sums;
        Self { calls: rows, prompt_tokens, output_tokens, budgets, spent_tokens, spent_nano_usd, keys }
    }
}

/// Returns the result as readable text.
fn render_text(copied: &CopyResult) -> String {
    let mut text = format!(
        "source  {}\ntarget  {}{}\n",
        describe_sums(&copied.source),
        describe_sums(&copied.target),
        if copied.is_whole() { "" } else { "  DIFFERENT" }
    );
    // Writing to a string cannot fail.
    if !copied.differing_keys.is_empty() {
        let _ = writeln!(
            text,
            "These keys already existed in the target and were not changed: {}.",
            copied.differing_keys.join(", ")
        );
    }
    for (what, count) in &copied.omitted {
        let _ = writeln!(text, "Not copied: {count} {what}. They stay in the source.");
    }
    text
}

fn describe_sums(sums: &CopySums) -> String {
    format!(
        "{} calls ({} + {} tokens), {} budgets ({} and {} spent), {} keys",
        sums.rows,
        sums.prompt_tokens,
        sums.output_tokens,
        sums.budgets,
        Unit::Tokens.format(sums.spent_tokens),
        Unit::NanoUsd.format(sums.spent_nano_usd),
        sums.keys
    )
}
