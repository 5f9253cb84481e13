//! The id of a finding within its heading: `Finding F-007: SQL`, `` `F007` SQL ``, `SQL (F007)`, `[F007](#f007) SQL`.

use crate::FindingId;

use super::{EMPHASIS, title, up_to_number};

/// The id that a heading has somewhere, and the heading without it.
pub(super) fn within(heading: &str, opened: &str) -> Option<(FindingId, String)> {
    let heading = without_anchors(heading);
    let (id, before, behind) = linked(heading)
        .or_else(|| first(heading))
        .or_else(|| named(heading))
        .or_else(|| enclosed(heading))?;
    let behind = title(behind, opened);
    let before = before.trim().trim_start_matches(EMPHASIS);
    // `Finding F-007: SQL`, but not `High: [F007] SQL`
    let is_kind = before.chars().all(|sign| sign.is_alphabetic() || sign == ' ');
    let title = match (before.is_empty(), behind.is_empty()) {
        (true, _) => behind.into_owned(),
        (false, true) => without_sign(before.trim_end_matches(EMPHASIS)).to_owned(),
        (false, false) if is_kind => behind.into_owned(),
        (false, false) => format!("{before} {behind}"),
    };
    Some((id, title))
}

/// What links to its own heading: `[F007](#f007) SQL`.
fn linked(heading: &str) -> Option<(FindingId, &str, &str)> {
    let inner = heading.strip_prefix('[')?;
    let (name, link) = inner.split_once("](#")?;
    let id = numbered(name.trim_matches(AROUND))?;
    Some((id, "", link.split_once(')')?.1))
}

/// What stands at the beginning: `F007 SQL`, `F007. SQL`, `` `F007` SQL ``.
fn first(heading: &str) -> Option<(FindingId, &str, &str)> {
    let (name, behind) = up_to_number(heading.trim_start_matches(['[', '(']))?;
    let id = numbered(name)?;
    Some((id, "", behind.trim_start_matches([')', ']']).trim_start_matches(EMPHASIS)))
}

/// What stands before a sign that parts a kind from a title: `Finding F-007: SQL`.
fn named(heading: &str) -> Option<(FindingId, &str, &str)> {
    let end = heading.find([':', '：', '—', '–']).or_else(|| heading.find(" - "))?;
    let (name, behind) = heading.split_at(end);
    let name = name.trim_end();
    let begins = name.rfind(' ')?;
    let id = numbered(name[begins..].trim().trim_matches(AROUND))?;
    Some((id, &name[..begins], behind))
}

/// What stands in brackets or as code: `SQL (F007)`, `HIGH — [F007] SQL`.
fn enclosed(heading: &str) -> Option<(FindingId, &str, &str)> {
    heading.match_indices(['[', '(', '`']).find_map(|(at, _)| {
        let inner = heading[at..].trim_start_matches(AROUND);
        let ends = inner.find([']', ')', '`'])?;
        let id = numbered(&inner[..ends])?;
        Some((id, &heading[..at], inner[ends..].trim_start_matches(AROUND)))
    })
}

/// Signs that can stand around an id.
const AROUND: [char; 6] = ['[', ']', '(', ')', '`', '*'];

/// The id that a word is, where it has a number.
fn numbered(word: &str) -> Option<FindingId> {
    let is_of_finding = word.starts_with(['F', 'f']);
    let id = FindingId::read(word).filter(|_| is_of_finding)?;
    (id.as_str() == FindingId::numbered(id.number()?).as_str()).then_some(id)
}

/// A heading without the anchors that it begins with: `<a id="f007"></a>`.
fn without_anchors(heading: &str) -> &str {
    let mut rest = heading;
    while let Some((tag, behind)) = rest.strip_prefix('<').and_then(|inner| inner.split_once('>')) {
        if tag != "a" && tag != "/a" && !tag.starts_with("a ") {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}

/// A title without the sign that has stood before its id.
fn without_sign(title: &str) -> &str {
    title.trim_end_matches(|sign: char| sign.is_whitespace() || "-–—:|".contains(sign))
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn an_id_is_found_wherever_it_stands_in_a_heading() {
        for heading in [
            "F007 SQL",
            "F007. SQL",
            "F007` SQL",
            "[F007](#f007) SQL",
            "[[F007]](#f007) SQL",
            "<a id=\"f007\"></a>[F007] SQL",
            "<a name=\"x\"></a> F-7: SQL",
            "Finding F-007: SQL",
            "Finding [F007] - SQL",
            "Vulnerability F007 – SQL",
            "SQL (F007)",
            "SQL — [F007]",
            "SQL (`F007`)",
        ] {
            let (id, title) = within(heading, "").unwrap();
            assert_eq!((id.as_str(), title.as_str()), ("F007", "SQL"), "{heading}");
        }
        let (id, title) = within("HIGH — [F007] SQL", "").unwrap();
        assert_eq!((id.as_str(), title.as_str()), ("F007", "HIGH — SQL"));
        for none in ["SQL", "Use of f32", "SQL (CWE-89)", "A name: F", "Flask 2 is old", "HTTP (RFC 9110)"] {
            assert_eq!(within(none, ""), None, "{none}");
        }
    }
}
