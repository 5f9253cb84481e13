//! The subcommands, one file each.

pub(crate) mod budget;
pub(crate) mod cap;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod count;
pub(crate) mod demo;
pub(crate) mod detect;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod findings;
pub(crate) mod guard;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod read;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod sim;
pub(crate) mod stitch;
pub(crate) mod store;
pub(crate) mod usage;

use endmark_failure::CommandError;

use crate::arguments::Command;
use crate::context::Context;
use crate::view::answer::Outcome;

/// Runs one subcommand.
pub(crate) fn run(context: &Context, command: Command) -> Result<Outcome, CommandError> {
    command.check_limits()?;
    match command {
        Command::Serve(arguments) => serve::run(context, &arguments).map(Outcome::from),
        Command::Demo => demo::run(context).map(Outcome::from),
        Command::Detect(arguments) => detect::run(context, &arguments),
        Command::Stitch(arguments) => stitch::run(context, &arguments),
        Command::Cap(arguments) => cap::run(context, &arguments),
        Command::Read(arguments) => read::run(context, &arguments),
        Command::Run(arguments) => run::run(context, &arguments).map(Outcome::from),
        Command::Runs(arguments) => runs::run(context, &arguments),
        Command::Resume(arguments) => resume::run(context, &arguments).map(Outcome::from),
        Command::Compact(arguments) => compact::run(context, &arguments),
        Command::Exec(arguments) => exec::run(context, &arguments),
        Command::Findings(arguments) => findings::run(context, &arguments),
        Command::Guard(arguments) => guard::run(context, &arguments),
        Command::Hook(arguments) => hook::run(context, &arguments),
        Command::Mcp(arguments) => mcp::run(context, &arguments),
        Command::Init(arguments) => init::run(&arguments).map(Outcome::from),
        Command::Setup(arguments) => setup::run(context, &arguments).map(Outcome::from),
        Command::Log(arguments) => log::run(context, &arguments).map(Outcome::from),
        Command::Report(arguments) => report::run(context, &arguments).map(Outcome::from),
        Command::Usage(arguments) => usage::run(context, &arguments).map(Outcome::from),
        Command::Budget(arguments) => budget::run(context, &arguments).map(Outcome::from),
        Command::Keys(arguments) => keys::run(context, &arguments).map(Outcome::from),
        Command::Store(arguments) => store::run(context, &arguments).map(Outcome::from),
        Command::Sim(arguments) => sim::run(context, &arguments).map(Outcome::from),
        Command::Count(arguments) => count::run(context, &arguments).map(Outcome::from),
        Command::Config(arguments) => config::run(context, &arguments).map(Outcome::from),
        Command::Doctor(arguments) => doctor::run(context, &arguments).map(Outcome::from),
        Command::Completions { shell } => completions::run(shell).map(Outcome::from),
        Command::Man { command } => man::run(command.as_deref()).map(Outcome::from),
    }
}
