//! Whether a text that is written in the canonical form is read again as it is. (AR-1)

use super::checkpoint::list;
use super::grammar::{Event, event};
use super::header::Header;
use super::key::Key;
use crate::control::is_control;
use crate::stand_in::{is_placeholder, says_nothing};
use crate::{Evidence, Field};

/// The name of an agent.
pub(crate) fn reads_as_agent(text: &str) -> bool {
    let mut header = Header::default();
    reads_behind("agent_id", text)
        && header.set(Key::AgentId, text)
        && header.agent_id.as_deref() == Some(text)
        && !is_placeholder(text)
}

/// A dimension among others, with commas between.
pub(crate) fn reads_as_dimension(text: &str) -> bool {
    reads_behind("dimensions", text) && list(text) == [text]
}

/// What is wrong, behind the id of a finding.
pub(crate) fn reads_as_title(text: &str) -> bool {
    let line = format!("[F001] {text}");
    let is_read = || matches!(event(&line), Event::Head(_, title) if title == text);
    !text.contains(is_control) && !is_placeholder(text) && is_read()
}

/// The value of a field of a finding.
pub(crate) fn reads_as_value(field: Field, text: &str) -> bool {
    !says_nothing(field, text) && !is_placeholder(text) && reads_behind(field.name(), text)
}

fn reads_behind(name: &str, text: &str) -> bool {
    let line = format!("{name}: {text}");
    let is_read = || match event(&line) {
        Event::Fields(fields) => matches!(fields.as_slice(), [said] if said.value == text),
        _ => false,
    };
    !text.is_empty() && !text.contains(is_control) && is_read()
}

/// Lines of evidence.
pub(crate) fn reads_as_evidence(evidence: &Evidence) -> bool {
    !says_nothing(Field::Evidence, evidence.as_str())
        && evidence.lines().all(|line| !line.contains(is_control))
}
