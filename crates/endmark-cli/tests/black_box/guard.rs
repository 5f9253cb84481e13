//! `guard`: artifacts, templates, batches, and output formats for other tools.

use serde_json::{Value, json};

use crate::run::TestFolder;

const WHOLE_REPORT: &str = "# Report\n\nAll of it is done.\n";
const STUB_REPORT: &str = "# Report\n\nTBD\n";

#[test]
fn the_exit_code_is_the_verdict() {
    let place = TestFolder::new().with_file("whole.md", WHOLE_REPORT).with_file("stub.md", STUB_REPORT);
    let whole = place.run(&["guard", "whole.md"]);
    assert_eq!((whole.code, whole.output.as_str()), (0, "whole.md: whole\n"));
    let stub = place.run(&["guard", "whole.md", "stub.md"]);
    assert_eq!((stub.code, stub.errors.as_str()), (1, ""));
    assert!(stub.output.contains("stub.md: wrapped_up\n  3:1      placeholder  TBD\n"), "{}", stub.output);
    assert_eq!(place.run_with_input(&["guard", "-"], STUB_REPORT).code, 1);
    assert_eq!(place.run_with_input(&["guard"], WHOLE_REPORT).code, 0);
    let missing = place.run(&["guard", "nowhere.md"]);
    assert_eq!(missing.code, 1);
    assert!(missing.output.contains("missing"), "{}", missing.output);
}

#[test]
fn the_envelope_has_each_finding_with_its_artifact() {
    let place = TestFolder::new().with_file("stub.md", STUB_REPORT);
    let envelope = place.run(&["guard", "stub.md", "--json"]).envelope();
    assert_eq!(envelope["error"]["code"], "wrapped_up");
    assert_eq!(
        envelope["data"],
        json!({
            "verdict": "wrapped_up",
            "findings": [{
                "artifact": "stub.md", "check": "placeholder", "line": 3, "column": 1, "text": "TBD",
                "why": "a placeholder instead of content", "fix": "Write the content in its place.",
            }],
            "artifacts": [{"artifact": "stub.md", "verdict": "wrapped_up", "findings": 1}],
            "rendered": null,
        })
    );
}

#[test]
fn command_line_criteria_add_to_the_template() {
    let template = "---\nsuccessCriteria:\n  requiredSections: [Summary]\n---\n# Report\n";
    let place = TestFolder::new().with_file("t.md", template).with_file("a.md", "# Report\n\nWe hope so.\n");
    let arguments = [
        "guard",
        "a.md",
        "--template",
        "t.md",
        "--min-lines",
        "3",
        "--section",
        "Risks",
        "--forbid",
        "we hope",
        "--json",
    ];
    let envelope = place.run(&arguments).envelope();
    let found: Vec<&str> = envelope["data"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["check"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["forbidden_phrase", "min_lines", "section_missing", "section_missing"]);
}

#[test]
fn unusable_criteria_are_refused_with_advice() {
    let place = TestFolder::new()
        .with_file("latin.md", b"# R\xe4t\n")
        .with_file("wide.md", b"\xff\xfeR\x00")
        .with_file("t.md", "# No front matter\n")
        .with_file("slip.yaml", "minLine: 3\n")
        .with_file("a.md", WHOLE_REPORT);
    for (arguments, said) in [
        (&["guard", "latin.md"][..], "not UTF-8: byte 3"),
        (&["guard", "wide.md"], "UTF-16"),
        (&["guard", "."], "cannot read `.`"),
        (&["guard", "-", "-"], "named twice"),
        (&["guard", "a.md", "--template", "t.md"], "there is no criterion"),
        (&["guard", "a.md", "--template", "slip.yaml"], "the nearest is `min_lines`"),
        (&["guard", "a.md", "--template", "none.md"], "cannot read `none.md`"),
        (&["guard", "a.md", "--min-lines", "0"], "0"),
        (&["guard", "a.md", "--section", "…"], "--section"),
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.output.as_str()), (2, ""), "{arguments:?}");
        assert!(run.errors.contains(said), "{arguments:?}: {}", run.errors);
    }
}

#[test]
fn a_batch_continues_after_an_invalid_line() {
    let input = concat!(
        "{\"id\":\"a\",\"text\":\"All of it is done.\"}\n",
        "nothing\n",
        "{\"id\":2,\"text\":\"# A\\n\\nB.\",\"min_lines\":5,\"required_sections\":[\"C\"],\"forbidden_phrases\":[\"b\"]}\n",
        "{\"id\":3,\"text\":\"To be continued.\",\"forbidden_phrases_only\":[]}\n",
        "{\"id\":4,\"name\":\"a.py\",\"text\":\"# ... existing code ...\"}\n",
        "{\"id\":5}\n",
        "{\"id\":6,\"text\":\"x\",\"min_lines\":-1}\n",
        "{\"id\":7,\"text\":\"x\",\"required_sections\":\"C\"}\n",
    );
    let run = TestFolder::new().run_with_input(&["guard", "--batch"], input);
    assert_eq!(run.code, 2);
    let answers: Vec<Value> = run.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0], json!({"id": "a", "verdict": "whole", "findings": []}));
    assert_eq!(answers[1]["error"]["code"], "invalid_line");
    let checks = |answer: &Value| -> Vec<String> {
        let findings = answer["findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["check"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(checks(&answers[2]), ["forbidden_phrase", "min_lines", "section_missing"]);
    assert_eq!(answers[3]["verdict"], "whole");
    assert_eq!(checks(&answers[4]), ["omission"]);
    for (answer, said) in
        [(&answers[5], "`text` is missing"), (&answers[6], "whole number"), (&answers[7], "list of strings")]
    {
        assert!(answer["error"]["message"].as_str().unwrap().contains(said), "{answer}");
    }
    let no =
        TestFolder::new().run_with_input(&["guard", "--batch"], "{\"id\":1,\"text\":\"To be continued.\"}\n");
    assert_eq!(no.code, 1);
    let yes = TestFolder::new().run_with_input(&["guard", "--batch"], "{\"id\":1,\"text\":\"Done.\"}\n");
    assert_eq!(yes.code, 0);
}

#[test]
fn other_tools_get_their_own_output_format() {
    let place = TestFolder::new().with_file("stub.md", STUB_REPORT);
    let github = place.run(&["guard", "--to", "github", "stub.md"]);
    assert_eq!(github.code, 1);
    assert!(github.output.starts_with("::error file=stub.md,line=3,col=1,"), "{}", github.output);
    let sarif = place.run(&["guard", "--to", "sarif", "stub.md"]);
    let document: Value = serde_json::from_str(&sarif.output).unwrap();
    assert_eq!(document["runs"][0]["results"][0]["ruleId"], "placeholder");
    let junit = place.run(&["guard", "--to", "junit", "stub.md"]);
    assert!(junit.output.contains("<failure type=\"wrapped_up\""), "{}", junit.output);
    let envelope = place.run(&["guard", "--to", "junit", "stub.md", "--json"]).envelope();
    assert_eq!(envelope["data"]["rendered"], junit.output.as_str());
}
