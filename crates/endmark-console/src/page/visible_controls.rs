//! Shows invisible characters as codes: control characters, and characters that change the text direction.

/// Characters that change the direction of a text, and line separators that editors do not show.
const DIRECTION_CHARACTERS: [std::ops::RangeInclusive<char>; 4] =
    ['\u{61c}'..='\u{61c}', '\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];

/// Attributes whose values are sent back to the gateway, and therefore must not be changed.
const SUBMITTED_ATTRIBUTES: [&str; 2] = [" value=", " href="];

/// Replaces invisible characters in a complete page by codes like `\u{202e}`, so that untrusted text cannot
/// reorder the text around it. Replacing them in the complete page ensures that no element is missed.
pub(super) fn with_visible_controls(page: String) -> String {
    if !page.chars().any(is_active_character) {
        return page;
    }
    let mut shown = String::with_capacity(page.len() + 64);
    let (mut in_tag, mut in_value, mut is_sent) = (false, false, false);
    for character in page.chars() {
        // Texts and attribute values contain these characters only in escaped form.
        match character {
            '<' => in_tag = true,
            '>' => in_tag = false,
            '"' if in_tag => {
                in_value = !in_value;
                is_sent = in_value && SUBMITTED_ATTRIBUTES.iter().any(|name| shown.ends_with(name));
            }
            _ => {}
        }
        if is_active_character(character) && !is_sent {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

fn is_active_character(character: char) -> bool {
    let is_layout = matches!(character, '\n' | '\r' | '\t');
    character.is_control() && !is_layout
        || DIRECTION_CHARACTERS.iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn bidirectional_control_characters_are_shown_as_codes() {
        let hostile = "a\u{202e}\"<b>\u{9b}\n";
        let page = html! { p title=(hostile) { (hostile) } option value=(hostile) { (hostile) } a href=(hostile) {} };
        let shown = with_visible_controls(page.into_string());
        let (code, raw) = ("a\\u{202e}&quot;&lt;b&gt;\\u{9b}\n", "a\u{202e}&quot;&lt;b&gt;\u{9b}\n");
        assert_eq!(
            shown,
            format!(
                "<p title=\"{code}\">{code}</p><option value=\"{raw}\">{code}</option><a href=\"{raw}\"></a>"
            )
        );
        assert_eq!(with_visible_controls("<p>é</p>".to_owned()), "<p>é</p>");
    }
}
