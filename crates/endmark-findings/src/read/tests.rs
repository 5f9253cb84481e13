//! Tests with results in the spellings of many models. This crate wrote none of them. (AR-1)

mod cuts;
mod foreign;
mod foreign_cuts;
mod headings;
mod lines;
mod multibyte_characters;
mod unread;

use crate::{AgentResult, Transcript, read};

/// Summarises a transcript: its results, its checkpoints and its remarks.
fn summary(transcript: &Transcript) -> String {
    let mut lines: Vec<String> = Vec::new();
    for result in &transcript.results {
        lines.push(header(result));
        for read in &result.findings {
            let finding = &read.finding;
            let missing: Vec<&str> = read.missing.iter().map(|field| field.name()).collect();
            let mut words = vec![
                format!("  {} {}", finding.id, read.state.name()),
                finding.title.clone(),
                finding.severity.as_ref().map_or("-", |severity| severity.name()).to_owned(),
                finding.cwe_text(),
                finding.location.as_ref().map_or(String::new(), |location| {
                    let places: Vec<String> = location.places().iter().map(ToString::to_string).collect();
                    places.join(" ")
                }),
                finding.source.clone().unwrap_or_default(),
                finding.sink.clone().unwrap_or_default(),
                finding.flow.clone().unwrap_or_default(),
                finding
                    .evidence
                    .as_ref()
                    .map_or(String::new(), |evidence| format!("{:?}", evidence.as_str())),
            ];
            if !missing.is_empty() {
                words.push(format!("lacks {}", missing.join(" ")));
            }
            lines.push(words.join(" | "));
        }
    }
    for checkpoint in &transcript.checkpoints {
        let number = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
        let left =
            checkpoint.remaining_dims.as_ref().map_or("-".to_owned(), |left| format!("[{}]", left.join(",")));
        let (findings, files) = (number(checkpoint.findings), number(checkpoint.files_read));
        lines.push(format!("checkpoint {} {findings} {files} {left}", checkpoint.turn));
    }
    for remark in &transcript.remarks {
        lines.push(format!("{}:{} {}", remark.position.line, remark.position.column, remark.kind.name()));
    }
    lines.join("\n")
}

fn header(result: &AgentResult) -> String {
    let mut words = vec![
        result.cut.name().to_owned(),
        result.agent_id.clone().unwrap_or("-".to_owned()),
        format!("[{}]", result.dimensions.join(", ")),
    ];
    if let Some(declared) = result.declared_findings {
        words.push(format!("declared {declared}"));
    }
    if result.discarded > 0 {
        words.push(format!("discarded {}", result.discarded));
    }
    if result.unread > 0 {
        words.push(format!("unread {}", result.unread));
    }
    words.join(" ")
}

fn read_summary(text: impl AsRef<[u8]>) -> String {
    summary(&read(text.as_ref()))
}
