//! `endmark sim`: simulates an installation with a virtual clock.

use serde_json::Value;

use crate::run::TestFolder;

fn simulate(arguments: &[&str]) -> Value {
    let run = TestFolder::new().run(&[&["sim", "--json"], arguments].concat());
    assert_eq!(run.code, 0, "{}", run.errors);
    run.envelope()["data"].clone()
}

#[test]
fn a_simulation_is_reproducible_and_stays_within_its_budget() {
    let arguments = ["--seconds", "20", "--call-seconds", "1", "--outage", "8:3", "--kill", "5:4"];
    let report = simulate(&arguments);
    assert_eq!(report, simulate(&arguments));
    assert_eq!(report["budgets"]["most_over"], 0);
    assert!(report["budgets"]["least_used_percent"].as_f64().unwrap() > 97.0, "{report}");
    assert!(report["budgets"]["most_silent_percent"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["waits"]["calls"].as_u64().unwrap() > 0);
    assert_ne!(report, simulate(&[&arguments[..], &["--seed", "2"]].concat()));
}

#[test]
fn storage_grows_with_requests_and_unheld_costs_exceed_the_budget() {
    let (few, many) = (simulate(&["--seconds", "5"]), simulate(&["--seconds", "5", "--requests", "400"]));
    let bytes = |report: &Value| report["database"]["table_bytes_per_day"].as_u64().unwrap();
    assert_eq!(bytes(&few) * 2, bytes(&many));
    let over = simulate(&["--seconds", "20", "--held", "100", "--cost", "2000"]);
    assert!(over["budgets"]["most_over"].as_u64().unwrap() > 0, "{over}");
}

#[test]
fn the_simulation_prints_lines_and_explains_invalid_values() {
    let run = TestFolder::new().run(&["sim", "--seconds", "2", "--instances", "2"]);
    assert_eq!(run.code, 0, "{}", run.errors);
    assert!(run.output.starts_with("2 gateways, 200 requests a second, 2 s\n"), "{}", run.output);
    for line in ["database ", "storage ", "waits ", "budgets "] {
        assert!(run.output.lines().any(|shown| shown.starts_with(line)), "{}", run.output);
    }
    for (arguments, part) in [
        (["--outage", "soon"], "`soon` is not a time of it"),
        (["--instances", "0"], "the number of instances must be from 1 to 1000, and is 0"),
        (["--requests", "1000000"], "requests a second × seconds"),
        (["--call-seconds", "NaN"], "`NaN` is not a number for --call-seconds"),
    ] {
        let run = TestFolder::new().run(&[&["sim"], &arguments[..]].concat());
        assert_eq!(run.code, 2);
        assert!(run.errors.contains(part), "{}", run.errors);
    }
}
