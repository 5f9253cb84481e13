//! The prompt for a retry: what the artifact contains and lacks, what the agent did, and what remains. (CG-5)

use std::fmt::Write as _;

use crate::artifact::Artifact;
use crate::finding::{Assessment, Finding};
use crate::outcome::AttemptVerdict;

/// The maximum number of listed findings. The prompt states how many more there are.
const MAX_FINDINGS: usize = 40;
/// The maximum number of listed headings. The prompt states how many more there are.
const MAX_HEADINGS: usize = 40;
/// The maximum length of a title, in characters.
const MAX_TITLE_CHARACTERS: usize = 80;
/// The maximum length of the agent's last message, in characters. Its beginning states what the agent did.
const MAX_MESSAGE_CHARACTERS: usize = 600;
/// The maximum number of evidence lines.
const MAX_EVIDENCE_LINES: usize = 8;

/// The parameters of a retry prompt. The prompt quotes single lines of the artifact and never repeats all of
/// it.
#[derive(Debug, Clone, Copy)]
pub struct RetryPrompt<'a> {
    /// The path of the artifact for the agent.
    pub path: &'a str,
    /// The artifact, if it exists.
    pub artifact: Option<&'a Artifact<'a>>,
    /// The findings of the guard.
    pub report: &'a Assessment,
    /// The number of the last attempt, from 1, and the maximum number of attempts.
    pub attempt: (u32, u32),
    /// How the last attempt ended.
    pub verdict: AttemptVerdict,
    /// The evidence for that verdict.
    pub evidence: &'a [String],
    /// The last message of the agent.
    pub last_message: &'a str,
    /// The task. Set only for an agent that does not remember its last attempt.
    pub task: Option<&'a str>,
}

impl RetryPrompt<'_> {
    /// Returns the text of the prompt.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(task) = self.task {
            let _ = writeln!(text, "{}\n", task.trim());
            let _ = writeln!(text, "---\n\nThis task was begun already.");
        }
        let (attempt, attempts) = self.attempt;
        let _ = writeln!(
            text,
            "The file `{path}` is not finished (attempt {attempt} of {attempts}). Continue that file: keep what is right in it, complete \
             and correct it in place. Do not start over, and do not stop before all of the points below are settled.",
            path = self.path
        );
        self.write_present(&mut text);
        self.write_missing(&mut text);
        self.write_progress(&mut text);
        let _ = writeln!(
            text,
            "\nWhat is left: settle each point above in `{}` itself, then read the file again. It is checked again when you stop; \
             a statement that it is done does not count.",
            self.path
        );
        text
    }

    fn write_present(&self, text: &mut String) {
        let Some(artifact) = self.artifact else {
            let _ = writeln!(text, "\nWhat it has: nothing, the file does not exist yet.");
            return;
        };
        let lines = artifact.body().lines().filter(|line| !line.trim().is_empty()).count();
        let _ = writeln!(text, "\nWhat it has: {lines} lines that are not blank.");
        let headings = artifact.outline().headings();
        for heading in headings.iter().take(MAX_HEADINGS) {
            let _ = writeln!(text, "- section: {}", clip(heading.title.trim(), MAX_TITLE_CHARACTERS));
        }
        if headings.len() > MAX_HEADINGS {
            let _ = writeln!(text, "- and {} further sections", headings.len() - MAX_HEADINGS);
        }
    }

    fn write_missing(&self, text: &mut String) {
        let findings = self.report.findings();
        if findings.is_empty() {
            let _ = writeln!(
                text,
                "\nWhat it lacks: no check fails, but your last attempt did not come to its end."
            );
            return;
        }
        let _ = writeln!(text, "\nWhat it lacks:");
        for finding in findings.iter().take(MAX_FINDINGS) {
            let _ = writeln!(text, "- {}", finding_line(finding));
        }
        let more = self.report.count().saturating_sub(MAX_FINDINGS);
        if more > 0 {
            let _ = writeln!(text, "- and {more} further findings of these kinds");
        }
    }

    fn write_progress(&self, text: &mut String) {
        let ended = match self.verdict {
            AttemptVerdict::Whole => "it came to its end and left the file as described",
            AttemptVerdict::Truncated => "it was cut off",
            AttemptVerdict::WrappedUp => "it stopped with work of its own left",
            AttemptVerdict::ContextExhausted => "its context was full",
            AttemptVerdict::Budget => "it reached a limit on its turns or its cost",
            AttemptVerdict::Stuck => "it had to be stopped, since nothing came from it any more",
            AttemptVerdict::TimedOut => "it had to be stopped, since it took longer than an attempt may",
            AttemptVerdict::Crashed => "it broke off",
            AttemptVerdict::Bypassed => "its calls did not go through the gateway of its run",
        };
        let _ = writeln!(text, "\nWhat was done: in the last attempt {ended}.");
        for evidence in self.evidence.iter().take(MAX_EVIDENCE_LINES) {
            let _ = writeln!(text, "- {evidence}");
        }
        let message = self.last_message.trim();
        if !message.is_empty() {
            let one_line = message.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "- the last message was: {}", clip(&one_line, MAX_MESSAGE_CHARACTERS));
        }
    }
}

/// Formats a finding as a line for the agent.
fn finding_line(finding: &Finding) -> String {
    let place = if finding.text.is_empty() {
        String::new()
    } else {
        format!(" line {}, `{}`:", finding.line, finding.text)
    };
    format!("{}:{place} {}. {}", finding.check.name(), finding.why, finding.fix)
}

/// Shortens a text to this number of characters.
fn clip(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Criteria, Guard};

    #[test]
    fn the_prompt_lists_findings_gaps_and_attempts() {
        let criteria =
            Criteria { required_sections: vec!["Summary".into(), "Risks".into()], ..Criteria::default() };
        let artifact = Artifact::read("# Report\n\n## Summary\n\nTBD\n");
        let report = Guard::new(criteria).judge(&artifact);
        let prompt = RetryPrompt {
            path: "report.md",
            artifact: Some(&artifact),
            report: &report,
            attempt: (1, 3),
            verdict: AttemptVerdict::Truncated,
            evidence: &["the last stop reason is `max_tokens`".to_owned()],
            last_message: "I have written\nthe report.",
            task: Some("Write the report."),
        };
        let text = prompt.text();
        for expected in [
            "Write the report.\n\n---",
            "attempt 1 of 3",
            "Continue that file",
            "3 lines that are not blank",
            "- section: Summary",
            "- placeholder: line 5, `TBD`:",
            "- section_missing:",
            "it was cut off",
            "the last stop reason is `max_tokens`",
            "the last message was: I have written the report.",
        ] {
            assert!(text.contains(expected), "{expected} is not in:\n{text}");
        }
        assert!(!RetryPrompt { task: None, ..prompt }.text().contains("Write the report."));
    }

    #[test]
    fn the_prompt_stays_small_and_never_repeats_the_artifact() {
        let body = "## A part\n\nTBD\n\n".repeat(2_000);
        let artifact = Artifact::read(&body);
        let report = Guard::new(Criteria::default()).judge(&artifact);
        assert!(report.count() > 1_000 && report.findings().len() == 1_000);
        let message = "word ".repeat(10_000);
        let prompt = RetryPrompt {
            path: "report.md",
            artifact: Some(&artifact),
            report: &report,
            attempt: (2, 3),
            verdict: AttemptVerdict::Whole,
            evidence: &[],
            last_message: &message,
            task: None,
        };
        let text = prompt.text();
        assert!(text.len() < 16_000, "{}", text.len());
        assert!(text.contains("further sections") && text.contains("further findings"));
    }
}
