//! `endmark findings`, tested from outside. (AR)

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::run::TestFolder;

const WHOLE_RESULT: &str = "===AGENT_RESULT===\nagent_id: x\ndimensions: a\n\n[F001] One\nseverity: High\ncwe: CWE-89\n\
                     location: a.c:1\nsource: s\nsink: k\nevidence:\n  one();\n===AGENT_RESULT_END===\n";

fn cut_result() -> &'static str {
    &WHOLE_RESULT[..WHOLE_RESULT.find("===AGENT_RESULT_END").unwrap()]
}

#[test]
fn findings_are_read_from_standard_input_and_files() {
    let place = TestFolder::new().with_file("a.txt", WHOLE_RESULT).with_file("b.txt", cut_result());
    assert_eq!(place.run_with_input(&["findings", "check"], WHOLE_RESULT).code, 0);
    assert_eq!(place.run_with_input(&["findings", "check", "-"], WHOLE_RESULT).code, 0);
    let run = place.run_with_input(&["findings", "check", "a.txt", "-", "b.txt"], WHOLE_RESULT);
    assert_eq!(run.code, 1);
    assert!(run.output.contains("standard input: agent x: whole"), "{}", run.output);
    assert!(run.output.contains("b.txt: agent x: truncated at line 13, column 1"), "{}", run.output);
    let twice = place.run_with_input(&["findings", "check", "-", "-"], WHOLE_RESULT);
    assert_eq!((twice.code, twice.errors.contains("named twice")), (2, true), "{}", twice.errors);
}

const TWO_FINDINGS_OF_A_FILE: &str = "===AGENT_RESULT===
agent_id: v-2
coverage: sqli=done, xss=skipped

[F001] Critical | CWE-89 | SQL in login
file: a.py:1
flow: :1 → mid → :2
evidence:
  a = q
  run(a)
impact: all rows
confidence: high

[F002] Medium | CWE-89 | SQL in search
file: a.py:9
flow: :9 → :12
evidence: find(b)
impact: some rows
confidence: high
===AGENT_RESULT_END===
";

#[test]
fn fit_counts_joined_and_dropped_findings() {
    let place = TestFolder::new().with_file("a.txt", TWO_FINDINGS_OF_A_FILE);
    let fit =
        |budget: &str| place.run(&["findings", "fit", "a.txt", "--budget-left", budget, "--json"]).envelope();
    let fitted = fit("1000");
    let (receipt, finding) = (&fitted["data"]["receipt"], &fitted["data"]["findings"][0]);
    assert_eq!(receipt["joined"], 1);
    assert_eq!(receipt["dropped"], json!({"titles": 0, "evidence_lines": 1, "flow_steps": 0}), "{fitted}");
    assert_eq!(finding["also_titled"], "SQL in search (Medium)");
    assert_eq!(finding["evidence"], "run(a)\nfind(b)");
    assert_eq!((&finding["impact"], &finding["confidence"]), (&json!("all rows; some rows"), &json!("high")));
    let warning = fitted["warnings"][0]["message"].as_str().unwrap();
    assert_eq!(warning, "compressed to fit: joined findings: 1, dropped lines of evidence: 1");
    // In a small budget one title and one line of evidence remain, and the receipt counts what was dropped.
    let receipt = &fit("200")["data"]["receipt"];
    assert_eq!(receipt["dropped"], json!({"titles": 1, "evidence_lines": 2, "flow_steps": 0}), "{receipt}");
    let receipt = &fit("100000")["data"]["receipt"];
    assert_eq!((&receipt["joined"], &receipt["dropped"]["evidence_lines"]), (&json!(0), &json!(0)));
}

#[test]
fn reports_contain_unknown_fields_and_joined_titles() {
    let place = TestFolder::new().with_file(
        "a.txt",
        TWO_FINDINGS_OF_A_FILE.replace(":9", ":1").replace("CWE-89 | SQL in s", "CWE-89 | XQL in s"),
    );
    let markdown = place.run(&["findings", "report", "a.txt"]).output;
    for line in
        ["- **confidence:** high", "- **impact:** all rows; some rows", "- **also called:** XQL in search"]
    {
        assert!(markdown.contains(line), "{line}: {markdown}");
    }
    let sarif: Value =
        serde_json::from_str(&place.run(&["findings", "report", "--to", "sarif", "a.txt"]).output).unwrap();
    let properties = &sarif["runs"][0]["results"][0]["properties"];
    assert_eq!(
        (&properties["confidence"], &properties["flow"]),
        (&json!("high"), &json!(":1 → mid → :2; :1 → :12"))
    );
    // The merged output contains the title, so a report about that output contains it, too.
    let merged = place.run(&["findings", "merge", "a.txt"]).output;
    let report = place.run_with_input(&["findings", "report", "--json"], &merged).envelope();
    assert_eq!(report["data"]["report"]["findings"][0]["also_titled"], json!(["XQL in search"]), "{merged}");
}

#[test]
fn only_dimensions_that_a_whole_result_left_open_are_marked() {
    let place = TestFolder::new().with_file("a.txt", TWO_FINDINGS_OF_A_FILE);
    let markdown = place.run(&["findings", "report", "a.txt"]).output;
    assert!(markdown.contains("| sqli | v-2 | whole |"), "{markdown}");
    assert!(markdown.contains("| xss | v-2 | ⚠️ may have gaps |"), "{markdown}");
}

#[test]
fn missing_declared_findings_stay_missing_after_fit() {
    let short = WHOLE_RESULT.replace("dimensions: a\n", "dimensions: a\ndeclared_findings: 3\n");
    let place = TestFolder::new().with_file("a.txt", &short);
    assert_eq!(place.run(&["findings", "check", "a.txt"]).code, 1);
    let fitted = place.run(&["findings", "fit", "a.txt", "--budget-left", "100000"]).output;
    assert!(fitted.contains("declared_findings: 3\n"), "{fitted}");
    assert_eq!(place.run_with_input(&["findings", "check"], &fitted).code, 1);
}

/// `fit` writes ids in the canonical form and keeps the author's ids next to them.
#[test]
fn foreign_ids_are_kept_beside_canonical_ids() {
    let place = TestFolder::new().with_file("a.txt", WHOLE_RESULT.replace("[F001] One", "[SQLI-7] One"));
    let run = place.run(&["findings", "fit", "a.txt", "--budget-left", "100000"]);
    let fitted = run.output;
    assert!(fitted.contains("[F001] SQLI-7: One\n"), "{fitted}");
    assert!(run.errors.contains("1 ids do not have the form F001"), "{}", run.errors);
    assert_eq!(place.run_with_input(&["findings", "check"], &fitted).code, 0);
}

#[test]
fn every_answer_matches_its_schema() {
    let place = TestFolder::new().with_file("a.txt", cut_result()).with_file(
        "team.json",
        "{\"agents\": [{\"agent_id\": \"x\", \"dimensions\": [\"a\", \"b\"], \"max_turns\": 9}]}",
    );
    let cut_codes = |run: &[&str]| place.run(run).envelope()["error"]["code"].clone();
    assert_eq!(cut_codes(&["findings", "check", "a.txt", "--json"]), "truncated");
    let check = place.run(&["findings", "check", "a.txt", "--json"]).envelope();
    let finding = &check["data"]["results"][0]["findings"][0];
    assert_eq!(
        (&finding["originally_truncated"], &finding["finding"]["originally_truncated"]),
        (&true.into(), &true.into())
    );
    assert_eq!(cut_codes(&["findings", "fit", "a.txt", "--json", "--budget-left", "10"]), "truncated");
    assert_eq!(
        cut_codes(&["findings", "fit", "--findings", "9", "--json", "--budget-left", "10"]),
        "does_not_fit"
    );
    for arguments in [
        &["findings", "plan", "a.txt", "--json", "--team", "team.json"][..],
        &["findings", "progress", "a.txt", "--json"],
        &["findings", "protocol", "--json"],
        &["findings", "merge", "a.txt", "--json"],
        &["findings", "report", "a.txt", "--json"],
        &["findings", "report", "a.txt", "--json", "--to", "sarif"],
    ] {
        assert!(place.run(arguments).envelope()["data"].is_object(), "{arguments:?}");
    }
    let report = place.run(&["findings", "report", "a.txt", "--json"]).envelope();
    assert_eq!(
        (&report["meta"]["truncated"], &report["warnings"][0]["code"]),
        (&true.into(), &"AGENT_TRUNCATED".into())
    );
}

/// AR-5: duplicates are joined, and the evidence of all of them is kept.
#[test]
fn joined_findings_keep_all_evidence() {
    let other = WHOLE_RESULT.replace("agent_id: x", "agent_id: y").replace("one();", "two();");
    let place = TestFolder::new().with_file("a.txt", WHOLE_RESULT).with_file("b.txt", other);
    for command in ["merge", "report"] {
        let text = place.run(&["findings", command, "a.txt", "b.txt"]).output;
        assert_eq!((text.matches("[F001]").count(), text.matches("[F002]").count()), (1, 0), "{text}");
        assert!(text.contains("one();") && text.contains("two();"), "{text}");
    }
}

/// The flows of joined findings stay separate. A `;` in a step is code, not a separator.
#[test]
fn flows_of_joined_findings_stay_separate() {
    let with_flow = |agent: &str, flow: &str| {
        let text = WHOLE_RESULT.replace("agent_id: x", &format!("agent_id: {agent}"));
        text.replace("evidence:", &format!("flow: {flow}\nevidence:"))
    };
    let flows = |one: &str, other: &str| {
        let place = TestFolder::new()
            .with_file("a.txt", with_flow("a", one))
            .with_file("b.txt", with_flow("b", other));
        let sarif = place.run(&["findings", "report", "a.txt", "b.txt", "--to", "sarif"]).output;
        let sarif: Value = serde_json::from_str(&sarif).unwrap();
        let flows = sarif["runs"][0]["results"][0]["codeFlows"].as_array().unwrap().clone();
        let steps = |flow: &Value| {
            let steps = flow["threadFlows"][0]["locations"].as_array().unwrap().clone();
            let texts =
                steps.iter().map(|step| step["location"]["message"]["text"].as_str().unwrap().to_owned());
            texts.collect::<Vec<_>>().join("|")
        };
        let mut steps: Vec<String> = flows.iter().map(steps).collect();
        steps.sort();
        steps
    };
    assert_eq!(flows("a -> b", "c → d"), ["a|b", "c|d"]);
    assert_eq!(flows("a -> b", "a -> b"), ["a|b"]);
    assert_eq!(flows("x = 1; a -> b", "x = 1; a -> b"), ["x = 1; a|b"]);
}

/// If no result names its dimensions, no name is invented. Merging again changes nothing.
#[test]
fn unnamed_dimensions_get_no_invented_name() {
    let place = TestFolder::new().with_file("a.txt", cut_result().replace("dimensions: a\n", ""));
    let merged = place.run(&["findings", "merge", "a.txt"]).output;
    assert!(!merged.contains("dimensions"), "{merged}");
    let place = TestFolder::new().with_file("merged.txt", merged.as_str());
    assert_eq!(place.run(&["findings", "merge", "merged.txt"]).output, merged);
    let check = |text: &str| {
        let place = TestFolder::new().with_file("a.txt", text);
        place.run(&["findings", "check", "a.txt", "--json"]).envelope()["data"]["results"][0]["dimensions"]
            .clone()
    };
    assert_eq!(
        check(&WHOLE_RESULT.replace("dimensions: a\n", "dimensions: (not named)\n")),
        serde_json::json!([])
    );
}

/// AR-6: a report discloses gaps in every format.
#[test]
fn every_report_format_has_its_disclosure() {
    let place = TestFolder::new().with_file("a.txt", cut_result());
    let of = |form: &str| place.run(&["findings", "report", "a.txt", "--to", form]).output;
    assert!(of("markdown").contains("| x | first, round 1: truncated, complete findings kept |"));
    let json: Value = serde_json::from_str(&of("json")).unwrap();
    assert_eq!(json["disclosure"]["truncated_agents"][0]["agent_id"], "x");
    let sarif: Value = serde_json::from_str(&of("sarif")).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    assert_eq!(run["invocations"][0]["toolExecutionNotifications"][0]["descriptor"]["id"], "agent_truncated");
    assert_eq!(run["properties"]["disclosure"]["truncated_agents"][0]["agent_id"], "x");
}

/// AR-6: an agent's text is never interpreted as markup of the report.
#[test]
fn agent_text_is_never_markup_in_the_report() {
    let text = WHOLE_RESULT
        .replace("dimensions: a", "dimensions: a|b, <script>x()</script>")
        .replace("[F001] ", "[F001] <img src=x onerror=y()> [z](javascript:y()) ")
        .replace("source: ", "source: <input> `q` ");
    let place = TestFolder::new().with_file("a.txt", text);
    let report = place.run(&["findings", "report", "a.txt"]).output;
    for line in
        [r"| a\|b |", r"| \<script>x()\</script> |", r"\<img src=x onerror=y()> \[z\](javascript:y()) "]
    {
        assert!(report.contains(line), "{line}: {report}");
    }
    assert!(report.contains("- **source:** ``<input> `q` "), "{report}");
}

/// The merged form of a truncated result does not look whole.
#[test]
fn merging_does_not_make_a_truncated_result_whole() {
    let place = TestFolder::new().with_file("a.txt", cut_result()).with_file("b.txt", WHOLE_RESULT);
    let merged = place.run(&["findings", "merge", "a.txt"]).output;
    assert_eq!(place.run_with_input(&["findings", "check"], &merged).code, 1, "{merged}");
    assert!(merged.contains("originally_truncated: true"), "{merged}");
    let merged = place.run(&["findings", "merge", "b.txt"]).output;
    assert_eq!(merged, WHOLE_RESULT.replace("dimensions: a\n", "dimensions: a\ndeclared_findings: 1\n"));
}

#[test]
fn unreadable_and_oversized_input_is_refused_with_advice() {
    let place = TestFolder::new();
    for (file, hint) in [("nofile", "`-` reads a result from standard input"), (".", "`./*.txt`")] {
        let run = place.run(&["findings", "check", file]);
        assert!(run.code == 2 && run.errors.contains(hint), "{}", run.errors);
    }
    let fit = |budget: &str| place.run(&["findings", "fit", "--findings", "12", "--budget-left", budget]);
    assert!(fit("9499").output.contains("11 findings fit uncompressed"), "{}", fit("9499").output);
    assert!(fit("1000").output.contains("not even one finding fits"), "{}", fit("1000").output);
    assert_eq!((fit("9499").code, fit("9500").code), (1, 0));
}

/// The text form cannot name the reporting agents, so a warning says so before they are lost.
#[test]
fn text_output_warns_that_reporting_agents_are_omitted() {
    let other = WHOLE_RESULT.replace("agent_id: x", "agent_id: y").replace("[F001] One", "[F001] Two");
    let place = TestFolder::new().with_file("a.txt", WHOLE_RESULT).with_file("b.txt", other);
    let run = place.run(&["findings", "merge", "a.txt", "b.txt"]);
    assert!(run.errors.contains("1 findings were reported by several agents"), "{}", run.errors);
    assert!(run.output.contains("also_titled: Two"), "{}", run.output);
    let report = place.run(&["findings", "report", "a.txt", "b.txt"]);
    assert!(
        report.output.contains("**also called:** Two") && !report.errors.contains("joined"),
        "{}",
        report.output
    );
    // Merged text names no agents that could be lost, and a single result has only one.
    for again in [run.output.as_str(), WHOLE_RESULT] {
        assert_eq!(place.run_with_input(&["findings", "merge"], again).errors, "");
    }
}

/// An answer of these commands marks truncation in another way than a result does.
///
/// It is refused, so that it is never mistaken for a whole result.
#[test]
fn output_of_these_commands_is_refused_as_a_result() {
    let place = TestFolder::new().with_file("a.txt", cut_result()).with_file("b.txt", WHOLE_RESULT);
    for command in [
        &["merge", "--json", "a.txt"][..],
        &["report", "--json", "a.txt"],
        &["report", "--to", "json", "a.txt"],
        &["check", "--json", "a.txt"],
        &["fit", "--budget-left", "9000", "--json", "b.txt"],
    ] {
        let answer = place.run(&[&["findings"], command].concat()).output;
        let in_lines = serde_json::from_str::<Value>(&answer).map(|json| format!("{json:#}")).unwrap();
        let escaped = serde_json::json!({ "role": "tool", "content": answer }).to_string();
        for answer in [&answer, &in_lines, &escaped] {
            for again in ["check", "report"] {
                let run = place.run_with_input(&["findings", again], answer);
                assert_eq!((run.code, run.output.as_str()), (2, ""), "{again} {command:?} {answer}");
                assert!(run.errors.contains("merged.txt"), "{}", run.errors);
            }
        }
        // Next to a result, the answer is reported and the result counts as cut.
        let result = serde_json::json!({ "role": "assistant", "content": WHOLE_RESULT }).to_string();
        let place =
            place.run_with_input(&["findings", "check", "--json"], format!("{}\n{result}\n", answer.trim()));
        let data = &place.envelope()["data"];
        assert_eq!((place.code, &data["remarks"][0]["kind"]), (1, &"own_answer".into()), "{data}");
        let cuts = [&data["results"][0]["cut"], &data["results"][1]["cut"]];
        assert_eq!(cuts, [&Value::from("severe"), &Value::from("whole")], "{data}");
        assert_eq!(data["results"][1]["complete"], 1, "{data}");
    }
    let text = place.run(&["findings", "merge", "a.txt"]).output;
    assert_eq!(place.run_with_input(&["findings", "check"], &text).code, 1, "{text}");
}

/// EN-5: an answer larger than an envelope is split into pages, and nothing is omitted.
#[test]
fn a_large_report_is_paged() {
    use std::fmt::Write as _;

    let place = TestFolder::new();
    let names: Vec<String> = (0..60).map(|agent| format!("{agent}.txt")).collect();
    for (agent, name) in names.iter().enumerate() {
        let mut text = format!("===AGENT_RESULT===\nagent_id: {agent}\ndimensions: a\n");
        for number in 1..=25 {
            let code = format!("call_{agent}_{number}(); ").repeat(60);
            let _ = write!(
                text,
                "\n[F{number:03}] One\nseverity: High\nlocation: a{agent}.c:{number}\nsource: s\nsink: k\nevidence:\n  {code}\n"
            );
        }
        std::fs::write(place.path().join(name), text + "===AGENT_RESULT_END===\n").unwrap();
    }
    for (command, list) in
        [("report", "/data/report/findings"), ("merge", "/data/report/findings"), ("check", "/data/results")]
    {
        let (mut cursor, mut places, mut pages) = (None::<String>, Vec::new(), 0);
        loop {
            let mut arguments = vec!["--json", "findings", command];
            arguments.extend(names.iter().map(String::as_str));
            if let Some(cursor) = &cursor {
                arguments.extend(["--cursor", cursor]);
            }
            let answer = place.run(&arguments);
            assert!(answer.output.len() <= 1_000_000, "{command}: {}", answer.output.len());
            let answer = answer.envelope();
            places.extend(answer.pointer(list).unwrap().as_array().unwrap().iter().cloned());
            pages += 1;
            let warnings = answer["warnings"].as_array().unwrap();
            let more = warnings.iter().find(|warning| warning["code"] == "FIELD_TRUNCATED");
            cursor = more.map(|warning| warning["handle"].as_str().unwrap().to_owned());
            if cursor.is_none() {
                break;
            }
        }
        assert!(pages >= 2, "{command}");
        assert_eq!(places.len(), if command == "check" { 60 } else { 1_500 }, "{command}");
        let wrong = place.run(&["--json", "findings", command, "0.txt", "--cursor", "nonsense"]);
        assert_eq!((wrong.code, wrong.envelope()["ok"].clone()), (2, false.into()), "{command}");
    }
}

/// Returns all pages of a command's answer, and checks the size of each.
fn all_pages(place: &TestFolder, arguments: &[&str]) -> Vec<Value> {
    let (mut cursor, mut pages) = (None::<String>, Vec::new());
    loop {
        let mut command_line = arguments.to_vec();
        command_line.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let answer = place.run(&command_line);
        assert!(answer.output.len() <= 1_000_000, "{arguments:?}: {}", answer.output.len());
        let page = answer.envelope();
        let handles = page["warnings"].as_array().unwrap().iter();
        let next =
            handles.filter_map(|warning| warning["handle"].as_str()).find(|word| word.starts_with("emc"));
        cursor = next.map(str::to_owned);
        pages.push(page);
        if cursor.is_none() {
            return pages;
        }
    }
}

/// Returns the items of a list from all pages.
fn items(pages: &[Value], list: &str) -> Vec<Value> {
    pages.iter().flat_map(|page| page.pointer(list).unwrap().as_array().unwrap().clone()).collect()
}

/// EN-5: a single result, transcript or draft that is larger than an envelope is split into pages, too.
#[test]
fn a_result_larger_than_an_envelope_is_paged() {
    use std::fmt::Write as _;

    let (mut many, mut checkpoints) =
        ("===AGENT_RESULT===\nagent_id: a\ndimensions: a\n".to_owned(), String::new());
    for number in 1..=1_200 {
        let _ = write!(
            many,
            "\n[F{number:03}] One\nseverity: High\nlocation: a.c:{number}\nsource: s\nsink: k\nevidence:\n  {}\n",
            format!("call({number}); ").repeat(80)
        );
        let _ = writeln!(
            checkpoints,
            "[CHECKPOINT] turn:{} findings:1 files_read:1 remaining_dims:{}",
            number * 10,
            "dimension,".repeat(100)
        );
    }
    let place = TestFolder::new()
        .with_file("a.txt", many + "===AGENT_RESULT_END===\n")
        .with_file("b.txt", &checkpoints);

    let results = items(&all_pages(&place, &["--json", "findings", "check", "a.txt"]), "/data/results");
    let mut from = 0;
    for result in &results {
        assert_eq!((&result["complete"], &result["findings_from"]), (&1_200.into(), &from.into()));
        from += result["findings"].as_array().unwrap().len();
    }
    assert_eq!((from, results.len() > 1), (1_200, true));

    let transcripts =
        items(&all_pages(&place, &["--json", "findings", "progress", "b.txt"]), "/data/transcripts");
    let turns: Vec<u64> = transcripts
        .iter()
        .flat_map(|transcript| transcript["checkpoints"].as_array().unwrap())
        .map(|checkpoint| checkpoint["turn"].as_u64().unwrap())
        .collect();
    assert_eq!(turns, (1..=1_200).map(|number| number * 10).collect::<Vec<u64>>());

    // Counting tokens is slow, so the first page must suffice: its cursor shows that more pages follow.
    let fitted = place.run(&["--json", "findings", "fit", "--budget-left", "9000000", "a.txt"]);
    assert!(fitted.output.len() <= 1_000_000, "{}", fitted.output.len());
    let fitted = fitted.envelope();
    let warnings = fitted["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "TEXT_LEFT_OUT"));
    assert!(
        warnings.iter().any(|warning| warning["field"] == "data.findings" && warning["handle"].is_string())
    );
}

/// EN-5: a single finding that is larger than an envelope is shortened, with a warning.
#[test]
fn an_oversized_finding_is_shortened_with_a_warning() {
    let huge = format!("huge({});", "x".repeat(1_100_000));
    let two = WHOLE_RESULT.replace("===AGENT_RESULT_END===", "\n[F002] Two\nseverity: Low\nlocation: b.c:1\nsource: t\nsink: m\nevidence:\n  two();\n===AGENT_RESULT_END===");
    let place = TestFolder::new().with_file("a.txt", two.replace("one();", &huge));
    for (command, list, field) in [
        ("check", "/data/results", "data.results[0].findings[0].finding.evidence"),
        ("merge", "/data/report/findings", "data.report.findings[0].finding.evidence"),
        ("report", "/data/report/findings", "data.report.findings[0].finding.evidence"),
    ] {
        let pages = all_pages(&place, &["--json", "findings", command, "a.txt"]);
        assert_eq!(items(&pages, list).len(), 2, "{command}");
        let warnings = pages[0]["warnings"].as_array().unwrap();
        let cut: Vec<&Value> = warnings.iter().filter(|warning| warning["field"] == field).collect();
        assert_eq!(cut.len(), 1, "{command}: {warnings:?}");
        assert_eq!(cut[0]["original_bytes"], huge.len());
        assert_eq!(pages[0]["meta"]["truncated"], true);
    }
    // Without `--json` nothing is shortened.
    let whole = place.run(&["findings", "merge", "a.txt"]);
    assert!(whole.output.contains(&huge));
    assert!(!whole.errors.contains("left out"), "{}", whole.errors);
}

/// A cursor of another list is refused.
#[test]
fn a_cursor_continues_only_its_own_list() {
    let mut text = "===AGENT_RESULT===\nagent_id: x\ndimensions: a\n".to_owned();
    for number in 1..=40 {
        text += &WHOLE_RESULT
            [WHOLE_RESULT.find("\n[F001]").unwrap()..WHOLE_RESULT.find("===AGENT_RESULT_END").unwrap()]
            .replace("F001", &format!("F{number:03}"))
            .replace("a.c:1", &format!("a.c:{number}"))
            .replace("one();", &"one(); ".repeat(6_000));
    }
    let team = |dimension: &str| {
        format!("{{\"agents\": [{{\"agent_id\": \"x\", \"dimensions\": [\"{dimension}\"]}}]}}")
    };
    let place = TestFolder::new()
        .with_file("a.txt", text + "===AGENT_RESULT_END===\n")
        .with_file("team.json", team("a"))
        .with_file("other.json", team("b"));
    for command in ["merge", "report"] {
        let command_line = ["findings", command, "a.txt", "--team", "team.json"];
        let first = place.run(&[&command_line[..], &["--json"]].concat()).envelope();
        let warnings = first["warnings"].as_array().unwrap();
        let cursor = warnings.iter().find_map(|warning| warning["handle"].as_str()).unwrap();
        let continue_reading =
            |more: &[&str]| place.run(&[&["findings", command, "a.txt", "--cursor", cursor], more].concat());
        assert_eq!(continue_reading(&["--json", "--team", "team.json"]).envelope()["ok"], true, "{command}");
        for other in [
            &["--json", "--team", "other.json"][..],
            &["--json"],
            &["--json", "--team", "team.json", "--running"],
        ] {
            let refused = continue_reading(other);
            assert_eq!(
                (refused.code, &refused.envelope()["error"]["code"]),
                (2, &"INVALID_CURSOR".into()),
                "{command} {other:?}"
            );
            // The hint and the warning name the same cursor.
            let hint = refused.envelope()["error"]["hint"].to_string();
            assert!(hint.contains("`handle`") && !hint.contains("next_cursor"), "{hint}");
        }
        let refused = continue_reading(&["--team", "team.json"]);
        assert_eq!((refused.code, refused.output.as_str()), (2, ""), "{command}");
        assert!(refused.errors.contains("Add --json"), "{}", refused.errors);
        // The content of the team file counts, not only its name.
        std::fs::write(place.path().join("team.json"), team("c")).unwrap();
        assert_eq!(continue_reading(&["--json", "--team", "team.json"]).code, 2, "{command}");
        std::fs::write(place.path().join("team.json"), team("a")).unwrap();
    }
    for command in [
        &["check", "a.txt"][..],
        &["plan", "a.txt"],
        &["progress", "a.txt"],
        &["fit", "a.txt", "--budget-left", "9"],
    ] {
        let refused = place.run(&[&["findings"], command, &["--cursor", "emc1_x"]].concat());
        assert_eq!(
            (refused.code, refused.errors.contains("Add --json")),
            (2, true),
            "{command:?}: {}",
            refused.errors
        );
    }
}

/// A transcript may begin with its own instructions, which are not a result.
#[test]
fn the_protocol_template_is_not_a_result() {
    let place = TestFolder::new();
    for arguments in [
        &["findings", "protocol"][..],
        &[
            "findings",
            "protocol",
            "--agent",
            "x",
            "--dimensions",
            "a, b",
            "--budget-left",
            "20000",
            "--max-turns",
            "13",
        ],
    ] {
        let prompt = place.run(arguments);
        assert_eq!(prompt.code, 0);
        let run = place
            .run_with_input(&["findings", "check", "--json"], format!("{}\n{WHOLE_RESULT}", prompt.output));
        let data = &run.envelope()["data"];
        assert_eq!(data["results"].as_array().unwrap().len(), 1, "{data}");
        assert_eq!(data["results"][0]["cut"], "whole");
        let alone = place.run_with_input(&["findings", "check"], &prompt.output);
        assert!(alone.output.contains("no start marker"), "{}", alone.output);
        assert!(alone.output.contains("`endmark findings protocol` prints the form"), "{}", alone.output);
        assert!(place.run_with_input(&["findings", "progress", "--json"], &prompt.output).envelope()["data"]
            ["transcripts"][0]["checkpoints"]
            .as_array()
            .unwrap()
            .is_empty());
    }
    let prompt = place.run(&["findings", "protocol"]).output;
    let asked_for = prompt.lines().find(|line| line.starts_with("[CHECKPOINT]")).unwrap();
    let printed = asked_for.replace("{N}", "5").replacen("{count}", "2", 1).replacen("{count}", "7", 1);
    let printed = printed.replace("{list}", "b, c");
    let run = place.run_with_input(&["findings", "progress", "--json"], format!("{prompt}\n{printed}\n"));
    let checkpoints = &run.envelope()["data"]["transcripts"][0]["checkpoints"];
    assert_eq!(checkpoints.as_array().unwrap().len(), 1, "{checkpoints}");
    let read = &checkpoints[0];
    assert_eq!((&read["turn"], &read["findings"]), (&5.into(), &2.into()), "{read}");
    assert_eq!((&read["files_read"], &read["remaining_dims"][1]), (&7.into(), &"c".into()), "{read}");
    let limits = place.run(&["findings", "protocol", "--budget-left", "20000", "--max-findings", "5"]).output;
    assert!(limits.contains("may take 8000, which is 26 findings") && limits.contains("at most 5 findings"));
}

/// An agent that follows the instructions delivers JSON Lines, which are parsed as a result.
#[test]
fn the_protocol_asks_for_json_lines() {
    let place = TestFolder::new();
    let arguments = [
        "findings",
        "protocol",
        "--form",
        "jsonl",
        "--agent",
        "x",
        "--dimensions",
        "a",
        "--budget-left",
        "20000",
    ];
    let prompt = place.run(&arguments).output;
    let form: Vec<&str> = prompt.lines().filter(|line| line.starts_with(['{', '='])).collect();
    assert_eq!((form.len(), prompt.contains("may take 8000")), (4, true), "{prompt}");
    let filled: Vec<String> = form
        .iter()
        .map(|line| {
            let values = [
                ("\"<how many findings follow>\"", "1"),
                ("<Critical, High, Medium, Low or Info>", "High"),
                ("<file:line-line>", "a.c:1"),
            ];
            let filled = values.iter().fold((*line).to_owned(), |line, (from, to)| line.replace(from, to));
            filled.replace(['<', '>'], "")
        })
        .collect();
    let text = format!("{prompt}\n{}\n", filled.join("\n"));
    let run = place.run_with_input(&["findings", "check", "--json"], &text);
    let results = &run.envelope()["data"]["results"];
    assert_eq!((run.code, results.as_array().unwrap().len()), (0, 1), "{results}");
    assert_eq!((&results[0]["agent_id"], &results[0]["complete"]), (&"x".into(), &1.into()), "{results}");
    // The text is cut after the first of two findings.
    let lines = text.replace("\"declared_findings\": 1", "\"declared_findings\": 2");
    let cut = &lines[..lines.rfind("===AGENT_RESULT_END").unwrap()];
    let place = TestFolder::new().with_file("x.txt", cut);
    let check = place.run(&["findings", "check", "--json", "x.txt"]).envelope();
    let result = &check["data"]["results"][0];
    assert_eq!(
        (&result["cut"], &result["complete"], &result["lost"]),
        (&"mild".into(), &1.into(), &1.into())
    );
    let plan = place.run(&["findings", "plan", "--json", "x.txt"]).envelope();
    assert_eq!(plan["data"]["runs"][0]["kind"], "supplement", "{plan}");
}

#[test]
fn json_lines_and_text_give_the_same_result() {
    let json = "{\"agent_id\": \"x\", \"findings\": [{\"id\": \"F1\", \"severity\": \"high\", \"location\": \"a.c:1\", \
                \"source\": \"s\", \"sink\": \"k\", \"evidence\": \"one();\"}]}";
    let place = TestFolder::new();
    let run = place.run_with_input(&["findings", "check", "--json"], json);
    assert_eq!((run.code, &run.envelope()["data"]["results"][0]["complete"]), (0, &1.into()));
    let broken = place.run_with_input(&["findings", "check", "--json"], &json[..60]);
    let remark = &broken.envelope()["data"]["remarks"][0];
    assert_eq!((&remark["kind"], &remark["line"]), (&"broken_json".into(), &1.into()), "{remark}");
}

#[test]
fn json_in_evidence_is_not_a_finding() {
    let evidence = "{\"id\": \"F9\", \"severity\": \"high\", \"location\": \"b.c:1\", \"source\": \"s\", \"sink\": \"k\", \
                    \"evidence\": \"two();\"}";
    let result = format!(
        "===AGENT_RESULT===\nagent_id: x\ndimensions: a\n\n[F001] It logs what it finds\nseverity: High\nlocation: a.c:1\n\
         source: s\nsink: k\nevidence:\n  {evidence}\n\n===AGENT_RESULT_END===\n"
    );
    let place = TestFolder::new();
    let data = place.run_with_input(&["findings", "check", "--json"], result).envelope()["data"].clone();
    assert_eq!(data["results"][0]["complete"], 1, "{data}");
    let findings = data["results"][0]["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{data}");
    assert!(data.to_string().contains("two();"), "{data}");
}

/// A number that is too large to parse is treated as a name, wherever it occurs.
#[test]
fn a_huge_finding_number_is_treated_as_a_name() {
    let place = TestFolder::new();
    for (heading, evidence) in [("[F4294967296] x", "one();"), ("[F001] x", "[F-20261122170512]")] {
        let result = format!(
            "===AGENT_RESULT===\nagent_id: x\ndimensions: a\n\n{heading}\nseverity: High\nlocation: a.c:1\nsource: s\n\
             sink: k\nevidence:\n  {evidence}\n\n===AGENT_RESULT_END===\n"
        );
        let run = place.run_with_input(&["findings", "check", "--json"], result);
        assert_eq!(
            (run.code, &run.envelope()["data"]["results"][0]["complete"]),
            (0, &1.into()),
            "{heading}"
        );
    }
}

/// Two findings of one result stay separate, even if the second lacks the fields that distinguish them.
#[test]
fn findings_without_locations_stay_separate() {
    let result = "===AGENT_RESULT===\nagent_id: x\ndimensions: a\ndeclared_findings: 2\n\n[F001] Injection\nseverity: Low\ncwe: CWE-89\n\
                  location: a.rs:10\nsource: parameter\nsink: query\nevidence:\n  query(q)\n\n[F002] No limit\nseverity: Critical\n\
                  source: parameter\nsink: query\nevidence:\n  loop { query() }\n\n===AGENT_RESULT_END===\n";
    let place = TestFolder::new().with_file("a.txt", result);
    let report = place.run(&["findings", "report", "a.txt"]).output;
    assert!(report.contains("Injection") && report.contains("No limit"), "{report}");
    assert!(!report.contains("also called"), "{report}");
}

/// Dimensions that wait for the round after a retry stay gaps until they are examined.
#[test]
fn dimensions_that_wait_for_the_next_round_are_gaps() {
    let team = "{\"agents\": [{\"agent_id\": \"x\", \"dimensions\": [\"a\", \"b\", \"c\"]}]}";
    let place = TestFolder::new().with_file("team.json", team).with_file("x.txt", "===AGENT_RESULT===\nage");
    let run = place.run(&["findings", "report", "--json", "--team", "team.json", "x.txt"]);
    let dimensions = run.envelope()["data"]["report"]["disclosure"]["dimensions"].clone();
    let gaps: Vec<_> = dimensions.as_array().unwrap().iter().map(|dimension| &dimension["gap"]).collect();
    assert_eq!(gaps, [true, true, true], "{dimensions}");
}

/// A list of dimensions at the end of a cut text may be incomplete.
#[test]
fn a_list_at_the_end_of_a_cut_text_is_not_trusted() {
    let team =
        "{\"agents\": [{\"agent_id\": \"x\", \"dimensions\": [\"session handling\", \"csrf\", \"crypto\"]}]}";
    let cut = "===AGENT_RESULT===\nagent_id: x\ndimensions: session handling, csrf, crypto\n\n[F001] x\nseverity: High\nlocation: a.c:1\n\
               source: s\nsink: k\nevidence:\n  one();\n\n[CHECKPOINT] turn:20 findings:12 files_read:3 remaining_dims:session handling,cs";
    let place = TestFolder::new().with_file("team.json", team).with_file("x.txt", cut);
    let plan = place.run(&["findings", "plan", "--json", "--team", "team.json", "x.txt"]).envelope()["data"]
        .to_string();
    assert!(plan.contains("\"crypto\"") && !plan.contains("\"cs\""), "{plan}");
}

/// An incomplete finding is neither merged into another one nor omitted.
#[test]
fn fit_loses_no_incomplete_finding() {
    let head = "===AGENT_RESULT===\nagent_id: x\ndimensions: a\n\n";
    let one = |id: &str, rest: &str| {
        format!("[{id}] t\nseverity: High\ncwe: CWE-89\nlocation: src/a.rs:{rest}\n\n")
    };
    let draft = [
        head,
        &one("F001", "1\nsource: request\nsink: query\nevidence:\n  let q = name;\n  query(request);"),
        &one("F002", "9\nsource: s\nsink: k"),
        &one("F003", "12\nsource: s"),
        "===AGENT_RESULT_END===\n",
    ]
    .concat();
    let place = TestFolder::new();
    let fitted = place.run_with_input(&["findings", "fit", "--budget-left", "1000"], draft).output;
    let check = place.run_with_input(&["findings", "check", "--json"], &fitted);
    let result = &check.envelope()["data"]["results"][0];
    assert_eq!((check.code, result["findings"].as_array().unwrap().len()), (1, 3), "{fitted}");
    assert!(fitted.contains("query(request);"), "{fitted}");

    let complete = one("F001", "1\nsource: s\nsink: k\nevidence:\n  k(s);");
    let prose = "The login also has CWE-79 in src/b.rs:10, severity High.\n\n";
    let unread = format!("{head}{complete}{prose}===AGENT_RESULT_END===\n");
    let refused = place.run_with_input(&["findings", "fit", "--budget-left", "5000"], unread);
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains("would be lost if it were rewritten"), "{}", refused.errors);
    // A finding after the end marker is kept, even if its id already exists.
    for id in ["F001", "F002"] {
        let other = WHOLE_RESULT.replace("a.c:1", "b.c:7").replace("One", "Other").replace("F001", id);
        let other = &other[other.find('[').unwrap()..other.find("===AGENT_RESULT_END").unwrap()];
        let behind = format!("{WHOLE_RESULT}\n{other}");
        let refused = place.run_with_input(&["findings", "fit", "--budget-left", "5000"], &behind);
        assert_eq!((refused.code, refused.output.as_str()), (1, ""), "{id}");
        assert!(refused.errors.contains("the first at line 15, column 1"), "{}", refused.errors);
        assert_eq!(place.run_with_input(&["findings", "check"], &behind).code, 1, "{id}");
    }
    let again =
        &WHOLE_RESULT[WHOLE_RESULT.find('[').unwrap()..WHOLE_RESULT.find("===AGENT_RESULT_END").unwrap()];
    let repeated = place.run_with_input(
        &["findings", "fit", "--budget-left", "5000"],
        format!("{WHOLE_RESULT}\nIn short:\n\n{again}"),
    );
    assert_eq!(repeated.code, 0, "{}", repeated.errors);
}

/// AR-3: unreadable parts of a checkpoint are reported, however many other remarks there are.
#[test]
fn unreadable_checkpoints_are_reported() {
    let noise = "note\n\n".repeat(300);
    let transcript = format!(
        "===AGENT_RESULT===\nagent_id: x\n{noise}===AGENT_RESULT_END===\n[CHECKPOINT] turn:ten findings:1\n\
         [CHECKPOINT] turn:20 findings:many files_read:2 remaining_dims:a\n"
    );
    let place = TestFolder::new().with_file("a.txt", transcript);
    let run = place.run(&["findings", "progress", "a.txt"]);
    assert_eq!(run.code, 0);
    for line in [604, 605] {
        assert!(
            run.output.contains(&format!("line {line}, column 1: cannot be read: [CHECKPOINT]")),
            "{}",
            run.output
        );
        assert!(run.errors.contains(&format!("line {line}, column 1")), "{}", run.errors);
    }
    let data = &place.run(&["findings", "progress", "a.txt", "--json"]).envelope()["data"]["transcripts"][0];
    let turns: Vec<u64> =
        data["checkpoints"].as_array().unwrap().iter().map(|one| one["turn"].as_u64().unwrap()).collect();
    assert_eq!(turns, [20]);
    assert_eq!(data["unreadable"].as_array().unwrap().len(), 2);
    assert_eq!(data["unreadable"][0]["line"], 604);
    assert_eq!(data["missing"], serde_json::json!([10]));
}

/// An agent's text never controls the terminal, and can be read back unchanged.
#[test]
fn written_results_contain_no_terminal_controls() {
    let title = "- \u{1b}]0;x\u{7}red";
    let json = serde_json::json!({"agent_id": "x", "dimensions": ["a"], "findings": [{
        "id": "F001", "title": title, "severity": "High", "cwe": "CWE-89", "location": "a.c:1", "source": "s\u{9b}31m", "sink": "k",
        "evidence": "\u{1b}[2Jone();\n\ttwo();"
    }]});
    let place = TestFolder::new().with_file("a.json", json.to_string());
    let fitted = place.run(&["findings", "fit", "a.json", "--budget-left", "100000"]).output;
    let merged = place.run(&["findings", "merge", "a.json"]).output;
    let report = place.run(&["findings", "report", "a.json"]).output;
    let check = place.run(&["findings", "check", "a.json"]).output;
    for text in [&fitted, &merged, &report, &check] {
        assert!(!text.contains(|sign: char| sign.is_control() && sign != '\n' && sign != '\t'), "{text:?}");
    }
    for text in [fitted, merged] {
        let again = place.run_with_input(&["findings", "check", "--json"], &text).envelope();
        let finding = &again["data"]["results"][0]["findings"][0]["finding"];
        for field in ["title", "source", "evidence"] {
            assert_eq!(finding[field], json["findings"][0][field], "{text}");
        }
    }
}

/// AR-4, AR-5: a whole result closes the same gaps in plan, merge and report, even if the plan did not
/// request that result.
#[test]
fn an_unrequested_whole_result_closes_gaps_everywhere() {
    let of =
        |dimensions: &str| WHOLE_RESULT.replace("dimensions: a\n", &format!("dimensions: {dimensions}\n"));
    let cut = |text: &str| text[..text.find("===AGENT_RESULT_END").unwrap()].to_owned() + "\n";
    let place = TestFolder::new()
        .with_file("whole.txt", of("a, b, c"))
        .with_file("other.txt", of("a (login), b (tokens), c"))
        .with_file("elsewhere.txt", of("a, b"))
        .with_file("mild.txt", cut(&of("a, b, c")))
        .with_file("unnamed.txt", cut(&WHOLE_RESULT.replace("dimensions: a\n", "")))
        .with_file("x.txt", "===AGENT_RESULT===\nagent_")
        .with_file("team.json", r#"{"agents": [{"agent_id": "x", "dimensions": ["a", "b", "c"]}]}"#)
        .with_file("one.json", r#"{"agents": [{"agent_id": "x", "dimensions": ["a", "b", "c"]}], "rounds": 1, "emergency": false}"#);
    for (arguments, is_done) in [
        // The agent repeated its work instead of the requested retry.
        (&["--team", "team.json", "x.txt", "whole.txt"][..], true),
        (&["--team", "team.json", "x.txt", "elsewhere.txt"], false),
        (&["--team", "one.json", "mild.txt", "whole.txt"], true),
        (&["--team", "one.json", "mild.txt", "other.txt"], true),
        (&["--team", "one.json", "mild.txt", "elsewhere.txt"], false),
        (&["--team", "team.json", "mild.txt", "mild.txt", "mild.txt", "mild.txt", "whole.txt"], true),
        (&["--team", "team.json", "whole.txt", "mild.txt", "whole.txt"], true),
        (&["unnamed.txt", "unnamed.txt", "unnamed.txt", "whole.txt"], true),
    ] {
        let run =
            |command: &str, more: &[&str]| place.run(&[&["findings", command], arguments, more].concat());
        let plan = run("plan", &["--json"]).envelope();
        let is_recovered = plan["data"]["agents"][0]["state"] == "recovered";
        assert_eq!(
            (is_recovered, &plan["data"]["done"]),
            (is_done, &Value::Bool(is_done || plan["data"]["runs"] == serde_json::json!([]))),
            "{arguments:?}"
        );
        assert_eq!(run("merge", &[]).output.contains("===AGENT_RESULT_END==="), is_done, "{arguments:?}");
        let report = run("report", &["--json"]).envelope()["data"]["report"]["disclosure"].clone();
        let agent = &report["truncated_agents"][0];
        assert_eq!(
            (agent["recovery"] == "recovered", agent["gaps"] == serde_json::json!([])),
            (is_done, is_done),
            "{arguments:?}: {agent}"
        );
    }
}

#[test]
fn an_invalid_team_is_reported() {
    for (team, problem, place_of_it) in [
        (r#"{"agents": [{"agent_id": "x"}]}"#, "missing field `dimensions`", "line 1 column 29"),
        (r#"{"agents": [{"agent_id": "x", "dimensions": []}]}"#, "has no dimensions", "line 1 column 47"),
        (
            "{\"agents\":\n [{\"agent_id\": \" \", \"dimensions\": [\"a\"]}]}",
            "has no name",
            "line 2 column 18",
        ),
        (
            r#"{"agents": [{"agent_id": "x", "dimensions": ["a", ""]}]}"#,
            "a dimension has no name",
            "column 54",
        ),
        (
            r#"{"agents": [{"agent_id": "x", "dimensions": ["a"], "max_turns": 0}]}"#,
            "at least one turn",
            "column 66",
        ),
        (r#"{"agents": [], "round": 2}"#, "unknown field `round`", "line 1 column 22"),
        (r#"{"agents": [], "rounds": 0}"#, "at least one round", "line 1 column 27"),
        (r#"{"agents": "x"}"#, "a list of agents", "line 1 column 14"),
        (
            "{\"agents\": [{\"agent_id\": \"x\", \"dimensions\": [\"a\"]},\n{\"agent_id\": \"X\", \"dimensions\": [\"a\"]}]}",
            "the agent `X` is named twice",
            "line 2 column 39",
        ),
        ("{\"agents\": [", "EOF", "line 1 column 12"),
        (
            r#"{"agents": [{"agent_id": "x", "dimensions": ["session handling", "b", "Session-Handling"]}]}"#,
            "the dimension `Session-Handling` twice",
            "line 1 column 90",
        ),
        (
            "{\"agents\": [{\"agent_id\": \"x\", \"dimensions\": [\"a\"]},\n{\"agent_id\": \"`x`\", \"dimensions\": [\"a\"]}]}",
            "the agent ``x`` is named twice",
            "line 2 column 41",
        ),
    ] {
        let place = TestFolder::new().with_file("team.json", team).with_file("a.txt", WHOLE_RESULT);
        let run = place.run(&["findings", "plan", "--team", "team.json", "a.txt"]);
        assert_eq!(run.code, 2, "{team}");
        for part in [problem, place_of_it, "hint: A team is"] {
            assert!(run.errors.contains(part), "{part}: {}", run.errors);
        }
    }
    let place = TestFolder::new();
    assert_eq!(place.run(&["findings", "check", "missing.txt"]).code, 2);
    assert_eq!(place.run(&["findings", "fit", "--budget-left", "-3"]).code, 2);
    let utf16 = place.run_with_input(&["findings", "check"], b"\xff\xfe=\0=\0");
    assert_eq!((utf16.code, utf16.errors.contains("iconv")), (2, true), "{}", utf16.errors);
}

/// AR-4: an agent that is not in the team is planned for and reported.
#[test]
fn an_agent_outside_the_team_is_reported() {
    let of = |agent: &str| format!(r#"{{"agents": [{{"agent_id": "{agent}", "dimensions": ["a"]}}]}}"#);
    for command in ["plan", "merge", "report"] {
        let place = TestFolder::new().with_file("a.txt", WHOLE_RESULT).with_file("other.json", of("other"));
        let other = place.run(&["findings", command, "--team", "other.json", "a.txt"]);
        assert!(other.errors.contains("a.txt: the agent `x` is not in the team"), "{}", other.errors);
        let alone = place.run(&["findings", command, "a.txt"]);
        let place = place.with_file("team.json", of("X_"));
        let team = place.run(&["findings", command, "--team", "team.json", "a.txt"]);
        for run in [alone, team] {
            assert!(!run.errors.contains("not in the team"), "{}", run.errors);
        }
    }
}

/// EN-1: a negative answer states what to do next.
#[test]
fn an_incomplete_result_comes_with_advice() {
    let short = WHOLE_RESULT.replace("dimensions: a\n", "dimensions: a\ndeclared_findings: 3\n");
    assert_ne!(short, WHOLE_RESULT);
    for text in [cut_result(), &short] {
        let place = TestFolder::new().with_file("a.txt", text);
        let answer: Value =
            serde_json::from_str(&place.run(&["findings", "check", "a.txt", "--json"]).output).unwrap();
        let hint = answer["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("endmark findings plan"), "{answer}");
    }
}

/// More findings than declared are accepted and reported, also in the final report.
#[test]
fn more_findings_than_declared_are_reported() {
    let more = WHOLE_RESULT.replace("dimensions: a\n", "dimensions: a\ndeclared_findings: 0\n");
    let place = TestFolder::new().with_file("a.txt", &more);
    for (command, code) in [("check", 1), ("merge", 0), ("report", 0)] {
        let run = place.run(&["findings", command, "a.txt"]);
        assert_eq!(run.code, code, "{command}");
        let expected_warning =
            "a.txt: line 1, column 1: `0` is the declared number of findings, but there are more";
        assert!(run.errors.contains(expected_warning), "{command}: {}", run.errors);
    }
}

/// AR-6: an agent's text is never a link in a SARIF message.
#[test]
fn agent_text_is_never_a_link_in_sarif() {
    let title = "See [here](https://example.org) for {name}";
    let first = WHOLE_RESULT.lines().find(|line| line.starts_with("[F001]")).unwrap();
    let text = WHOLE_RESULT.replace(first, &format!("[F001] {title}"));
    let sarif = TestFolder::new()
        .with_file("a.txt", &text)
        .run(&["findings", "report", "--to", "sarif", "a.txt"])
        .output;
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    let message = result["message"]["text"].as_str().unwrap();
    assert!(message.starts_with(r"See \[here\](https://example.org) for {{name}}"), "{message}");
    assert_eq!(result["properties"]["title"], title);
}

/// AR-5: the report states what a truncated finding lacks.
#[test]
fn the_report_names_missing_parts_of_a_finding() {
    let text = WHOLE_RESULT.replace("severity: High\n", "");
    assert_ne!(text, WHOLE_RESULT);
    let report = TestFolder::new().with_file("a.txt", &text).run(&["findings", "report", "a.txt"]).output;
    assert!(report.contains("- **missing:** severity\n"), "{report}");
    assert!(report.contains("- **originally_truncated:** true\n"), "{report}");
}

/// AR-3: a transcript is read as it grows, until its result is whole.
#[test]
fn a_growing_transcript_is_followed() {
    let place = TestFolder::new()
        .with_file("a.txt", "[CHECKPOINT] turn:10 findings:1 files_read:2 remaining_dims:a\n");
    let child = place.command(&["findings", "progress", "--follow", "a.txt", "--json"]).spawn().unwrap();
    let mut file = OpenOptions::new().append(true).open(place.path().join("a.txt")).unwrap();
    for part in ["[CHECKPOINT] turn:30 findings:2 files_", "read:5 remaining_dims:[]\n", WHOLE_RESULT] {
        file.write_all(part.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let transcript = &answer["data"]["transcripts"][0];
    assert_eq!((&transcript["whole"], &transcript["missing"][0]), (&true.into(), &20.into()), "{answer}");
    let idle = TestFolder::new()
        .with_file("a.txt", "")
        .run(&["findings", "progress", "--follow", "--idle", "0", "a.txt"]);
    assert_eq!(idle.code, 0, "{}", idle.errors);
    assert_eq!(TestFolder::new().run(&["findings", "progress", "--follow"]).code, 2);
}

/// Uses results that a small real model wrote for the protocol. Nothing is invented, and all results are
/// classified as a person classified them.
#[test]
fn results_of_a_real_model_match_the_human_classification() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/findings/recorded/results.jsonl");
    let place = TestFolder::new();
    let mut count = 0;
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let run = place.run_with_input(&["findings", "check", "--json"], line["text"].as_str().unwrap());
        let data = &run.envelope()["data"]["results"];
        let found: Vec<Value> = data
            .as_array()
            .unwrap()
            .iter()
            .map(|result| {
                let states =
                    result["findings"].as_array().unwrap().iter().map(|finding| finding["state"].clone());
                serde_json::json!({"cut": result["cut"], "findings": states.collect::<Vec<_>>()})
            })
            .collect();
        assert_eq!(Value::Array(found), line["label"], "{}", line["id"]);
        count += 1;
    }
    assert!(count >= 30, "{count}");
}

/// The commands of the tutorial print what it shows.
#[test]
fn the_tutorial_commands_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
    let page = std::fs::read_to_string(page).unwrap();
    let place = TestFolder::new();
    let (mut lines, mut commands) = (page.lines(), 0);
    while let Some(line) = lines.next() {
        let fence = &line[..line.len() - line.trim_start_matches('`').len()];
        let words = line[fence.len()..].trim();
        if fence.len() < 3 || words.is_empty() {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
        match words.split_once(' ') {
            Some(("file", name)) => std::fs::write(place.path().join(name), block.join("\n") + "\n").unwrap(),
            _ if words == "console" => commands += run_console_block(&place, &block),
            _ => {}
        }
    }
    assert!(commands >= 6, "{commands}");
}

/// Runs the lines that begin with `$`. The following lines are the expected output, unless `> NAME` stores
/// the output.
fn run_console_block(place: &TestFolder, block: &[&str]) -> usize {
    let mut commands = 0;
    let mut rest = block.iter().peekable();
    while let Some(line) = rest.next() {
        let command = line.strip_prefix("$ endmark ").unwrap_or_else(|| panic!("`{line}` is no command"));
        let mut expected = String::new();
        while let Some(line) = rest.next_if(|line| !line.starts_with("$ ")) {
            expected.push_str(line);
            expected.push('\n');
        }
        let (command, target) =
            command.split_once(" > ").map_or((command, None), |(command, name)| (command, Some(name)));
        let run = place.run(&command.split_whitespace().collect::<Vec<_>>());
        match target {
            Some(name) => std::fs::write(place.path().join(name), &run.output).unwrap(),
            None => assert_eq!(run.output, expected, "\n$ endmark {command}\n{}", run.errors),
        }
        commands += 1;
    }
    commands
}
