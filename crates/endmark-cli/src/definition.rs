//! The command as it is parsed: `--set` may stand before and after subcommands, and every one counts.
//!
//! Of an option that is global for clap, the values of the innermost place replace those of all others. So
//! `--set` is an option of each command of its own, and what was typed is collected over all of them.

mod groups;

use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::arguments::{Arguments, SETS};

/// The command with all it takes.
pub(crate) fn definition() -> Command {
    groups::grouped(reading_numbers(taking_sets(Arguments::command())))
}

/// Reads what was typed; the values of `--set` are in the order in which they were.
pub(crate) fn read(mut matches: ArgMatches) -> Result<Arguments, clap::Error> {
    let sets = sets(&matches);
    let mut arguments = Arguments::from_arg_matches_mut(&mut matches)?;
    arguments.global.sets = sets;
    Ok(arguments)
}

/// Gives every subcommand the option `--set` of the command.
fn taking_sets(command: Command) -> Command {
    let Some(set) = command.get_arguments().find(|argument| argument.get_id() == SETS).cloned() else {
        return command;
    };
    command.mut_subcommands(|subcommand| taking_sets(subcommand.arg(set.clone())))
}

/// Reads a number below zero as the value of the option before it, which says what is wrong with it, and not as options.
fn reading_numbers(command: Command) -> Command {
    let number = |argument: Arg| {
        let takes_value = argument.get_action().takes_values() && !argument.is_positional();
        if takes_value { argument.allow_negative_numbers(true) } else { argument }
    };
    command.mut_args(number).mut_subcommands(reading_numbers)
}

/// The values of every `--set`. What belongs to a command is typed before its subcommand.
fn sets(matches: &ArgMatches) -> Vec<String> {
    let mut sets = Vec::new();
    let mut innermost = Some(matches);
    while let Some(matches) = innermost {
        let values = matches.try_get_many::<String>(SETS).ok().flatten();
        sets.extend(values.into_iter().flatten().cloned());
        innermost = matches.subcommand().map(|(_, matches)| matches);
    }
    sets
}
