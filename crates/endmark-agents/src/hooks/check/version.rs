//! Checks whether the installed versions of agents run their hooks.

use std::process::Stdio;
use std::time::Duration;

use endmark_failure::Check;
use tokio::process::Command;
use tokio::time::timeout;

use crate::hooks::agent::HookAgent;

/// Some agents take many seconds to print their version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(15);

type Version = (u32, u32, u32);

/// What is known about the versions of an agent.
struct AgentVersions {
    /// The version that Endmark was tested with.
    tested: Version,
    /// The first version that has hooks.
    first: Version,
    /// The first and last version that silently ignore replaced tool results.
    ignoring: Option<(Version, Version)>,
}

fn known_versions(agent: HookAgent) -> AgentVersions {
    match agent {
        // Source: 68951 and 67442 in the issue tracker of Claude Code.
        HookAgent::Claude => AgentVersions {
            tested: (2, 1, 331),
            first: (2, 0, 0),
            ignoring: Some(((2, 1, 163), (2, 1, 177))),
        },
        HookAgent::Codex => AgentVersions { tested: (0, 169, 0), first: (0, 124, 0), ignoring: None },
        HookAgent::Gemini => AgentVersions { tested: (0, 61, 0), first: (0, 26, 0), ignoring: None },
    }
}

/// Checks the installed version of an agent.
pub(super) async fn check_version(agent: HookAgent) -> Check {
    let name = format!("hooks.{}.version", agent.name());
    let Some(version) = installed_version(agent).await else {
        let message = format!("`{}` is not in PATH; its version is unknown", agent.name());
        return Check::passed(name, message);
    };
    judge_version(agent, version, name)
}

fn judge_version(agent: HookAgent, version: Version, name: String) -> Check {
    let AgentVersions { tested: tried, first, ignoring } = known_versions(agent);
    let title = format!("{} {}", agent.title(), format_version(version));
    if version < first {
        let message =
            format!("{title} has no usable hooks; version {} or later is needed", format_version(first));
        return Check::failed(name, message, "Update the agent.");
    }
    if ignoring.is_some_and(|(from, to)| (from..=to).contains(&version)) {
        return Check::failed(
            name,
            format!("{title} ignores results that hooks have changed"),
            "Update the agent.",
        );
    }
    Check::passed(
        name,
        if version == tried {
            format!("{title} was tested with its hooks")
        } else {
            format!("{title} was not tested; {} was tested with its hooks", format_version(tried))
        },
    )
}

async fn installed_version(agent: HookAgent) -> Option<Version> {
    let mut command = Command::new(agent.name());
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the first version with three numbers in a text.
fn parse_version(text: &str) -> Option<Version> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.trim_start_matches('v').splitn(3, '.');
        let mut next = || {
            let digits: String = numbers.next()?.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        Some((next()?, next()?, next()?))
    })
}

fn format_version((major, minor, patch): Version) -> String {
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_and_compared() {
        assert_eq!(parse_version("2.1.331 (Claude Code)\n"), Some((2, 1, 331)));
        assert_eq!(parse_version("codex-cli 0.169.0-beta.1"), Some((0, 169, 0)));
        assert_eq!(parse_version("no version"), None);
        let ok = |agent, version| judge_version(agent, version, String::new()).is_ok;
        assert!(ok(HookAgent::Claude, (2, 1, 331)) && ok(HookAgent::Claude, (2, 1, 178)));
        assert!(!ok(HookAgent::Claude, (2, 1, 170)) && !ok(HookAgent::Codex, (0, 99, 0)));
    }
}
