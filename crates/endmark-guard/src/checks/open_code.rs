//! Checks whether a code or data file stops inside an open bracket, string or comment.

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use crate::artifact::{Artifact, ArtifactKind};
use crate::finding::{Check, UnplacedFinding};

/// Detects incomplete JSON, and code that ends inside an open bracket, string or comment.
pub(crate) fn check(artifact: &Artifact<'_>) -> Option<UnplacedFinding> {
    match artifact.kind() {
        ArtifactKind::Markdown => None,
        ArtifactKind::Json => check_json(artifact),
        ArtifactKind::Code => check_code(artifact),
    }
}

fn check_json(artifact: &Artifact<'_>) -> Option<UnplacedFinding> {
    let Verdict::Truncated(truncation) = detect(artifact.body().as_bytes(), &Format::Json).verdict else {
        return None;
    };
    let start = artifact.body_start() + truncation.truncation_index.min(artifact.body().len());
    let range = last_line(artifact.text(), start.min(artifact.end().end));
    Some(UnplacedFinding::new(
        Check::OpenCode,
        range,
        "this JSON document is not at its end",
        "Write the rest of the document, and close what is open.",
    ))
}

/// The construct that is open at the end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenConstruct {
    Bracket(u8),
    String(u8),
    LongString(u8),
    Comment,
}

fn check_code(artifact: &Artifact<'_>) -> Option<UnplacedFinding> {
    let body = artifact.body();
    let open = open_construct(body.as_bytes())?;
    let end = artifact.end().end;
    let line = last_line(artifact.text(), end);
    let last = &artifact.text()[line.clone()];
    // A complete file ends without indentation. This also prevents findings after a misread bracket earlier
    // in the file.
    let is_indented = last.starts_with([' ', '\t']);
    let begins_block = last.trim_end().ends_with(['{', '(', '[', ',', '=', '+', '\\']);
    if !is_indented && !begins_block && !matches!(open, OpenConstruct::Comment | OpenConstruct::LongString(_))
    {
        return None;
    }
    let what = match open {
        OpenConstruct::Bracket(sign) => format!("the code stops with `{}` still open", char::from(sign)),
        OpenConstruct::String(_) | OpenConstruct::LongString(_) => {
            "the code stops inside of a string".to_owned()
        }
        OpenConstruct::Comment => "the code stops inside of a comment".to_owned(),
    };
    Some(UnplacedFinding::new(
        Check::OpenCode,
        line,
        what,
        "Write the rest of the code, and close what is open.",
    ))
}

/// Returns the last line before an offset, up to the offset.
fn last_line(text: &str, end: usize) -> std::ops::Range<usize> {
    let start = memchr::memrchr(b'\n', &text.as_bytes()[..end]).map_or(0, |newline| newline + 1);
    start..end
}

/// Returns the bracket, string or comment that is open at the end of code in any language. Returns `None` if
/// brackets do not match.
fn open_construct(code: &[u8]) -> Option<OpenConstruct> {
    let has = |sign: &str| memchr::memmem::find(code, sign.as_bytes()).is_some();
    let slashes = has("//") || has("/*") || has(";\n") || has("{\n");
    let mut open: Vec<u8> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = code.get(at) {
        let rest = &code[at..];
        match byte {
            b'"' | b'\'' if rest.starts_with(&[byte; 3]) => {
                match memchr::memmem::find(&rest[3..], &[byte; 3]) {
                    Some(end) => at += end + 6,
                    None => return Some(OpenConstruct::LongString(byte)),
                }
            }
            b'/' if rest.starts_with(b"/*") => match memchr::memmem::find(&rest[2..], b"*/") {
                Some(end) => at += end + 4,
                None => return Some(OpenConstruct::Comment),
            },
            b'/' if slashes && rest.starts_with(b"//") => at += line_length(rest),
            b'#' if !slashes => at += line_length(rest),
            b'"' | b'\'' => match string_length(rest, byte) {
                Some(length) => at += length,
                None if byte == b'"' && !rest.contains(&b'\n') => return Some(OpenConstruct::String(byte)),
                // This is an apostrophe or a lifetime, not a string.
                None => at += 1,
            },
            b'(' | b'[' | b'{' => {
                open.push(byte);
                at += 1;
            }
            b')' | b']' | b'}' => {
                let opener = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                // Brackets that do not match were misread, so the result would be wrong.
                if open.pop() != Some(opener) {
                    return None;
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    open.last().map(|&sign| OpenConstruct::Bracket(sign))
}

fn line_length(rest: &[u8]) -> usize {
    memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1)
}

/// Returns the length of a string that ends on the same line.
fn string_length(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match rest.get(at)? {
            b'\\' => at += 2,
            b'\n' => return None,
            byte if *byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}
