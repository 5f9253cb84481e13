//! Artifacts. Any text can be judged under any name, positions are inside the text, and any text can be read
//! or rejected as a template.

use endmark_guard::{Artifact, AssessedArtifact, Criteria, Guard, Template, Verdict, github, junit, sarif};

/// Judges the text with several file names, and reads it as a template.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let criteria = Criteria {
        min_lines: Some(3),
        required_sections: vec!["Risks".to_owned(), "## 2. Costs:".to_owned()],
        forbidden_phrases: vec!["as time permits".to_owned()],
        ..Criteria::default()
    };
    let guard = Guard::new(criteria);
    for name in ["", "a.md", "a.rs", "a.json"] {
        let report = guard.judge(&Artifact::read_file(&text, name));
        assert_eq!(report.verdict() == Verdict::Whole, report.findings().is_empty());
        let lines = text.split('\n').count();
        let mut last = (1, 1);
        for finding in report.findings() {
            assert!(finding.line <= lines && finding.column >= 1);
            assert!((finding.line, finding.column) >= last, "findings are in order");
            last = (finding.line, finding.column);
            assert!(text.contains(finding.text.trim_end_matches('…')));
        }
        let judged = [AssessedArtifact { path: "a b.md", report: &report }];
        assert_eq!(github(&judged).lines().count(), report.findings().len());
        assert_eq!(
            sarif(&judged, "0")["runs"][0]["results"].as_array().unwrap().len(),
            report.findings().len()
        );
        assert!(junit(&judged).ends_with("</testsuites>\n"));
    }
    for name in ["t.md", "t.yaml", "t.toml", "t.json"] {
        if let Ok(template) = Template::read(name, &text) {
            Guard::from_template(template).judge(&Artifact::read(&text));
        }
    }
}
