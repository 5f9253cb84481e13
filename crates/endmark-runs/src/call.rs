//! Builds an agent's command line: its arguments, session and prompt (CG-5).

use std::ffi::{OsStr, OsString};
use std::path::Path;

use endmark_guard::Agent;

/// Placeholder for the prompt in a command.
pub(crate) const PROMPT_PLACEHOLDER: &str = "{prompt}";

/// The session in which an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSession {
    /// A new session that the agent starts and names.
    Fresh,
    /// A new session with this name, which the supervisor has chosen.
    Chosen(String),
    /// An existing session, which the agent resumes.
    Resumed(String),
}

/// A command line that is ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The text for standard input. `None` means an empty input.
    pub input: Option<String>,
}

/// Returns the options with which a user may already have chosen a session.
fn session_options(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &[
            "--session-id",
            "--resume",
            "-r",
            "--continue",
            "-c",
            "--fork-session",
            "--no-session-persistence",
        ],
        Agent::Gemini => &["--session-id", "--resume", "-r", "--session-file"],
        Agent::Codex => &["resume", "fork", "--ephemeral"],
        Agent::Opencode => &["--session", "-s", "--continue", "-c", "--fork"],
        Agent::Plain => &[],
    }
}

/// Whether an agent with this command can resume its session.
pub(crate) fn can_resume(agent: Agent, words: &[OsString]) -> bool {
    let decided = session_options(agent);
    agent != Agent::Plain && !words.iter().any(|word| is_option(word, decided))
}

/// Whether the supervisor can choose the name of the session.
pub(crate) fn can_choose_session(agent: Agent, words: &[OsString]) -> bool {
    matches!(agent, Agent::Claude | Agent::Gemini) && can_resume(agent, words)
}

fn is_option(word: &OsStr, options: &[&str]) -> bool {
    let word = word.to_str().unwrap_or_default();
    let name = if word.starts_with("--") { word.split('=').next().unwrap_or(word) } else { word };
    options.contains(&name)
}

/// Returns the options that are missing in the command. Without them, the agent does not print a stream that
/// Endmark can read.
pub fn missing_stream_options(agent: Agent, words: &[OsString]) -> Option<&'static str> {
    let has = |word: &str| {
        words.iter().any(|there| {
            there == word || there.to_str().is_some_and(|there| there.ends_with(&format!("={word}")))
        })
    };
    match agent {
        Agent::Claude if !has("stream-json") => Some("--output-format stream-json --verbose"),
        Agent::Codex if !has("--json") && !has("--experimental-json") => Some("--json"),
        Agent::Gemini if !has("stream-json") => Some("--output-format stream-json"),
        Agent::Opencode if !has("json") => Some("--format json"),
        _ => None,
    }
}

/// Returns the agent that the name of a program indicates.
pub(crate) fn agent_of_program(program: &OsStr) -> Agent {
    let name = Path::new(program).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    Agent::parse(name).unwrap_or(Agent::Plain)
}

impl AgentCommand {
    /// Returns the command line for this session and prompt. The prompt replaces `{prompt}` in the command.
    /// If there is no placeholder, it is written to standard input.
    pub fn new(agent: Agent, words: &[OsString], session: &AgentSession, prompt: Option<&str>) -> Self {
        let place =
            words.iter().position(|word| word.to_str().is_some_and(|word| word.contains(PROMPT_PLACEHOLDER)));
        let mut called: Vec<OsString> =
            words.iter().map(|word| with_prompt(word, prompt.unwrap_or_default())).collect();
        let flags: Vec<&str> = match (agent, session) {
            (Agent::Plain, _)
            | (_, AgentSession::Fresh)
            | (Agent::Codex | Agent::Opencode, AgentSession::Chosen(_)) => Vec::new(),
            (Agent::Claude | Agent::Gemini, AgentSession::Chosen(id)) => vec!["--session-id", id],
            (Agent::Claude | Agent::Gemini, AgentSession::Resumed(id)) => vec!["--resume", id],
            (Agent::Opencode, AgentSession::Resumed(id)) => vec!["--session", id],
            (Agent::Codex, AgentSession::Resumed(id)) => vec!["resume", id],
        };
        let end = called.iter().position(|word| word == "--").unwrap_or(called.len());
        // For Codex, `resume` is a subcommand of `exec`, and must precede the prompt.
        let at = if agent == Agent::Codex { place.unwrap_or(end).min(end) } else { end };
        called.splice(at..at, flags.into_iter().map(OsString::from));
        let is_typed = place.is_some();
        if agent == Agent::Codex && matches!(session, AgentSession::Resumed(_)) && !is_typed {
            called.push("-".into());
        }
        Self { words: called, input: prompt.filter(|_| !is_typed).map(str::to_owned) }
    }
}

fn with_prompt(word: &OsString, prompt: &str) -> OsString {
    match word.to_str() {
        Some(text) if text.contains(PROMPT_PLACEHOLDER) => text.replace(PROMPT_PLACEHOLDER, prompt).into(),
        _ => word.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn each_agent_is_resumed_with_its_own_arguments() {
        use AgentSession::{Chosen, Fresh, Resumed};
        let id = || "S".to_owned();
        for (agent, line, session, expected, input) in [
            (
                Agent::Claude,
                "claude -p {prompt} --verbose",
                Chosen(id()),
                "claude -p P --verbose --session-id S",
                None,
            ),
            (
                Agent::Claude,
                "claude -p {prompt} --verbose",
                Resumed(id()),
                "claude -p P --verbose --resume S",
                None,
            ),
            (Agent::Claude, "claude -p -- {prompt}", Resumed(id()), "claude -p --resume S -- P", None),
            (Agent::Claude, "claude -p --verbose", Fresh, "claude -p --verbose", Some("P")),
            (Agent::Gemini, "gemini -p {prompt}", Resumed(id()), "gemini -p P --resume S", None),
            (Agent::Codex, "codex exec --json {prompt}", Fresh, "codex exec --json P", None),
            (Agent::Codex, "codex exec --json {prompt}", Resumed(id()), "codex exec --json resume S P", None),
            (Agent::Codex, "codex exec --json", Resumed(id()), "codex exec --json resume S -", Some("P")),
            (Agent::Opencode, "opencode run {prompt}", Resumed(id()), "opencode run P --session S", None),
            (Agent::Plain, "sh agent.sh", Resumed(id()), "sh agent.sh", Some("P")),
            (Agent::Plain, "sh -c x={prompt}", Fresh, "sh -c x=P", None),
        ] {
            let call = AgentCommand::new(agent, &words(line), &session, Some("P"));
            assert_eq!(
                call,
                AgentCommand { words: words(expected), input: input.map(str::to_owned) },
                "{line}"
            );
        }
        assert_eq!(AgentCommand::new(Agent::Plain, &words("make report"), &Fresh, None).input, None);
    }

    #[test]
    fn session_options_of_the_user_are_kept() {
        for (agent, line, resumes, chooses) in [
            (Agent::Claude, "claude -p x", true, true),
            (Agent::Claude, "claude -p x --session-id=1", false, false),
            (Agent::Claude, "claude -p x --no-session-persistence", false, false),
            (Agent::Codex, "codex exec x", true, false),
            (Agent::Codex, "codex exec --ephemeral x", false, false),
            (Agent::Opencode, "opencode run x", true, false),
            (Agent::Plain, "sh x", false, false),
        ] {
            let words = words(line);
            assert_eq!(
                (can_resume(agent, &words), can_choose_session(agent, &words)),
                (resumes, chooses),
                "{line}"
            );
        }
    }

    #[test]
    fn an_agent_is_recognised_by_its_program() {
        assert_eq!(agent_of_program(OsStr::new("/usr/bin/claude")), Agent::Claude);
        assert_eq!(agent_of_program(OsStr::new("aider")), Agent::Plain);
        assert!(missing_stream_options(Agent::Claude, &words("claude -p x")).is_some());
        assert!(
            missing_stream_options(Agent::Claude, &words("claude --output-format=stream-json")).is_none()
        );
        assert!(missing_stream_options(Agent::Codex, &words("codex exec --json")).is_none());
        assert!(missing_stream_options(Agent::Opencode, &words("opencode run --format json")).is_none());
        assert!(missing_stream_options(Agent::Plain, &words("sh")).is_none());
    }
}
