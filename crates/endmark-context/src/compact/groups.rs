//! Groups tool calls by name and outcome, for summaries without room for a line per call (CX-2).

use std::collections::BTreeMap;

use super::anchors::is_error_line;
use super::policy::TokenCounter;

/// Prefix of the line that replaces omitted steps.
const OMITTED_STEPS_PREFIX: &str = "(earlier steps are left out";
const CALLS_LABEL: &str = "; calls among them: ";
const OMITTED_STEPS_SUFFIX: char = ')';
const SEPARATOR: &str = ", ";
const TIMES_SIGN: &str = " × ";
const ARROW: &str = " → ";

/// Number of calls for each label, such as `query → ok`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallGroups(BTreeMap<String, u64>);

/// The line of a summary that replaces omitted steps.
#[derive(Debug, Clone, Default)]
pub(super) struct OmittedStepsLine {
    pub(super) text: String,
    /// Number of calls that the line's groups contain.
    pub(super) calls: u64,
    /// Number of tokens in the line.
    pub(super) tokens: u64,
}

impl CallGroups {
    /// Parses the line of an earlier summary. Returns `None` for any other line.
    pub(super) fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix(OMITTED_STEPS_PREFIX)?.strip_suffix(OMITTED_STEPS_SUFFIX)?;
        let mut groups = Self::default();
        for group in rest.strip_prefix(CALLS_LABEL).unwrap_or_default().split(SEPARATOR) {
            if let Some((times, label)) = group.split_once(TIMES_SIGN)
                && let Ok(times) = times.parse()
            {
                groups.add_to_group(label, times);
            }
        }
        Some(groups)
    }

    /// Adds a call with its outcome, as written in the narrative. `times` is the number of such calls.
    pub(super) fn add_call(&mut self, call: &str, outcome: &str, times: u64) {
        let name = call.split('(').next().unwrap_or_default().replace(SEPARATOR, " ");
        self.add_to_group(&format!("{name}{ARROW}{}", short_outcome(outcome)), times);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (label, times) in &other.0 {
            self.add_to_group(label, *times);
        }
    }

    fn add_to_group(&mut self, label: &str, times: u64) {
        let sum = self.0.entry(label.to_owned()).or_default();
        *sum = sum.saturating_add(times);
    }

    /// Returns the total number of calls.
    pub(super) fn calls(&self) -> u64 {
        self.0.values().fold(0, |sum, times| sum.saturating_add(*times))
    }

    /// Returns a line with the largest groups that fit into `room` tokens.
    pub(super) fn omitted_steps_line(&self, room: u64, count: TokenCounter) -> OmittedStepsLine {
        let mut groups: Vec<(&String, u64)> = self.0.iter().map(|(label, times)| (label, *times)).collect();
        groups.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let mut line = OmittedStepsLine {
            text: OMITTED_STEPS_PREFIX.to_owned(),
            calls: 0,
            tokens: count(OMITTED_STEPS_PREFIX) + count(CALLS_LABEL),
        };
        for (label, times) in groups {
            let separator = if line.calls == 0 { CALLS_LABEL } else { SEPARATOR };
            let written = format!("{separator}{times}{TIMES_SIGN}{label}");
            let tokens = line.tokens + count(&written) + 1;
            if tokens > room {
                break;
            }
            line.tokens = tokens;
            line.calls = line.calls.saturating_add(times);
            line.text.push_str(&written);
        }
        line.text.push(OMITTED_STEPS_SUFFIX);
        line
    }
}

/// Returns the outcome of a call without details, so that similar calls have the same label.
fn short_outcome(outcome: &str) -> &str {
    let head = outcome.split(": ").next().unwrap_or_default();
    let is_status = head.strip_prefix("exit ").is_some_and(|code| code.parse::<i64>().is_ok());
    match head {
        "failed" | "no result" => head,
        _ if is_status => head,
        _ if is_error_line(outcome) => "an error",
        _ => "ok",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    #[test]
    fn similar_calls_form_one_group_that_grows() {
        let mut groups = CallGroups::default();
        for (call, outcome, times) in [
            ("query(a)", "ok", 2),
            ("query(b, c)", "12 items", 1),
            ("query(d)", "failed: no such table", 1),
            ("run(make)", "exit 2: error: x", 1),
            ("read(a.rs)", "37 lines", 1),
        ] {
            groups.add_call(call, outcome, times);
        }
        let line = groups.omitted_steps_line(100, count);
        let expected = "(earlier steps are left out; calls among them: 3 × query → ok, 1 × query → failed, \
                        1 × read → ok, 1 × run → exit 2)";
        assert_eq!((line.text.as_str(), line.calls, groups.calls()), (expected, 6, 6));
        let mut again = CallGroups::read(&line.text).unwrap();
        assert_eq!(again, groups);
        again.merge(&groups);
        assert_eq!(again.calls(), 12);
        assert_eq!(groups.omitted_steps_line(25, count).calls, 3);
        assert_eq!(groups.omitted_steps_line(0, count).text, "(earlier steps are left out)");
        assert_eq!(CallGroups::read("(earlier steps are left out)"), Some(CallGroups::default()));
        assert_eq!(CallGroups::read("The user said: ok"), None);
    }
}
