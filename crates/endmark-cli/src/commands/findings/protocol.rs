//! `endmark findings protocol`: the instructions for an agent's prompt. (AR-1, AR-2, AR-3)

use endmark_failure::CommandError;
use serde::Serialize;

use crate::arguments::findings::{Protocol, ProtocolForm};
use crate::view::answer::{Answer, to_data};

/// Answer data: the instructions.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ProtocolReport<'a> {
    text: &'a str,
    agent_id: Option<&'a str>,
    dimensions: &'a [String],
}

/// Prints the instructions.
pub(super) fn run(arguments: &Protocol) -> Result<Answer, CommandError> {
    let list = arguments.dimensions.as_deref().unwrap_or_default();
    let dimensions: Vec<String> =
        list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect();
    let agent_id = arguments.agent.as_deref();
    let form = match arguments.form {
        ProtocolForm::Text => endmark_findings::ProtocolFormat::Text,
        ProtocolForm::Jsonl => endmark_findings::ProtocolFormat::Jsonl,
    };
    let protocol = endmark_findings::Protocol {
        form,
        agent_id,
        dimensions: &dimensions,
        budget_left: arguments.budget_left,
        max_turns: arguments.max_turns,
        max_findings: arguments.max_findings,
    };
    let text = protocol.text();
    Ok(Answer::yes(to_data(&ProtocolReport { text: &text, agent_id, dimensions: &dimensions })?, text))
}
