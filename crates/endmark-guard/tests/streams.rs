//! Tests with recordings of real agents without a terminal, and a model with scripted replies (100 input and
//! 10 output tokens per call). In `work` the agent writes a file and reports it. In `resumed` it continues
//! the session. In `cut` its reply is cut at the output limit. Recorded with Claude Code 2.1.197, Codex
//! 0.169.0, Gemini CLI 0.61.0 and opencode 1.18.33. Paths are replaced, and only the parsed parts of Claude
//! Code's first line are kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use endmark_guard::{
    Agent, AgentStream, AttemptEnd, AttemptJudgement, AttemptVerdict, ProcessEnd, TokenUsage,
};

fn recording(agent: Agent, name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    std::fs::read(folder.join(format!("{}-{name}.jsonl", agent.name()))).unwrap()
}

fn read(stream: &mut AgentStream, bytes: &[u8], exit: i32) -> AttemptJudgement {
    stream.push(bytes);
    stream.finish(AttemptEnd { process: ProcessEnd::Exited(exit), stop_cause: None })
}

const AGENTS: [Agent; 4] = [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Opencode];

#[test]
fn finished_work_is_whole_with_correct_tokens() {
    for agent in AGENTS {
        let mut stream = AgentStream::new(agent);
        let judged = read(&mut stream, &recording(agent, "work"), 0);
        assert_eq!(judged.verdict, AttemptVerdict::Whole, "{agent:?}: {judged:?}");
        assert_eq!(stream.last_message(), "The report is written to report.md.", "{agent:?}");
        assert!(stream.is_over() && stream.session().is_some(), "{agent:?}");
        // Gemini reports 115 tokens per call, 15 of which are reasoning and text.
        let output = if agent == Agent::Gemini { 30 } else { 20 };
        assert_eq!(stream.usage().run, TokenUsage::new(200, output), "{agent:?}");
        let largest = matches!(agent, Agent::Claude | Agent::Opencode).then_some(110);
        assert_eq!(stream.usage().largest_call_tokens, largest, "{agent:?}");
    }
}

#[test]
fn a_continued_session_counts_its_tokens_once() {
    for agent in AGENTS {
        let mut first = AgentStream::new(agent);
        read(&mut first, &recording(agent, "work"), 0);
        let mut next =
            AgentStream::new(agent).continuing_from(first.session_usage(), first.session_cost_nanodollars());
        let judged = read(&mut next, &recording(agent, "resumed"), 0);
        assert_eq!(judged.verdict, AttemptVerdict::Whole, "{agent:?}");
        assert_eq!(next.session(), first.session(), "{agent:?}");
        assert_eq!(next.usage().run, first.usage().run, "{agent:?}");
        assert_eq!(next.session_usage(), first.usage().run.plus(first.usage().run), "{agent:?}");
    }
}

/// Claude Code 2.1.331 reports the sum over the session, and 2.1.197 the sum over the process.
#[test]
fn earlier_session_usage_is_not_counted_twice() {
    let mut first = AgentStream::new(Agent::Claude);
    read(&mut first, &recording(Agent::Claude, "work"), 0);
    let of_process = String::from_utf8(recording(Agent::Claude, "resumed")).unwrap();
    let mut lines: Vec<serde_json::Value> =
        of_process.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last_mut().unwrap();
    let cost = last["total_cost_usd"].as_f64().unwrap() * 2.0;
    last["total_cost_usd"] = cost.into();
    last["modelUsage"]["claude-work"]["inputTokens"] = 400.into();
    last["modelUsage"]["claude-work"]["outputTokens"] = 40.into();
    let of_session = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n";
    for report in [of_process, of_session] {
        let mut next = AgentStream::new(Agent::Claude)
            .continuing_from(first.session_usage(), first.session_cost_nanodollars());
        read(&mut next, report.as_bytes(), 0);
        assert_eq!(next.usage().run, first.usage().run);
        assert_eq!(next.usage().cost_nanodollars, first.usage().cost_nanodollars);
    }
}

#[test]
fn a_cut_reply_is_truncated_if_the_stream_shows_it() {
    for agent in AGENTS {
        // Claude Code reports the cut with exit code 1 and a `success` that is an error. opencode reports it
        // in the reason of its last step, with exit code 0.
        let exit = i32::from(agent == Agent::Claude);
        let judged = read(&mut AgentStream::new(agent), &recording(agent, "cut"), exit);
        // Codex and Gemini CLI report no stop reason. The text does not show the cut, so only the artifact
        // can decide.
        let is_shown = matches!(agent, Agent::Claude | Agent::Opencode);
        let expected = if is_shown { AttemptVerdict::Truncated } else { AttemptVerdict::Whole };
        assert_eq!(judged.verdict, expected, "{agent:?}: {judged:?}");
    }
}

#[test]
fn a_recording_cut_anywhere_is_never_whole() {
    for agent in AGENTS {
        let bytes = recording(agent, "work");
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        for end in (0..last_line).step_by(7).chain([last_line]) {
            let judged = read(&mut AgentStream::new(agent), &bytes[..end], 0);
            assert_ne!(judged.verdict, AttemptVerdict::Whole, "{agent:?} at {end}");
        }
    }
}

#[test]
fn the_result_does_not_depend_on_chunk_sizes() {
    for agent in AGENTS {
        let bytes = recording(agent, "work");
        let mut whole = AgentStream::new(agent);
        let judged = read(&mut whole, &bytes, 0);
        for size in [1, 3, 64, 1_000] {
            let mut stream = AgentStream::new(agent);
            bytes.chunks(size).for_each(|piece| stream.push(piece));
            let end = AttemptEnd { process: ProcessEnd::Exited(0), stop_cause: None };
            assert_eq!(
                (stream.finish(end), stream.usage()),
                (judged.clone(), whole.usage()),
                "{agent:?} {size}"
            );
        }
    }
}
