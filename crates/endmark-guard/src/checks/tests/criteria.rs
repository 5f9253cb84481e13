use crate::{Artifact, Criteria, Guard, Template};

fn names(criteria: Criteria, text: &str) -> Vec<(&'static str, usize)> {
    let report = Guard::new(criteria).judge(&Artifact::read(text));
    report.findings().iter().map(|finding| (finding.check.name(), finding.line)).collect()
}

fn sections(required_titles: &[&str]) -> Criteria {
    Criteria {
        required_sections: required_titles.iter().map(|wanted| (*wanted).to_owned()).collect(),
        ..Criteria::default()
    }
}

#[test]
fn nonblank_lines_are_counted_without_front_matter() {
    let criteria = |least| Criteria { min_lines: Some(least), ..Criteria::default() };
    let text = "---\ntitle: T\n---\n# A\n\n\nOne.\n \nTwo.\n";
    assert_eq!(names(criteria(3), text), []);
    assert_eq!(names(criteria(4), text), [("min_lines", 9)]);
}

#[test]
fn a_section_is_found_at_any_level_by_default() {
    let text = "# Report\n\n### 2. RISKS:\n\nNone.\n\n**Costs**\n\nNone.\n\n<h2>Plan</h2>\n\nNone.\n\nDates\n-----\n\nNone.\n";
    for wanted in ["Risks", "### risks", "Costs", "plan", "## Plan", "dates", "3. Risks"] {
        assert_eq!(names(sections(&[wanted]), text), [], "{wanted}");
    }
    for wanted in ["## Risks", "Risk", "Owners"] {
        assert_eq!(
            names(sections(&[wanted]), text).first().map(|(name, _)| *name),
            Some("section_missing"),
            "{wanted}"
        );
    }
}

#[test]
fn a_section_with_nonempty_subsections_is_not_empty() {
    let text = "# A\n\n## B\n\n### C\n\nText.\n\n## D\n\n## E\n\n---\n\n<!-- x -->\n\n## F\n\n```\nx\n```\n";
    for full in ["A", "B", "C", "F"] {
        assert_eq!(names(sections(&[full]), text), [], "{full}");
    }
    assert_eq!(names(sections(&["D", "E"]), text), [("section_empty", 9), ("section_empty", 11)]);
}

#[test]
fn a_section_with_only_a_placeholder_has_one_finding() {
    let text = "# A\n\n## B\n\nTBD\n\n## C\n\n...\n\n## D\n\nText.\n\nTBD\n";
    let found = names(sections(&["B", "C"]), text);
    assert_eq!(found, [("placeholder", 5), ("section_empty", 7), ("placeholder", 15)]);
}

#[test]
fn a_placeholder_does_not_count_as_content() {
    let stubs = [
        "...",
        "…",
        "[...]",
        "???",
        "- ...",
        "1. ...\n2. ...",
        "`...`",
        "{{NAME}}",
        "{{ risk }}",
        "todo",
        "T.B.D.",
        "Pending.",
        "<summary of the risks>",
        "[RISKS]",
        "$RISKS",
        "%RISKS%",
        "To come.",
    ];
    let contents = [
        "None.",
        "`...`s are allowed.",
        "[None]",
        "<https://example.org/risks>",
        "[risks](risks.md)",
        "Few risks.",
    ];
    for (text, is_empty) in
        stubs.iter().map(|stub| (*stub, true)).chain(contents.iter().map(|content| (*content, false)))
    {
        let text = format!("# A\n\nText.\n\n## Risks\n\n{text}\n\n## C\n\nText.\n");
        let found = names(sections(&["Risks"]), &text);
        assert_eq!(!found.is_empty(), is_empty, "{text}: {found:?}");
    }
}

#[test]
fn one_of_two_equal_sections_must_have_content() {
    assert_eq!(names(sections(&["B"]), "## B\n\n## A\n\nx.\n\n## B\n\nText.\n"), []);
}

#[test]
fn a_missing_section_names_the_most_similar_heading() {
    let report = Guard::new(sections(&["Summary"])).judge(&Artifact::read("# Sumary\n\nText.\n"));
    assert!(report.findings()[0].fix.contains("`Sumary`"), "{report:?}");
}

#[test]
fn forbidden_phrases_are_ignored_in_code_and_quotations() {
    let criteria = || Criteria {
        forbidden_phrases: vec!["we  Hope".to_owned(), "希望".to_owned()],
        ..Criteria::default()
    };
    assert_eq!(names(criteria(), "# A\n\nSo **we\nhope** that it works.\n"), [("forbidden_phrase", 3)]);
    assert_eq!(names(criteria(), "# A\n\n我们希望如此。\n"), [("forbidden_phrase", 3)]);
    for text in [
        "`we hope` so.",
        "\"We hope\", he said.",
        "> we hope\n\nNot us.",
        "We hopefully do.",
        "```\nwe hope\n```\n",
    ] {
        assert_eq!(names(criteria(), text), [], "{text}");
    }
}

#[test]
fn stage_phrases_replace_the_known_phrases() {
    let text = "# A\n\nText.\n\nTo be continued.\n";
    assert_eq!(names(Criteria::default(), text), [("handoff", 5)]);
    assert_eq!(names(Criteria::default().with_only_forbidden_phrases(Vec::new()), text), []);
}

#[test]
fn an_unchanged_template_is_reported() {
    let source = "---\nsuccessCriteria:\n  minLines: 2\n---\n# Report\n\nWhat was done?\n";
    let guard = Guard::from_template(Template::read("t.md", source).unwrap());
    let checks = |text: &str| {
        guard
            .judge(&Artifact::read(text))
            .findings()
            .iter()
            .map(|finding| finding.check.name())
            .collect::<Vec<_>>()
    };
    assert_eq!(checks(source), ["untouched"]);
    assert_eq!(checks("# Report\r\n\r\n\r\nWhat was done?"), ["untouched"]);
    assert_eq!(checks("# Report\n\nThe parser was done.\n"), [] as [&str; 0]);
}
