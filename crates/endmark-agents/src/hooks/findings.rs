//! `endmark hook findings`: sub-agents hand over their findings in a form that shows whether it is whole, and do again what was cut.
//! (AR-1, AR-4)

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use endmark_config::Settings;
use endmark_failure::CommandError;
use endmark_findings::{
    AgentResult, Assignment, Cut, NOT_NAMED, Protocol, Recovery, RecoveryPolicy, Run, RunKind, read,
};
use serde_json::{Value, json};

use super::agent::HookAgent;
use super::attempts::{folder, forget_old, kept, kept_for, make, name_of, put, unusable};
use super::event::Event;

/// So much of the hash distinguishes two sub-agents of one kind.
const HASH_CHARS: usize = 8;
/// The longest part of a name that is the kind of the sub-agent.
const KIND_CHARS: usize = 60;

/// The answer to the event: the form, when a sub-agent starts; what it has to do again, when it stops.
/// With `is_required` each sub-agent has to hand over a result, also one that has begun none.
pub fn findings(
    event: &Event,
    is_required: bool,
    settings: &Settings,
) -> Result<Option<Value>, CommandError> {
    let name = name(event)?;
    if event.hook_event_name.as_deref() == Some("SubagentStart") {
        let protocol = Protocol { agent_id: Some(&name), ..Protocol::default() }.text();
        let text = format!("If your task is to look for findings, hand them over like this.\n\n{protocol}");
        return Ok(Some(
            json!({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": text}}),
        ));
    }
    if event.is_waiting() {
        return Ok(None);
    }
    let folder = folder(settings)?.join("findings");
    make(&folder)?;
    forget_old(&folder, kept_for(settings));
    let Some(audit) = Audit::replayed(&folder, &name, event.said(), is_required)? else {
        return Ok(None);
    };
    Ok(match audit.recovery.next() {
        Some(run) => Some(json!({"decision": "block", "reason": audit.again(run)})),
        None if audit.files.len() > 1 => Some(HookAgent::said(&audit.over(&name))),
        None => None,
    })
}

/// What a sub-agent is called in its result, and its files after it.
fn name(event: &Event) -> Result<String, CommandError> {
    let agent = event.agent_id.as_deref().unwrap_or_default();
    let mut hash = name_of(&["findings", event.session()?, agent]);
    hash.truncate(HASH_CHARS);
    let kind = event.agent_type.as_deref().unwrap_or("agent");
    let kind: String = kind
        .chars()
        .take(KIND_CHARS)
        .map(|sign| if sign.is_ascii_alphanumeric() { sign.to_ascii_lowercase() } else { '-' })
        .collect();
    Ok(format!("{kind}-{hash}"))
}

/// What a sub-agent has handed over, a file for each run, and what follows.
struct Audit {
    recovery: Recovery,
    last: AgentResult,
    /// In the order of the runs, named for them.
    files: Vec<PathBuf>,
}

impl Audit {
    /// The runs that were kept, and the one that has ended now. The recovery is computed from them each time: the files are all
    /// the state there is. `None` if the sub-agent hands over nothing, or its last run was kept before.
    fn replayed(
        folder: &Path,
        name: &str,
        said: &str,
        is_required: bool,
    ) -> Result<Option<Self>, CommandError> {
        let mut audit: Option<Self> = None;
        loop {
            let run = match &audit {
                None => None,
                Some(audit) => match audit.recovery.next() {
                    Some(run) => Some(run.clone()),
                    None => return Ok(None),
                },
            };
            let file = folder.join(format!("{name}{}.txt", run.as_ref().map(suffix).unwrap_or_default()));
            let before = kept(&file)?;
            let is_new = before.is_none();
            let text = before.unwrap_or_else(|| said.to_owned());
            let mut transcript = read(text.as_bytes());
            let is_audit = transcript.results.iter().any(|result| result.begins.is_some())
                || !transcript.checkpoints.is_empty();
            let Some(result) = transcript.results.pop() else { return Ok(None) };
            if is_new {
                // Sub-agents that look for nothing are left alone.
                if run.is_none() && !is_audit && !is_required {
                    return Ok(None);
                }
                put(&file, text.as_bytes()).map_err(|error| unusable(&file, &error))?;
            }
            let audit = audit.get_or_insert_with(|| Self {
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
            audit.recovery.handed_over(&result);
            audit.last = result;
            audit.files.push(file);
            if is_new {
                break;
            }
        }
        Ok(audit)
    }

    /// What the sub-agent is told to do again.
    fn again(&self, run: &Run) -> String {
        let result = &self.last;
        let what = match result.cut {
            Cut::Whole => {
                format!("is whole, but {} of the findings that it declares are missing", result.lost())
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
                "Its {} findings are kept. Do not hand over again those that are complete.",
                result.findings.len()
            );
        }
        let named: Vec<&str> =
            run.dimensions.iter().map(String::as_str).filter(|dimension| *dimension != NOT_NAMED).collect();
        let what = if named.is_empty() { "what is missing".to_owned() } else { named.join(", ") };
        let _ = writeln!(text, "Look into this again, and hand it over as one whole result: {what}.");
        let _ = writeln!(
            text,
            "Before the start marker write this line, so that your reader finds the other parts: `All parts: {}`\n",
            self.merging(Some(run))
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

    /// The command that has all parts as one, with the part of a run that is still to come.
    fn merging(&self, next: Option<&Run>) -> String {
        let folder = self.files.first().and_then(|file| file.parent()).unwrap_or(Path::new("."));
        let next = next.map(|run| folder.join(format!("{}{}.txt", run.agent_id, suffix(run))));
        let files: Vec<String> =
            self.files.iter().cloned().chain(next).map(|file| file.display().to_string()).collect();
        format!("endmark findings merge {}", files.join(" "))
    }

    /// What the user reads of a result in several parts.
    fn over(&self, name: &str) -> String {
        let gaps = self.recovery.gaps();
        let gaps =
            if gaps.is_empty() { String::new() } else { format!("; may have gaps: {}", gaps.join(", ")) };
        format!(
            "Endmark: `{name}` has handed over its findings in {} parts{gaps}. All of them: {}",
            self.files.len(),
            self.merging(None)
        )
    }
}

/// How the file of a run ends, as `endmark findings` reads it.
fn suffix(run: &Run) -> String {
    match (run.kind, run.round) {
        (RunKind::First | RunKind::Unasked, _) => String::new(),
        (RunKind::Retry, 1) => ".retry".to_owned(),
        (RunKind::Retry, round) => format!(".{round}.retry"),
        (RunKind::Supplement, round) => format!(".{round}"),
        (RunKind::Emergency, _) => ".emergency".to_owned(),
    }
}
