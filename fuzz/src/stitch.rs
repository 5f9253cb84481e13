//! Stitching (PC-4). The input contains two letters for the format and the continuation point, and then the
//! parts.

use endmark_recovery::{AskedFrom, MergeError, Merged, Outcome, merge_chunks, stitch};
use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use crate::input::parts;

/// Maximum length in bytes of the text that is inserted between two parts, such as a lost indentation.
const MAX_GLUE: usize = 64;

/// Checks that the verdict on a merged text is correct, and that the text begins with the settled prefix and
/// contains only received bytes and inserted glue. An error must lose no text.
pub fn check(bytes: &[u8]) {
    let mut parts = parts(bytes).map(|part| String::from_utf8_lossy(part).into_owned());
    let letters = parts.next().unwrap_or_default();
    let format = match letters.as_bytes().first() {
        Some(b'l') => Format::Jsonl,
        Some(b't') => Format::Text,
        Some(b'd') => Format::Markdown,
        Some(b'g') => Format::Tags,
        Some(b'm') => Format::Marker("<END>".to_owned()),
        Some(b'a') => Format::Auto,
        _ => Format::Json,
    };
    let from = match letters.as_bytes().get(1) {
        Some(b'c') => AskedFrom::Cut,
        Some(b't') => AskedFrom::Token,
        _ => AskedFrom::Unknown,
    };
    let chunks: Vec<String> = parts.collect();
    if let [initial, continuation, ..] = chunks.as_slice() {
        check_two_parts(initial, continuation, &format, from);
    }
    check_several_parts(&chunks, &format, from);
}

fn check_two_parts(initial: &str, continuation: &str, format: &Format, from: AskedFrom) {
    let received = [initial, continuation].concat();
    match merge_chunks(initial, continuation, format, from) {
        Ok(found) => {
            check_merged(&found, initial, continuation, format);
            // `Format::Auto` determines its format from the first part alone, so its verdict is not checked
            // here.
            assert!(!format.has_grammar() || found.verdict.is_whole(), "{found:?}");
        }
        Err(MergeError::StillTruncated { merged: found }) => {
            check_merged(&found, initial, continuation, format);
            assert!(found.verdict.truncation().is_some(), "{found:?}");
        }
        Err(MergeError::Ambiguous { best, .. }) => check_merged(&best, initial, continuation, format),
        Err(MergeError::NothingToJoin { .. }) => assert!(!initial.is_empty() && !continuation.is_empty()),
        Err(MergeError::Malformed { attempt, verified_len, reason }) => {
            assert!(attempt == received && !reason.is_empty());
            check_verified(&attempt, verified_len, format);
        }
        Err(MergeError::NoSeam { attempt, verified_len, reason }) => {
            assert!(attempt == received && !reason.is_empty());
            assert!(verified_len <= initial.len());
            check_verified(&attempt, verified_len, format);
        }
    }
}

fn check_merged(found: &Merged, initial: &str, continuation: &str, format: &Format) {
    if *format != Format::Auto {
        assert_eq!(detect(found.text.as_bytes(), format).verdict, found.verdict, "{found:?}");
    }
    // The replacement characters of a cut character belong to neither part.
    let sound = initial.trim_end_matches('\u{fffd}');
    let settled = match detect(sound.as_bytes(), format).verdict {
        Verdict::Truncated(cut) if *format != Format::Marker("<END>".to_owned()) => cut.truncation_index,
        Verdict::Truncated(_) | Verdict::Whole | Verdict::Malformed { .. } => sound.len(),
    };
    // If `Format::Auto` finds JSON in prose or in a fence, it settles text later than the format with which
    // the parts are joined.
    if *format != Format::Auto {
        let floor = sound.floor_char_boundary(settled);
        assert!(
            found.text.starts_with(&sound[..floor]),
            "{found:?} does not begin with {:?}",
            &sound[..floor]
        );
    }
    let seam = &found.seam;
    assert!(found.text.is_char_boundary(seam.at), "{found:?}");
    assert!((0.0..=1.0).contains(&seam.confidence), "{found:?}");
    let received = initial.len() + continuation.len();
    assert!(found.text.len() <= received + MAX_GLUE, "{found:?}");
    assert!(seam.dropped_bytes <= received, "{found:?}");
    let glue = (found.text.len() + seam.dropped_bytes).checked_sub(received);
    assert!(glue.is_some_and(|glue| glue <= MAX_GLUE), "{found:?}");
}

fn check_verified(attempt: &str, verified_len: usize, format: &Format) {
    assert!(verified_len <= attempt.len());
    if *format != Format::Auto {
        let verdict = detect(&attempt.as_bytes()[..verified_len], format).verdict;
        let is_mark = attempt.as_bytes()[..verified_len] == *"\u{feff}".as_bytes();
        assert!(is_mark || !matches!(verdict, Verdict::Malformed { .. }), "{verdict:?}");
    }
}

fn check_several_parts(chunks: &[String], format: &Format, from: AskedFrom) {
    let found = stitch(chunks, format, from);
    assert!(found.seams.len() < chunks.len().max(1), "{found:?}");
    assert_eq!(found.error.is_none(), found.outcome == Outcome::Whole, "{found:?}");
    if found.outcome == Outcome::Whole && format.has_grammar() {
        assert!(detect(found.text.as_bytes(), format).verdict.is_whole(), "{found:?}");
    }
    let received: usize = chunks.iter().map(String::len).sum();
    assert!(found.text.len() <= received + MAX_GLUE * chunks.len(), "{found:?}");
}
