//! Capping of tool output (CX-5). The input is any output.

use endmark_context::cap::{Capper, Format, Keep, Limits, ReadMethod, RequestedFormat, Unit, cap};

use crate::input::Numbers;

const REQUESTED_FORMATS: [RequestedFormat; 6] = [
    RequestedFormat::Auto,
    RequestedFormat::Text,
    RequestedFormat::Json,
    RequestedFormat::JsonLines,
    RequestedFormat::Csv,
    RequestedFormat::Diff,
];

/// Checks that capped output is within the limit and not longer than the input, keeps its format, and does
/// not change when it is capped again or arrives in other chunks.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    for requested_format in REQUESTED_FORMATS {
        let limits = Limits {
            most: 80 + numbers.below(bytes.len() + 200),
            unit: if numbers.below(2) == 0 { Unit::Chars } else { Unit::Bytes },
            max_items: 1 + numbers.below(40),
            keep: [Keep::Both, Keep::Head, Keep::Tail][numbers.below(3)],
            handle: (numbers.below(2) == 0).then(|| "h0123456789abcdef0123456789abcdef".to_owned()),
            way: [ReadMethod::Command, ReadMethod::Tool][numbers.below(2)],
            keeps_types: numbers.below(2) == 0,
        };
        check_capped(bytes, requested_format, &limits, 1 + numbers.below(bytes.len() + 1));
    }
}

fn check_capped(bytes: &[u8], requested_format: RequestedFormat, limits: &Limits, chunk: usize) {
    let capped = cap(bytes, requested_format, limits);
    let mut in_chunks = Capper::new(requested_format, limits.clone()).expect("the limits leave room");
    let pushed = bytes.chunks(chunk).try_for_each(|chunk| in_chunks.push(chunk));
    assert_eq!(pushed.and_then(|()| in_chunks.finish()), capped, "{requested_format:?} in chunks of {chunk}");
    let (Ok(capped), Ok(text)) = (capped, str::from_utf8(bytes)) else { return };
    if matches!(capped.format, Format::Binary(_)) {
        return;
    }
    let size = match limits.unit {
        Unit::Bytes => capped.text.len(),
        Unit::Chars | Unit::Tokens(_) => capped.text.chars().count(),
    };
    assert!(size <= limits.most && capped.text.len() <= text.len(), "{requested_format:?}: {}", capped.text);
    assert_eq!(capped.is_cut, capped.text != text);
    if capped.format == Format::Json {
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&capped.text);
        let was_one = serde_json::from_str::<serde_json::Value>(text).is_ok();
        assert!(parsed.is_ok() || !was_one, "{}", capped.text);
    }
    let again = cap(capped.text.as_bytes(), requested_format, limits).expect("what was capped can be capped");
    assert_eq!(again.text, capped.text, "{requested_format:?}, capped again");
}
