//! Builds the commands in an agent's settings.

use std::path::{Path, PathBuf};
use std::{env, fs};

use endmark_failure::CommandError;

use super::Installation;
use crate::hooks::agent::HookKind;

/// Returns how a shell finds this program. If its bare name is enough, the settings can be shared with other
/// machines.
pub(super) fn program_word(program: &Path, path: Option<&str>) -> String {
    let name = Path::new("endmark");
    let same = |folder: PathBuf| fs::canonicalize(folder.join(name)).ok() == fs::canonicalize(program).ok();
    let first = path.and_then(|path| env::split_paths(path).find(|folder| folder.join(name).is_file()));
    if first.is_some_and(same) { "endmark".to_owned() } else { quote_for_shell(&program.to_string_lossy()) }
}

/// Returns the command of a hook, with its options.
pub(super) fn build_command(
    program: &str,
    kind: HookKind,
    arguments: &Installation,
) -> Result<String, CommandError> {
    let mut words = vec![program.to_owned(), "hook".to_owned(), kind.name().to_owned()];
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), quote_for_shell(value)]);
    add("--agent", arguments.agent.name());
    match kind {
        HookKind::Tool => {
            for (option, limit) in selected_limits(arguments) {
                let most = arguments.agent.max_kept_output(option == MAX_TOKENS);
                add(option, &most.map_or(limit, |most| limit.min(most)).to_string());
            }
        }
        HookKind::Stop => {
            let held_to = &arguments.requirement;
            let Some(artifact) = &held_to.artifact else {
                return Err(CommandError::input(
                    "usage",
                    "the hook `stop` needs an artifact to check",
                    "Add --artifact FILE, and --template FILE for criteria of your own.",
                ));
            };
            add("--artifact", &artifact.to_string_lossy());
            if let Some(template) = &held_to.template {
                add("--template", &template.to_string_lossy());
            }
            if let Some(lines) = held_to.min_lines {
                add("--min-lines", &lines.to_string());
            }
            for section in &held_to.sections {
                add("--section", section);
            }
            add("--attempts", &held_to.attempts.to_string());
        }
        HookKind::Findings if arguments.findings.as_deref().is_some_and(|it| !it.is_empty()) => {
            words.push("--required".to_owned());
        }
        HookKind::Compact | HookKind::Findings => {}
    }
    Ok(words.join(" "))
}

const MAX_TOKENS: &str = "--max-tokens";

/// Returns the limits that are set, with their options.
fn selected_limits(arguments: &Installation) -> impl Iterator<Item = (&'static str, u64)> {
    let limits = [
        ("--max-chars", arguments.max_chars),
        ("--max-bytes", arguments.max_bytes),
        (MAX_TOKENS, arguments.max_tokens),
    ];
    limits.into_iter().filter_map(|(option, limit)| Some((option, limit?)))
}

/// Whether the limit must be lowered, because the agent keeps less of a hook's output.
pub(super) fn is_limit_lowered(arguments: &Installation) -> bool {
    selected_limits(arguments).any(|(option, limit)| {
        arguments.agent.max_kept_output(option == MAX_TOKENS).is_some_and(|most| limit > most)
    })
}

/// Whether a command is a hook of Endmark of this kind. The program must be named `endmark`, or be this
/// program under another name, such as `endmark-dev`.
pub(crate) fn is_own_command(command: &str, kind: HookKind) -> bool {
    let own =
        env::current_exe().map(|program| quote_for_shell(&program.to_string_lossy())).unwrap_or_default();
    let command = if own.is_empty() { command.to_owned() } else { command.replace(&own, "endmark") };
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['\'', '"'])).collect();
    words.windows(3).any(|three| {
        let [program, hook, name] = three else { return false };
        program.rsplit('/').next() == Some("endmark") && *hook == "hook" && *name == kind.name()
    })
}

/// Quotes a word for a shell.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,+@%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_hook_commands_are_recognised() {
        for command in
            ["endmark hook tool --agent claude", "'/a b/endmark' hook tool", "FOO=1 /x/endmark hook tool"]
        {
            assert!(is_own_command(command, HookKind::Tool), "{command}");
            assert!(!is_own_command(command, HookKind::Stop), "{command}");
        }
        let own = env::current_exe().unwrap().to_string_lossy().into_owned();
        for command in [format!("{own} hook tool"), format!("FOO=1 \"{own}\" hook tool --agent claude")] {
            assert!(
                is_own_command(&command, HookKind::Tool) && !is_own_command(&command, HookKind::Stop),
                "{command}"
            );
        }
        assert!(!is_own_command(&format!("{own}2 hook tool"), HookKind::Tool));
        for command in ["notendmark hook tool", "endmark cap", "echo endmark", "my-hook tool"] {
            assert!(!is_own_command(command, HookKind::Tool), "{command}");
        }
    }

    #[test]
    fn a_shell_reads_the_quoted_word_unchanged() {
        assert_eq!(quote_for_shell("docs/report.md"), "docs/report.md");
        assert_eq!(quote_for_shell("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quote_for_shell(""), "''");
    }
}
