//! Shows a seam side by side: the received text, the request, the continuation, and the joined text.

use endmark_store::{RecoveryRow, ReplyPiece};
use maud::{Markup, html};

use crate::page::display;
use crate::page::requests::describe_seam;

/// Characters of a text that are shown on each side of a seam.
const MAX_SHOWN_CHARS: usize = 700;

/// Characters of the joined text that are shown on each side of a seam.
const MAX_CONTEXT_CHARS: usize = 160;

/// The position at which a continuation was joined to the text before it.
#[derive(Debug, PartialEq, Eq)]
struct SeamParts<'a> {
    /// The kept part of the preceding text, and its omitted end.
    kept: &'a str,
    dropped: &'a str,
    /// The omitted beginning of the continuation, its kept part and its omitted end.
    head: &'a str,
    new: &'a str,
    tail: &'a str,
    /// Whether the gateway inserted white space at the seam that neither text contains.
    has_added_space: bool,
}

impl<'a> SeamParts<'a> {
    /// Returns the joint that a record describes, or `None` if the texts do not match the record. The record
    /// contains the position at which the preceding text ends, and the number of omitted bytes. The seam's
    /// style determines at which end of the continuation those bytes are.
    fn from_record(before: &'a str, continuation: &'a str, piece: &ReplyPiece) -> Option<Self> {
        let at = usize::try_from(piece.seam_at?).ok()?;
        let (kept, dropped) = before.split_at_checked(at)?;
        let left_out = usize::try_from(piece.dropped_bytes).ok()?.checked_sub(dropped.len())?;
        let style = piece.seam_style.as_deref().unwrap_or_default();
        let tail = match style {
            "remark" => left_out,
            "fence" => marked_tail_length(continuation, "```").min(left_out),
            "quotation" => (continuation.len() - continuation.trim_end().len() + 1).min(left_out),
            _ => 0,
        };
        let (head, rest) = continuation.split_at_checked(left_out - tail)?;
        let (new, tail) = rest.split_at_checked(rest.len().checked_sub(tail)?)?;
        Some(Self {
            kept,
            dropped,
            head,
            new,
            tail,
            has_added_space: style == "whitespace" && piece.dropped_bytes == 0,
        })
    }
}

/// Returns the length of `mark` at the end of a text, with the line break before it and the white space after
/// it. Returns 0 if the text does not end with `mark`.
fn marked_tail_length(text: &str, mark: &str) -> usize {
    let Some(at) = text.trim_end().strip_suffix(mark).map(str::len) else { return 0 };
    let before = text.get(..at).unwrap_or_default();
    text.len() - before.strip_suffix('\n').unwrap_or(before).len()
}

/// Shows all seams of a cut part. Each continuation has one seam.
pub(super) fn seams_of_cut(cut: &RecoveryRow, pieces: &[&ReplyPiece]) -> Markup {
    let Some((first, continuations)) = pieces.split_first() else { return html! {} };
    let (mut before, mut seams) = (first.text.clone(), Vec::new());
    for (at, piece) in continuations.iter().enumerate() {
        let joint = before
            .as_deref()
            .zip(piece.text.as_deref())
            .and_then(|(before, text)| SeamParts::from_record(before, text, piece));
        seams.push(seam(cut, (at, first), before.as_deref(), piece, joint.as_ref()));
        if let Some(joint) = joint {
            before = Some(format!("{}{}", joint.kept, joint.new));
        }
    }
    html! { @for seam in seams { (seam) } }
}

fn seam(
    cut: &RecoveryRow,
    (at, first): (usize, &ReplyPiece),
    before: Option<&str>,
    piece: &ReplyPiece,
    joint: Option<&SeamParts<'_>>,
) -> Markup {
    let id = |name: &str| format!("{name}-{}-{}", cut.id, piece.ordinal);
    let came = if at == 0 { first.received_bytes } else { before.map_or(0, |before| before.len() as u64) };
    html! { div.seam role="group" aria-labelledby=(id("seam")) {
        header.title {
            h2 id=(id("seam")) { "The seam" @if at > 0 { " of attempt " (at + 1) } }
            ul.legend.plain { li { span.joint { "∎" } " the joint" } li { del { "left out" } } @if joint.is_some() { li { span.new { "new" } } } }
        }
        section aria-labelledby=(id("came")) {
            header { h3 id=(id("came")) { "What came" } p { (came) " bytes, ended: " bdi { (first.ending) } } }
            @match (joint, before) {
                (Some(joint), _) => pre.text.before tabindex="0" { (text_tail(joint.kept, MAX_SHOWN_CHARS)) del { (joint.dropped) } span.joint title="The joint" { "∎" } },
                (None, Some(before)) => pre.text.before tabindex="0" { (text_tail(before, MAX_SHOWN_CHARS)) },
                (None, None) => (not_kept(&first.sha256)),
            }
        }
        section.asked aria-labelledby=(id("asked")) {
            header.step { h3 id=(id("asked")) { "What was asked" } p { "attempt " (at + 1) ", by " bdi { (piece.strategy) } } }
            p.text { (describe_strategy(&piece.strategy)) }
        }
        section aria-labelledby=(id("then")) {
            header.step {
                h3 id=(id("then")) { "What came then" }
                p { (piece.received_bytes) " bytes" @if piece.seam_at.is_some() { ", " (omitted_bytes(piece.dropped_bytes)) } @else { ", not joined" } }
            }
            @match (joint, &piece.text) {
                (Some(joint), _) => pre.text tabindex="0" {
                    del { (text_head(joint.head, MAX_SHOWN_CHARS)) } span.joint title="The joint" { "∎" } (text_head(joint.new, MAX_SHOWN_CHARS)) del { (joint.tail) }
                },
                (None, Some(text)) => pre.text tabindex="0" { (text_head(text, MAX_SHOWN_CHARS)) },
                (None, None) => (not_kept(&piece.sha256)),
            }
        }
        section.joined aria-labelledby=(id("sent")) { (joined_text(&id("sent"), piece, joint)) }
    } }
}

fn joined_text(id: &str, piece: &ReplyPiece, joint: Option<&SeamParts<'_>>) -> Markup {
    html! {
        @if let Some(joint) = joint {
            header {
                h3 id=(id) { "What the client received" }
                p {
                    (joint.kept.len()) " + " (joint.new.len()) " bytes, " (describe_seam(piece.seam_style.as_deref()))
                    @if joint.has_added_space { ", with white space between" }
                    @if let Some(confidence) = piece.confidence { ", confidence " (format!("{confidence:.3}")) }
                }
            }
            pre.text tabindex="0" {
                (text_tail(joint.kept, MAX_CONTEXT_CHARS)) span.joint title="The joint" { "∎" }
                @if joint.has_added_space { " " }
                span.new { (text_head(joint.new, MAX_CONTEXT_CHARS)) }
            }
        } @else {
            header {
                h3 id=(id) { "The joint" }
                p {
                    @match piece.seam_at {
                        Some(at) => { "at byte " (at) ", " (describe_seam(piece.seam_style.as_deref())) ", " (omitted_bytes(piece.dropped_bytes)) },
                        None => { "nothing was joined: " bdi { (piece.why) } },
                    }
                }
            }
        }
    }
}

fn omitted_bytes(bytes: u64) -> String {
    if bytes == 0 { "nothing left out".to_owned() } else { format!("{bytes} bytes left out") }
}

fn not_kept(sha256: &str) -> Markup {
    let short: String = sha256.chars().take(16).collect();
    html! { p.text { span.elided {
        "The text was not kept. Set " code { "keep_text = true" } " under " code { "[store_policy]" } " to see the next ones. SHA-256 " bdi.id title=(sha256) { (short) }
    } } }
}

/// Describes what a strategy requested from the model.
fn describe_strategy(strategy: &str) -> &'static str {
    match strategy.split(['@', ' ']).next().unwrap_or_default() {
        "prefill" => {
            "The model continued its own unfinished message: the request was sent again with the text so far as the beginning of its reply."
        }
        "native" => "The upstream was asked for the rest of its reply in the way that its API has for it.",
        "user_turn" => {
            "The model was shown the last settled text of its reply, and asked in words for the rest, without repeating what came before."
        }
        "correction" => {
            "The model was shown what is wrong with the form of its reply, and asked to correct it."
        }
        "restart" | "again" => "The request was sent again, for a new reply from the beginning.",
        _ => "The model was asked for the rest of its reply.",
    }
}

/// Shows the end of a text, and the length of the omitted part before it.
fn text_tail(text: &str, chars: usize) -> Markup {
    let at = text.char_indices().rev().nth(chars.saturating_sub(1)).map_or(0, |(at, _)| at);
    html! { @if at > 0 { span.elided { (display::count(at as u64)) " bytes before this …" } "\n" } (text.get(at..).unwrap_or(text)) }
}

/// Shows the beginning of a text, and the length of the omitted part after it.
fn text_head(text: &str, chars: usize) -> Markup {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    html! { (text.get(..end).unwrap_or(text)) @if end < text.len() { "\n" span.elided { "… " (display::count((text.len() - end) as u64)) " bytes after this" } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: u64, dropped_bytes: u64, style: &str) -> ReplyPiece {
        ReplyPiece {
            ordinal: 1,
            strategy: "prompt".to_owned(),
            received_bytes: 0,
            ending: "clean".to_owned(),
            stop: None,
            judged: "whole".to_owned(),
            why: "it ends".to_owned(),
            seam_at: Some(at),
            seam_style: Some(style.to_owned()),
            dropped_bytes,
            confidence: Some(0.9),
            sha256: "0".repeat(64),
            text: None,
        }
    }

    #[test]
    fn omitted_text_is_struck_through_at_its_position() {
        let overlap = piece(7, 4, "overlap");
        let joint = SeamParts::from_record("one two", " two three", &overlap).unwrap();
        assert_eq!((joint.kept, joint.head, joint.new), ("one two", " two", " three"));
        let token = piece(8, 6, "token");
        let joint = SeamParts::from_record("one two thr", "thrthree", &token).unwrap();
        assert_eq!((joint.kept, joint.dropped, joint.head, joint.new), ("one two ", "thr", "thr", "three"));
        let fence = piece(3, 11, "fence");
        let joint = SeamParts::from_record("{\"a", "```json\n\":1}\n```", &piece(3, 12, "fence")).unwrap();
        assert_eq!((joint.head, joint.new, joint.tail), ("```json\n", "\":1}", "\n```"));
        assert!(
            SeamParts::from_record("{\"a", "short", &fence).is_none(),
            "a record that does not fit its texts shows no joint"
        );
        assert!(
            SeamParts::from_record("ä", "x", &piece(1, 0, "exact")).is_none(),
            "a joint inside a character is not a joint"
        );
        let remark = piece(1, 7, "remark");
        assert_eq!(SeamParts::from_record("[", "1] Done.!", &remark).unwrap().new, "1]");
    }

    #[test]
    fn untrusted_texts_are_escaped_and_long_ones_are_shortened() {
        let hostile = "<script>alert(1)</script>";
        for shown in [text_tail(hostile, 100), text_head(hostile, 100)] {
            assert!(!shown.into_string().contains("<script>"));
        }
        assert!(text_tail(&"ä".repeat(20), 5).into_string().contains("30 bytes before this"));
        assert!(text_head(&"ä".repeat(20), 5).into_string().contains("30 bytes after this"));
    }
}
