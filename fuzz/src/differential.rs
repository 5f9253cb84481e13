//! Detection compared with other parsers (PC-1). A named rule must permit each difference.

use endmark_text::detect::detect_strict;
use endmark_text::{Format, InToken, Verdict};
use jiter::{JsonErrorType, JsonValue};
use serde::de::IgnoredAny;

use crate::input::Numbers;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The result of a parser for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserAnswer {
    /// The text is a value.
    Value,
    /// The text ends too early.
    CutOff,
    /// The text is not JSON, for this reason.
    Refused(Reason),
}

/// The reason why a parser rejects a text. Distinguishes only the reasons that the rules need.
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

/// Permitted differences from other parsers. `fuzz/README.md` describes each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Other parsers reject deep nesting.
    NestingLimit,
    /// Other parsers require a pair for each surrogate, but the grammar does not.
    LoneSurrogate,
    /// Other parsers reject numbers that they cannot represent.
    NumberRange,
    /// `serde_json` reports a cut number as invalid.
    CutNumber,
    /// If a text ends within four bytes of an escape with too few digits, other parsers report the text as
    /// cut off.
    ShortEscape,
    /// Other parsers check the encoding of a string only after its end, or never.
    LateEncoding,
}

/// Checks that the verdicts whole, truncated and malformed agree with the results of other parsers: a value,
/// a text that ends too early, and an invalid text.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    for text in [bytes, &bytes[..numbers.below(bytes.len() + 1)]] {
        compare(text);
    }
}

fn compare(text: &[u8]) {
    let verdict = detect_strict(text, &Format::Json).verdict;
    // Detection accepts a byte order mark before a text. Without any text it is malformed, and a part of it
    // is truncated.
    let without_mark = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(b"") => return assert!(matches!(verdict, Verdict::Malformed { index: 0, .. })),
        Some(rest) => rest,
        None if !text.is_empty() && BYTE_ORDER_MARK.starts_with(text) => {
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

/// Returns the rule that permits the difference between a parser and the verdict, or `None` if no rule does.
fn explain(text: &[u8], verdict: &Verdict, parser: Parser, verdict_of: ParserAnswer) -> Option<Rule> {
    let is_serde = parser != Parser::Jiter;
    match (verdict, verdict_of) {
        (Verdict::Whole | Verdict::Truncated(_), ParserAnswer::Refused(reason)) => match reason {
            Reason::Depth if max_depth(text) >= 128 => Some(Rule::NestingLimit),
            Reason::Surrogate if has_surrogate(text) => Some(Rule::LoneSurrogate),
            Reason::Range if has_long_number(text) => Some(Rule::NumberRange),
            Reason::Number if is_serde && is_cut_in_number(verdict) => Some(Rule::CutNumber),
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

fn is_cut_in_number(verdict: &Verdict) -> bool {
    verdict.truncation().is_some_and(|found| found.in_token == Some(InToken::Number))
}

/// Whether the first bytes are the beginning of a `\u` escape. The bytes end where the parser failed.
fn begins_escape(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\\u")
}

/// Returns an upper bound of the nesting depth, which also counts brackets in strings.
fn max_depth(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count()
}

/// Whether the text contains an escaped surrogate, alone or in a pair.
fn has_surrogate(text: &[u8]) -> bool {
    text.windows(4)
        .any(|bytes| bytes.starts_with(b"\\u") && bytes[2].eq_ignore_ascii_case(&b'd') && bytes[3] >= b'8')
}

/// Whether a number may exceed the range of machine numbers, because its length plus its exponent is above
/// 300.
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
