//! Tests of recovery, merging and disclosure, rule by rule. (AR-2, AR-4, AR-5, AR-6)

use std::fmt::Write as _;

use crate::{
    AgentResult, Assignment, Cut, DeliveredResult, MergedResults, Recovery, RecoveryPolicy, RecoveryState,
    RunKind, Team, compress, read,
};

fn names(list: &str) -> Vec<String> {
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn recovery(dimensions: &str, turns: u32, rounds: u32, emergency: bool) -> Recovery {
    let assignment =
        Assignment { agent_id: "a".into(), dimensions: names(dimensions), max_turns: Some(turns) };
    Recovery::new(assignment, RecoveryPolicy { rounds, emergency })
}

/// The kind, round, dimensions, turn limit and finding limit of a run.
type RequestedRun = (RunKind, u32, String, Option<u32>, Option<u32>);

fn next_run(recovery: &Recovery) -> Option<RequestedRun> {
    recovery
        .next()
        .map(|run| (run.kind, run.round, run.dimensions.join(","), run.max_turns, run.max_findings))
}

#[test]
fn a_mild_cut_is_supplemented_in_the_next_round() {
    let mut recovery = recovery("a,b,c", 40, 2, true);
    recovery.note_end(Cut::Mild, names("c"));
    assert_eq!(next_run(&recovery), Some((RunKind::Supplement, 2, "c".into(), Some(40), None)));
    recovery.note_end(Cut::Whole, vec![]);
    assert_eq!((next_run(&recovery), recovery.state()), (None, RecoveryState::Recovered));
}

#[test]
fn a_severe_cut_is_retried_once_with_half() {
    for (dimensions, turns, half, turns_of_half, rest) in
        [("a,b,c", 25, "a,b", 13, "c"), ("a,b,c,d", 40, "a,b", 20, "c,d"), ("a", 1, "a", 1, "")]
    {
        let mut recovery = recovery(dimensions, turns, 2, true);
        recovery.note_end(Cut::Severe, vec![]);
        assert_eq!(next_run(&recovery), Some((RunKind::Retry, 1, half.into(), Some(turns_of_half), Some(5))));
        recovery.note_end(Cut::Whole, vec![]);
        let expected = (!rest.is_empty()).then(|| (RunKind::Supplement, 2, rest.into(), Some(turns), None));
        assert_eq!(next_run(&recovery), expected);
    }
}

#[test]
fn a_failed_retry_leads_to_the_next_round_and_an_emergency_agent() {
    let mut recovery = recovery("a,b,c", 25, 2, true);
    recovery.note_end(Cut::Severe, vec![]);
    recovery.note_end(Cut::Severe, vec![]);
    assert_eq!(next_run(&recovery), Some((RunKind::Supplement, 2, "c,a,b".into(), Some(25), None)));
    // Only dimensions that were not retried before are retried.
    recovery.note_end(Cut::Severe, vec![]);
    assert_eq!(next_run(&recovery), Some((RunKind::Retry, 2, "c".into(), Some(13), Some(5))));
    recovery.note_end(Cut::Severe, vec![]);
    assert_eq!(next_run(&recovery), Some((RunKind::Emergency, 3, "a,b,c".into(), Some(25), None)));
    recovery.note_end(Cut::Mild, names("b"));
    assert_eq!((next_run(&recovery), recovery.state()), (None, RecoveryState::NotRecovered));
    assert_eq!(recovery.gaps(), ["b"]);
}

#[test]
fn without_an_emergency_agent_the_gap_is_reported() {
    let mut recovery = recovery("a", 9, 1, false);
    recovery.note_end(Cut::Mild, vec![]);
    assert_eq!((recovery.gaps(), recovery.state()), (&names("a")[..], RecoveryState::NotRecovered));
}

/// The emergency run happens only once, and a cut in it is not retried.
#[test]
fn a_cut_emergency_run_is_not_retried() {
    let mut recovery = recovery("a,b", 9, 1, true);
    recovery.note_end(Cut::Mild, names("b"));
    assert_eq!(next_run(&recovery).map(|planned| planned.0), Some(RunKind::Emergency));
    recovery.note_end(Cut::Severe, vec![]);
    assert_eq!((next_run(&recovery), recovery.gaps()), (None, &names("b")[..]));
    for end in ["", "\n"] {
        recovery.accept_result(&result("a", &[("One", "CWE-89", "a.c:1")], end).result);
        assert_eq!(next_run(&recovery), None);
        assert_eq!(recovery.gaps(), names("b,a"));
    }
}

/// A complete result covers the dimensions that it names, whether or not it was requested.
#[test]
fn an_unrequested_whole_result_closes_the_gaps_of_its_agent() {
    let whole = |agent: &str, count: usize| {
        let findings = [("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1"), ("C", "CWE-22", "c.c:1")];
        let all: Vec<_> = findings.iter().cycle().take(count).copied().collect();
        result(agent, &all, END).result
    };
    // The results that `whole` returns name the dimensions a and b.
    let mut retried = recovery("a,b", 9, 2, true);
    retried.note_end(Cut::Severe, vec![]);
    assert_eq!(retried.waiting_dimensions(), names("b"));
    let mut limited = retried.clone();
    retried.accept_result(&whole("a", 3));
    assert_eq!((next_run(&retried), retried.state()), (None, RecoveryState::Recovered));
    // A retry may have at most five findings. This one has five, so more may be missing.
    limited.accept_result(&whole("a", 5));
    assert_eq!(next_run(&limited).map(|planned| planned.2), Some("b,a".into()));
    for dimensions in ["a,b", "a", ""] {
        let mut gone = recovery(dimensions, 9, 1, false);
        gone.note_end(Cut::Mild, vec![]);
        assert_eq!(gone.state(), RecoveryState::NotRecovered);
        gone.accept_result(&whole("a", 3));
        assert_eq!((gone.gaps(), gone.state()), (&[][..], RecoveryState::Recovered), "{dimensions}");
    }
    let mut other = recovery("a,c", 9, 1, false);
    other.note_end(Cut::Mild, vec![]);
    other.accept_result(&whole("a", 3));
    assert_eq!(other.gaps(), ["c"]);
    // A result with fewer findings than declared covers nothing.
    let mut short = recovery("a,b", 9, 1, false);
    short.note_end(Cut::Mild, vec![]);
    short.accept_result(&AgentResult { declared_findings: Some(9), ..whole("a", 3) });
    assert_eq!(short.gaps(), names("a,b"));
    let mut waiting = recovery("a,b", 9, 2, true);
    waiting.note_end(Cut::Severe, vec![]);
    waiting.accept_result(&AgentResult { declared_findings: Some(4), ..whole("a", 3) });
    assert_eq!(next_run(&waiting).map(|planned| planned.2), Some("b,a".into()));
}

/// The last complete run delivers everything that the cut run before it lost.
#[test]
fn findings_of_a_complete_rerun_are_not_missing() {
    let whole = || {
        let mut delivered = result("x", &[("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1")], END);
        delivered.result.declared_findings = Some(2);
        delivered
    };
    let cut = || {
        let mut delivered = result("x", &[("A", "CWE-89", "a.c:1")], "\n");
        delivered.result.declared_findings = Some(2);
        delivered
    };
    let outcome = |delivered: Vec<DeliveredResult>| {
        let merged = MergedResults::new(&Team::default(), delivered);
        let report = merged.report();
        let disclosure = report.disclosure();
        (merged.recovery_state(0), disclosure.unrecovered.count, disclosure.has_gaps())
    };
    let at_least = |delivered: Vec<DeliveredResult>| {
        let report = MergedResults::new(&Team::default(), delivered).report();
        let unrecovered = &report.disclosure().unrecovered;
        (unrecovered.count, unrecovered.at_least)
    };
    assert_eq!(outcome(vec![whole(), cut(), whole()]), (RecoveryState::Recovered, 0, false));
    assert_eq!(outcome(vec![cut(), whole()]), (RecoveryState::Recovered, 0, false));
    // A result about other dimensions, or with too few findings, does not make up for the cut. The findings that the
    // cut result lacks may be those of the first result, or others.
    let mut elsewhere = whole();
    elsewhere.result.dimensions = names("c");
    assert_eq!(at_least(vec![whole(), cut(), elsewhere]), (0, true));
    let mut more = cut();
    more.result.declared_findings = Some(4);
    assert_eq!(at_least(vec![whole(), more, whole()]), (2, true));
}

/// Findings that a supplement lost are not missing if the emergency run, which had the same task, delivers them.
#[test]
fn findings_of_a_cut_supplement_are_not_missing_after_an_emergency_run() {
    let (a, b, c) = (("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1"), ("C", "CWE-22", "c.c:1"));
    let declaring = |findings: &[(&str, &str, &str)], end: &str, declared: Option<u32>| {
        let mut delivered = result("x", findings, end);
        delivered.result.declared_findings = declared;
        delivered
    };
    let unrecovered = |delivered: Vec<DeliveredResult>| {
        let merged = MergedResults::new(&Team::default(), delivered);
        let report = merged.report();
        let unrecovered = &report.disclosure().unrecovered;
        (merged.recovery_state(0), unrecovered.count, unrecovered.at_least)
    };
    let unfinished =
        "\n[F002] B\nseverity: Medium\ncwe: CWE-79\nlocation: b.c:1\nsource: s\nsink: k\nflow: s -> m";
    let first = || declaring(&[a], unfinished, Some(3));
    let nothing = || declaring(&[], "\n[F001]", Some(2));
    let rest = || declaring(&[b, c], END, Some(2));
    assert_eq!(unrecovered(vec![first(), nothing(), rest()]), (RecoveryState::Recovered, 0, false));
    // This supplement has a partial finding that the last result does not contain.
    let other = declaring(&[], "\n[F001] D\nseverity: High\n", Some(2));
    assert_ne!(unrecovered(vec![first(), other, rest()]).0, RecoveryState::Recovered);
    // The last result has as many findings as the supplement declared, so nothing is missing.
    let whole = declaring(&[a, b, c], "\n", None);
    let again = declaring(&[a, b], END, Some(2));
    assert_eq!(unrecovered(vec![whole, nothing(), again]), (RecoveryState::Recovered, 0, false));
}

/// A complete emergency run delivers everything, including the findings of a run that was cut before it declared their
/// number.
#[test]
fn a_complete_emergency_run_leaves_nothing_missing() {
    let (a, b) = (("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1"));
    let (c, d) = (("C", "CWE-22", "c.c:1"), ("D", "CWE-78", "d.c:1"));
    let delivered = |findings: &[(&str, &str, &str)], end: &str, declared: Option<u32>| {
        let mut delivered = result("x", findings, end);
        delivered.result.declared_findings = declared;
        delivered
    };
    let nothing = delivered(&[], "", None);
    let second = delivered(&[a], "\n[F002] B\nseverity: High\n", Some(2));
    let third = delivered(&[c], "\n[F002] D\nseverity: High\n", Some(4));
    let state = |emergency: DeliveredResult| {
        let merged = MergedResults::new(
            &Team::default(),
            vec![nothing.clone(), second.clone(), third.clone(), emergency],
        );
        (merged.recovery_state(0), merged.report().disclosure().has_gaps())
    };
    assert_eq!(state(delivered(&[c, d, a, b], END, Some(4))), (RecoveryState::Recovered, false));
    // This emergency run has fewer findings than the third run declared.
    assert_eq!(state(delivered(&[c, a, b], END, Some(3))), (RecoveryState::NotRecovered, true));
}

/// A supplement that was cut before its first finding may have contained the same findings again, or others.
#[test]
fn the_number_in_an_empty_supplement_is_uncertain() {
    let delivered = |findings: &[(&str, &str, &str)]| {
        let mut delivered = result("x", findings, "\n");
        delivered.result.declared_findings = Some(3);
        delivered
    };
    let first = delivered(&[("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1")]);
    let report = MergedResults::new(&Team::default(), vec![first, delivered(&[])]).report();
    let unrecovered = &report.disclosure().unrecovered;
    assert_eq!((unrecovered.count, unrecovered.at_least), (1, true));
}

/// A retry with the maximum number of findings may have omitted more.
#[test]
fn a_retry_with_the_maximum_of_findings_is_followed_by_another_round() {
    let five = ["a", "b", "c", "d", "e"].map(|file| (file, "CWE-89", format!("{file}.c:1")));
    let five = five.each_ref().map(|(title, cwe, place)| (*title, *cwe, place.as_str()));
    let retried = |brings: usize, rounds: u32, emergency: bool| {
        let mut recovery = recovery("a", 9, rounds, emergency);
        recovery.accept_result(&read(b"").results.remove(0));
        assert_eq!(next_run(&recovery).map(|planned| planned.4), Some(Some(5)));
        recovery.accept_result(&result("a", &five[..brings], END).result);
        recovery
    };
    let planned = |recovery: &Recovery| next_run(recovery).map(|planned| (planned.0, planned.2, planned.4));
    let again = |kind| Some((kind, "a".to_owned(), None));
    assert_eq!(planned(&retried(5, 2, true)), again(RunKind::Supplement));
    assert_eq!(planned(&retried(5, 1, true)), again(RunKind::Emergency));
    assert_eq!(planned(&retried(4, 2, true)), None);
    let last = retried(5, 1, false);
    assert_eq!(
        (planned(&last), last.gaps(), last.state()),
        (None, &names("a")[..], RecoveryState::NotRecovered)
    );
}

/// A finding with only a title may be missing if no later round mentions it, whatever number was declared.
#[test]
fn a_title_that_no_later_round_mentions_is_reported() {
    let (a, b) = (("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1"));
    let delivered = |findings: &[(&str, &str, &str)], end: &str, declared: Option<u32>| {
        let mut delivered = result("x", findings, end);
        delivered.result.declared_findings = declared;
        delivered
    };
    let report_of = |delivered: Vec<DeliveredResult>| {
        let report = MergedResults::new(&Team::default(), delivered).report();
        let unrecovered = &report.disclosure().unrecovered;
        (unrecovered.count, unrecovered.at_least, report.disclosure().needs_reaudit)
    };
    let half = |number: u32, title: &str| format!("\n[F{number:03}] {title}\nseverity: High\n");
    let both = || delivered(&[a, b], "\n", Some(2));
    let again = || delivered(&[a, b], END, Some(2));
    // The complete repetition contains everything except that finding.
    assert_eq!(report_of(vec![both(), delivered(&[], &half(1, "C"), None), again()]), (0, true, 1));
    // The result contains it under its title, or contains a new finding that may be the same.
    let third = |title: &'static str| delivered(&[a, b, (title, "CWE-22", "c.c:1")], END, Some(3));
    for title in ["C", "In other words"] {
        assert_eq!(report_of(vec![both(), delivered(&[], &half(1, "C"), None), third(title)]), (0, false, 0));
    }
    // Two findings were cut, and one new finding was delivered.
    let first = || delivered(&[a], &half(2, "B"), None);
    let second = || delivered(&[], &half(1, "C"), None);
    assert_eq!(report_of(vec![first(), second()]), (1, true, 2));
    assert_eq!(
        report_of(vec![first(), second(), delivered(&[("D", "CWE-22", "d.c:1")], END, None)]),
        (0, true, 1)
    );
    // The same title in another file is another finding.
    let elsewhere = "\n[F001] A\nseverity: High\nlocation: z.c:7\n";
    assert_eq!(report_of(vec![both(), delivered(&[], elsewhere, None), again()]), (0, true, 1));
    // With another source it may be another finding.
    let flows = "\n[F001] A\nseverity: High\nsource: the header of another request\n";
    assert_eq!(report_of(vec![both(), delivered(&[], flows, None), again()]), (0, true, 1));
}

/// A supplement that begins with the cut finding delivers that finding, whatever its number. A supplement that is cut
/// after the number of a known finding may only repeat it.
#[test]
fn a_supplement_cut_in_a_known_finding_may_lack_nothing() {
    let (a, b) = (("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1"));
    let report_of =
        |first: (&[(&str, &str, &str)], &str), second: (&[(&str, &str, &str)], &str), declared: [u32; 2]| {
            let delivered = [first, second].into_iter().zip(declared).map(|((findings, end), declared)| {
                let mut delivered = result("x", findings, end);
                delivered.result.declared_findings = Some(declared);
                delivered
            });
            let report = MergedResults::new(&Team::default(), delivered.collect()).report();
            let unrecovered = &report.disclosure().unrecovered;
            (unrecovered.count, unrecovered.at_least)
        };
    let cut = "\n[F003] C\nseverity: High\ncwe: CWE-22\nlocation: c.c:1\nsource: s\nsink: k\n";
    assert_eq!(report_of((&[a, b], cut), (&[], "\n[F001] C\nseverity: High\n"), [3, 1]), (0, false));
    let renamed = "\n[F001] In other words\nseverity: High\ncwe: CWE-22\nlocation: c.c:1\n";
    assert_eq!(report_of((&[a, b], cut), (&[], renamed), [3, 1]), (0, false));
    assert_eq!(
        report_of((&[a, b], cut), (&[], "\n[F001] In other words\nseverity: High\n"), [3, 1]),
        (0, true)
    );
    assert_eq!(
        report_of((&[a, b], cut), (&[], "\n[F001] D\nseverity: High\ncwe: CWE-1\n"), [3, 1]),
        (1, false)
    );
    assert_eq!(report_of((&[a, b], "\n"), (&[], "\n[F001]"), [2, 2]), (0, true));
    assert_eq!(report_of((&[a, b], "\n"), (&[a], "\n[F002]"), [2, 2]), (0, true));
    assert_eq!(report_of((&[a, b], "\n"), (&[a], "\n[F002] In other wo"), [2, 2]), (0, true));
}

/// A result that declares one finding and numbers it 6 has only one finding.
#[test]
fn numbers_above_the_declared_count_refer_to_earlier_rounds() {
    let places = ["a", "b", "c", "d", "e"].map(|file| format!("{file}.c:1"));
    let of = |at: &[usize]| -> Vec<(&str, &str, &str)> {
        at.iter().filter_map(|at| Some(("", "CWE-89", places.get(*at)?.as_str()))).collect()
    };
    let delivered = |findings: &[usize], end: &str, declared: Option<u32>| {
        let mut delivered = result("x", &of(findings), end);
        delivered.result.declared_findings = declared;
        delivered
    };
    let unrecovered = |mut rounds: Vec<DeliveredResult>, last: DeliveredResult| {
        rounds.push(last);
        let report = MergedResults::new(&Team::default(), rounds).report();
        let unrecovered = &report.disclosure().unrecovered;
        (unrecovered.count, unrecovered.at_least)
    };
    let unfinished = |number: u32, declared: Option<u32>| {
        let unfinished = format!("\n[F{number:03}] Last\nseverity: High\ncwe: CWE-22\nlocation: f.c:1\n");
        delivered(&[], &unfinished, declared)
    };
    let twice = || vec![delivered(&[0, 1, 2], "\n", Some(5)), delivered(&[3, 4], "\n", Some(3))];
    assert_eq!(unrecovered(twice(), unfinished(6, Some(1))), (1, false));
    // The same applies if it declares no number.
    assert_eq!(unrecovered(twice(), unfinished(6, None)), (1, false));
    // If it declares fewer findings than an earlier round, its number is not a total.
    let once = |declared: u32| vec![delivered(&[0, 1, 2], "\n", Some(declared))];
    assert_eq!(unrecovered(once(5), unfinished(4, Some(4))), (2, true));
    assert_eq!(unrecovered(once(4), unfinished(4, Some(4))), (1, false));
}

/// A supplement that continues the numbering of the cut result does not repeat the earlier findings.
#[test]
fn a_continued_numbering_excludes_earlier_findings() {
    let numbered = |from: u32, findings: &[(&str, &str, &str)], end: &str| {
        let mut text = "===AGENT_RESULT===\nagent_id: x\ndimensions: a, b\n".to_owned();
        for ((title, cwe, location), number) in findings.iter().zip(from..) {
            let _ = write!(
                text,
                "\n[F{number:03}] {title}\nseverity: Medium\ncwe: {cwe}\nlocation: {location}\nsource: s\nsink: k\n\
                 evidence:\n  of {title}\n"
            );
        }
        text.push_str(end);
        DeliveredResult { origin: "x.txt".into(), result: read(text.as_bytes()).results.remove(0) }
    };
    let (a, b, c) = (("A", "CWE-89", "a.c:1"), ("B", "CWE-79", "b.c:1"), ("C", "CWE-22", "c.c:1"));
    let d = ("D", "CWE-22", "d.c:1");
    let first = numbered(1, &[a, b], "");
    let supplement = numbered(2, &[b, c], "\n[F004]");
    let emergency = numbered(4, &[d], END);
    let merged = MergedResults::new(&Team::default(), vec![first, supplement, emergency]);
    assert_eq!(merged.report().disclosure().unrecovered.count, 0);
}

/// Every recovery ends after at most two runs per round and the emergency run.
#[test]
fn every_recovery_ends() {
    for seed in 0..3_u32.pow(9) {
        let (mut recovery, mut runs, mut seed) = (recovery("a,b,c,d,e", 40, 3, true), 0, seed);
        while next_run(&recovery).is_some() {
            let (cut, remaining) =
                [(Cut::Whole, ""), (Cut::Mild, "e"), (Cut::Severe, "")][usize::try_from(seed % 3).unwrap()];
            recovery.note_end(cut, names(remaining));
            (runs, seed) = (runs + 1, seed / 3);
        }
        assert!(runs <= 7, "{runs}");
        assert!(recovery.past_runs().iter().filter(|past| past.run.kind == RunKind::Retry).count() <= 3);
    }
}

fn result(agent: &str, findings: &[(&str, &str, &str)], end: &str) -> DeliveredResult {
    let mut text = format!("===AGENT_RESULT===\nagent_id: {agent}\ndimensions: a, b\n");
    for (number, (title, cwe, location)) in findings.iter().enumerate() {
        let _ = write!(
            text,
            "\n[F{:03}] {title}\nseverity: Medium\ncwe: {cwe}\nlocation: {location}\nsource: s\nsink: k\nflow: s -> m -> k\n\
             evidence:\n  of {title}\n",
            number + 1
        );
    }
    text.push_str(end);
    DeliveredResult { origin: format!("{agent}.txt"), result: read(text.as_bytes()).results.remove(0) }
}

const END: &str = "===AGENT_RESULT_END===\n";

#[test]
fn duplicates_are_joined_and_no_evidence_is_lost() {
    let delivered = vec![
        result(
            "x",
            &[("one", "CWE-89", "a.c:1-9"), ("two", "CWE-79", "a.c:1-9"), ("far", "CWE-89", "a.c:50")],
            END,
        ),
        result("y", &[("three", "CWE-089", "./a.c:8-12"), ("four", "CWE-89", "b.c:8")], END),
    ];
    let merged = MergedResults::new(&Team::default(), delivered);
    let found: Vec<String> = merged
        .findings()
        .iter()
        .map(|merged| {
            let finding = &merged.finding;
            let place = finding.location.as_ref().unwrap().to_string();
            format!(
                "{} {} {place} {} {:?}",
                finding.id,
                finding.title,
                merged.reported_by.join("+"),
                finding.evidence.as_ref().unwrap().as_str()
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "F001 two a.c:1-9 x \"of two\"",
            "F002 one a.c:1-12 x+y \"of one\\n\\nof three\"",
            "F003 far a.c:50 x \"of far\"",
            "F004 four b.c:8 y \"of four\"",
        ]
    );
    assert_eq!(merged.joined_duplicates(), 1);
}

#[test]
fn evidence_with_only_an_equal_beginning_is_kept() {
    let delivered = vec![
        result("x", &[("one more", "CWE-89", "a.c:1-9")], END),
        result("y", &[("one", "CWE-89", "a.c:8-12")], END),
        result("z", &[("one", "CWE-89", "a.c:9-10")], END),
    ];
    let merged = MergedResults::new(&Team::default(), delivered);
    let evidence = merged.findings()[0].finding.evidence.as_ref().unwrap().as_str();
    assert_eq!(evidence, "of one more\n\nof one");
}

#[test]
fn evidence_that_is_a_prefix_of_another_is_dropped() {
    let finding = |id: &str, evidence: &str| {
        format!(
            "[{id}] of {id}\nseverity: Low\ncwe: CWE-79\nlocation: a.c\nsource: s {id}\nsink: k\nevidence:\n{evidence}\n"
        )
    };
    let head = "===AGENT_RESULT===\nagent_id: x\ndimensions: a\n\n";
    let delivered = |text: String| DeliveredResult {
        origin: "x.txt".into(),
        result: read(text.as_bytes()).results.remove(0),
    };
    let first = finding("F001", "  one\n  let a;");
    let cut = delivered(format!("{head}{first}\n{}", finding("F002", "  l").trim_end()));
    let supplement = delivered(format!("{head}{}{END}", finding("F002", "  let a;")));
    let merged = MergedResults::new(&Team::default(), vec![cut, supplement]);
    assert_eq!(merged.findings().len(), 1);
    let evidence = merged.findings()[0].finding.evidence.as_ref().unwrap().as_str();
    assert_eq!(evidence, "one\nlet a;");
}

/// If two cut pieces of evidence have the same start, or one piece contains another, only the longer one is kept.
#[test]
fn evidence_contained_in_longer_evidence_is_written_once() {
    let joined = |evidence: [&str; 2], end: &str| {
        let delivered = evidence.map(|evidence| {
            let text = format!(
                "===AGENT_RESULT===\nagent_id: x\n\n[F001] A\nseverity: Low\ncwe: CWE-79\nlocation: a.c:1\nsource: s\nsink: k\n\
                 evidence:\n{evidence}{end}"
            );
            DeliveredResult { origin: "x.txt".into(), result: read(text.as_bytes()).results.remove(0) }
        });
        let merged = MergedResults::new(&Team::default(), delivered.into());
        merged.findings()[0].finding.evidence.as_ref().unwrap().as_str().to_owned()
    };
    let whole = format!("\n{END}");
    assert_eq!(joined(["  b();", "  a();\n  b();\n  c();"], &whole), "a();\nb();\nc();");
    assert_eq!(joined(["  let a", "  let a = b();"], ""), "let a = b();");
    assert_eq!(joined(["  let a", "  let a = b();"], &whole), "let a\n\nlet a = b();");
}

#[test]
fn unrecovered_findings_are_counted_in_the_report() {
    let cut = result("x", &[("one", "CWE-89", "a.c:1")], "\n[F002] second\nseverity: High\n");
    let report = MergedResults::new(&Team::default(), vec![cut.clone()]).report();
    let disclosure = report.disclosure();
    assert_eq!((report.findings().len(), disclosure.needs_reaudit, disclosure.unrecovered.count), (1, 1, 1));
    assert_eq!(disclosure.unrecovered.basis, ["highest_id"]);
    assert!(disclosure.dimensions.iter().all(|dimension| dimension.truncated && dimension.gap));
    assert!(report.markdown().contains("| a | x | ⚠️ may have gaps |"), "{}", report.markdown());
    // The supplement delivers the second finding.
    let supplement = result("x", &[("second", "CWE-22", "a.c:9")], END);
    let report = MergedResults::new(&Team::default(), vec![cut, supplement]).report();
    assert_eq!((report.findings().len(), report.disclosure().unrecovered.count), (2, 0));
    assert!(report.disclosure().is_truncated());
    assert!(report.markdown().contains("⚠️ truncated, then recovered"));
}

#[test]
fn an_agent_without_a_result_is_disclosed() {
    let agents = vec![
        Assignment { agent_id: "x".into(), dimensions: names("a,b"), max_turns: None },
        Assignment { agent_id: "silent".into(), dimensions: names("c"), max_turns: Some(8) },
    ];
    let team = Team { agents, ..Team::default() };
    let merged = MergedResults::new(&team, vec![result("x", &[], END)]);
    let report = merged.report();
    let silent = &report.disclosure().truncated_agents[0];
    assert_eq!((silent.agent_id.as_deref(), silent.recovery), (Some("silent"), RecoveryState::Pending));
    assert!(silent.unrecovered.at_least && silent.unrecovered.is_open);
    assert_eq!((silent.describe(), silent.runs[0].cut), ("is missing", "unheard"));
    let row = "| silent | first, round 1: no result | pending | c | at least 0 so far |";
    assert!(report.markdown().contains(row), "{}", report.markdown());
    assert_eq!(merged.agents()[1].next().unwrap().max_turns, Some(4));
}

#[test]
fn the_file_name_states_the_agent_of_an_unnamed_result() {
    let agents = vec![Assignment { agent_id: "auth-2".into(), dimensions: names("a"), max_turns: None }];
    let team = Team { agents, ..Team::default() };
    let severe = read(b"nothing").results.remove(0);
    for (origin, is_known) in [("r1/auth-2.txt", true), ("auth-2.retry.txt", true), ("auth-22.txt", false)] {
        let merged = MergedResults::new(
            &team,
            vec![DeliveredResult { origin: origin.into(), result: severe.clone() }],
        );
        assert_eq!(merged.unattributed().count() == 0, is_known, "{origin}");
    }
}

#[test]
fn a_truncated_finding_is_annotated_unless_completed() {
    let findings = [("one", "CWE-89", "a.c:1")];
    let report = MergedResults::new(&Team::default(), vec![result("x", &findings, "")]).report();
    assert!(report.findings()[0].finding.originally_truncated);
    let again = vec![result("x", &findings, ""), result("x", &findings, END)];
    let report = MergedResults::new(&Team::default(), again).report();
    assert_eq!((report.findings().len(), report.findings()[0].finding.originally_truncated), (1, false));
}

#[test]
fn compression_merges_findings_with_equal_weakness_and_file() {
    let delivered = result(
        "x",
        &[("one", "CWE-89", "a.c:1"), ("two", "CWE-89", "a.c:9-12"), ("three", "CWE-79", "a.c:1")],
        END,
    );
    let findings: Vec<_> = delivered.result.findings.into_iter().map(|read| read.finding).collect();
    let compressed = compress(&findings);
    assert_eq!(compressed.len(), 2);
    assert_eq!(compressed[0].location.as_ref().unwrap().as_str(), "a.c:1-12");
    assert_eq!(compressed[0].flow.as_deref(), Some("s → k"));
}
