//! Runs hooks with events that contain a canary text, and checks that their output contains it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::hooks::agent::{HookAgent, HookKind};

/// Longer than agents wait for their hooks.
const HOOK_TIMEOUT: Duration = Duration::from_secs(30);
/// A text in the event that the output must contain.
const CANARY: &str = "canary-e7d1";
/// More rows than any sensible limit of a hook allows.
const CANARY_OUTPUT_ROWS: usize = 60_000;
const CANARY_SESSION: &str = "endmark-doctor";

/// Runs the command of a hook with an event, as its agent would. Records are written to a temporary folder.
/// Returns what was found, or the error.
pub(super) async fn run_hook(agent: HookAgent, kind: HookKind, command: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("cannot be tested: {error}"))?;
    match kind {
        HookKind::Tool => try_tool_hook(agent, command, &folder).await,
        HookKind::Stop => try_stop_hook(agent, command, &folder).await,
        HookKind::Compact => try_compact_hook(command, &folder).await,
        HookKind::Findings => try_findings_hook(command, &folder).await,
    }
}

/// Runs the hook with a long output that has one line with an error in the middle.
async fn try_tool_hook(agent: HookAgent, command: &str, folder: &TempDir) -> Result<String, String> {
    let mut output = String::new();
    for row in 0..CANARY_OUTPUT_ROWS {
        // Writing to a string cannot fail.
        let _ = if row == CANARY_OUTPUT_ROWS / 2 {
            writeln!(output, "ERROR row {row}: {CANARY} is lost")
        } else {
            writeln!(output, "row {row}: processed without incident")
        };
    }
    let (event, tool, response) = match agent {
        HookAgent::Claude => (
            "PostToolUse",
            "Bash",
            json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false}),
        ),
        HookAgent::Codex => ("PostToolUse", "Bash", json!(output)),
        HookAgent::Gemini => ("AfterTool", "run_shell_command", json!({"llmContent": output})),
    };
    let event = json!({
        "session_id": CANARY_SESSION, "cwd": folder.path(), "hook_event_name": event, "tool_name": tool,
        "tool_input": {"command": "make"}, "tool_response": response,
    });
    let answer = run_command(command, &event, folder.path()).await?;
    let shown = match agent {
        HookAgent::Claude => &answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"],
        HookAgent::Codex | HookAgent::Gemini => &answer["reason"],
    };
    let shown = shown.as_str().ok_or("does not shorten a result of two megabytes")?;
    if !shown.contains(CANARY) {
        return Err("loses the error row".to_owned());
    }
    Ok(format!("keeps {} characters of {}, and the error row", shown.len(), output.len()))
}

/// Runs the hook with an artifact that does not exist.
async fn try_stop_hook(agent: HookAgent, command: &str, folder: &TempDir) -> Result<String, String> {
    let artifact = folder.path().join(format!("{CANARY}.md"));
    let name = artifact.to_string_lossy();
    if name.contains('\'') {
        return Err("cannot be tested in a folder with a quotation mark in its name".to_owned());
    }
    let event = match agent {
        HookAgent::Claude | HookAgent::Codex => "Stop",
        HookAgent::Gemini => "AfterAgent",
    };
    let event = json!({"session_id": CANARY_SESSION, "hook_event_name": event, "stop_hook_active": false});
    let answer = run_command(&format!("{command} --artifact '{name}'"), &event, folder.path()).await?;
    let word = match agent {
        HookAgent::Claude | HookAgent::Codex => "block",
        HookAgent::Gemini => "deny",
    };
    let is_held =
        answer["decision"] == word && answer["reason"].as_str().is_some_and(|it| it.contains(CANARY));
    if is_held {
        Ok("an agent without its artifact cannot stop".to_owned())
    } else {
        Err("lets an agent without its artifact stop".to_owned())
    }
}

/// Runs the hook with a transcript that mentions a file.
async fn try_compact_hook(command: &str, folder: &TempDir) -> Result<String, String> {
    let transcript = folder.path().join("transcript.jsonl");
    let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": format!("src/{CANARY}.rs")}});
    let lines = [
        json!({"type": "user", "message": {"role": "user", "content": "Look at it."}}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": [call]}}),
    ];
    let text = lines.map(|line| format!("{line}\n")).concat();
    std::fs::write(&transcript, text).map_err(|error| format!("cannot be tested: {error}"))?;
    let event = |name: &str| json!({"session_id": CANARY_SESSION, "hook_event_name": name, "transcript_path": transcript});
    run_command(command, &event("PreCompact"), folder.path()).await?;
    let answer = run_command(command, &event("SessionStart"), folder.path()).await?;
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str();
    if context.is_some_and(|context| context.contains(CANARY)) {
        Ok("a file of the conversation is preserved by its compaction".to_owned())
    } else {
        Err("forgets a file of the conversation".to_owned())
    }
}

/// Runs the hook with a sub-agent that starts. The output must contain the protocol.
async fn try_findings_hook(command: &str, folder: &TempDir) -> Result<String, String> {
    let event = json!({"session_id": CANARY_SESSION, "hook_event_name": "SubagentStart", "agent_id": "a", "agent_type": CANARY});
    let answer = run_command(command, &event, folder.path()).await?;
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str();
    if context.is_some_and(|context| context.contains(&CANARY.to_ascii_lowercase())) {
        Ok("a sub-agent gets the form of findings".to_owned())
    } else {
        Err("does not give a sub-agent the form of findings".to_owned())
    }
}

/// Returns the output of the command for an event. Returns null if the output is empty.
async fn run_command(command: &str, event: &Value, folder: &Path) -> Result<Value, String> {
    let cannot = |error: std::io::Error| format!("cannot be run: {error}");
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("ENDMARK_STORE", format!("sqlite:{}", folder.join("endmark.db").display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot)?;
    if let Some(mut input) = child.stdin.take() {
        // Ignore the error if the command does not read its input: its output will show that.
        let _ = timeout(HOOK_TIMEOUT, input.write_all(event.to_string().as_bytes())).await;
    }
    let output = timeout(HOOK_TIMEOUT, child.wait_with_output())
        .await
        .map_err(|_| format!("takes longer than {} s", HOOK_TIMEOUT.as_secs()))?
        .map_err(cannot)?;
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() {
        return Err(format!("ends with {}: {errors}", output.status));
    }
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return if errors.is_empty() { Ok(Value::Null) } else { Err(format!("says: {errors}")) };
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("does not print JSON: {error}"))
}
