//! Result lines of test runners: whether a line reports a failed or a passed test.
//!
//! The titles of tests contain error words (`✓ reports an error`), so the status of a line is checked before its words.
//! Sources: the output of `go test`, Jest, Vitest, Mocha, Cypress, Playwright, AVA, `node --test`, Bun, pytest,
//! unittest, Robot Framework, Meson, Automake, `ExUnit`, `RSpec`, `PHPUnit` and swift-testing; testanything.org for
//! TAP.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Statuses at the beginning of a failed test's line. `FAIL` and `FAILED` are error words anywhere in a line.
const FAILED: [&str; 6] = ["not ok", "✗", "✘", "✖", "✕", "×"];
/// The status of a test that was stopped, at the end of a column.
const TIMEOUT: &str = "TIMEOUT";
static TIMEOUT_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TIMEOUT));
/// Statuses at the beginning of a passed test's line, or in its last column.
const PASSED: [&str; 8] = ["ok", "OK", "PASS", "PASSED", "Passed", "✓", "✔", "√"];
/// Prefixes of a line that names a test before its status is known: `# Subtest: a title` of TAP, `[ RUN      ]` of
/// Google Test.
const STARTED: [&str; 2] = ["Subtest", "RUN"];
/// Statuses of one character, and Jest's mark of a failed test.
const STATUS_MARKS: &str = "✗✘✖✕×✓✔√●";
/// Separates the names of suite and test, only in lines of failed tests. Lists use Jest's mark, too.
const NAME_SEPARATOR: &str = " › ";
/// The text after a TAP test that is expected to fail.
const EXPECTED_FAILURE: &str = concat!("# TO", "DO");
/// Longer numbers before a title are dates or ids, not numbers of failures.
const LONGEST_NUMBER: usize = 4;

/// Whether a line without colours reports that a test failed.
pub(super) fn is_failed(line: &str) -> bool {
    let text = skip_markers(line);
    let is_jest = || text.strip_prefix("● ").is_some_and(|names| names.contains(NAME_SEPARATOR));
    let ends_column = || columns(line).any(|column| column.rsplit(' ').next() == Some(TIMEOUT));
    FAILED.iter().any(|status| begins(text, status)) && !line.contains(EXPECTED_FAILURE)
        || is_jest()
        || is_numbered(line.trim_start())
        || is_in_gutter(line)
        || TIMEOUT_FINDER.find(line.as_bytes()).is_some() && ends_column()
}

/// Whether a line without colours reports that a test passed, failed as expected, or starts. The words in its title do
/// not count.
pub(super) fn is_passed(line: &str) -> bool {
    // Times and percentages follow the status.
    let last = columns(line).filter(|column| !column.starts_with(|sign: char| sign.is_ascii_digit())).last();
    let fills_last =
        |last: &str| PASSED.contains(&last) || last.ends_with(" PASSED") || last.ends_with(" PASS");
    let text = skip_markers(line);
    begins(text, FAILED[0]) && line.contains(EXPECTED_FAILURE)
        || PASSED.iter().chain(&STARTED).any(|status| begins(text, status))
        || last.is_some_and(fills_last)
}

/// Returns a line without the signs before its status, such as `--- FAIL` and `[  OK ]`.
fn skip_markers(line: &str) -> &str {
    line.trim_start_matches(|sign: char| !sign.is_alphanumeric() && !STATUS_MARKS.contains(sign))
}

fn begins(text: &str, status: &str) -> bool {
    let rest = text.strip_prefix(status);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', ':', '\n', '\r']))
}

/// Returns the texts between the spaces, dots, bars and brackets that align columns.
fn columns(line: &str) -> impl Iterator<Item = &str> {
    let columns = line.split(['\t', '|', '│', '[', ']', '(', ')']).flat_map(|part| part.split("  "));
    columns.flat_map(|part| part.split("...")).map(str::trim).filter(|column| !column.is_empty())
}

/// Whether this is the heading of a failure in a numbered list: `2) [chromium] › a.spec.ts`.
fn is_numbered(text: &str) -> bool {
    let title = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    (1..=LONGEST_NUMBER).contains(&(text.len() - title.len()))
        && title.strip_prefix(") ").is_some_and(|title| !title.trim().is_empty())
}

/// Whether pytest marks the line in its first column as failed code or as the reason: `>   assert x`, `E   assert 4 ==
/// 5`.
fn is_in_gutter(line: &str) -> bool {
    let rest = line.strip_prefix(['E', '>']).and_then(|rest| rest.strip_prefix("  "));
    rest.is_some_and(|rest| !rest.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_result_line_decides() {
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
