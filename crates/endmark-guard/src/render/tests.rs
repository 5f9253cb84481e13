use super::*;
use crate::{Artifact, Criteria, Guard};

fn report() -> Assessment {
    let criteria = Criteria { required_sections: vec!["A & <b>".to_owned()], ..Criteria::default() };
    Guard::new(criteria).judge(&Artifact::read("# 100% done\n\nTBD\n"))
}

#[test]
fn every_output_format_contains_positions_and_escaped_text() {
    let (report, whole) =
        (report(), Guard::new(Criteria::default()).judge(&Artifact::read("All is well.\n")));
    let judged = [
        AssessedArtifact { path: "a b,c.md", report: &report },
        AssessedArtifact { path: "whole.md", report: &whole },
    ];

    let annotations = github(&judged);
    assert_eq!(annotations.lines().count(), 2, "{annotations}");
    assert!(
        annotations.contains(
            "::error file=a b%2Cc.md,line=3,col=1,title=endmark guard%3A placeholder::placeholder: `TBD`:"
        ),
        "{annotations}"
    );

    let xml = junit(&judged);
    assert!(xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("`A &amp; &lt;b&gt;`"), "{xml}");
    assert!(
        xml.contains("<testcase name=\"whole.md\" classname=\"endmark.guard\" file=\"whole.md\"></testcase>"),
        "{xml}"
    );

    let sarif = sarif(&judged, "1.0.0");
    let first = &sarif["runs"][0]["results"][0];
    assert_eq!(first["ruleId"], "placeholder");
    let rule = usize::try_from(first["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"][rule]["id"], "placeholder");
    let place = &first["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b%2Cc.md");
    assert_eq!(
        place["region"],
        serde_json::json!({"startLine": 3, "startColumn": 1, "snippet": {"text": "TBD"}})
    );
}

#[test]
fn characters_invalid_in_xml_are_replaced() {
    assert_eq!(super::escape_xml("a\u{0}\u{1b}[1m<&\"\n"), "a\u{fffd}\u{fffd}[1m&lt;&amp;&quot;&#10;");
}
