//! `endmark hook compact`: preserves values of the conversation when an agent compacts it (CX-4).

use std::io;
use std::path::Path;

use endmark_config::Settings;
use endmark_context::compact::anchor_ledger;
use endmark_context::count::Family;
use endmark_failure::CommandError;
use endmark_process::read_regular;
use endmark_text::replace_lone_surrogates;
use endmark_wire::anthropic_messages::Messages;
use endmark_wire::conversation::Dialogue;
use serde_json::{Value, json};

use super::attempts::{
    delete_old_records, folder, read_record, record_name, retention, unusable_file_error, write_private_file,
};
use super::event::HookInput;

/// Claude Code moves a longer text to a file, and the model then sees only its beginning.
const MAX_LEDGER_CHARS: usize = 9_500;
/// The first token limit that is tried. It is reduced if the text has too many characters.
const FIRST_LIMIT_TOKENS: u64 = 2_800;
/// The token limit is reduced at most this many times.
const MAX_REDUCTIONS: usize = 5;
/// Maximum size of a transcript in bytes.
const MAX_TRANSCRIPT_BYTES: u64 = 256 << 20;

/// Returns the output for an event. It contains the ledger if the session continues after a compaction.
pub fn build_ledger_answer(event: &HookInput, settings: &Settings) -> Result<Option<Value>, CommandError> {
    let folder = folder(settings)?;
    let path = folder.join(record_name(&["ledger", event.session()?])).with_extension("txt");
    if event.hook_event_name.as_deref() == Some("PreCompact") {
        let transcript = event.transcript_path.as_deref().ok_or_else(|| {
            CommandError::input("not_an_event", "the event names no transcript", "Update the agent.")
        })?;
        let text = read_transcript(transcript)?;
        if let Some(ledger) = build_transcript_ledger(&String::from_utf8_lossy(&text))? {
            delete_old_records(&folder, retention(settings));
            write_private_file(&path, ledger.as_bytes())
                .map_err(|error| unusable_file_error(&path, &error))?;
        }
        return Ok(None);
    }
    Ok(read_record(&path)?.map(|ledger| {
        json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": ledger}})
    }))
}

fn read_transcript(path: &Path) -> Result<Vec<u8>, CommandError> {
    read_regular(path, MAX_TRANSCRIPT_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => {
            let message = format!("`{}` has more than {MAX_TRANSCRIPT_BYTES} bytes", path.display());
            CommandError::input(
                "too_large",
                message,
                "Start a new session: no ledger is made from a transcript of this size.",
            )
        }
        _ => CommandError::Read { path: path.into(), source },
    })
}

/// Returns the ledger for a Claude Code transcript. Returns `None` if there is nothing to preserve.
fn build_transcript_ledger(transcript: &str) -> Result<Option<String>, CommandError> {
    let messages: Vec<Value> = transcript.lines().filter_map(main_message).collect();
    let body = json!({"messages": messages}).to_string();
    let dialogue = Dialogue::read(&Messages, body.as_bytes())
        .map_err(|error| CommandError::input("unread_transcript", error.to_string(), "Update Endmark."))?;
    let mut room = FIRST_LIMIT_TOKENS;
    for _ in 0..MAX_REDUCTIONS {
        let Some(ledger) = anchor_ledger(dialogue.conversation(), room, |text| Family::O200k.tokens(text))
        else {
            return Ok(None);
        };
        let chars = ledger.chars().count();
        if chars <= MAX_LEDGER_CHARS {
            return Ok(Some(ledger));
        }
        // Slightly less than the computed limit, because tokens differ in length.
        room = room * (MAX_LEDGER_CHARS * 9 / 10) as u64 / chars as u64;
    }
    Err(CommandError::input("too_large", "the ledger cannot be made short enough", "Nothing is given back."))
}

/// Returns the message in a transcript line if it belongs to the main conversation. Messages of sub-agents
/// and the summary of an earlier compaction are excluded.
fn main_message(line: &str) -> Option<Value> {
    let mut entry: Value = serde_json::from_str(&replace_lone_surrogates(line)).ok()?;
    let is = |name: &str| entry.get(name).and_then(Value::as_bool) == Some(true);
    let is_turn = matches!(entry.get("type").and_then(Value::as_str), Some("user" | "assistant"));
    if !is_turn || is("isSidechain") || is("isMeta") || is("isCompactSummary") {
        return None;
    }
    let message = entry.get_mut("message")?.take();
    Some(json!({"role": message.get("role")?, "content": message.get("content")?}))
}
