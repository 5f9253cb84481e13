//! Detection against other parsers (PC-1): every disagreement must follow a named rule.

use endmark_text::detect::detect_strict;
use endmark_text::{Format, InToken, Verdict};
use jiter::{JsonErrorType, JsonValue};
use serde::de::IgnoredAny;

use crate::input::Numbers;

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a parser reports about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserAnswer {
    /// The text is a value.
    Value,
    /// The text ends too early.
    CutOff,
    /// The text is not JSON, for this reason.
    Refused(Reason),
}

/// Why a parser rejects a text, as far as the rules distinguish it.
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
    /// `serde_json`, skipping a value.
    SerdeIgnored,
    /// `serde_json`, building a value.
    SerdeValue,
    /// `jiter`, building a value.
    Jiter,
}

/// Permitted differences from other parsers, each described in `fuzz/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Other parsers reject deep nesting.
    NestingLimit,
    /// Other parsers require surrogates in pairs; the grammar does not.
    LoneSurrogate,
    /// Other parsers reject numbers that they cannot represent.
    NumberRange,
    /// `serde_json` reports a cut number as invalid.
    CutNumber,
    /// Other parsers report an escape with too few digits as cut off if the text ends within four bytes of it.
    ShortEscape,
    /// Other parsers check the encoding of a string after its end, or never.
    LateEncoding,
}

/// Checks that the verdicts whole, truncated and malformed match the value, cut-off and rejection of other parsers.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    for text in [bytes, &bytes[..numbers.below(bytes.len() + 1)]] {
        compare(text);
    }
}

fn compare(text: &[u8]) {
    let verdict = detect_strict(text, &Format::Json).verdict;
    // Detection allows a byte order mark. Alone it is malformed, and a part of it is truncated.
    let without_mark = match text.strip_prefix(MARK) {
        Some(b"") => return assert!(matches!(verdict, Verdict::Malformed { index: 0, .. })),
        Some(rest) => rest,
        None if !text.is_empty() && MARK.starts_with(text) => {
            return assert!(matches!(verdict, Verdict::Truncated(_)));
        }
        None => text,
    };
    for parser in [Parser::SerdeIgnored, Parser::SerdeValue, Parser::Jiter] {
        let verdict_of = ask(parser, without_mark);
        let agrees = match verdict {
            Verdict::Whole => verdict_of == ParserAnswer::Value,
            Verdict::Truncated(_) => verdict_of == ParserAnswer::CutOff,
            Verdict::Malformed { .. } => matches!(verdict_of, ParserAnswer::Refused(_)),
        };
        assert!(
            agrees || explain(text, &verdict, parser, verdict_of).is_some(),
            "{parser:?} says {verdict_of:?}: {verdict:?}"
        );
    }
}

fn ask(parser: Parser, text: &[u8]) -> ParserAnswer {
    match parser {
        Parser::SerdeIgnored => serde_answer(serde_json::from_slice::<IgnoredAny>(text).err()),
        Parser::SerdeValue => serde_answer(serde_json::from_slice::<serde_json::Value>(text).err()),
        Parser::Jiter => jiter_answer(JsonValue::parse(text, false).err().map(|error| error.error_type)),
    }
}

fn serde_answer(error: Option<serde_json::Error>) -> ParserAnswer {
    let Some(error) = error else { return ParserAnswer::Value };
    if error.is_eof() {
        return ParserAnswer::CutOff;
    }
    let message = error.to_string();
    let begins_with = |words: &str| message.starts_with(words);
    ParserAnswer::Refused(if begins_with("recursion limit exceeded") {
        Reason::Depth
    } else if begins_with("lone leading surrogate") || begins_with("unexpected end of hex escape") {
        Reason::Surrogate
    } else if begins_with("number out of range") {
        Reason::Range
    } else if begins_with("invalid number") {
        Reason::Number
    } else {
        Reason::Other
    })
}

fn jiter_answer(error: Option<JsonErrorType>) -> ParserAnswer {
    match error {
        None => ParserAnswer::Value,
        Some(
            JsonErrorType::EofWhileParsingList
            | JsonErrorType::EofWhileParsingObject
            | JsonErrorType::EofWhileParsingString
            | JsonErrorType::EofWhileParsingValue,
        ) => ParserAnswer::CutOff,
        Some(JsonErrorType::RecursionLimitExceeded) => ParserAnswer::Refused(Reason::Depth),
        Some(JsonErrorType::LoneLeadingSurrogateInHexEscape | JsonErrorType::UnexpectedEndOfHexEscape) => {
            ParserAnswer::Refused(Reason::Surrogate)
        }
        Some(JsonErrorType::NumberOutOfRange) => ParserAnswer::Refused(Reason::Range),
        Some(JsonErrorType::InvalidNumber) => ParserAnswer::Refused(Reason::Number),
        Some(_) => ParserAnswer::Refused(Reason::Other),
    }
}

/// Returns the rule that permits a parser's disagreement, or `None` if no rule does.
fn explain(text: &[u8], verdict: &Verdict, parser: Parser, verdict_of: ParserAnswer) -> Option<Rule> {
    let is_serde = parser != Parser::Jiter;
    match (verdict, verdict_of) {
        (Verdict::Whole | Verdict::Truncated(_), ParserAnswer::Refused(reason)) => match reason {
            Reason::Depth if deepest(text) >= 128 => Some(Rule::NestingLimit),
            Reason::Surrogate if has_surrogate(text) => Some(Rule::LoneSurrogate),
            Reason::Range if has_long_number(text) => Some(Rule::NumberRange),
            Reason::Number if is_serde && in_number(verdict) => Some(Rule::CutNumber),
            _ => None,
        },
        (Verdict::Malformed { index, reason }, ParserAnswer::CutOff) => match reason.as_str() {
            "not a hexadecimal digit" if begins_escape(&text[text.len().saturating_sub(5)..*index]) => {
                Some(Rule::ShortEscape)
            }
            "invalid UTF-8" => Some(Rule::LateEncoding),
            _ => None,
        },
        (Verdict::Malformed { reason, .. }, ParserAnswer::Value) => {
            (parser == Parser::SerdeIgnored && reason == "invalid UTF-8").then_some(Rule::LateEncoding)
        }
        _ => None,
    }
}

fn in_number(verdict: &Verdict) -> bool {
    verdict.truncation().is_some_and(|found| found.in_token == Some(InToken::Number))
}

/// Whether a `\u` escape begins in these bytes, which end where it fails.
fn begins_escape(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\\u")
}

/// An upper bound of the nesting depth: brackets in strings count too.
fn deepest(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count()
}

/// Whether the text contains an escaped surrogate, possibly half of a pair.
fn has_surrogate(text: &[u8]) -> bool {
    text.windows(4)
        .any(|bytes| bytes.starts_with(b"\\u") && bytes[2].eq_ignore_ascii_case(&b'd') && bytes[3] >= b'8')
}

/// Whether a number may exceed the range of machine numbers: its length plus its exponent is above 300.
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
