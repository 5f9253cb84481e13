//! `endmark hook findings`: gives the findings protocol to sub-agents, and asks for the missing part of a cut
//! result (AR-1, AR-4).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use endmark_config::Settings;
use endmark_failure::CommandError;
use endmark_findings::{
    AgentResult, Assignment, Cut, Protocol, Recovery, RecoveryPolicy, Run, RunKind, UNNAMED_DIMENSIONS, read,
};
use serde_json::{Value, json};

use super::agent::HookAgent;
use super::attempts::{
    create_private_folder, delete_old_records, folder, read_record, record_name, retention,
    unusable_file_error, write_private_file,
};
use super::event::HookInput;

/// Number of hash characters that distinguish sub-agents of the same type.
const HASH_CHARS: usize = 8;
/// Maximum characters of the sub-agent's type in its name.
const MAX_AGENT_TYPE_CHARS: usize = 60;

/// Returns the output for an event: the protocol when a sub-agent starts, or the work to repeat when it
/// stops.
///
/// With `is_required`, a sub-agent must deliver a result even if it has not begun one.
pub fn check_findings(
    event: &HookInput,
    is_required: bool,
    settings: &Settings,
) -> Result<Option<Value>, CommandError> {
    let base = base_name(event)?;
    let folder = folder(settings)?.join("findings");
    create_private_folder(&folder)?;
    if event.hook_event_name.as_deref() == Some("SubagentStart") {
        let (name, _) = begin_result(&folder, &base)?;
        let protocol = Protocol { agent_id: Some(&name), ..Protocol::default() }.text();
        let text = format!("If your task is to look for findings, deliver them like this.\n\n{protocol}");
        return Ok(Some(
            json!({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": text}}),
        ));
    }
    if event.is_waiting() {
        return Ok(None);
    }
    delete_old_records(&folder, retention(settings));
    // No hook has delayed this stop, so the sub-agent was resumed without a start event after its result was
    // accepted.
    let (name, before) = if event.stop_hook_active == Some(false) {
        begin_result(&folder, &base)?
    } else {
        let name = run_name(&base, current_result_number(&folder, &base)?);
        let before = SubAgentResults::replay(&folder, &name)?;
        (name, before)
    };
    let Some(audit) = SubAgentResults::record_run(before, &folder, &name, event.last_message(), is_required)?
    else {
        return Ok(None);
    };
    Ok(match audit.recovery.next() {
        Some(run) => Some(json!({"decision": "block", "reason": audit.retry_prompt(run)})),
        None if audit.files.len() > 1 => Some(HookAgent::message_answer(&audit.final_message(&name))),
        None => None,
    })
}

/// Returns the name and the recorded runs of a sub-agent that starts, or that stops after it was resumed.
///
/// If its previous result was accepted, the sub-agent begins another result with a new name. Under the old
/// name, the new result would not be read.
fn begin_result(folder: &Path, base: &str) -> Result<(String, Option<SubAgentResults>), CommandError> {
    let first = current_result_number(folder, base)?;
    let mut number = first;
    let (name, audit) = loop {
        let name = run_name(base, number);
        let audit = SubAgentResults::replay(folder, &name)?;
        if audit.as_ref().is_none_or(|audit| audit.recovery.next().is_some()) {
            break (name, audit);
        }
        number += 1;
    };
    if number != first {
        let file = number_file(folder, base);
        write_private_file(&file, number.to_string().as_bytes())
            .map_err(|error| unusable_file_error(&file, &error))?;
    }
    Ok((name, audit))
}

/// Returns the number of the sub-agent's current result, counted from 1.
fn current_result_number(folder: &Path, base: &str) -> Result<u32, CommandError> {
    let kept = read_record(&number_file(folder, base))?;
    Ok(kept.and_then(|text| text.parse().ok()).unwrap_or(1))
}

fn number_file(folder: &Path, base: &str) -> PathBuf {
    folder.join(format!("{base}.number"))
}

fn run_name(base: &str, number: u32) -> String {
    if number == 1 { base.to_owned() } else { format!("{base}-{number}") }
}

/// Returns the name of the sub-agent, which its files and its first result use. Later results append a
/// number.
fn base_name(event: &HookInput) -> Result<String, CommandError> {
    let agent = event.agent_id.as_deref().unwrap_or_default();
    let mut hash = record_name(&["findings", event.session()?, agent]);
    hash.truncate(HASH_CHARS);
    let kind = event.agent_type.as_deref().unwrap_or("agent");
    let kind: String = kind
        .chars()
        .take(MAX_AGENT_TYPE_CHARS)
        .map(|sign| if sign.is_ascii_alphanumeric() { sign.to_ascii_lowercase() } else { '-' })
        .collect();
    Ok(format!("{kind}-{hash}"))
}

/// The results of one sub-agent. Each run has its own file.
struct SubAgentResults {
    recovery: Recovery,
    last: AgentResult,
    /// The files in the order of the runs.
    files: Vec<PathBuf>,
}

impl SubAgentResults {
    /// Reads the recorded runs. Nothing else is stored: the recovery is computed from them each time.
    fn replay(folder: &Path, name: &str) -> Result<Option<Self>, CommandError> {
        let mut audit: Option<Self> = None;
        while let Some(file) = Self::next_file(audit.as_ref(), folder, name) {
            let Some(text) = read_record(&file)? else { break };
            let Some(result) = read(text.as_bytes()).results.pop() else { break };
            audit = Some(Self::add_result(audit, name, file, result));
        }
        Ok(audit)
    }

    /// Records the run that has just ended. Returns `None` if no further run was expected, or if the
    /// sub-agent has no result.
    fn record_run(
        before: Option<Self>,
        folder: &Path,
        name: &str,
        message: &str,
        is_required: bool,
    ) -> Result<Option<Self>, CommandError> {
        let Some(file) = Self::next_file(before.as_ref(), folder, name) else { return Ok(None) };
        let mut transcript = read(message.as_bytes());
        let is_audit = transcript.results.iter().any(|result| result.begins.is_some())
            || !transcript.checkpoints.is_empty();
        // Ignore sub-agents that do not look for findings.
        if before.is_none() && !is_audit && !is_required {
            return Ok(None);
        }
        let Some(result) = transcript.results.pop() else { return Ok(None) };
        write_private_file(&file, message.as_bytes()).map_err(|error| unusable_file_error(&file, &error))?;
        Ok(Some(Self::add_result(before, name, file, result)))
    }

    /// Returns the file for the next run. Returns `None` if no run is left.
    fn next_file(audit: Option<&Self>, folder: &Path, name: &str) -> Option<PathBuf> {
        let suffix = match audit {
            None => String::new(),
            Some(audit) => file_suffix(audit.recovery.next()?),
        };
        Some(folder.join(format!("{name}{suffix}.txt")))
    }

    fn add_result(audit: Option<Self>, name: &str, file: PathBuf, result: AgentResult) -> Self {
        let mut audit = audit.unwrap_or_else(|| Self {
            recovery: Recovery::new(
                Assignment {
                    agent_id: name.to_owned(),
                    dimensions: result.dimensions.clone(),
                    max_turns: None,
                },
                RecoveryPolicy::default(),
            ),
            last: result.clone(),
            files: Vec::new(),
        });
        audit.recovery.accept_result(&result);
        audit.last = result;
        audit.files.push(file);
        audit
    }

    /// Returns the instructions for a repeated run.
    fn retry_prompt(&self, run: &Run) -> String {
        let result = &self.last;
        let what = match result.cut {
            Cut::Whole if result.lost_count() == 0 => {
                "is whole, but does not cover your whole task".to_owned()
            }
            Cut::Whole => {
                format!("is whole, but {} of its declared findings are missing", result.lost_count())
            }
            Cut::Mild => "is cut off: its end marker is missing".to_owned(),
            Cut::Severe if result.begins.is_none() => "is missing: there is no start marker".to_owned(),
            Cut::Severe => "is cut off before it names its agent".to_owned(),
        };
        // Writing to a string cannot fail.
        let mut text = format!("Your result {what}.\n");
        if !result.findings.is_empty() {
            let _ = writeln!(
                text,
                "Its {} findings are saved. Do not repeat complete findings.",
                result.findings.len()
            );
        }
        let named: Vec<&str> = run
            .dimensions
            .iter()
            .map(String::as_str)
            .filter(|dimension| *dimension != UNNAMED_DIMENSIONS)
            .collect();
        let what = if named.is_empty() { "the missing part".to_owned() } else { named.join(", ") };
        let _ = writeln!(text, "Examine this again, and deliver it as one whole result: {what}.");
        let _ = writeln!(
            text,
            "Before the start marker write this line, so that your reader finds the other parts: `All parts: {}`\n",
            self.merge_command(Some(run))
        );
        let dimensions: Vec<String> = named.into_iter().map(str::to_owned).collect();
        let protocol = Protocol {
            agent_id: Some(&run.agent_id),
            dimensions: &dimensions,
            max_findings: run.max_findings,
            ..Protocol::default()
        };
        text + &protocol.text()
    }

    /// Returns the folder that contains the files.
    fn folder(&self) -> &Path {
        self.files.first().and_then(|file| file.parent()).unwrap_or(Path::new("."))
    }

    /// Returns the command that merges all parts. It includes the file of a run that is still expected.
    fn merge_command(&self, next: Option<&Run>) -> String {
        let next = next.map(|run| self.folder().join(format!("{}{}.txt", run.agent_id, file_suffix(run))));
        let files: Vec<String> =
            self.files.iter().cloned().chain(next).map(|file| file.display().to_string()).collect();
        format!("endmark findings merge {}", files.join(" "))
    }

    /// Returns the message for the user about a result that consists of several parts.
    fn final_message(&self, name: &str) -> String {
        // `endmark findings merge` fails if all parts are severely cut.
        if self.recovery.past_runs().iter().all(|past| past.cut == Cut::Severe) {
            let count = self.files.len();
            return format!(
                "Endmark: `{name}` has delivered no findings after {count} attempts. Its messages are in `{}`; start it again \
                 to get its findings.",
                self.folder().display()
            );
        }
        let gaps = self.recovery.gaps();
        let gaps =
            if gaps.is_empty() { String::new() } else { format!("; possible gaps: {}", gaps.join(", ")) };
        format!(
            "Endmark: `{name}` has delivered its findings in {} parts{gaps}. To merge them: {}",
            self.files.len(),
            self.merge_command(None)
        )
    }
}

/// Returns the suffix of a run's file name. `endmark findings` recognises it.
fn file_suffix(run: &Run) -> String {
    match (run.kind, run.round) {
        (RunKind::First | RunKind::Unasked, _) => String::new(),
        (RunKind::Retry, 1) => ".retry".to_owned(),
        (RunKind::Retry, round) => format!(".{round}.retry"),
        (RunKind::Supplement, round) => format!(".{round}"),
        (RunKind::Emergency, _) => ".emergency".to_owned(),
    }
}
