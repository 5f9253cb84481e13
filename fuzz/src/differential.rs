//! Detection against other parsers (PC-1): every disagreement is one that has a name.

use endmark_text::detect::detect_strict;
use endmark_text::{Format, InToken, Verdict};
use jiter::{JsonErrorType, JsonValue};
use serde::de::IgnoredAny;

use crate::input::Numbers;

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a parser makes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// It is a value.
    Value,
    /// It ended too early.
    CutOff,
    /// It is no JSON, for this reason.
    Refused(Reason),
}

/// Why a parser refuses a text, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Depth,
    Surrogate,
    Range,
    Number,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parser {
    /// `serde_json` reading over a value.
    SerdeIgnored,
    /// `serde_json` reading a value.
    SerdeValue,
    /// `jiter` reading a value.
    Jiter,
}

/// Where others differ, and may: each is described in `docs/detect.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// They give up on deep nesting.
    NestingLimit,
    /// They want surrogates in pairs; the grammar does not.
    LoneSurrogate,
    /// They refuse numbers that they cannot hold.
    NumberRange,
    /// `serde_json` calls a number that is cut invalid.
    CutNumber,
    /// They call an escape with too few digits cut off where the text ends within four bytes of it.
    ShortEscape,
    /// They look at the encoding of a string after its end, or never.
    LateEncoding,
}

/// Whole is what others take for a value, truncated what they call cut off, and malformed what they refuse.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    for text in [bytes, &bytes[..numbers.below(bytes.len() + 1)]] {
        compare(text);
    }
}

fn compare(text: &[u8]) {
    let verdict = detect_strict(text, &Format::Json).verdict;
    // A byte order mark is allowed here, and nowhere else; alone it is nothing, and half of it is cut.
    let without_mark = match text.strip_prefix(MARK) {
        Some(b"") => return assert!(matches!(verdict, Verdict::Malformed { index: 0, .. })),
        Some(rest) => rest,
        None if !text.is_empty() && MARK.starts_with(text) => {
            return assert!(matches!(verdict, Verdict::Truncated(_)));
        }
        None => text,
    };
    for parser in [Parser::SerdeIgnored, Parser::SerdeValue, Parser::Jiter] {
        let said = ask(parser, without_mark);
        let agrees = match verdict {
            Verdict::Whole => said == Said::Value,
            Verdict::Truncated(_) => said == Said::CutOff,
            Verdict::Malformed { .. } => matches!(said, Said::Refused(_)),
        };
        assert!(
            agrees || explain(text, &verdict, parser, said).is_some(),
            "{parser:?} says {said:?}: {verdict:?}"
        );
    }
}

fn ask(parser: Parser, text: &[u8]) -> Said {
    match parser {
        Parser::SerdeIgnored => serde_said(serde_json::from_slice::<IgnoredAny>(text).err()),
        Parser::SerdeValue => serde_said(serde_json::from_slice::<serde_json::Value>(text).err()),
        Parser::Jiter => jiter_said(JsonValue::parse(text, false).err().map(|error| error.error_type)),
    }
}

fn serde_said(error: Option<serde_json::Error>) -> Said {
    let Some(error) = error else { return Said::Value };
    if error.is_eof() {
        return Said::CutOff;
    }
    let message = error.to_string();
    let says = |words: &str| message.starts_with(words);
    Said::Refused(if says("recursion limit exceeded") {
        Reason::Depth
    } else if says("lone leading surrogate") || says("unexpected end of hex escape") {
        Reason::Surrogate
    } else if says("number out of range") {
        Reason::Range
    } else if says("invalid number") {
        Reason::Number
    } else {
        Reason::Other
    })
}

fn jiter_said(error: Option<JsonErrorType>) -> Said {
    match error {
        None => Said::Value,
        Some(
            JsonErrorType::EofWhileParsingList
            | JsonErrorType::EofWhileParsingObject
            | JsonErrorType::EofWhileParsingString
            | JsonErrorType::EofWhileParsingValue,
        ) => Said::CutOff,
        Some(JsonErrorType::RecursionLimitExceeded) => Said::Refused(Reason::Depth),
        Some(JsonErrorType::LoneLeadingSurrogateInHexEscape | JsonErrorType::UnexpectedEndOfHexEscape) => {
            Said::Refused(Reason::Surrogate)
        }
        Some(JsonErrorType::NumberOutOfRange) => Said::Refused(Reason::Range),
        Some(JsonErrorType::InvalidNumber) => Said::Refused(Reason::Number),
        Some(_) => Said::Refused(Reason::Other),
    }
}

/// The rule by which a parser differs; none if it should not.
fn explain(text: &[u8], verdict: &Verdict, parser: Parser, said: Said) -> Option<Rule> {
    let is_serde = parser != Parser::Jiter;
    match (verdict, said) {
        (Verdict::Whole | Verdict::Truncated(_), Said::Refused(reason)) => match reason {
            Reason::Depth if deepest(text) >= 128 => Some(Rule::NestingLimit),
            Reason::Surrogate if has_surrogate(text) => Some(Rule::LoneSurrogate),
            Reason::Range if has_long_number(text) => Some(Rule::NumberRange),
            Reason::Number if is_serde && in_number(verdict) => Some(Rule::CutNumber),
            _ => None,
        },
        (Verdict::Malformed { index, reason }, Said::CutOff) => match reason.as_str() {
            "not a hexadecimal digit" if begins_escape(&text[text.len().saturating_sub(5)..*index]) => {
                Some(Rule::ShortEscape)
            }
            "invalid UTF-8" => Some(Rule::LateEncoding),
            _ => None,
        },
        (Verdict::Malformed { reason, .. }, Said::Value) => {
            (parser == Parser::SerdeIgnored && reason == "invalid UTF-8").then_some(Rule::LateEncoding)
        }
        _ => None,
    }
}

fn in_number(verdict: &Verdict) -> bool {
    verdict.truncation().is_some_and(|found| found.in_token == Some(InToken::Number))
}

/// Whether an escape by number begins in these bytes, which end where it fails.
fn begins_escape(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\\u")
}

/// At least as deep as the text is nested: brackets in strings count too.
fn deepest(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count()
}

/// Whether half a surrogate pair is written as an escape.
fn has_surrogate(text: &[u8]) -> bool {
    text.windows(4)
        .any(|bytes| bytes.starts_with(b"\\u") && bytes[2].eq_ignore_ascii_case(&b'd') && bytes[3] >= b'8')
}

/// Whether there is a number that not every machine number can hold: one of some three hundred digits, had it
/// no exponent.
fn has_long_number(text: &[u8]) -> bool {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    text.split(|byte| !is_number(byte)).any(|number| {
        let exponent = number.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let digits =
            exponent.map_or(&b""[..], |at| &number[at + 1..]).iter().filter(|byte| byte.is_ascii_digit());
        let exponent = digits
            .fold(0_usize, |value, digit| value.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
        number.len().saturating_add(exponent) > 300
    })
}
