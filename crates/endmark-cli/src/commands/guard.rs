//! `endmark guard`: checks whether an artifact is really finished (CG-1, CG-2).

mod batch;

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use endmark_failure::{CommandError, to_single_line};
use endmark_guard::{Artifact, AssessedArtifact, Assessment, Finding, Guard, Verdict, github, junit, sarif};
use serde::Serialize;

use crate::arguments::guard as arguments;
use crate::arguments::guard::GuardForm;

use crate::context::Context;
use crate::criteria::{
    self, MAX_ARTIFACT_BYTES, RequestedCriteria, decode_text, display_name, is_standard_input,
};
use crate::input::Input;
use crate::view::answer::{Answer, Outcome, to_data};
use crate::view::paint::{Paint, Painter};

/// Checks the named artifacts, or one text per line.
pub(crate) fn run(context: &Context, arguments: &arguments::Guard) -> Result<Outcome, CommandError> {
    let demands = RequestedCriteria {
        template: arguments.template.as_deref(),
        min_lines: arguments.min_lines,
        sections: &arguments.sections,
        forbidden: &arguments.forbidden,
        forbid_only: arguments.forbid_only,
    };
    let guard = criteria::build_guard(context, &demands)?;
    if arguments.batch {
        let input = Input::open(None, context.terminal)?;
        return crate::batch::run(input, |line| batch::answer_line(line, &guard)).map(Outcome::Streamed);
    }
    let standard_input = [PathBuf::from("-")];
    let files = if arguments.files.is_empty() { &standard_input[..] } else { &arguments.files };
    if files.iter().filter(|file| is_standard_input(file)).count() > 1 {
        return Err(CommandError::input("usage", "standard input is named twice", "Name `-` once."));
    }
    let mut judged = Vec::new();
    for file in files {
        judged.push((display_name(file), check_artifact(context, &guard, file)?));
    }
    let judged: Vec<AssessedArtifact<'_>> =
        judged.iter().map(|(path, report)| AssessedArtifact { path, report }).collect();
    answer(&judged, arguments.to, context.terminal.output).map(Outcome::from)
}

/// Checks a file. A missing artifact is a finding, not an error, because the guard exists to find it.
fn check_artifact(context: &Context, guard: &Guard, file: &Path) -> Result<Assessment, CommandError> {
    let input = match Input::open_file(file, context.terminal) {
        Err(CommandError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(Assessment::missing());
        }
        opened => opened.map_err(criteria::with_file_hint)?,
    };
    let text =
        decode_text(file, input.read_bytes_up_to(MAX_ARTIFACT_BYTES).map_err(criteria::with_file_hint)?)?;
    let artifact = if is_standard_input(file) {
        Artifact::read(&text)
    } else {
        Artifact::read_file(&text, &file.to_string_lossy())
    };
    Ok(guard.judge(&artifact))
}

/// Answer data of `guard`. The field names are public.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GuardReport<'a> {
    /// The worst verdict of all artifacts.
    verdict: Verdict,
    findings: Vec<FindingReport<'a>>,
    artifacts: Vec<ArtifactReport<'a>>,
    /// Present only with `--to`: the text for standard output.
    rendered: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FindingReport<'a> {
    /// The artifact, as named in the command.
    artifact: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ArtifactReport<'a> {
    artifact: &'a str,
    verdict: Verdict,
    /// The number of findings; at most 1,000 are listed.
    findings: usize,
}

fn answer(
    judged: &[AssessedArtifact<'_>],
    form: GuardForm,
    painter: Painter,
) -> Result<Answer, CommandError> {
    let rendered = match form {
        GuardForm::Text => None,
        GuardForm::Github => Some(github(judged)),
        GuardForm::Junit => Some(junit(judged)),
        GuardForm::Sarif => {
            let sarif = serde_json::to_string_pretty(&sarif(judged, env!("CARGO_PKG_VERSION")));
            Some(sarif.map_err(|error| CommandError::Bug(error.to_string()))? + "\n")
        }
    };
    let verdict = judged.iter().map(|one| one.report.verdict()).max().unwrap_or(Verdict::Whole);
    let data = to_data(&GuardReport {
        verdict,
        findings: judged
            .iter()
            .flat_map(|one| {
                one.report.findings().iter().map(|finding| FindingReport { artifact: one.path, finding })
            })
            .collect(),
        artifacts: judged
            .iter()
            .map(|one| ArtifactReport {
                artifact: one.path,
                verdict: one.report.verdict(),
                findings: one.report.count(),
            })
            .collect(),
        rendered: rendered.as_deref(),
    })?;
    let text = rendered.unwrap_or_else(|| describe(judged, painter));
    if verdict == Verdict::Whole {
        return Ok(Answer::yes(data, text));
    }
    let count: usize = judged.iter().map(|one| one.report.count()).sum();
    let message = if count == 1 { "1 finding".to_owned() } else { format!("{count} findings") };
    Ok(Answer::no_in_text(data, text, verdict.name(), message))
}

fn describe(judged: &[AssessedArtifact<'_>], painter: Painter) -> String {
    let mut text = String::new();
    for one in judged {
        let verdict = one.report.verdict();
        let paint = match verdict {
            Verdict::Whole => Paint::Good,
            Verdict::WrappedUp => Paint::Doubt,
            Verdict::Truncated => Paint::Bad,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}", to_single_line(one.path), painter.paint(paint, verdict.name()));
        for finding in one.report.findings() {
            let check = painter.paint(Paint::Strong, finding.check.name());
            let place = format!("{}:{}", finding.line, finding.column);
            let quote = if finding.text.is_empty() {
                String::new()
            } else {
                format!("  {}", to_single_line(&finding.text))
            };
            let _ = writeln!(text, "  {place:<8} {check}{quote}");
            let _ = writeln!(text, "           {}", to_single_line(&finding.why));
            let _ = writeln!(text, "           {}", painter.paint(Paint::Dim, &to_single_line(&finding.fix)));
        }
        if one.report.unlisted_count() > 0 {
            let _ = writeln!(text, "  and {} more findings", one.report.unlisted_count());
        }
    }
    text
}
