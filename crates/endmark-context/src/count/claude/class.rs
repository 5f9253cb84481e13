//! Classes of characters. The lists contain measured facts that do not follow from Unicode properties.

use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_normalization::char::canonical_combining_class;

/// Marks the beginning of a word. It includes a space before the word.
pub(super) const WORD_START: char = '\u{fdd0}';
/// Marks the end of a word.
pub(super) const WORD_END: char = '\u{fdd1}';
/// Marks that the next word begins with a capital letter.
pub(super) const CAPITAL: char = '\u{fdd3}';
/// Marks that the next word is in capital letters.
pub(super) const CAPITALS: char = '\u{fdd4}';

/// All marks of the stream. If a text contains one of them, it is replaced by a private-use character.
const MARKS: [char; 5] = [WORD_START, WORD_END, '\u{fdd2}', CAPITAL, CAPITALS];
const FIRST_ESCAPE: u32 = 0xe000;

/// Symbols that form runs with punctuation instead of being separate runs.
const PUNCTUATION_LIKE_SYMBOLS: &[char] = &[
    '\u{a3}', '\u{a7}', '\u{ab}', '\u{b0}', '\u{b7}', '\u{bb}', '\u{f0d}', '\u{2013}', '\u{2014}',
    '\u{201e}', '\u{2020}', '\u{2022}', '\u{2026}', '\u{20ac}', '\u{2116}', '\u{2192}', '\u{2212}',
    '\u{221a}', '\u{2500}', '\u{2502}', '\u{2514}', '\u{2550}', '\u{2588}', '\u{ff08}',
];
const IDEOGRAPHIC_SYMBOLS: &[char] =
    &['\u{3004}', '\u{3012}', '\u{3013}', '\u{3020}', '\u{3036}', '\u{3037}', '\u{303e}', '\u{303f}'];
/// Iteration and closing marks that continue a run of ideographs.
const IDEOGRAPHIC_LETTERS: &[char] = &[
    '\u{3005}', '\u{3006}', '\u{3031}', '\u{3032}', '\u{3033}', '\u{3034}', '\u{3035}', '\u{303b}',
    '\u{303c}',
];

/// The class of a run of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunClass {
    /// A word.
    Word,
    /// Characters that each form their own run: ideographs, emoji and most symbols.
    Separate,
    Digit,
    Punctuation,
    Space,
    /// Combining marks without a base character.
    StrayMark,
}

/// Whether a character of the text is one of our marks.
pub(super) fn is_own_mark(c: char) -> bool {
    MARKS.contains(&c)
}

/// Replaces a character of the text that is one of our marks.
pub(super) fn escape_mark(c: char) -> char {
    let place = MARKS.iter().position(|mark| *mark == c);
    let escape = place.and_then(|place| char::from_u32(FIRST_ESCAPE + u32::try_from(place).ok()?));
    escape.unwrap_or(c)
}

/// Reverses [`escape_mark`].
pub(super) fn unescape_mark(c: char) -> char {
    let place = u32::from(c).checked_sub(FIRST_ESCAPE).and_then(|place| usize::try_from(place).ok());
    place.and_then(|place| MARKS.get(place)).copied().unwrap_or(c)
}

/// Whether the character is one of our marks in a stream.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c, WORD_START | WORD_END | CAPITAL | CAPITALS)
}

fn category(c: char) -> Category {
    get_general_category(c)
}

fn is_astral(c: char) -> bool {
    u32::from(c) >= 0x1_0000
}

fn is_combining(c: char) -> bool {
    matches!(category(c), Category::NonspacingMark | Category::SpacingMark | Category::EnclosingMark)
}

fn is_letter(category: Category) -> bool {
    matches!(
        category,
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
    )
}

/// Whether the character is a letter or a combining mark.
pub(super) fn is_letter_or_mark(c: char) -> bool {
    is_letter(category(c)) || is_combining(c)
}

fn is_punctuation_or_symbol(category: Category) -> bool {
    matches!(
        category,
        Category::ConnectorPunctuation
            | Category::DashPunctuation
            | Category::OpenPunctuation
            | Category::ClosePunctuation
            | Category::InitialPunctuation
            | Category::FinalPunctuation
            | Category::OtherPunctuation
    ) || is_symbol(category)
}

fn is_symbol(category: Category) -> bool {
    matches!(
        category,
        Category::MathSymbol | Category::CurrencySymbol | Category::ModifierSymbol | Category::OtherSymbol
    )
}

/// Whether the character is a variation selector, which belongs to the character before it.
pub(super) fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether a letter always forms its own run.
fn is_hard_letter(c: char) -> bool {
    is_astral(c)
        || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}')
        || IDEOGRAPHIC_LETTERS.contains(&c)
}

/// Whether a symbol counts as a letter.
fn is_symbol_letter(c: char) -> bool {
    matches!(c, '\u{16ee}'..='\u{16f0}' | '\u{2160}'..='\u{2188}' | '\u{24b6}'..='\u{24e9}' | '\u{a6e6}'..='\u{a6ef}')
}

/// The class of each character of normalised ASCII. `None` for all other bytes.
static ASCII_CLASSES: [Option<RunClass>; 256] = {
    let mut classes = [None; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Some(RunClass::Word),
            b' ' | b'\t' | b'\n' => Some(RunClass::Space),
            b'0'..=b'9' => Some(RunClass::Digit),
            _ if byte.is_ascii_punctuation() => Some(RunClass::Punctuation),
            _ => None,
        };
        byte += 1;
    }
    classes
};

/// Returns the class of an ASCII character, which never depends on its neighbours. Returns `None` if the byte
/// is not a character of normalised ASCII.
pub(super) fn ascii_class(byte: u8) -> Option<RunClass> {
    ASCII_CLASSES[usize::from(byte)]
}

/// Returns the class of a character. Neighbours may still change it.
pub(super) fn class_of_char(c: char) -> RunClass {
    // Fast path for the most frequent characters.
    if let Some(class) = u8::try_from(c).ok().and_then(ascii_class) {
        return class;
    }
    let category = category(c);
    let is_decimal = category == Category::DecimalNumber;
    let is_space =
        matches!(category, Category::SpaceSeparator | Category::LineSeparator | Category::ParagraphSeparator);
    if is_new_cased(c) {
        RunClass::Word
    } else if is_space {
        RunClass::Space
    } else if is_symbol_letter(c) {
        RunClass::Word
    } else if is_decimal && matches!(c, '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}') {
        RunClass::Digit
    } else if PUNCTUATION_LIKE_SYMBOLS.contains(&c) {
        RunClass::Punctuation
    } else if is_selector(c) {
        RunClass::Separate
    } else if is_combining(c) {
        if !is_astral(c) && c.is_alphabetic() { RunClass::Word } else { RunClass::Separate }
    } else if is_letter(category) && !is_hard_letter(c) {
        RunClass::Word
    } else {
        RunClass::Separate
    }
}

/// Whether a combining mark ends the word before it.
pub(super) fn ends_word(c: char) -> bool {
    !is_astral(c) && is_combining(c) && !is_selector(c) && !c.is_alphabetic()
}

/// Whether a combining mark without a base character begins a word.
pub(super) fn is_stray_mark(c: char) -> bool {
    let is_syriac_vowel = matches!(c, '\u{711}' | '\u{730}'..='\u{73f}');
    !c.is_ascii() && !is_syriac_vowel && canonical_combining_class(c) != 0 && !ends_word(c)
}

/// Whether word boundaries are written around a hard character, as around punctuation.
pub(super) fn is_like_punctuation(c: char) -> bool {
    let c = unescape_mark(c);
    if is_astral(c) {
        return false;
    }
    if ends_word(c) {
        return true;
    }
    let category = category(c);
    let is_punctuation = is_punctuation_or_symbol(category) && !is_symbol(category);
    let is_ideographic =
        matches!(c, '\u{3001}'..='\u{303f}') && (is_punctuation || IDEOGRAPHIC_SYMBOLS.contains(&c));
    let takes =
        is_punctuation_or_symbol(category) || matches!(category, Category::Format | Category::Unassigned);
    takes && !is_ideographic
}

/// Whether word boundaries are written around a digit.
pub(super) fn is_border_digit(c: char) -> bool {
    let category = category(c);
    let is_number =
        category == Category::OtherNumber || (category == Category::DecimalNumber && !c.is_ascii());
    is_number && !is_astral(c)
}

/// Whether a run consists only of decimal digits, or only of other numbers.
pub(super) fn is_digit_run(run: &str) -> bool {
    let Some(first) = run.chars().next().map(category) else { return false };
    matches!(first, Category::DecimalNumber | Category::OtherNumber)
        && run.chars().all(|c| category(c) == first)
}

/// Whether the character belongs to a case pair that most Unicode tables do not contain yet.
fn is_new_cased(c: char) -> bool {
    matches!(c, '\u{1c89}' | '\u{1c8a}' | '\u{a7cb}' | '\u{264}')
}

/// Appends the lower-case form of a character, independent of its neighbours.
pub(super) fn push_lowercase(c: char, into: &mut String) {
    match c {
        // Unicode classifies this character as a capital, but measurements show that it does not count as
        // one.
        '\u{3f4}' => into.push(c),
        '\u{1c89}' => into.push('\u{1c8a}'),
        '\u{a7cb}' => into.push('\u{264}'),
        _ => into.extend(c.to_lowercase()),
    }
}

/// Whether a character is a capital with a different lower-case form.
pub(super) fn is_upper(c: char) -> bool {
    match c {
        '\u{3f4}' => false,
        '\u{1c89}' | '\u{a7cb}' => true,
        _ => c.is_uppercase() && !is_its_own_lower(c),
    }
}

pub(super) fn is_its_own_lower(c: char) -> bool {
    let mut lowered = String::new();
    push_lowercase(c, &mut lowered);
    let mut chars = lowered.chars();
    chars.next() == Some(c) && chars.next().is_none()
}

pub(super) fn is_lower(c: char) -> bool {
    matches!(c, '\u{1c8a}' | '\u{264}') || c.is_lowercase()
}

/// Whether the character is a letter without a capital form.
pub(super) fn is_caseless_letter(c: char) -> bool {
    (is_new_cased(c) || is_letter_or_mark(c)) && !is_lower(c) && (!is_upper(c) || is_its_own_lower(c))
}
