//! Groups calls by name and ending, for a summary without room for each call (CX-2).

use std::collections::BTreeMap;

use super::anchors::is_error_line;
use super::policy::Count;

/// Prefix of the line for steps that have no line of their own.
const PREFIX: &str = "(earlier steps are left out";
const CALLS: &str = "; calls among them: ";
const SUFFIX: char = ')';
const SEPARATOR: &str = ", ";
const TIMES_SIGN: &str = " × ";
const ARROW: &str = " → ";

/// Number of calls for each name and ending, such as `query → ok`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallGroups(BTreeMap<String, u64>);

/// The line of a summary for omitted steps.
#[derive(Debug, Clone, Default)]
pub(super) struct OmittedStepsLine {
    pub(super) text: String,
    /// Number of calls in its groups.
    pub(super) calls: u64,
    /// Tokens of the line.
    pub(super) tokens: u64,
}

impl CallGroups {
    /// Parses the line of a summary. Returns `None` for any other line.
    pub(super) fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let mut groups = Self::default();
        for group in rest.strip_prefix(CALLS).unwrap_or_default().split(SEPARATOR) {
            if let Some((times, label)) = group.split_once(TIMES_SIGN)
                && let Ok(times) = times.parse()
            {
                groups.add(label, times);
            }
        }
        Some(groups)
    }

    /// Adds a call in the form of the narrative, `times` times.
    pub(super) fn add_call(&mut self, call: &str, outcome: &str, times: u64) {
        let name = call.split('(').next().unwrap_or_default().replace(SEPARATOR, " ");
        self.add(&format!("{name}{ARROW}{}", outcome_ending(outcome)), times);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (label, times) in &other.0 {
            self.add(label, *times);
        }
    }

    fn add(&mut self, label: &str, times: u64) {
        let sum = self.0.entry(label.to_owned()).or_default();
        *sum = sum.saturating_add(times);
    }

    /// Returns the number of all calls.
    pub(super) fn calls(&self) -> u64 {
        self.0.values().fold(0, |sum, times| sum.saturating_add(*times))
    }

    /// Returns the line with as many of the largest groups as fit.
    pub(super) fn line(&self, room: u64, count: Count) -> OmittedStepsLine {
        let mut groups: Vec<(&String, u64)> = self.0.iter().map(|(label, times)| (label, *times)).collect();
        groups.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let mut line =
            OmittedStepsLine { text: PREFIX.to_owned(), calls: 0, tokens: count(PREFIX) + count(CALLS) };
        for (label, times) in groups {
            let separator = if line.calls == 0 { CALLS } else { SEPARATOR };
            let written = format!("{separator}{times}{TIMES_SIGN}{label}");
            let tokens = line.tokens + count(&written) + 1;
            if tokens > room {
                break;
            }
            line.tokens = tokens;
            line.calls = line.calls.saturating_add(times);
            line.text.push_str(&written);
        }
        line.text.push(SUFFIX);
        line
    }
}

/// Returns how a call ended, without details that differ between calls.
fn outcome_ending(outcome: &str) -> &str {
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
        let line = groups.line(100, count);
        let expected = "(earlier steps are left out; calls among them: 3 × query → ok, 1 × query → failed, \
                        1 × read → ok, 1 × run → exit 2)";
        assert_eq!((line.text.as_str(), line.calls, groups.calls()), (expected, 6, 6));
        let mut again = CallGroups::read(&line.text).unwrap();
        assert_eq!(again, groups);
        again.merge(&groups);
        assert_eq!(again.calls(), 12);
        assert_eq!(groups.line(25, count).calls, 3);
        assert_eq!(groups.line(0, count).text, "(earlier steps are left out)");
        assert_eq!(CallGroups::read("(earlier steps are left out)"), Some(CallGroups::default()));
        assert_eq!(CallGroups::read("The user said: ok"), None);
    }
}
