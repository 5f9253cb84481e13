//! Writes the instructions for an agent, so that a cut result can be distinguished from a complete one. (AR-1, AR-2,
//! AR-3)

use std::fmt::Write;

use serde_json::json;

use super::fit::{SHARE_PERCENT, TOKENS_PER_FINDING, TOKENS_PER_RESULT};
use super::progress::CHECKPOINT_TURNS;

/// The format that the agent is asked for (AR-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtocolFormat {
    /// Lines of `name: value` under `[F001] …`.
    #[default]
    Text,
    /// JSON Lines: a header object, then one finding per line.
    Jsonl,
}

/// The parameters of the instructions. Unknown names and dimensions become placeholders.
#[derive(Debug, Clone, Copy, Default)]
pub struct Protocol<'a> {
    /// The requested format.
    pub form: ProtocolFormat,
    /// The agent's name.
    pub agent_id: Option<&'a str>,
    /// The dimensions that it examines.
    pub dimensions: &'a [String],
    /// The context tokens that it has left.
    pub budget_left: Option<u64>,
    /// The maximum number of turns.
    pub max_turns: Option<u32>,
    /// The maximum number of findings.
    pub max_findings: Option<u32>,
}

impl Protocol<'_> {
    /// Returns the instructions for the agent's prompt. If a transcript repeats them, they are parsed as a template and
    /// not as a result.
    pub fn text(&self) -> String {
        let form = match self.form {
            ProtocolFormat::Text => self.text_form(),
            ProtocolFormat::Jsonl => self.jsonl_form(),
        };
        let mut text = format!(
            "\
## How to hand over your findings

Hand over your result in exactly this form, as plain text, once, at the very end:

===AGENT_RESULT===
{form}
### Before you write it

1. Count your findings and estimate: tokens = findings x {TOKENS_PER_FINDING} + {TOKENS_PER_RESULT}.
2. If that is more than {SHARE_PERCENT} % of the context you have left, do all three:
   - shorten each evidence to its one most critical line;
   - merge findings with the same CWE in the same file into one, with a range of lines as location;
   - shorten the flow of every finding below High to: source → sink.

### While you work

Every {CHECKPOINT_TURNS} turns print one line, with your numbers and without anything else in it:

[CHECKPOINT] turn:{{N}} findings:{{count}} files_read:{{count}} remaining_dims:{{list}}
"
        );
        let mut limits = Vec::new();
        if let Some(budget) = self.budget_left {
            let most = budget.saturating_mul(SHARE_PERCENT) / 100;
            let findings = most.saturating_sub(TOKENS_PER_RESULT) / TOKENS_PER_FINDING;
            limits.push(format!(
                "You have about {budget} tokens of context left: your result may take {most}, which is {findings} findings \
                 before you have to compress."
            ));
        }
        if let Some(turns) = self.max_turns {
            limits.push(format!("You have {turns} turns. Keep the last one for the result."));
        }
        if let Some(findings) = self.max_findings {
            limits.push(format!("Hand over at most {findings} findings, the worst first."));
        }
        if !limits.is_empty() {
            text.push_str("\n### Your limits\n\n");
            for limit in limits {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "- {limit}");
            }
        }
        text
    }

    /// Returns the part of the instructions after the start marker, for the line format.
    fn text_form(&self) -> String {
        let agent_id = self.agent_id.unwrap_or(AGENT_ID);
        let dimensions = match self.dimensions {
            [] => "<what you looked into, with commas between>".to_owned(),
            dimensions => dimensions.join(", "),
        };
        let fields = FIELDS.map(|(name, value)| format!("{name}: {value}\n")).concat();
        format!(
            "\
agent_id: {agent_id}
dimensions: {dimensions}
declared_findings: {DECLARED}

[F001] {TITLE}
{fields}evidence:
  <the code, each line indented by two spaces>

===AGENT_RESULT_END===

- Both markers stand alone in their lines. Without the last line your result counts as cut off, so write it always, also
  where there are no findings.
- Number the findings [F001], [F002], …, and leave a blank line before each. severity, location, source, sink and evidence
  are needed; leave out what you do not know rather than guess it.
"
        )
    }

    /// Returns the part of the instructions after the start marker, for JSON Lines.
    fn jsonl_form(&self) -> String {
        let agent_id = json!(self.agent_id.unwrap_or(AGENT_ID));
        let dimensions = match self.dimensions {
            [] => json!(["<what you looked into, an item each>"]),
            dimensions => json!(dimensions),
        };
        let fields = FIELDS.map(|(name, value)| format!("\"{name}\": \"{value}\", ")).concat();
        format!(
            "\
{{\"agent_id\": {agent_id}, \"dimensions\": {dimensions}, \"declared_findings\": \"{DECLARED}\"}}
{{\"id\": \"F001\", \"title\": \"{TITLE}\", {fields}\"evidence\": \"<the code, its lines joined by \\n>\"}}
===AGENT_RESULT_END===

- Both markers stand alone in their lines. Without the last line your result counts as cut off, so write it always, also
  where there are no findings.
- Between them stands JSON Lines: first the object with your id, declared_findings as a number, then one object for each
  finding, F001, F002, …, each whole in one line. severity, location, source, sink and evidence are needed; leave out what
  you do not know rather than guess it.
"
        )
    }
}

/// Placeholders for values that only the agent knows. Their angle brackets mark them as a template.
const AGENT_ID: &str = "<your agent id>";
const DECLARED: &str = "<how many findings follow>";
const TITLE: &str = "<what is wrong, in one line>";
const FIELDS: [(&str, &str); 6] = [
    ("severity", "<Critical, High, Medium, Low or Info>"),
    ("cwe", "<CWE-number>"),
    ("location", "<file:line-line>"),
    ("source", "<where the data comes from>"),
    ("sink", "<where it does harm>"),
    ("flow", "<step -> step -> step>"),
];
