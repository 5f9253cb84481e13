//! The groups of commands for the main help.

use std::fmt::Write as _;

use clap::Command;

/// A group of commands, and the page that explains them. Each command is in one group.
struct Group {
    title: &'static str,
    page: &'static str,
    commands: &'static [&'static str],
}

const GROUPS: [Group; 4] = [
    Group {
        title: "Everyday",
        page: "docs/README.md",
        commands: &["demo", "init", "serve", "setup", "log", "report", "usage", "doctor"],
    },
    Group {
        title: "Inside agents",
        page: "docs/runs.md",
        commands: &["run", "runs", "guard", "findings", "hook", "mcp", "cap", "read", "compact"],
    },
    Group {
        title: "Operate",
        page: "docs/operation.md",
        commands: &["keys", "budget", "config", "store", "sim"],
    },
    Group {
        title: "Build on it",
        page: "docs/reference.md",
        commands: &["detect", "stitch", "resume", "exec", "count", "completions", "man", "help"],
    },
];

/// Makes the main help list the subcommands by group.
pub(super) fn with_groups(command: Command) -> Command {
    let mut list = String::new();
    for group in GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "{} ({}):", group.title, group.page);
        for name in group.commands {
            let about = match command.find_subcommand(name) {
                Some(subcommand) => subcommand.get_about().map(ToString::to_string).unwrap_or_default(),
                None => "Print the help of a command".to_owned(),
            };
            let _ = writeln!(list, "  {name:<12} {about}");
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::definition::definition;

    #[test]
    fn each_command_is_in_one_group_and_has_a_page() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands).copied().collect();
        grouped.sort_unstable();
        let definition = definition();
        let mut known: Vec<&str> = definition.get_subcommands().map(Command::get_name).collect();
        known.push("help");
        known.sort_unstable();
        assert_eq!(grouped, known);
        for group in GROUPS {
            let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(group.page);
            assert!(page.exists(), "{}", group.page);
        }
    }
}
