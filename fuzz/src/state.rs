//! Saved detectors (PC-2). The input is a text, or a saved state, a separator and the text that continues it.

use endmark_text::detect::Detector;
use serde_json::Value;

use crate::detect::formats;
use crate::input::{Numbers, SEPARATOR};

/// Number of changed states that are tried, and maximum number of values that are changed in each.
const MAX_CHANGES: usize = 3;

/// Checks that a restored state continues like the original. A state that no text produces must be rejected,
/// or give results within bounds without a panic.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    let mut parts = bytes.splitn(2, |byte| *byte == SEPARATOR);
    let (first, rest) = (parts.next().unwrap_or_default(), parts.next());
    if let Some(rest) = rest
        && let Ok(detector) = serde_json::from_slice::<Detector>(first)
    {
        resume_detector(detector, rest, &mut numbers);
    }
    let cut = numbers.below(bytes.len() + 1);
    for format in formats() {
        let mut detector = Detector::new(&format);
        detector.push(&bytes[..cut]);
        let saved = serde_json::to_value(&detector).expect("a state can be saved");
        let mut restored: Detector = serde_json::from_value(saved.clone()).expect("and restored");
        assert_eq!(restored.detection(), detector.detection(), "{format} at {cut}");
        for piece in numbers.split_pieces(&bytes[cut..]) {
            detector.push(piece);
            restored.push(piece);
            assert_eq!(restored.detection(), detector.detection(), "{format} from {cut}");
        }
        for _ in 0..MAX_CHANGES {
            let mut changed = saved.clone();
            for _ in 0..=numbers.below(MAX_CHANGES) {
                change_value(&mut changed, &mut numbers);
            }
            if let Ok(detector) = serde_json::from_value::<Detector>(changed) {
                resume_detector(detector, &bytes[cut..], &mut numbers);
            }
        }
    }
}

/// Passes text to a detector whose state may not come from any text.
fn resume_detector(mut detector: Detector, text: &[u8], numbers: &mut Numbers) {
    for piece in [&b""[..]].into_iter().chain(numbers.split_pieces(text)).chain([&b"\n\"}]1 </a>\n```\n"[..]])
    {
        detector.push(piece);
        let found = detector.detection();
        assert_eq!(found.verdict, detector.verdict());
        let _ = (detector.is_whole(), detector.is_malformed(), detector.format());
        if let Some(truncation) = found.verdict.truncation() {
            let signs: usize = truncation.open.iter().map(|open| open.opener().len()).sum();
            assert!(signs <= text.len() * 2 + (1 << 16), "{signs} signs");
        }
        let _ = serde_json::to_string(&detector).expect("any state can be saved");
    }
}

/// Changes one number, flag or name of a state.
fn change_value(state: &mut Value, numbers: &mut Numbers) {
    const NAMES: &[&str] = &[
        "Start",
        "Marked",
        "Value",
        "FirstElement",
        "FirstKey",
        "Key",
        "Colon",
        "AfterValue",
        "Literal",
        "Malformed",
        "Plain",
        "Escape",
        "AfterHigh",
        "Text",
        "Begin",
        "Closed",
        "None",
        "Paragraph",
        "Less",
        "Slash",
        "Space",
        "Bang",
        "Done",
        "Prose",
        "First",
        "One",
        "Many",
        "e",
        "rue",
    ];
    let place = numbers.below(count_leaves(state));
    let Some(leaf) = nth_leaf(state, &mut place.clone()) else { return };
    *leaf = match leaf {
        Value::Number(number) => {
            let number = number.as_u64().unwrap_or_default();
            let choices = [
                0,
                1,
                2,
                3,
                13,
                64,
                65,
                200,
                255,
                number.saturating_add(1),
                number.saturating_sub(1),
                number.saturating_mul(2),
                1 << 40,
                1 << 59,
                1 << 60,
                u64::MAX,
            ];
            (*numbers.pick(&choices)).into()
        }
        Value::Bool(flag) => (!*flag).into(),
        Value::String(_) => (*numbers.pick(NAMES)).into(),
        Value::Null => numbers.below(5).into(),
        Value::Array(_) | Value::Object(_) => Value::Null,
    };
}

/// Counts the values without parts: scalars, empty arrays and empty objects.
fn count_leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) if !items.is_empty() => items.iter().map(count_leaves).sum(),
        Value::Object(members) if !members.is_empty() => members.values().map(count_leaves).sum(),
        _ => 1,
    }
}

fn nth_leaf<'v>(value: &'v mut Value, place: &mut usize) -> Option<&'v mut Value> {
    if count_leaves(value) == 1
        && !matches!(value, Value::Array(items) if !items.is_empty())
        && !value.is_object()
    {
        if *place == 0 {
            return Some(value);
        }
        *place -= 1;
        return None;
    }
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth_leaf(item, place)),
        Value::Object(members) => members.values_mut().find_map(|member| nth_leaf(member, place)),
        _ => None,
    }
}
