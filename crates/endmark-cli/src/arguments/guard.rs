//! The arguments of `endmark guard`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use endmark_envelope::Limits;

/// The examples at the end of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark guard report.md
  endmark guard report.md --template stages/report.md
  endmark guard plan.md --min-lines 40 --section Risks --section '## Open questions' --forbid 'as time permits'
  my-agent … | endmark guard -
  endmark guard --to github docs/*.md              (also sarif, junit)
  endmark guard --batch < artifacts.jsonl

A template is a Markdown file with criteria in its front matter:
  successCriteria:
    minLines: 40
    requiredSections: [Summary, Risks]
    forbiddenPhrases: [as time permits]            (forbiddenPhrasesOnly: only these, not the built-in ones)

Batch: reads JSON Lines, {\"id\",\"text\",\"min_lines\",\"required_sections\",\"forbidden_phrases\",\"forbidden_phrases_only\"};
only the text is required. Writes one result per line, in order.
Exit codes: 0 whole; 1 at least one finding; 2 a file or the criteria cannot be used, or with --batch: a line was invalid.";

#[derive(Debug, Args, Limits)]
pub(crate) struct Guard {
    /// The artifacts to check; `-` or no file: standard input
    #[arg(value_name = "ARTIFACT")]
    #[limits(skip)]
    pub(crate) files: Vec<PathBuf>,
    /// Check against this: a Markdown template with `successCriteria` in its front matter, or criteria in YAML, TOML or JSON
    #[arg(long, value_name = "TEMPLATE")]
    #[limits(skip)]
    pub(crate) template: Option<PathBuf>,
    /// Require this many lines that are not blank; front matter is not counted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) min_lines: Option<u32>,
    /// Require a section with this title and some content; can be repeated
    #[arg(long = "section", value_name = "SECTION")]
    #[limits(max_bytes = 1024, max_items = 1000)]
    pub(crate) sections: Vec<String>,
    /// Forbid this phrase; can be repeated
    #[arg(long = "forbid", value_name = "PHRASE")]
    #[limits(max_bytes = 1024, max_items = 1000)]
    pub(crate) forbidden: Vec<String>,
    /// Forbid only the phrases of `--forbid`, not the built-in ones that postpone work
    #[arg(long)]
    pub(crate) forbid_only: bool,
    /// The output format of findings
    #[arg(long, value_name = "FORM", default_value = "text", conflicts_with = "batch")]
    #[limits(skip)]
    pub(crate) to: GuardForm,
    /// Read many texts as JSON Lines, and write one result per line
    #[arg(long, conflicts_with = "files")]
    pub(crate) batch: bool,
}

/// The output format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuardForm {
    /// For people
    Text,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// For a workflow on GitHub: annotations
    Github,
    /// For CI servers: test results in the XML of `JUnit`
    Junit,
}
