//! `endmark findings progress`: the progress of agents, by their own reports (AR-3).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use endmark_envelope::{FieldPath, Warning};
use endmark_failure::{CommandError, to_single_line};
use endmark_findings::{Checkpoint, Remark, RemarkKind, missing_checkpoints};
use serde::Serialize;

use super::pages::{ListIdentity, split_list};
use super::remark_warnings;
use super::sources::{self, Source};
use crate::arguments::findings::Progress;
use crate::context::Context;
use crate::view::answer::{Answer, to_data};
use crate::view::terminal::Terminal;

/// Answer data: the progress of all agents.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ProgressReport<'a> {
    transcripts: Vec<TranscriptReport<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TranscriptReport<'a> {
    origin: &'a str,
    agent_id: Option<&'a str>,
    checkpoints: Vec<&'a Checkpoint>,
    /// The index of the item's first checkpoint among all checkpoints of its transcript, from 0. A transcript with more
    /// than half a megabyte of checkpoints is split into several items, which differ only in their checkpoints.
    checkpoints_from: usize,
    /// The turns after which a checkpoint is missing; at most the first thousand.
    missing: Vec<u32>,
    missing_count: u32,
    /// Checkpoint lines with unreadable parts.
    unreadable: Vec<UnreadableReport<'a>>,
    /// Whether every agent that has started a result has delivered it whole.
    whole: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UnreadableReport<'a> {
    line: usize,
    column: usize,
    /// The text of the line, shortened.
    text: &'a str,
}

/// How often a followed file is checked for growth.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Reports on all files. With `--follow`, first waits until the results in the file are whole or the file
/// stops growing.
pub(super) fn run(context: &Context, arguments: &Progress) -> Result<Answer, CommandError> {
    let cursor = arguments.cursor.as_deref();
    let list_identity = ListIdentity { command: "progress", files: &arguments.files, options: None, cursor };
    let pages = list_identity.into_pages(FieldPath::data().key("transcripts"), context)?;
    let sources = if arguments.follow {
        vec![follow(context, arguments)?]
    } else {
        sources::read_all(context, &arguments.files)?
    };
    let mut text = String::new();
    let mut missing_warnings = Vec::new();
    let mut transcripts = Vec::new();
    for source in &sources {
        let transcript = &source.transcript;
        let missing = missing_checkpoints(&transcript.checkpoints, arguments.turn);
        let whole = is_whole(source);
        let agent_id = transcript.results.iter().find_map(|result| result.agent_id.as_deref());
        let _ = writeln!(text, "{}: {}", to_single_line(&source.origin), summary(source));
        for checkpoint in &transcript.checkpoints {
            let _ = writeln!(text, "  {}", describe(checkpoint));
        }
        let unreadable: Vec<&Remark> =
            transcript.remarks.iter().filter(|remark| is_unreadable(remark)).collect();
        for remark in &unreadable {
            let _ = writeln!(text, "  {}: cannot be read: {}", remark.position, to_single_line(&remark.text));
        }
        if missing.count > 0 {
            let named: Vec<String> = missing.turns.iter().take(20).map(ToString::to_string).collect();
            let more = if missing.count as usize > named.len() { ", …" } else { "" };
            let message = format!(
                "{}: {} checkpoints are missing (one is due every 10 turns): turn {}{more}",
                source.origin,
                missing.count,
                named.join(", ")
            );
            missing_warnings.push(Warning::notice("CHECKPOINT_MISSING", message));
        }
        let pieces = split_list(transcript.checkpoints.iter().collect())?;
        transcripts.extend(pieces.into_iter().map(|(checkpoints_from, checkpoints)| TranscriptReport {
            origin: &source.origin,
            agent_id,
            checkpoints,
            checkpoints_from,
            missing: missing.turns.clone(),
            missing_count: missing.count,
            unreadable: unreadable.iter().map(|remark| UnreadableReport::new(remark)).collect(),
            whole,
        }));
    }
    let (remarks, _) = sources::remarks(&sources);
    let broken: Vec<_> = remarks.into_iter().filter(|(_, remark)| is_unreadable(remark)).collect();
    let answer = Answer::yes(to_data(&ProgressReport { transcripts })?, text);
    let answer = answer.with_warnings(missing_warnings).with_warnings(remark_warnings(&broken, 0));
    Ok(answer.with_pages(pages))
}

fn is_unreadable(remark: &Remark) -> bool {
    remark.kind == RemarkKind::BrokenCheckpoint
}

/// Whether every agent that has started a result has delivered a whole one.
fn is_whole(source: &Source) -> bool {
    delivering_agents(source).into_values().all(|is_whole| is_whole)
}

/// Returns the agents of a transcript, each with whether it delivered a whole result.
fn delivering_agents(source: &Source) -> BTreeMap<&str, bool> {
    let mut agents = BTreeMap::new();
    for result in &source.transcript.results {
        *agents.entry(result.agent_id.as_deref().unwrap_or_default()).or_default() |= result.cut.is_whole();
    }
    agents
}

/// Describes which agents delivered results, and whether they are whole.
fn summary(source: &Source) -> String {
    let agents = delivering_agents(source);
    let names = |is_asked_for: &dyn Fn(bool) -> bool| -> Vec<String> {
        let asked_for = agents.iter().filter(|(name, is_whole)| !name.is_empty() && is_asked_for(**is_whole));
        asked_for.map(|(name, _)| to_single_line(name)).collect()
    };
    let (all, missing) = (names(&|_| true), names(&|is_whole| !is_whole));
    let owner = match all.as_slice() {
        [] => String::new(),
        [one] => format!("agent {one}: "),
        several => format!("agents {}: ", several.join(", ")),
    };
    match (is_whole(source), all.len() > 1 && !missing.is_empty()) {
        (true, _) if all.len() > 1 => format!("{owner}results are whole"),
        (true, _) => format!("{owner}result is whole"),
        (false, true) => format!("{owner}no whole result of {} yet", missing.join(", ")),
        (false, false) => format!("{owner}no whole result yet"),
    }
}

/// Reads a file whenever its size changes, until all its results are whole, or it is unchanged for `--idle` seconds.
fn follow(context: &Context, arguments: &Progress) -> Result<Source, CommandError> {
    let [file] = arguments.files.as_slice() else {
        return Err(CommandError::input(
            "usage",
            "--follow reads exactly one file",
            "Name one file; run a separate command for each other file.",
        ));
    };
    if file == Path::new("-") {
        return Err(CommandError::input(
            "usage",
            "--follow reads a growing file; standard input is always read to its end",
            "Omit --follow.",
        ));
    }
    let size = |file: &Path| {
        let data = std::fs::metadata(file);
        data.map(|data| data.len()).map_err(|source| CommandError::Read { path: file.to_owned(), source })
    };
    let (mut shown, mut changed) = (0, Instant::now());
    loop {
        let before = size(file)?;
        let source = sources::read_one(context, file)?;
        for checkpoint in source.transcript.checkpoints.iter().skip(shown) {
            show(context.terminal, checkpoint);
        }
        shown = source.transcript.checkpoints.len();
        if is_whole(&source) {
            return Ok(source);
        }
        while size(file)? == before {
            if changed.elapsed() >= Duration::from_secs(arguments.idle) {
                return Ok(source);
            }
            sleep(POLL_INTERVAL);
        }
        changed = Instant::now();
    }
}

fn show(terminal: Terminal, checkpoint: &Checkpoint) {
    terminal.progress(&describe(checkpoint));
}

fn describe(checkpoint: &Checkpoint) -> String {
    let number = |number: Option<u32>| number.map_or("?".to_owned(), |number| number.to_string());
    let remaining = match checkpoint.remaining_dims.as_deref() {
        None => "not stated".to_owned(),
        Some([]) => "nothing".to_owned(),
        Some(dimensions) => to_single_line(&dimensions.join(", ")),
    };
    format!(
        "turn {}: {} findings, {} files read, remaining: {remaining}",
        checkpoint.turn,
        number(checkpoint.findings),
        number(checkpoint.files_read)
    )
}

impl<'a> UnreadableReport<'a> {
    fn new(remark: &'a Remark) -> Self {
        Self { line: remark.position.line, column: remark.position.column, text: &remark.text }
    }
}
