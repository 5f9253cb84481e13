//! Recognises placeholder values, which contain no information.

use super::finding::Field;
use super::vocabulary::contains;

/// The characters of emphasis, inline code and quotes.
const MARKUP_CHARS: [char; 5] = ['*', '_', '`', '"', '\''];

fn strip_markup(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || MARKUP_CHARS.contains(&character))
}

/// Returns the text between two brackets that do not occur inside it. The arrow in `<step -> step>` does not count.
fn text_between(text: &str, open: char, close: char) -> Option<&str> {
    let inner = text.strip_prefix(open)?.strip_suffix(close)?;
    (!inner.is_empty() && !inner.replace("->", "").contains([open, close])).then_some(inner)
}

/// Whether a text may be a placeholder: `<what is wrong>`, `{N}`, `…`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = strip_markup(text);
    matches!(text, "…" | "...")
        || text_between(text, '<', '>').or_else(|| text_between(text, '{', '}')).is_some()
}

/// Whether a text means "no value": `N/A`, `unknown`.
pub(super) fn means_no_value(text: &str) -> bool {
    contains("nothing", text)
}

/// Whether the value of a field contains no information: `N/A`, `unknown`, `<where the data comes from>`. A single
/// word in angle brackets, such as `<stdin>`, may be a real value.
pub(super) fn is_uninformative(field: Field, text: &str) -> bool {
    let text = strip_markup(text);
    let plain = text.trim_matches(['(', ')', '[', ']', '.']).trim();
    // In evidence, punctuation alone may be code. In other fields it means that the value is empty.
    if field != Field::Evidence && !text.contains(char::is_alphanumeric) && !text.contains(['<', '{']) {
        return true;
    }
    if means_no_value(text) || means_no_value(plain) {
        return true;
    }
    let Some(inner) = text_between(text, '<', '>').or_else(|| text_between(text, '{', '}')) else {
        return field == Field::Severity && names_all_severities(text);
    };
    let may_be_in_prose =
        |ch: char| ch.is_alphanumeric() || ch.is_whitespace() || ",.:;'’/()-–>…".contains(ch);
    let is_prose = inner.trim().contains(' ') && inner.chars().all(may_be_in_prose);
    is_prose || contains("template", inner.trim())
}

/// Whether the value is still the list of choices: `Critical | High | Medium | Low`.
fn names_all_severities(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["critical", "high", "medium", "low"].iter().filter(|word| lower.contains(*word)).count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_distinguished_from_content() {
        for (field, text, expected) in [
            (Field::Source, "N/A", true),
            (Field::Source, "`n/a`", true),
            (Field::Source, "(unknown)", true),
            (Field::Source, "-", true),
            (Field::Source, "—", true),
            (Field::Source, "<where the data comes from>", true),
            (Field::Source, "<source>", true),
            (Field::Location, "<file:line-line>", true),
            (Field::Severity, "<Critical, High, Medium, Low or Info>", true),
            (Field::Severity, "Critical | High | Medium | Low", true),
            (Field::Flow, "<step -> step -> step>", true),
            (Field::Evidence, "<the code, each line indented by two spaces>", true),
            (Field::Evidence, "...", true),
            (Field::Source, "<stdin>", false),
            (Field::Source, "N/A: the key is a constant", false),
            (Field::Source, "unknown header `x-id`", false),
            (Field::Severity, "High", false),
            (Field::Sink, "{user}", false),
            (Field::Evidence, "<img src=x onerror=alert(1)>", false),
            (Field::Evidence, "<b>{name}</b>", false),
            (Field::Evidence, "{}", false),
            (Field::Evidence, "}", false),
            (Field::Evidence, "```", false),
            (Field::Sink, "** **", true),
        ] {
            assert_eq!(is_uninformative(field, text), expected, "{text}");
        }
    }
}
