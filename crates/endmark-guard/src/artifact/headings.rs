//! Headings, and the comparison of their titles.

use std::ops::Range;

/// A heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading {
    /// 1 to 6, or [`BOLD_LEVEL`] for a bold line that is used as a heading.
    pub(crate) level: u8,
    /// The range of the whole heading.
    pub(crate) range: Range<usize>,
    /// The words of the heading, without markup.
    pub(crate) title: String,
    /// The index of the heading among the blocks.
    pub(crate) block: usize,
}

impl Heading {
    /// The level of a bold line that is used as a heading. It is below all other headings.
    pub(crate) const BOLD_LEVEL: u8 = 7;

    /// Returns whether the heading is written as a Markdown or HTML heading.
    pub(crate) fn is_real(&self) -> bool {
        self.level < Self::BOLD_LEVEL
    }
}

/// Returns a title for comparison: in lower case, without numbering, surrounding punctuation and a trailing
/// colon.
pub(crate) fn normalise_title(title: &str) -> String {
    let bare = |title: &str| {
        let is_sign =
            |character: char| !character.is_alphanumeric() && !"()[]{}<>\"'“”‘’«»$€%+#&@".contains(character);
        title
            .trim_start_matches(is_sign)
            .trim_end_matches(|character: char| character.is_whitespace() || "*_`:：".contains(character))
            .to_owned()
    };
    let title = bare(title.trim());
    let title = without_number(&title).map_or_else(|| title.clone(), bare);
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Returns the text after a number such as `1.`, `2.3`, `IV.`, `(a)`, `三、` or `第二章`. Returns `None` if there
/// is no number or no text after it.
fn without_number(title: &str) -> Option<&str> {
    let open = title.strip_prefix('(').or_else(|| title.strip_prefix('（')).unwrap_or(title);
    let ordinal = open.strip_prefix('第').unwrap_or(open);
    let is_cjk = |character: char| "一二三四五六七八九十百".contains(character);
    let end = ordinal
        .find(|character: char| !(character.is_ascii_alphanumeric() || character == '.' || is_cjk(character)))
        .unwrap_or(ordinal.len());
    let (number, rest) = ordinal.split_at(end);
    let dotted = number.trim_end_matches('.');
    let is_decimal = !dotted.is_empty()
        && dotted.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let is_roman = !dotted.is_empty() && dotted.chars().all(|character| "IVXLC".contains(character));
    let is_letter = dotted.chars().count() == 1;
    let is_cjk_number = !dotted.is_empty() && dotted.chars().all(is_cjk);
    let closes =
        rest.starts_with([')', '）', '、', '．', '.', ':', '章', '节', '節', '部']) || number.ends_with('.');
    let is_numbering = (is_decimal && (closes || rest.starts_with(char::is_whitespace)))
        || ((is_roman || is_letter || is_cjk_number) && closes);
    let behind =
        rest.trim_start_matches([')', '）', '、', '．', '.', ':', '章', '节', '節', '部']).trim_start();
    (is_numbering && !behind.is_empty()).then_some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heading_comparison_ignores_case_numbering_and_punctuation() {
        for written in [
            "Summary",
            "1. SUMMARY",
            "2.3 Summary:",
            "IV. summary",
            "(a) Summary",
            "✅ **Summary**",
            "Summary :",
            "3) Summary",
            "  Summary ",
        ] {
            assert_eq!(normalise_title(written), "summary", "{written}");
        }
        for (written, title) in [
            ("三、概述", "概述"),
            ("第二章 概述：", "概述"),
            ("（一）概述", "概述"),
            ("Risks  and\tcosts", "risks and costs"),
        ] {
            assert_eq!(normalise_title(written), title, "{written}");
        }
    }

    #[test]
    fn text_that_is_not_numbering_is_kept() {
        for (written, title) in [
            ("2024", "2024"),
            ("A plan", "a plan"),
            ("I think", "i think"),
            ("C", "c"),
            ("1.2.0", "1.2.0"),
            ("3D view", "3d view"),
            ("Mixed", "mixed"),
        ] {
            assert_eq!(normalise_title(written), title, "{written}");
        }
    }
}
