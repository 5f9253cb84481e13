//! Explains one recovery: the received text, the verdicts with their reasons, and the seams.

use std::fmt::Write;

use endmark_console::reports::NotAsked;
use endmark_failure::to_safe_lines;
use endmark_store::{FinalStatus, OtherGateway, Recovery, RecoveryRow, ReplyPiece};

use crate::view::paint::{Paint, Painter};

/// Number of characters that are shown of each end of a stored text.
const EXCERPT_CHARS: usize = 160;

/// Returns the recovery as readable text.
pub(super) fn render_text(recovery: &Recovery, painter: Painter) -> String {
    let mut text = String::new();
    for row in &recovery.rows {
        if !text.is_empty() {
            text.push('\n');
        }
        add_heading(&mut text, row, painter);
        for piece in recovery.row_pieces(row.id) {
            add_piece(&mut text, piece, painter);
        }
    }
    text
}

/// Adds one line; writing to a string cannot fail.
macro_rules! add {
    ($text:expr, $($format:tt)*) => {{ let _ = writeln!($text, $($format)*); }};
}

fn add_heading(text: &mut String, row: &RecoveryRow, painter: Painter) {
    let paint = match row.final_status {
        FinalStatus::Resolved => Paint::Good,
        FinalStatus::Exhausted => Paint::Bad,
    };
    let outcome = painter.paint(paint, &row.outcome);
    let title = painter.paint(Paint::Strong, "recovery");
    match &row.other_gateway {
        Some(_) => add!(text, "{title}  {outcome}"),
        None => add!(text, "{title} {}  {outcome}", row.id),
    }
    let mut detail = |name: &str, value: &str| {
        if !value.is_empty() {
            add!(text, "  {}  {value}", painter.paint(Paint::Dim, &format!("{name:<8}")));
        }
    };
    detail("request", &row.request_id);
    if let Some(other) = &row.other_gateway {
        let OtherGateway { machine, instance, pieces } = other;
        let kept = format!("{machine} (instance {instance}) keeps the texts of the reply (pieces: {pieces})");
        detail("machine", &kept);
    }
    detail("time", &format!("{} UTC", row.timestamp));
    detail("task", &format!("{}, turn {}", row.task_id, row.turn_number));
    detail("model", &format!("{} at {}", row.model, row.provider));
    detail("part", &row.slot);
    detail("cut", &describe_cut(row));
    detail("calls", &describe_calls(row));
    detail("reason", &row.reason);
    detail("remedy", NotAsked::from_row(row).map_or("", |not_asked| not_asked.remedy));
}

fn describe_cut(row: &RecoveryRow) -> String {
    let length = row.initial_chunk_length.map(|length| format!(" after {length} bytes")).unwrap_or_default();
    let settled =
        row.truncation_index.map(|index| format!(", settled up to byte {index}")).unwrap_or_default();
    format!("{}{length}{settled}", row.cut_kind)
}

fn describe_calls(row: &RecoveryRow) -> String {
    format!(
        "{} more, for {} prompt and {} output tokens",
        row.resume_attempts, row.extra_prompt_tokens, row.extra_output_tokens
    )
}

fn add_piece(text: &mut String, piece: &ReplyPiece, painter: Painter) {
    let title = painter.paint(Paint::Strong, &format!("piece {}", piece.ordinal));
    add!(text, "\n  {title}  {}, {} bytes", piece.strategy, piece.received_bytes);
    let stop = piece.stop.as_deref().unwrap_or("nothing");
    add!(text, "    ended {}; finish reason: {stop}", piece.ending);
    add!(text, "    judged {}: {}", painter.paint(Paint::Strong, &piece.judged), piece.why);
    if let Some(at) = piece.seam_at {
        let style = piece.seam_style.as_deref().unwrap_or("unknown");
        let sure =
            piece.confidence.map(|confidence| format!(", confidence {confidence:.2}")).unwrap_or_default();
        let dropped = match piece.dropped_bytes {
            0 => String::new(),
            bytes => format!(", {bytes} bytes dropped"),
        };
        add!(text, "    {} at byte {at}: {style}{dropped}{sure}", painter.paint(Paint::Doubt, "seam"));
    }
    match &piece.text {
        Some(kept) => add!(text, "    {}", to_safe_lines(&excerpt(kept)).replace('\n', "\n    ")),
        None => add!(
            text,
            "    {}",
            painter.paint(Paint::Dim, &format!("text not stored; sha256 {}", piece.sha256))
        ),
    }
}

/// Returns a short text unchanged.
///
/// Returns both ends of a long text, with the number of omitted characters between them.
fn excerpt(text: &str) -> String {
    let length = text.chars().count();
    if length <= 2 * EXCERPT_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(EXCERPT_CHARS).collect();
    let tail: String = text.chars().skip(length - EXCERPT_CHARS).collect();
    format!("{head}\n[… {} characters …]\n{tail}", length - 2 * EXCERPT_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_shows_both_ends_and_the_omitted_length() {
        let text = format!("{}{}", "ä".repeat(EXCERPT_CHARS), "b".repeat(EXCERPT_CHARS + 5));
        let shown = excerpt(&text);
        assert!(shown.starts_with("ää") && shown.ends_with('b'));
        assert!(shown.contains("[… 5 characters …]"));
        assert_eq!(excerpt("short"), "short");
    }
}
