//! Whether a text that is written in the canonical form is read again as it is. (AR-1)

use super::checkpoint::list;
use super::header::Header;
use super::heads;
use super::names::Key;
use super::words;
use crate::escapes::is_control;
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
    !text.contains(is_control)
        && !is_placeholder(text)
        && (text.is_empty() || heads::head(&line).is_some_and(|head| head.title == text))
}

/// The value of a field of a finding.
pub(crate) fn reads_as_value(name: &str, text: &str) -> bool {
    let is_said = match Key::named(name) {
        Some(Key::Of(field)) => !says_nothing(field, text),
        _ => false,
    };
    is_said && !is_placeholder(text) && reads_behind(name, text)
}

fn reads_behind(name: &str, text: &str) -> bool {
    let line = format!("{name}: {text}");
    let is_alone = || matches!(words::fields(&line).as_slice(), [field] if *field == line);
    !text.is_empty()
        && !text.contains(is_control)
        && words::said(&line).is_some_and(|said| said.value == text)
        && is_alone()
}

/// Lines of evidence.
pub(crate) fn reads_as_evidence(evidence: &Evidence) -> bool {
    let text = evidence.as_str();
    !says_nothing(Field::Evidence, text) && evidence.lines().all(|line| !line.contains(is_control))
}
