//! Builds the command line of an agent: its arguments, its session and its prompt (CG-5).

use std::ffi::{OsStr, OsString};
use std::path::Path;

use endmark_guard::Agent;

/// Placeholder for the prompt in a command.
pub(crate) const PROMPT: &str = "{prompt}";

/// The session in which an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Session {
    /// The agent starts its own session.
    Fresh,
    /// A new session with this name, chosen by the supervisor.
    Chosen(String),
    /// An existing session, which is resumed.
    Resumed(String),
}

/// A command that is ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The content of standard input; `None` for an empty input.
    pub input: Option<String>,
}

/// Returns the options with which the user has already chosen a session.
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

/// Whether the supervisor can choose the name of the agent's session.
pub(crate) fn can_choose(agent: Agent, words: &[OsString]) -> bool {
    matches!(agent, Agent::Claude | Agent::Gemini) && can_resume(agent, words)
}

fn is_option(word: &OsStr, options: &[&str]) -> bool {
    let word = word.to_str().unwrap_or_default();
    let name = if word.starts_with("--") { word.split('=').next().unwrap_or(word) } else { word };
    options.contains(&name)
}

/// Returns the missing options without which the agent prints no readable stream.
pub fn missing_stream(agent: Agent, words: &[OsString]) -> Option<&'static str> {
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

/// Returns the agent of a program with this name.
pub(crate) fn known_agent(program: &OsStr) -> Agent {
    let name = Path::new(program).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    Agent::parse(name).unwrap_or(Agent::Plain)
}

impl Call {
    /// Returns the command for this session and prompt. The prompt replaces `{prompt}`, or else goes to standard input.
    pub fn new(agent: Agent, words: &[OsString], session: &Session, prompt: Option<&str>) -> Self {
        let place = words.iter().position(|word| word.to_str().is_some_and(|word| word.contains(PROMPT)));
        let mut called: Vec<OsString> =
            words.iter().map(|word| with_prompt(word, prompt.unwrap_or_default())).collect();
        let flags: Vec<&str> = match (agent, session) {
            (Agent::Plain, _)
            | (_, Session::Fresh)
            | (Agent::Codex | Agent::Opencode, Session::Chosen(_)) => Vec::new(),
            (Agent::Claude | Agent::Gemini, Session::Chosen(id)) => vec!["--session-id", id],
            (Agent::Claude | Agent::Gemini, Session::Resumed(id)) => vec!["--resume", id],
            (Agent::Opencode, Session::Resumed(id)) => vec!["--session", id],
            (Agent::Codex, Session::Resumed(id)) => vec!["resume", id],
        };
        let end = called.iter().position(|word| word == "--").unwrap_or(called.len());
        // For Codex, `resume` is a subcommand of `exec` and precedes the prompt.
        let at = if agent == Agent::Codex { place.unwrap_or(end).min(end) } else { end };
        called.splice(at..at, flags.into_iter().map(OsString::from));
        let is_typed = place.is_some();
        if agent == Agent::Codex && matches!(session, Session::Resumed(_)) && !is_typed {
            called.push("-".into());
        }
        Self { words: called, input: prompt.filter(|_| !is_typed).map(str::to_owned) }
    }
}

fn with_prompt(word: &OsString, prompt: &str) -> OsString {
    match word.to_str() {
        Some(text) if text.contains(PROMPT) => text.replace(PROMPT, prompt).into(),
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
    fn each_agent_resumes_with_its_own_arguments() {
        use Session::{Chosen, Fresh, Resumed};
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
            let call = Call::new(agent, &words(line), &session, Some("P"));
            assert_eq!(call, Call { words: words(expected), input: input.map(str::to_owned) }, "{line}");
        }
        assert_eq!(Call::new(Agent::Plain, &words("make report"), &Fresh, None).input, None);
    }

    #[test]
    fn user_arguments_about_the_session_are_respected() {
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
            assert_eq!((can_resume(agent, &words), can_choose(agent, &words)), (resumes, chooses), "{line}");
        }
    }

    #[test]
    fn an_agent_is_recognised_by_its_program() {
        assert_eq!(known_agent(OsStr::new("/usr/bin/claude")), Agent::Claude);
        assert_eq!(known_agent(OsStr::new("aider")), Agent::Plain);
        assert!(missing_stream(Agent::Claude, &words("claude -p x")).is_some());
        assert!(missing_stream(Agent::Claude, &words("claude --output-format=stream-json")).is_none());
        assert!(missing_stream(Agent::Codex, &words("codex exec --json")).is_none());
        assert!(missing_stream(Agent::Opencode, &words("opencode run --format json")).is_none());
        assert!(missing_stream(Agent::Plain, &words("sh")).is_none());
    }
}
