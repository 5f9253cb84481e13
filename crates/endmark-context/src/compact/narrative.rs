//! Writes the narrative of a summary: one line for each text and each call, in order (CX-1, CX-2).

use super::anchors::{Anchor, AnchorKind, AnchorSource, clip_line};
use super::policy::CompactionMode;
use crate::conversation::{Content, Role, Turn};

/// Maximum characters of a quoted text.
const MAX_QUOTED_CHARS: usize = 400;
/// Separates a call from its outcome.
const ARROW: &str = " → ";

/// The words with which lines begin, in sentences or in a list.
#[derive(Debug, Clone, Copy)]
struct NarrativeStyle {
    user: &'static str,
    assistant: &'static str,
    thought: &'static str,
    system: &'static str,
    call: &'static str,
}

const SENTENCES: NarrativeStyle = NarrativeStyle {
    user: "The user said: ",
    assistant: "The assistant said: ",
    thought: "The assistant thought: ",
    system: "The system said: ",
    call: "The assistant called ",
};

const BULLETS: NarrativeStyle = NarrativeStyle {
    user: "- user: ",
    assistant: "- assistant: ",
    thought: "- thought: ",
    system: "- system: ",
    call: "- called ",
};

fn narrative_style(mode: CompactionMode) -> NarrativeStyle {
    match mode {
        CompactionMode::Window => SENTENCES,
        CompactionMode::Emergency => BULLETS,
    }
}

/// Returns the narrative lines of a turn with these anchors.
pub(super) fn narrative_lines(turn: &Turn<'_>, anchors: &[Anchor<'_>], mode: CompactionMode) -> Vec<String> {
    let style = narrative_style(mode);
    let mut calls = anchors.iter().filter(|anchor| anchor.kind == AnchorKind::Command);
    let line_of = |beginning: &str, text: &str| {
        let text = clip_line(text, MAX_QUOTED_CHARS);
        (!text.is_empty()).then(|| format!("{beginning}{text}"))
    };
    let line = |content: &Content<'_>| match content {
        Content::Text(text) => match turn.role {
            Role::User => line_of(style.user, text),
            Role::System => line_of(style.system, text),
            Role::Assistant | Role::Tool | Role::Other => line_of(style.assistant, text),
        },
        Content::Reasoning { text, .. } => line_of(style.thought, text),
        Content::Call(_) => {
            calls.next().map(|anchor| format!("{}{}{ARROW}{}", style.call, anchor.key, anchor.value))
        }
        Content::Media(media) => {
            let name = media.name.as_deref().unwrap_or_default();
            line_of(style.user, &format!("[{} {name}]", media.kind))
        }
        Content::Result(_) | Content::Server { .. } | Content::Reference { .. } | Content::Unknown { .. } => {
            None
        }
    };
    turn.parts.iter().map(|part| &part.content).filter_map(line).collect()
}

/// Merges equal consecutive lines into one, with a count such as `(3 times)`.
pub(super) fn merge_duplicates(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut grouped: Vec<(String, usize)> = Vec::new();
    for line in lines {
        match grouped.last_mut().filter(|(last, _)| *last == line) {
            Some((_, times)) => *times += 1,
            None => grouped.push((line, 1)),
        }
    }
    let written = |(line, times)| if times > 1 { format!("{line} ({times} times)") } else { line };
    grouped.into_iter().map(written).collect()
}

/// Parses a call's description, its outcome, and the number of such calls. Returns `None` for any other line.
pub(super) fn parse_call(line: &str) -> Option<(&str, &str, u64)> {
    let call = [SENTENCES, BULLETS].iter().find_map(|style| line.strip_prefix(style.call))?;
    let (call, outcome) = call.split_once(ARROW)?;
    let repeated = outcome.strip_suffix(" times)").and_then(|rest| rest.rsplit_once(" ("));
    Some(match repeated.and_then(|(outcome, times)| Some((outcome, times.parse().ok()?))) {
        Some((outcome, times)) => (call, outcome, times),
        None => (call, outcome, 1),
    })
}

/// Whether a line is a statement or thought of the model.
pub(super) fn is_conclusion(line: &str) -> bool {
    [SENTENCES, BULLETS]
        .iter()
        .any(|style| line.starts_with(style.assistant) || line.starts_with(style.thought))
}

/// Parses the anchor in a line of an earlier summary. Returns `None` for any other line.
pub(super) fn parse_anchor(line: &str) -> Option<Anchor<'_>> {
    for style in [SENTENCES, BULLETS] {
        if let Some(line_of) = line.strip_prefix(style.user) {
            return Some(anchor(AnchorKind::UserLine, "", line_of));
        }
    }
    parse_call(line).map(|(call, outcome, _)| anchor(AnchorKind::Command, call, outcome))
}

fn anchor<'a>(kind: AnchorKind, key: &'a str, value: &'a str) -> Anchor<'a> {
    Anchor { kind, key: key.into(), value: value.into(), place: AnchorSource::Ledger }
}
