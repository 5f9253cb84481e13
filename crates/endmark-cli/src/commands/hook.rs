//! `endmark hook`: the guard, the cap and the ledger inside an agent, through its own hooks.

pub(super) mod agent;
pub(crate) mod arguments;
mod attempts;
mod event;
pub(super) mod install;
mod ledger;
mod stop;
mod tool;

use endmark_failure::CommandError;
use serde_json::Value;

use arguments::{Hook, HookCommand};

use crate::answer::{Answer, Outcome};
use crate::context::Context;

/// Answers an agent's event, or sees to its settings.
pub(crate) fn run(context: &Context, arguments: &Hook) -> Result<Outcome, CommandError> {
    let answer = match &arguments.command {
        HookCommand::Install(arguments) => return install::run(context, arguments).map(Outcome::from),
        HookCommand::Tool(arguments) => tool::run(context, arguments),
        HookCommand::Stop(arguments) => stop::run(context, arguments),
        HookCommand::Compact(arguments) => ledger::run(context, arguments),
    }?;
    // Whatever else stood on standard output, agents would not take it for an answer.
    let text = answer.map_or_else(String::new, |answer| format!("{answer}\n"));
    Ok(Answer::yes(Value::Null, text).into())
}
