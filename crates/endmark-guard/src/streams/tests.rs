//! Tests of known cases in which agents report a cut-off run as a success. Comments contain the numbers of
//! the users' issues. Complete recordings are in `tests/streams`.

use super::*;
use crate::usage::TokenUsage;

const NORMAL_EXIT: AttemptEnd = AttemptEnd { process: ProcessEnd::Exited(0), stop_cause: None };

fn judge_with(agent: Agent, lines: &[&str], end: AttemptEnd) -> (AttemptVerdict, String, AgentUsage) {
    let mut stream = AgentStream::new(agent);
    for line in lines {
        stream.push(line.as_bytes());
        stream.push(b"\n");
    }
    let judged = stream.finish(end);
    (judged.verdict, judged.evidence.join(" | "), stream.usage().clone())
}

fn verdict(agent: Agent, lines: &[&str]) -> AttemptVerdict {
    judge_with(agent, lines, NORMAL_EXIT).0
}

#[test]
fn claude_reports_success_for_a_cut_reply() {
    use AttemptVerdict::{Budget, ContextExhausted, Crashed, Truncated, Whole, WrappedUp};
    let result = |fields: &str| format!(r#"{{"type":"result","session_id":"s",{fields}}}"#);
    for (fields, expected) in [
        (r#""subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn""#, Whole),
        // anthropics/claude-code#40432
        (
            r#""subtype":"success","is_error":false,"result":"","stop_reason":"tool_use","terminal_reason":"aborted_streaming""#,
            Truncated,
        ),
        (r#""subtype":"success","is_error":false,"result":"Done.","stop_reason":"tool_use""#, Truncated),
        (
            r#""subtype":"success","is_error":false,"result":"The first","stop_reason":"max_tokens""#,
            Truncated,
        ),
        (r#""subtype":"success","is_error":false,"result":"","stop_reason":"end_turn""#, Truncated),
        (
            r#""subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn","terminal_reason":"stop_hook_prevented""#,
            WrappedUp,
        ),
        (
            r#""subtype":"success","is_error":true,"result":"API Error: 529 overloaded","stop_reason":"stop_sequence""#,
            Crashed,
        ),
        (
            r#""subtype":"success","is_error":true,"result":"Prompt is too long","stop_reason":"stop_sequence""#,
            ContextExhausted,
        ),
        (
            r#""subtype":"success","is_error":false,"result":"x","stop_reason":"model_context_window_exceeded""#,
            ContextExhausted,
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"prompt_too_long""#,
            ContextExhausted,
        ),
        (
            r#""subtype":"error_max_turns","is_error":true,"errors":["Reached maximum number of turns"]"#,
            Budget,
        ),
        (r#""subtype":"error_max_budget_usd","is_error":true"#, Budget),
        (r#""subtype":"error_during_execution","is_error":true,"errors":["no network"]"#, Crashed),
        (
            r#""subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn","result_index":1"#,
            Truncated,
        ),
    ] {
        assert_eq!(verdict(Agent::Claude, &[&result(fields)]), expected, "{fields}");
    }
    assert_eq!(verdict(Agent::Claude, &[r#"{"type":"system","subtype":"init","model":"m"}"#]), Crashed);
    // An answer that mentions a context window is not an error.
    let about = r#""subtype":"success","is_error":false,"result":"The context window is explained.","stop_reason":"end_turn""#;
    assert_eq!(verdict(Agent::Claude, &[&result(about)]), Whole);
}

/// In older versions the `stop_reason` of the result is missing or null.
#[test]
fn the_stop_reason_comes_from_the_last_message_of_claude() {
    use AttemptVerdict::{ContextExhausted, Truncated, Whole};
    let message = |stop: &str, kind: &str, parent: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"m","stop_reason":{stop},"content":[{{"type":"{kind}","text":"Done."}}]}}}}"#
        )
    };
    let result = |text: &str, more: &str| {
        format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}"{more}}}"#)
    };
    let main = |stop: &str, kind: &str| message(stop, kind, "null");
    for (message, result, expected) in [
        (main("\"end_turn\"", "text"), result("Done.", ""), Whole),
        (main("null", "text"), result("Done.", ""), Whole),
        (String::new(), result("Done.", ""), Whole),
        (main("\"tool_use\"", "text"), result("Done.", ""), Truncated),
        (main("null", "tool_use"), result("Done.", ""), Truncated),
        (main("\"max_tokens\"", "text"), result("Done.", ""), Truncated),
        (main("\"model_context_window_exceeded\"", "text"), result("Done.", ""), ContextExhausted),
        (main("null", "text"), result("", ""), Truncated),
        (main("\"end_turn\"", "text"), result("Done.", r#","stop_reason":null"#), Whole),
        (main("null", "text"), result("Done.", r#","stop_reason":null"#), Whole),
        (String::new(), result("Done.", r#","stop_reason":null"#), Whole),
        (main("\"tool_use\"", "text"), result("Done.", r#","stop_reason":null"#), Truncated),
        (main("null", "tool_use"), result("Done.", r#","stop_reason":null"#), Truncated),
        (main("\"max_tokens\"", "text"), result("Done.", r#","stop_reason":null"#), Truncated),
        // The result's own stop reason takes precedence.
        (main("\"end_turn\"", "text"), result("Done.", r#","stop_reason":"tool_use""#), Truncated),
    ] {
        assert_eq!(verdict(Agent::Claude, &[&message, &result]), expected, "{message} {result}");
    }
    // The message of a sub-agent does not affect how the run ended.
    let lines = [main("null", "text"), message("\"tool_use\"", "tool_use", "\"t\""), result("Done.", "")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(verdict(Agent::Claude, &lines), Whole);
}

#[test]
fn claude_stops_with_an_open_task_list() {
    let todos = r#"{"type":"assistant","parent_tool_use_id":null,"message":{"id":"m1","content":[{"type":"tool_use","name":"TodoWrite","input":{"todos":[{"content":"Write the tests","status":"pending"},{"content":"Plan","status":"completed"}]}}]}}"#;
    let result =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn"}"#;
    let (verdict, evidence, _) = judge_with(Agent::Claude, &[todos, result], NORMAL_EXIT);
    assert_eq!(verdict, AttemptVerdict::WrappedUp);
    assert!(evidence.contains("`Write the tests`") && !evidence.contains("Plan"), "{evidence}");
}

#[test]
fn a_multi_line_message_counts_once_and_sub_agents_are_separate() {
    let line = |id: &str, parent: &str, input: u64, output: u64| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"{id}","content":[],"usage":{{"input_tokens":{input},"cache_read_input_tokens":40,"output_tokens":{output}}}}}}}"#
        )
    };
    let lines = [
        line("a", "null", 100, 1),
        line("a", "null", 100, 1),
        line("b", "\"tu_1\"", 900, 1),
        line("c", "null", 200, 5),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (_, _, usage) = judge_with(Agent::Claude, &lines, NORMAL_EXIT);
    assert_eq!(usage.run, TokenUsage::new(140 + 940 + 240, 7));
    assert_eq!(usage.largest_call_tokens, Some(245));
    // The sums in the result replace the sums over the messages.
    let result = r#"{"type":"result","subtype":"success","result":"x","total_cost_usd":0.25,"usage":{"input_tokens":1},"modelUsage":{"m":{"inputTokens":10,"cacheReadInputTokens":20,"cacheCreationInputTokens":30,"outputTokens":5,"contextWindow":200000},"n":{"inputTokens":1,"outputTokens":1}}}"#;
    let with_result: Vec<&str> = [r#"{"type":"system","subtype":"init","model":"m"}"#]
        .into_iter()
        .chain(lines)
        .chain([result])
        .collect();
    let (_, _, usage) = judge_with(Agent::Claude, &with_result, NORMAL_EXIT);
    assert_eq!((usage.run, usage.cost_nanodollars), (TokenUsage::new(61, 6), Some(250_000_000)));
    assert_eq!((usage.context_tokens, usage.largest_call_tokens), (Some(200_000), Some(245)));
}

#[test]
fn codex_reports_a_cut_turn_as_completed() {
    use AttemptVerdict::{ContextExhausted, Crashed, Truncated, Whole, WrappedUp};
    let message = r#"{"type":"item.completed","item":{"type":"agent_message","text":"All of it is done."}}"#;
    let cut =
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"The boats are in, and the"}}"#;
    let command = r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","status":"completed"}}"#;
    let list = r#"{"type":"item.completed","item":{"type":"todo_list","items":[{"text":"tests","completed":false}]}}"#;
    let warning = r#"{"type":"item.completed","item":{"type":"error","message":"metadata not found"}}"#;
    let reconnecting = r#"{"type":"error","message":"Reconnecting... 1/5"}"#;
    let completed = r#"{"type":"turn.completed","usage":{"input_tokens":9000,"cached_input_tokens":8000,"output_tokens":400,"reasoning_output_tokens":120}}"#;
    let capped = r#"{"type":"turn.completed","usage":{"input_tokens":9000,"output_tokens":128000}}"#;
    let failed = |message: &str| format!(r#"{{"type":"turn.failed","error":{{"message":"{message}"}}}}"#);
    let (full, limit, network) = (
        failed("Your input exceeds the context window of this model."),
        failed("Incomplete response returned, reason: max_output_tokens"),
        failed("stream disconnected"),
    );
    for (lines, expected) in [
        (&[message, completed][..], Whole),
        (&[reconnecting, warning, message, completed], Whole),
        (&[cut, completed], Truncated),
        (&[message, capped], Truncated),
        (&[message, command, completed], Truncated),
        (&[completed], Truncated),
        (&[list, message, completed], WrappedUp),
        (&[message], Crashed),
        (&[message, reconnecting], Crashed),
        (&[&full], ContextExhausted),
        (&[&limit], Truncated),
        (&[message, &network], Crashed),
    ] {
        assert_eq!(verdict(Agent::Codex, lines), expected, "{lines:?}");
    }
    // The sum over all calls does not show the size of the largest call.
    let (_, _, usage) = judge_with(Agent::Codex, &[message, completed], NORMAL_EXIT);
    assert_eq!((usage.run, usage.largest_call_tokens), (TokenUsage::new(9_000, 400), None));
}

#[test]
fn gemini_has_no_finish_reason() {
    use AttemptVerdict::{ContextExhausted, Crashed, Truncated, Whole};
    let message = r#"{"type":"message","role":"assistant","content":"All of it ","delta":true}"#;
    let rest = r#"{"type":"message","role":"assistant","content":"is done.","delta":true}"#;
    let code =
        r#"{"type":"message","role":"assistant","content":"```rust\nfn main() { let x = ","delta":true}"#;
    let tool = r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t","parameters":{}}"#;
    let success = r#"{"type":"result","status":"success","stats":{"total_tokens":130,"input_tokens":100,"output_tokens":10}}"#;
    // google-gemini/gemini-cli#2104
    let capped = r#"{"type":"result","status":"success","stats":{"total_tokens":70000,"input_tokens":4464,"output_tokens":65536}}"#;
    let warning = r#"{"type":"error","severity":"warning","message":"Agent execution blocked: go on"}"#;
    let full = r#"{"type":"result","status":"error","error":{"message":"The input token count exceeds the maximum"}}"#;
    for (lines, expected) in [
        (&[message, rest, success][..], Whole),
        (&[message, warning, rest, success], Whole),
        (&[code, success], Truncated),
        (&[message, rest, capped], Truncated),
        (&[message, rest, tool, success], Truncated),
        (&[success], Truncated),
        (&[message, rest], Crashed),
        (&[full], ContextExhausted),
    ] {
        assert_eq!(verdict(Agent::Gemini, lines), expected, "{lines:?}");
    }
    let turns = AttemptEnd { process: ProcessEnd::Exited(53), stop_cause: None };
    assert_eq!(judge_with(Agent::Gemini, &[message], turns).0, AttemptVerdict::Budget);
    // Reasoning counts as output.
    let (_, _, usage) = judge_with(Agent::Gemini, &[message, rest, success], NORMAL_EXIT);
    assert_eq!((usage.run, usage.largest_call_tokens), (TokenUsage::new(100, 30), None));
}

#[test]
fn opencode_reports_a_limit_as_a_normal_end() {
    use AttemptVerdict::{ContextExhausted, Crashed, Truncated, Whole, WrappedUp};
    let start = r#"{"type":"step_start","sessionID":"ses_1","part":{}}"#;
    let text = r#"{"type":"text","sessionID":"ses_1","part":{"text":"Done."}}"#;
    let list = r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"todowrite","state":{"status":"completed","input":{"todos":[{"content":"tests","status":"in_progress"}]}}}}"#;
    let finish = |reason: &str| {
        format!(
            r#"{{"type":"step_finish","sessionID":"ses_1","part":{{"reason":"{reason}","cost":0.4,"tokens":{{"input":9000,"output":10,"reasoning":31990,"cache":{{"read":1000,"write":0}}}}}}}}"#
        )
    };
    let error = |name: &str, message: &str| {
        format!(
            r#"{{"type":"error","sessionID":"ses_1","error":{{"name":"{name}","data":{{"message":"{message}"}}}}}}"#
        )
    };
    // anomalyco/opencode#42900, #40146
    let (stop, length, calls) = (finish("stop"), finish("length"), finish("tool-calls"));
    let (full, output, other) = (
        error("APIError", "prompt is too long: 210000 tokens"),
        error("MessageOutputLengthError", "x"),
        error("UnknownError", "boom"),
    );
    for (lines, expected) in [
        (&[start, text, &stop][..], Whole),
        (&[start, text, &length], Truncated),
        (&[start, &calls], Truncated),
        (&[start, &calls, start], Truncated),
        (&[start, text], Truncated),
        (&[], Crashed),
        (&[start, &stop], Truncated),
        (&[start, list, &calls, start, text, &stop], WrappedUp),
        (&[start, &full], ContextExhausted),
        (&[start, &output], Truncated),
        (&[start, &other], Crashed),
        // A step finished after the error.
        (&[start, &other, start, text, &stop], Whole),
    ] {
        assert_eq!(verdict(Agent::Opencode, lines), expected, "{lines:?}");
    }
    let (_, _, usage) = judge_with(Agent::Opencode, &[start, &calls, start, text, &stop], NORMAL_EXIT);
    assert_eq!((usage.run.total, usage.largest_call_tokens), (84_000, Some(42_000)));
    assert_eq!(usage.cost_nanodollars, Some(800_000_000));
}

#[test]
fn an_exit_code_alone_is_not_a_verdict() {
    let end = |process| AttemptEnd { process, stop_cause: None };
    for (process, expected) in [
        (ProcessEnd::Exited(0), AttemptVerdict::Whole),
        (ProcessEnd::Exited(7), AttemptVerdict::Whole),
        (ProcessEnd::Killed(9), AttemptVerdict::Crashed),
        (ProcessEnd::Unknown, AttemptVerdict::Crashed),
    ] {
        assert_eq!(judge_with(Agent::Plain, &["anything"], end(process)).0, expected);
    }
    // Even a failure code does not count if the stream states how the run ended (opencode#50062).
    let lines = [
        r#"{"type":"text","sessionID":"s","part":{"text":"Done."}}"#,
        r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#,
    ];
    let (verdict, evidence, _) = judge_with(Agent::Opencode, &lines, end(ProcessEnd::Exited(1)));
    assert_eq!(verdict, AttemptVerdict::Whole);
    assert!(evidence.contains("exit code is 1"), "{evidence}");
}

#[test]
fn a_stopped_agent_is_stuck_unless_finished() {
    let stopped = |stopped| AttemptEnd { process: ProcessEnd::Killed(15), stop_cause: Some(stopped) };
    let done =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn"}"#;
    for (lines, end, expected) in [
        (&[][..], StopCause::Silence, AttemptVerdict::Stuck),
        (&[], StopCause::Time, AttemptVerdict::TimedOut),
        (&[], StopCause::Ceiling, AttemptVerdict::Budget),
        (&[done], StopCause::DidNotExit, AttemptVerdict::Whole),
        (&[done], StopCause::Silence, AttemptVerdict::Whole),
    ] {
        assert_eq!(judge_with(Agent::Claude, lines, stopped(end)).0, expected, "{end:?}");
    }
}
