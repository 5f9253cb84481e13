//! `endmark hook`: guard, cap and ledger, called by an agent's own hooks.

pub(crate) mod install;

use std::io;

use endmark_agents::hooks::{self, HookInput, HookKind, MAX_EVENT_BYTES, StopRequest};
use endmark_failure::CommandError;
use serde_json::Value;

use crate::arguments::hook::{Compact, Findings, Hook, HookCommand, Stop, Tool};

use crate::context::Context;
use crate::criteria::{self, RequestedCriteria};
use crate::input::Input;
use crate::view::answer::{Answer, Outcome};

/// Answers an agent's event, or installs hooks in its settings.
pub(crate) fn run(context: &Context, arguments: &Hook) -> Result<Outcome, CommandError> {
    let answer = match &arguments.command {
        HookCommand::Install(arguments) => return install::run(context, arguments).map(Outcome::from),
        HookCommand::Tool(arguments) => run_tool(context, arguments),
        HookCommand::Stop(arguments) => run_stop(context, arguments),
        HookCommand::Compact(arguments) => run_compact(context, arguments),
        HookCommand::Findings(arguments) => run_findings(context, arguments),
    }?;
    // Agents reject any other text on standard output.
    let text = answer.map_or_else(String::new, |answer| format!("{answer}\n"));
    Ok(Answer::yes(Value::Null, text).into())
}

fn read_event(context: &Context) -> Result<HookInput, CommandError> {
    HookInput::read(&Input::open(None, context.terminal)?.read_bytes_up_to(MAX_EVENT_BYTES)?)
}

fn run_tool(context: &Context, arguments: &Tool) -> Result<Option<Value>, CommandError> {
    let agent = arguments.agent;
    let event = read_event(context)?;
    if !event.tool_name.as_deref().is_none_or(|tool| agent.is_capped(tool)) {
        return Ok(None);
    }
    let settings = context.load_configuration(arguments.store.overrides())?.settings;
    let request =
        settings.cap_request(arguments.most.limit()?, arguments.max_items, agent.own_limit_chars())?;
    hooks::cap_result(agent, &event, request, settings.keeper(), &|message| context.terminal.warn(message))
}

fn run_stop(context: &Context, arguments: &Stop) -> Result<Option<Value>, CommandError> {
    let (agent, held_to) = (arguments.agent, &arguments.held_to);
    let event = read_event(context)?;
    if event.is_waiting() {
        return Ok(None);
    }
    let settings = context.load_configuration(arguments.store.overrides())?.settings;
    let Some(named) = &held_to.artifact else {
        return Err(CommandError::input("usage", "no artifact is named", "Add --artifact FILE to the hook."));
    };
    let resolved = |path| event.resolve(agent, &context.environment, path);
    let template = held_to.template.as_deref().map(resolved);
    let demands = RequestedCriteria {
        template: template.as_deref(),
        min_lines: held_to.min_lines,
        sections: &held_to.sections,
        ..RequestedCriteria::default()
    };
    let guard = criteria::build_guard(context, &demands)?;
    let path = resolved(named);
    let text = match Input::open_file(&path, context.terminal) {
        Err(CommandError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        opened => {
            Some(criteria::decode_text(&path, opened?.read_bytes_up_to(criteria::MAX_ARTIFACT_BYTES)?)?)
        }
    };
    let stopped = StopRequest {
        agent,
        event: &event,
        named_path: named,
        text: text.as_deref(),
        guard: &guard,
        attempts: held_to.attempts,
    };
    hooks::answer_stop(&stopped, &settings, &context.environment, &|message| context.terminal.warn(message))
}

fn run_compact(context: &Context, arguments: &Compact) -> Result<Option<Value>, CommandError> {
    if arguments.agent.events(HookKind::Compact).is_empty() {
        let message = format!("{} has no hook for compacted sessions", arguments.agent.title());
        return Err(CommandError::input("no_such_hook", message, "Only Claude Code has such a hook."));
    }
    let event = read_event(context)?;
    let settings = context.load_configuration(arguments.store.overrides())?.settings;
    hooks::build_ledger_answer(&event, &settings)
}

fn run_findings(context: &Context, arguments: &Findings) -> Result<Option<Value>, CommandError> {
    if arguments.agent.events(HookKind::Findings).is_empty() {
        let message = format!("{} has no hook for its sub-agents", arguments.agent.title());
        return Err(CommandError::input("no_such_hook", message, "Only Claude Code has such a hook."));
    }
    let event = read_event(context)?;
    let settings = context.load_configuration(arguments.store.overrides())?.settings;
    hooks::check_findings(&event, arguments.required, &settings)
}
