//! Checks that the required sections exist and have content.

use crate::artifact::{Artifact, Heading, normalise_title};
use crate::finding::{Check, UnplacedFinding};
use crate::phrases::{BUILT_IN_PHRASES, PhraseScope, words};

/// The minimum similarity of two titles for a suggestion.
const MIN_TITLE_SIMILARITY: f64 = 0.6;

/// Detects required sections that are missing or empty, and a last heading without content. `before` contains
/// the findings of earlier checks.
pub(crate) fn check(
    artifact: &Artifact<'_>,
    required: &[String],
    before: &[UnplacedFinding],
) -> Vec<UnplacedFinding> {
    let mut places: Vec<usize> = before.iter().map(|found| found.range.start).collect();
    places.sort_unstable();
    let mut found: Vec<UnplacedFinding> =
        required.iter().filter_map(|wanted| check_required(artifact, wanted, &places)).collect();
    if let Some(stops) = stops_at_heading(artifact)
        && !found.iter().any(|found| found.range == stops.range)
    {
        found.push(stops);
    }
    found
}

fn check_required(
    artifact: &Artifact<'_>,
    required_title: &str,
    found_at: &[usize],
) -> Option<UnplacedFinding> {
    let (level, title) = parse_required_title(required_title);
    let headings = artifact.outline().headings();
    let fits = |heading: &&Heading| {
        level.is_none_or(|level| heading.level == level) && normalise_title(&heading.title) == title
    };
    let places: Vec<usize> =
        (0..headings.len()).filter(|&index| headings.get(index).as_ref().is_some_and(fits)).collect();
    if places.iter().any(|&index| has_content(artifact, index) && !is_stub(artifact, index, found_at)) {
        return None;
    }
    Some(match places.first().and_then(|&index| headings.get(index)) {
        Some(heading) => empty_finding(heading, required_title),
        None => missing_finding(artifact, required_title, &title),
    })
}

/// Returns the required level and the normalised title: `## Risks` requires level 2, `Risks` allows any
/// level.
fn parse_required_title(required_title: &str) -> (Option<u8>, String) {
    let signs = required_title.trim_start().bytes().take_while(|byte| *byte == b'#').count();
    let level = u8::try_from(signs).ok().filter(|level| (1..=6).contains(level));
    (level, normalise_title(required_title.trim_start().trim_start_matches('#')))
}

fn has_content(artifact: &Artifact<'_>, heading: usize) -> bool {
    artifact.outline().blocks_under(heading).iter().any(|block| block.kind.is_content())
}

/// Returns whether a section contains only placeholders that no earlier check found: dots, a field, its own
/// title in brackets, or `todo`.
fn is_stub(artifact: &Artifact<'_>, heading: usize, places: &[usize]) -> bool {
    let blocks = artifact.outline().blocks_under(heading).iter();
    let title =
        artifact.outline().headings().get(heading).map_or(String::new(), |it| normalise_title(&it.title));
    blocks.filter(|block| block.kind.is_content()).all(|block| {
        let text = artifact.text()[block.range.clone()].trim();
        let is_field = text.starts_with(['{', '[', '<', '%', '$'])
            && text.chars().all(|sign| sign.is_alphanumeric() || "{}[]<>%$_-. ".contains(sign))
            && (text.starts_with("{{") || text.to_lowercase().contains(&title));
        let is_phrase = || {
            BUILT_IN_PHRASES
                .in_scope(PhraseScope::Section)
                .any(|phrase| phrase.covers_all(text, &words(text)))
        };
        let next = places.get(places.partition_point(|place| *place < block.range.start));
        let is_found = next.is_some_and(|place| *place < block.range.end);
        !is_found && (is_field || text.chars().all(|sign| ".…?[](){}<>-*_` \n".contains(sign)) || is_phrase())
    })
}

fn empty_finding(heading: &Heading, required_title: &str) -> UnplacedFinding {
    let why = format!("the section `{}` has a heading and no content under it", required_title.trim());
    UnplacedFinding::new(
        Check::SectionEmpty,
        heading.range.clone(),
        why,
        "Write what belongs under this heading.",
    )
}

fn missing_finding(artifact: &Artifact<'_>, required_title: &str, title: &str) -> UnplacedFinding {
    let similarity =
        |heading: &&Heading| strsim::normalized_damerau_levenshtein(&normalise_title(&heading.title), title);
    let nearest =
        artifact.outline().headings().iter().filter(|heading| similarity(heading) >= MIN_TITLE_SIMILARITY);
    let nearest = nearest.max_by(|left, right| similarity(left).total_cmp(&similarity(right)));
    let hint =
        nearest.map(|it| format!("; the most similar heading is `{}`", it.title.trim())).unwrap_or_default();
    let fix = format!("Add a heading `{}` with its content{hint}.", required_title.trim());
    UnplacedFinding::new(
        Check::SectionMissing,
        artifact.end(),
        format!("the section `{}` is missing", required_title.trim()),
        fix,
    )
}

/// Detects a last heading without content.
fn stops_at_heading(artifact: &Artifact<'_>) -> Option<UnplacedFinding> {
    let outline = artifact.outline();
    let last = outline.headings().len().checked_sub(1)?;
    let heading = outline.headings().get(last).filter(|heading| heading.is_real())?;
    if has_content(artifact, last)
        || is_version(&heading.title)
        || (last == 0 && !outline.blocks().iter().any(|block| block.kind.is_content()))
    {
        return None;
    }
    let why = format!("the text stops at the heading `{}`, with nothing under it", heading.title.trim());
    Some(UnplacedFinding::new(
        Check::SectionEmpty,
        heading.range.clone(),
        why,
        "Write what belongs under this heading, or take it out.",
    ))
}

/// Returns whether a heading is a version or a date. Such a section may be empty.
fn is_version(title: &str) -> bool {
    let is_unreleased =
        title.trim_matches(|sign: char| !sign.is_alphanumeric()).eq_ignore_ascii_case("unreleased");
    let numbers =
        title.split(|sign: char| !sign.is_ascii_digit()).filter(|number| !number.is_empty()).count();
    is_unreleased || numbers >= 2
}
