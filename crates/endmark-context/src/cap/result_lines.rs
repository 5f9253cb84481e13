//! Detects result lines of test runners: lines that report a failed or a passed test.
//!
//! Titles of tests may contain error words, as in `✓ reports an error`, so the status of a line is checked
//! first. Sources: the output of `go test`, Jest, Vitest, Mocha, Cypress, Playwright, AVA, `node --test`,
//! Bun, pytest, unittest, Robot Framework, Meson, Automake, `ExUnit`, `RSpec`, `PHPUnit` and swift-testing.
//! For TAP: testanything.org.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Statuses at the beginning of a line that reports a failed test. `FAIL` and `FAILED` are error words
/// anywhere in a line.
const FAILED_STATUSES: [&str; 6] = ["not ok", "✗", "✘", "✖", "✕", "×"];
/// The status of a test that ran too long. It ends a column.
const TIMEOUT_STATUS: &str = "TIMEOUT";
static TIMEOUT_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TIMEOUT_STATUS));
/// Statuses of a passed test, at the beginning of the line or in its last column.
const PASSED_STATUSES: [&str; 8] = ["ok", "OK", "PASS", "PASSED", "Passed", "✓", "✔", "√"];
/// Prefixes of a line that announces a test without a status: `# Subtest: a title` in TAP, `[ RUN      ]` in
/// Google Test.
const START_PREFIXES: [&str; 2] = ["Subtest", "RUN"];
/// Statuses that are a single character, including Jest's mark for a failed test.
const STATUS_MARKS: &str = "✗✘✖✕×✓✔√●";
/// Separates the names of suite and test in lines about failed tests. Lists use Jest's mark, too.
const NAME_SEPARATOR: &str = " › ";
/// The text after the title of a TAP test that is expected to fail.
const EXPECTED_FAILURE: &str = concat!("# TO", "DO");
/// A number before a title has at most this many digits. Longer numbers are dates or ids.
const MAX_FAILURE_NUMBER_DIGITS: usize = 4;

/// Whether a line without colours reports a failed test.
pub(super) fn is_failed(line: &str) -> bool {
    let text = skip_markers(line);
    let is_jest = || text.strip_prefix("● ").is_some_and(|names| names.contains(NAME_SEPARATOR));
    let ends_column = || columns(line).any(|column| column.rsplit(' ').next() == Some(TIMEOUT_STATUS));
    FAILED_STATUSES.iter().any(|status| begins(text, status)) && !line.contains(EXPECTED_FAILURE)
        || is_jest()
        || is_numbered_failure(line.trim_start())
        || has_pytest_mark(line)
        || TIMEOUT_FINDER.find(line.as_bytes()).is_some() && ends_column()
}

/// Whether a line without colours reports a test that passed, failed as expected, or started. The words in
/// its title are ignored.
pub(super) fn is_passed(line: &str) -> bool {
    // The last column without times and percentages is the status.
    let last = columns(line).filter(|column| !column.starts_with(|sign: char| sign.is_ascii_digit())).last();
    let fills_last =
        |last: &str| PASSED_STATUSES.contains(&last) || last.ends_with(" PASSED") || last.ends_with(" PASS");
    let text = skip_markers(line);
    begins(text, FAILED_STATUSES[0]) && line.contains(EXPECTED_FAILURE)
        || PASSED_STATUSES.iter().chain(&START_PREFIXES).any(|status| begins(text, status))
        || last.is_some_and(fills_last)
}

/// Returns a line without the characters before its status, as in `--- FAIL` and `[  OK ]`.
fn skip_markers(line: &str) -> &str {
    line.trim_start_matches(|sign: char| !sign.is_alphanumeric() && !STATUS_MARKS.contains(sign))
}

fn begins(text: &str, status: &str) -> bool {
    let rest = text.strip_prefix(status);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', ':', '\n', '\r']))
}

/// Returns the columns of a line. Spaces, dots, bars and brackets separate them.
fn columns(line: &str) -> impl Iterator<Item = &str> {
    let columns = line.split(['\t', '|', '│', '[', ']', '(', ')']).flat_map(|part| part.split("  "));
    columns.flat_map(|part| part.split("...")).map(str::trim).filter(|column| !column.is_empty())
}

/// Whether the line begins a failure in a numbered list, such as `2) [chromium] › a.spec.ts`.
fn is_numbered_failure(text: &str) -> bool {
    let title = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    (1..=MAX_FAILURE_NUMBER_DIGITS).contains(&(text.len() - title.len()))
        && title.strip_prefix(") ").is_some_and(|title| !title.trim().is_empty())
}

/// Whether pytest marks the line in its first column as the failed code or as the reason: `>   assert x`, `E
/// assert 4 == 5`.
fn has_pytest_mark(line: &str) -> bool {
    let rest = line.strip_prefix(['E', '>']).and_then(|rest| rest.strip_prefix("  "));
    rest.is_some_and(|rest| !rest.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_result_line_overrides_its_words() {
        for line in [
            "not ok 3 - rises",
            "  ✗ rises",
            "  ✕ rises (15 ms)",
            "  ✘  1 [chromium] › tide.spec.ts:3:1 › rises (5.0s)",
            "  │ ✖  tide.cy.js      00:01        2        1 │",
            "● tide › rises",
            "    1) rises",
            "  1) [chromium] › tide.spec.ts:3:1 › rises ───",
            "  1) test rises (TideTest)",
            "1) TideTest::testRises",
            ">       assert x == 5",
            "E   assert 4 == 5",
            "3/3 tide:slow TIMEOUT         1.02s   killed by signal 15 SIGTERM",
            "     TIMEOUT [  60.000s] tide tests::rises",
        ] {
            assert!(is_failed(line) && !is_passed(line), "{line}");
        }
        for line in [
            "ok 3 - not ok is not here",
            "    ✓ reports an error",
            "ok  \texample.org/error\t0.4s",
            "--- PASS: TestError (0.00s)",
            "[       OK ] Tide.Error (0 ms)",
            "[ RUN      ] Tide.Error",
            "# Subtest: reports an error",
            "PASS src/error.test.ts",
            "test_tide.py::test[error] PASSED                  [ 16%]",
            "test tide::error ... ok",
            "Error                                  | PASS |",
            "1/3 tide:error   OK              0.06s",
            concat!("not ok 3 - rises # TO", "DO later"),
        ] {
            assert!(is_passed(line) && !is_failed(line), "{line}");
        }
        for line in [
            "● a point of a list",
            "not okay",
            "12345) an id",
            "1) ",
            "E1124 12:00:00 tide",
            "> quoted",
            "200 OK",
            "job | ok | last error: disk full",
            concat!("tide.c:3: error near # TO", "DO"),
            "timeout 30",
            "",
        ] {
            assert!(!is_passed(line) && !is_failed(line), "{line}");
        }
    }
}
