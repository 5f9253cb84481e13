//! Detects lines that report an error, from a short list of words and line formats.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use memchr::memmem::Finder;

use super::result_lines::{is_failed, is_passed};

/// Log levels and words with which logs, compilers, test runners and package managers report a failure. Only
/// whole words count, in upper or lower case.
const ERROR_WORDS: [&str; 28] = [
    // Levels of syslog, log4j, Python, Rust and Go, and the level that npm writes (`ERR!`).
    "error",
    "errors",
    "err",
    "fatal",
    "critical",
    "crit",
    "severe",
    "emerg",
    "panic",
    // Words that language runtimes and test runners use.
    "exception",
    "traceback",
    "panicked",
    "fail",
    "failed",
    "failing",
    "failure",
    "failures",
    "unhandled",
    "uncaught",
    "aborted",
    // Phrases of operating systems and linkers: GNU ld, gold, lld and Apple's linker.
    "undefined reference",
    "undefined symbol",
    "undefined symbols",
    "segmentation fault",
    "core dumped",
    "out of memory",
    "permission denied",
    "connection refused",
];

/// Prefixes of lines in a stack trace, after white space.
///
/// Java, JavaScript and C# write `at f (file.js:1:2)`, and Python writes `File "f.py", line 3`. The other
/// prefixes separate frames in Go, Java and Rust. Sources: the output of `panic` in Go and Rust,
/// `printStackTrace`, `traceback.print_exc` and V8's `Error.stack`.
const FRAME_PREFIXES: [&str; 7] =
    ["at ", "File \"", "goroutine ", "created by ", "Caused by:", "stack backtrace:", "... "];

/// Suffixes of exception names, such as `TypeError` and `NullPointerException`.
const EXCEPTION_SUFFIXES: [&str; 2] = ["Error", "Exception"];

/// Words before an error word that negate it: `0 errors`, `no error`.
const NEGATIONS_BEFORE: [&str; 3] = ["0", "no", "without"];
/// Values after an error word that negate it: `errors: 0`, `"error": null`, `failed=false`.
const NEGATIONS_AFTER: [&str; 8] = ["0", "null", "none", "false", "nil", "\"\"", "[]", "{}"];

/// Searches lower-cased text for all words at once. The searcher itself cannot ignore case.
///
/// If several words match at one position, the longest one counts. The shorter one cannot be a whole word
/// there, because a letter follows it.
static ERROR_WORD_SEARCH: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(ERROR_WORDS).ok());
/// Beginnings of all error words, and the text before the status of a server error in an access log.
///
/// Text that contains none of them reports no error. Searching for these few patterns first is faster.
const ERROR_HINTS: [&str; 19] = [
    "err",
    "fatal",
    "crit",
    "severe",
    "emerg",
    "panic",
    "exception",
    "traceback",
    "fail",
    "unhandled",
    "uncaught",
    "aborted",
    "undefined ",
    "segmentation ",
    "core dumped",
    "out of mem",
    "permission ",
    "connection ",
    SERVER_ERROR_PREFIX,
];
/// Text before the status of a server error in an access log.
const SERVER_ERROR_PREFIX: &str = "\" 5";

static HINT_SEARCH: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(ERROR_HINTS).ok());
static SERVER_ERROR_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(SERVER_ERROR_PREFIX));

/// Whether a line without colours reports an error. For a result line of a test runner, only the status
/// counts; for any other line, the words count.
pub(super) fn is_error_line(line: &str) -> bool {
    is_failed(line) || reports_error(line) && !is_passed(line)
}

/// Removes colours and other control sequences (ECMA-48) from a line. Otherwise the last letter of a sequence
/// would become part of the next word.
pub(super) fn without_colours(line: &str) -> Cow<'_, str> {
    const ESCAPE_START: &str = "\x1b[";
    // Fast path: most lines have no control sequences.
    if memchr::memchr(ESCAPE_START.as_bytes()[0], line.as_bytes()).is_none() {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split(ESCAPE_START);
    let first = parts.next().unwrap_or_default();
    let is_parameter = |sign: char| matches!(sign, ' '..='?');
    let rest = |part: &str| part.trim_start_matches(is_parameter).chars().skip(1).collect::<String>();
    Cow::Owned(first.to_owned() + &parts.map(rest).collect::<String>())
}

/// Whether a text, such as a row of a table, contains words that report an error.
pub(super) fn reports_error(text: &str) -> bool {
    reports_error_from(text, 0)
}

/// Like [`reports_error`], for a text whose first hint is at position `hint`.
pub(super) fn reports_error_from(text: &str, hint: usize) -> bool {
    // A test checks that the constant list compiles.
    let Some(search) = ERROR_WORD_SEARCH.as_ref() else { return false };
    let rest = &text[hint..];
    if has_server_error_status(rest) {
        return true;
    }
    let lower = rest.to_ascii_lowercase();
    let mut at = 0;
    while let Some(found) = search.find(Input::new(&lower).range(at..)) {
        if is_word(text, hint + found.start(), hint + found.end()) {
            return true;
        }
        // The match is not a whole word. Another word may begin inside it.
        at = found.start() + 1;
    }
    false
}

/// Finds the rows of a text that may report errors. Searching the whole text once is faster than searching
/// each row.
#[derive(Debug)]
pub(super) struct ErrorHints {
    lower: String,
    /// Position of the searched text within the whole text.
    begin: usize,
    /// Position of the next hint. `usize::MAX` after the last one.
    next: usize,
}

impl ErrorHints {
    /// Starts a search of `text`, which begins at position `begin` of the whole text.
    pub(super) fn search(text: &str, begin: usize) -> Self {
        Self { lower: text.to_ascii_lowercase(), begin, next: 0 }
    }

    /// Returns the position of the first hint in a row. Rows must be passed in the order of the text.
    pub(super) fn first_in(&mut self, row: Range<usize>) -> Option<usize> {
        if self.next < row.start {
            let rest = row.start - self.begin..self.lower.len();
            let found =
                HINT_SEARCH.as_ref().and_then(|search| search.find(Input::new(&self.lower).range(rest)));
            self.next = found.map_or(usize::MAX, |found| self.begin + found.start());
        }
        (self.next < row.end).then(|| self.next - row.start)
    }
}

/// Whether a key names an error, such as `error`, `errors` or `lastError`. The caller checks that its value
/// is not empty.
pub(super) fn is_error_key(key: &str) -> bool {
    // Fast path: every key that names an error ends with one of these letters.
    let [.., before, last] = key.as_bytes() else { return false };
    let last = [before | 0x20, last | 0x20];
    if ![*b"or", *b"rs", *b"on", *b"re", *b"ck"].contains(&last) {
        return false;
    }
    let is_ending = |word: &&str| {
        key.get(key.len().wrapping_sub(word.len())..).is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    ["error", "errors", "exception", "failure", "traceback"].iter().any(is_ending)
}

fn is_word(text: &str, start: usize, end: usize) -> bool {
    let (before, behind) = (&text[..start], &text[end..]);
    // `FAIL-FAST` is a name, so a hyphen continues a word.
    let continues_word = |next: char| next.is_alphanumeric() || next == '_';
    if behind.strip_prefix('-').unwrap_or(behind).starts_with(continues_word) {
        return false;
    }
    let is_ending = before.ends_with(|last: char| last.is_ascii_lowercase())
        && EXCEPTION_SUFFIXES.iter().any(|ending| &text[start..end] == *ending);
    let begins = !before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    (begins || is_ending) && !is_negated(before, behind)
}

/// Whether the text before or after an error word negates it.
fn is_negated(before: &str, behind: &str) -> bool {
    let last = before
        .trim_end_matches(' ')
        .rsplit(|letter: char| !letter.is_alphanumeric())
        .next()
        .unwrap_or_default();
    if before.ends_with(' ') && NEGATIONS_BEFORE.iter().any(|none| last.eq_ignore_ascii_case(none)) {
        return true;
    }
    let value = behind.strip_prefix('"').unwrap_or(behind).trim_start_matches([' ', ':', '=']);
    value.len() < behind.len()
        && NEGATIONS_AFTER.iter().any(|none| {
            let rest = value
                .get(..none.len())
                .filter(|begin| begin.eq_ignore_ascii_case(none))
                .map(|_| &value[none.len()..]);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '.'))
        })
}

/// Whether a line after an error belongs to its stack trace: it has the form of a frame, or is indented.
pub(super) fn is_frame(line: &str) -> bool {
    let text = line.trim();
    if is_passed(line) {
        return false;
    }
    // Go writes a call as `main.run(0x1f, {0x4d, 0x2})`. The next line contains its position after a tab.
    let is_go_call = || {
        let name = text.strip_suffix(')').and_then(|call| call.split_once('(')).map(|(name, _)| name);
        name.is_some_and(|name| name.contains('.') && !name.contains(char::is_whitespace))
    };
    line.starts_with([' ', '\t']) && !text.is_empty()
        || FRAME_PREFIXES.iter().any(|begin| text.starts_with(begin))
        || is_go_call()
}

/// Whether a line of an access log contains the status of a server error, as in `"GET / HTTP/1.1" 503 0`.
fn has_server_error_status(text: &str) -> bool {
    SERVER_ERROR_FINDER.find(text.as_bytes()).is_some_and(|at| {
        let rest = &text.as_bytes()[at + SERVER_ERROR_FINDER.needle().len()..];
        rest.len() >= 3 && rest[..2].iter().all(u8::is_ascii_digit) && rest[2] == b' '
    })
}

/// Returns a hash of the line's shape. Lines that differ only in numbers, times and ids have the same shape.
pub(super) fn line_shape(text: &str) -> u64 {
    const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    let mut sum = FNV_BASIS;
    for word in text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit()))
    {
        sum = update_hash(sum, word.as_bytes());
    }
    sum
}

/// At most this many shapes are distinguished.
const DISTINGUISHED_SHAPES: usize = 1 << 16;

/// Counts the lines of each shape, so that many similar lines do not displace different ones.
#[derive(Debug, Default)]
pub(super) struct ShapeCounts(HashMap<u64, u32>);

impl ShapeCounts {
    /// Counts another line of this shape. Returns how many there were before.
    pub(super) fn count_occurrence(&mut self, shape: u64) -> u32 {
        if let Some(count) = self.0.get_mut(&shape) {
            *count = count.saturating_add(1);
            return *count;
        }
        if self.0.len() < DISTINGUISHED_SHAPES {
            self.0.insert(shape, 0);
        }
        0
    }
}

/// Adds bytes to a hash, eight at a time.
pub(super) fn update_hash(sum: u64, bytes: &[u8]) -> u64 {
    let mixed = |sum: u64, word: u64| {
        let product = (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ product >> 32
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(sum, |sum, word| mixed(sum, u64::from_le_bytes(*word)));
    let last = rest.iter().rev().fold(1, |last, byte| last << 8 | u64::from(*byte));
    mixed(sum, last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_error_word_is_found_among_other_words(parts in prop::collection::vec(prop::sample::select(vec![
            "error", "Error", "ERR", "s", "or", " ", ": ", "_", "é", "seve", "severe", "crit", "ical", "no ", "0",
            "null", "out of memory", "Permission", " denied", "uncaught", "Exception", "panic", "ked",
        ]), 0..7)) {
            let text = parts.concat();
            let lower = text.to_ascii_lowercase();
            let is_any = ERROR_WORDS.iter().any(|word| {
                lower.match_indices(word).any(|(at, _)| is_word(&text, at, at + word.len()))
            });
            prop_assert_eq!(reports_error(&text), is_any, "{}", text);
            let hint = ErrorHints::search(&format!("[{text}]"), 0).first_in(1..text.len() + 1);
            prop_assert_eq!(hint.is_some_and(|hint| reports_error_from(&text, hint)), is_any, "{}", text);
        }
    }

    #[test]
    fn lines_that_only_mention_errors_are_not_errors() {
        for (line, expected) in [
            ("2026-11-24 12:00:00 ERROR db: gone", true),
            ("npm ERR! code E404", true),
            ("error[E0308]: mismatched types", true),
            ("thread 'main' panicked at src/main.rs:2", true),
            ("ValueError: bad literal", true),
            ("java.lang.NullPointerException", true),
            ("Segmentation fault (core dumped)", true),
            ("FAILED tests/test_a.py::test_b", true),
            ("127.0.0.1 - - \"GET / HTTP/1.1\" 503 0", true),
            ("level=err msg=x", true),
            ("--- FAIL: TestTide (0.00s)", true),
            ("    --- FAIL: TestTide/high (0.00s)", true),
            ("FAIL\texample.org/tide\t0.4s", true),
            (" FAIL  src/tide.test.ts > rises", true),
            ("FAIL: test_tide (tide.TestTide)", true),
            ("not ok 3 - rises", true),
            ("Tide rises                      | FAIL |", true),
            ("2/3 tide:rises FAIL            0.02s   exit status 1", true),
            ("  2 failing", true),
            ("# fail 1", true),
            ("# fail 0", false),
            ("    ✓ reports an error", false),
            ("FAIL-FAST is on", false),
            ("curl --fail-with-body", false),
            ("\u{1b}[31mERROR\u{1b}[0m gone", true),
            ("\u{1b}[31m   \u{1b}[31m×\u{1b}[39m rises", true),
            ("\u{1b}[3é", false),
            ("tide.c:(.text+0xf): undefined reference to `rise'", true),
            ("\"errors\": [], \"a\": 1", false),
            ("{\"error\": \"no route\"}", true),
            ("12 errors found", true),
            ("0 errors, 0 warnings", false),
            ("no error", false),
            ("errors: 0", false),
            ("\"error\": null, \"a\": 1", false),
            ("\"error\":\"\"", false),
            ("failed=0", false),
            ("failed=0.5", true),
            ("error_count is a metric", false),
            ("terror, mirror and errand", false),
            ("127.0.0.1 - - \"GET / HTTP/1.1\" 200 500", false),
            ("", false),
        ] {
            assert_eq!(is_error_line(&without_colours(line)), expected, "{line}");
        }
        assert!(ERROR_WORD_SEARCH.is_some() && HINT_SEARCH.is_some());
        let begins_with_hint = |word: &&str| ERROR_HINTS.iter().any(|hint| word.starts_with(hint));
        assert!(ERROR_WORDS.iter().all(begins_with_hint));
        assert!(
            is_error_key("lastError")
                && is_error_key("errors")
                && is_error_key("EXCEPTION")
                && is_error_key("failure")
                && is_error_key("traceback")
                && !is_error_key("é")
                && !is_error_key("state")
        );
    }

    #[test]
    fn frames_are_distinguished_from_other_lines() {
        for (line, expected) in [
            ("goroutine 1 [running]:", true),
            ("main.(*tide).rise(0xc000012, 0x1)", true),
            ("\t/src/tide.go:41 +0x1d", true),
            ("created by main.main in goroutine 1", true),
            ("\tat org.example.Tide.rise(Tide.java:7)", true),
            ("Caused by: java.io.IOException: gone", true),
            ("  File \"/src/tide.py\", line 3, in rise", true),
            ("    raise Low(tide)", true),
            ("stack backtrace:", true),
            ("   4: tide::rise", true),
            ("2026-11-24 12:00:00 INFO job 7 done", false),
            ("job done (7)", false),
            ("   ", false),
            ("", false),
        ] {
            assert_eq!(is_frame(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_that_differ_only_in_numbers_have_the_same_shape() {
        assert_eq!(line_shape("12:00:01 job 7 failed id=a1f"), line_shape("12:00:02 job 19 failed id=77c"));
        assert_ne!(line_shape("job 7 failed"), line_shape("task 7 failed"));
    }
}
