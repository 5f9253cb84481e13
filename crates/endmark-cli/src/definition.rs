//! The command line definition. `--set` may occur before and after subcommands, and every occurrence counts.
//!
//! For a global option, clap keeps only the values of the innermost command. So each command has its own option
//! `--set`, and the values of all of them are collected.

mod groups;

use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::arguments::{Arguments, SET_OPTION_ID};

/// Returns the complete command.
pub(crate) fn definition() -> Command {
    groups::with_groups(with_negative_numbers(with_set_option(Arguments::command())))
}

/// Parses the matches. The values of `--set` keep their order on the command line.
pub(crate) fn parse_matches(mut matches: ArgMatches) -> Result<Arguments, clap::Error> {
    let sets = collect_sets(&matches);
    let mut arguments = Arguments::from_arg_matches_mut(&mut matches)?;
    arguments.global.sets = sets;
    Ok(arguments)
}

/// Adds the option `--set` to every subcommand.
fn with_set_option(command: Command) -> Command {
    let Some(set) = command.get_arguments().find(|argument| argument.get_id() == SET_OPTION_ID).cloned()
    else {
        return command;
    };
    command.mut_subcommands(|subcommand| with_set_option(subcommand.arg(set.clone())))
}

/// Accepts a negative number as the value of the preceding option.
///
/// Otherwise clap would read the number as options, and its error would not name the real problem.
fn with_negative_numbers(command: Command) -> Command {
    let number = |argument: Arg| {
        let takes_value = argument.get_action().takes_values() && !argument.is_positional();
        if takes_value { argument.allow_negative_numbers(true) } else { argument }
    };
    command.mut_args(number).mut_subcommands(with_negative_numbers)
}

/// Returns the values of every `--set`. The values of a command precede those of its subcommand.
fn collect_sets(matches: &ArgMatches) -> Vec<String> {
    let mut sets = Vec::new();
    let mut innermost = Some(matches);
    while let Some(matches) = innermost {
        let values = matches.try_get_many::<String>(SET_OPTION_ID).ok().flatten();
        sets.extend(values.into_iter().flatten().cloned());
        innermost = matches.subcommand().map(|(_, matches)| matches);
    }
    sets
}
