//! Reports of test runners and linkers are kept, even in the middle of a long log.
//!
//! The reports were written by Mocha 11, Playwright, pytest 9, Robot Framework 7, Meson 1, `ExUnit`, AVA 6,
//! Vitest 4, Cypress and GNU ld.

use endmark_context::cap::{Limits, RequestedFormat, cap};

/// Returns lines about passed tests with different titles. Every fifth title contains an error word.
fn passed_lines(count: usize, form: impl Fn(&str) -> String) -> String {
    let name = |mut number: usize| {
        let mut name = String::new();
        while number > 0 {
            name.extend(('a'..='z').nth(number % 26));
            number /= 26;
        }
        name
    };
    let title = |number| {
        let about = if number % 5 == 0 { "reports an error of" } else { "counts" };
        format!("{about} {}", name(number + 100))
    };
    (0..count).map(|number| form(&title(number)) + "\n").collect()
}

fn assert_kept(name: &str, form: impl Fn(&str) -> String, result: &str, kept: &[&str]) {
    let log = format!("{}{result}\n{}", passed_lines(1_500, &form), passed_lines(1_500, form));
    let capped = cap(log.as_bytes(), RequestedFormat::Text, &Limits { most: 6_000, ..Limits::default() });
    let text = capped.map(|capped| capped.text).unwrap_or_default();
    assert!(text.chars().count() <= 6_000, "{name}");
    for line in kept {
        assert!(text.contains(line), "{name} lost {line:?} of\n{text}");
    }
}

#[test]
fn failures_are_kept_among_passed_tests_with_error_words() {
    let mark = |title: &str| format!("    ✓ {title}");
    assert_kept("mocha", mark, "    1) adds numbers", &["1) adds numbers"]);
    assert_kept(
        "mocha's list",
        mark,
        "\n  3 passing (4ms)\n  2 failing\n\n  1) tide\n       adds numbers:\n\n      AssertionError [ERR_ASSERTION]: \
         Expected values to be strictly equal:\n\n4 !== 5\n\n      + expected - actual\n",
        &["2 failing", "  1) tide\n       adds numbers:", "AssertionError", "4 !== 5"],
    );
    assert_kept("cypress", mark, "  │ ✖  tide.cy.js    00:01    2    1    1 │", &["✖  tide.cy.js"]);
    assert_kept(
        "node's TAP",
        |title| format!("# Subtest: {title}\nok 1 - {title}\n  ---\n  duration_ms: 0.6\n  ..."),
        "# Subtest: adds\nnot ok 2 - adds\n  ---\n  error: |-\n    4 !== 5",
        &["not ok 2 - adds", "4 !== 5"],
    );
    assert_kept("ava", |title| format!("  ✔ {title}"), "  ✖ [fail]: adds", &["✖ [fail]: adds"]);
    assert_kept(
        "vitest",
        |title| format!("   \u{1b}[32m✓\u{1b}[39m {title}"),
        "\u{1b}[31m     \u{1b}[31m×\u{1b}[31m adds\u{1b}[39m",
        &["adds\u{1b}[39m"],
    );
    assert_kept(
        "playwright",
        |title| format!("  ✓  1 [chromium] › a.spec.ts:3:1 › {title} (5ms)"),
        "  ✘  9 [chromium] › a.spec.ts:9:1 › adds (5.0s)\n  1) [chromium] › a.spec.ts:9:1 › adds ────",
        &["✘  9", "  1) [chromium] › a.spec.ts:9:1 › adds"],
    );
    assert_kept(
        "pytest",
        |title| format!("tests/test_a.py::test[{title}] PASSED                  [ 16%]"),
        "tests/test_tide.py::test_add FAILED              [ 17%]\n>       assert x == 5\nE       assert 4 == 5",
        &["test_add FAILED", ">       assert x == 5", "E       assert 4 == 5"],
    );
    assert_kept(
        "robot",
        |title| format!("{title:70}| PASS |"),
        "Tide Adds                                                             | FAIL |\n4 != 5",
        &["Tide Adds", "4 != 5"],
    );
    assert_kept(
        "meson",
        |title| format!("1/3 z:{title}   OK              0.06s"),
        "2/3 z:tide_adds FAIL            0.02s   exit status 1\n3/3 z:slow TIMEOUT         1.02s   killed by signal 15",
        &["tide_adds FAIL", "slow TIMEOUT"],
    );
    assert_kept(
        "exunit",
        |_| "..........".to_owned(),
        "  1) test adds (TideTest)\n     test/tide_test.exs:5\n     Assertion with == failed",
        &["1) test adds (TideTest)", "tide_test.exs:5"],
    );
}

#[test]
fn all_undefined_references_of_a_linker_are_kept() {
    let symbol = |line| format!("tide.c:{line}: undefined reference to `rise'");
    let symbols: Vec<String> = (1..30).map(symbol).collect();
    let result = format!("{}\ncollect2: error: ld returned 1 exit status", symbols.join("\n"));
    let kept: Vec<&str> = result.lines().collect();
    assert_kept("ld", |_| "[ 10%] Building C object tide.c.o".to_owned(), &result, &kept);
}
