//! Events with a canary, and the checks that it is in the output.

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

/// Longer than agents wait for hooks.
const HOOK_TIMEOUT: Duration = Duration::from_secs(30);
/// The text that must be in the output.
const CANARY: &str = "canary-e7d1";
/// More rows than any sensible limit of a hook.
const ROWS: usize = 60_000;
const SESSION: &str = "endmark-doctor";

/// Runs the command with an event of its agent, and its records in a temporary folder. Returns the finding, or the
/// error.
pub(super) async fn run(agent: HookAgent, kind: HookKind, command: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("cannot be tested: {error}"))?;
    match kind {
        HookKind::Tool => try_tool_hook(agent, command, &folder).await,
        HookKind::Stop => stop(agent, command, &folder).await,
        HookKind::Compact => compact(command, &folder).await,
        HookKind::Findings => try_findings_hook(command, &folder).await,
    }
}

/// Tests a long output with one error row in its middle.
async fn try_tool_hook(agent: HookAgent, command: &str, folder: &TempDir) -> Result<String, String> {
    let mut output = String::new();
    for row in 0..ROWS {
        // Writing to a string cannot fail.
        let _ = if row == ROWS / 2 {
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
        "session_id": SESSION, "cwd": folder.path(), "hook_event_name": event, "tool_name": tool,
        "tool_input": {"command": "make"}, "tool_response": response,
    });
    let answer = ask_command(command, &event, folder.path()).await?;
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

/// Tests a missing artifact.
async fn stop(agent: HookAgent, command: &str, folder: &TempDir) -> Result<String, String> {
    let artifact = folder.path().join(format!("{CANARY}.md"));
    let name = artifact.to_string_lossy();
    if name.contains('\'') {
        return Err("cannot be tested in a folder with a quotation mark in its name".to_owned());
    }
    let event = match agent {
        HookAgent::Claude | HookAgent::Codex => "Stop",
        HookAgent::Gemini => "AfterAgent",
    };
    let event = json!({"session_id": SESSION, "hook_event_name": event, "stop_hook_active": false});
    let answer = ask_command(&format!("{command} --artifact '{name}'"), &event, folder.path()).await?;
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

/// Tests a transcript that names a file.
async fn compact(command: &str, folder: &TempDir) -> Result<String, String> {
    let transcript = folder.path().join("transcript.jsonl");
    let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": format!("src/{CANARY}.rs")}});
    let lines = [
        json!({"type": "user", "message": {"role": "user", "content": "Look at it."}}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": [call]}}),
    ];
    let text = lines.map(|line| format!("{line}\n")).concat();
    std::fs::write(&transcript, text).map_err(|error| format!("cannot be tested: {error}"))?;
    let event =
        |name: &str| json!({"session_id": SESSION, "hook_event_name": name, "transcript_path": transcript});
    ask_command(command, &event("PreCompact"), folder.path()).await?;
    let answer = ask_command(command, &event("SessionStart"), folder.path()).await?;
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str();
    if context.is_some_and(|context| context.contains(CANARY)) {
        Ok("a file of the conversation is preserved by its compaction".to_owned())
    } else {
        Err("forgets a file of the conversation".to_owned())
    }
}

/// Tests a sub-agent that starts, which must get the protocol.
async fn try_findings_hook(command: &str, folder: &TempDir) -> Result<String, String> {
    let event = json!({"session_id": SESSION, "hook_event_name": "SubagentStart", "agent_id": "a", "agent_type": CANARY});
    let answer = ask_command(command, &event, folder.path()).await?;
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str();
    if context.is_some_and(|context| context.contains(&CANARY.to_ascii_lowercase())) {
        Ok("a sub-agent gets the form of findings".to_owned())
    } else {
        Err("does not give a sub-agent the form of findings".to_owned())
    }
}

/// Returns the command's output for an event; null if the output is empty.
async fn ask_command(command: &str, event: &Value, folder: &Path) -> Result<Value, String> {
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
        // If the command does not read its input, its output shows that.
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
