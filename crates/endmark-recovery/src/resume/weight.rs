//! The weight of a text: how unlikely it is that another text contains it by chance.

/// Minimum weight of a repetition that is not a coincidence. It is the weight of three letters.
pub(super) const MIN_PROOF_WEIGHT: u32 = 6;

/// Minimum weight in doubtful cases: if other words precede the repetition, if nothing is held, if the text
/// begins with the repeated part, or if the cut does not follow a letter or digit.
pub(super) const MIN_PROOF_WEIGHT_IN_DOUBT: u32 = 18;

/// Weights of a letter, of a letter in a script with thousands of characters, and of a digit or other symbol.
const LETTER_WEIGHT: u32 = 2;
const WIDE_LETTER_WEIGHT: u32 = 6;
const OTHER_CHARACTER_WEIGHT: u32 = 1;

/// Returns the approximate information in a text, in bits. Whitespace has none, and neither has a text of one
/// repeated symbol.
pub(super) fn weight(text: &str) -> u32 {
    let mut signs = text.chars().filter(|sign| !sign.is_whitespace());
    let first = signs.clone().next();
    if signs.clone().all(|sign| Some(sign) == first) && signs.clone().nth(1).is_some() {
        return 0;
    }
    signs.try_fold(0, |sum: u32, sign| sum.checked_add(character_weight(sign))).unwrap_or(u32::MAX)
}

/// Whether a text contains letters of a script without spaces between words, such as Chinese, Japanese, Thai,
/// Lao, Burmese or Khmer.
pub(super) fn has_unspaced_script(text: &str) -> bool {
    let is_hangul = |character: char| matches!(u32::from(character), 0xac00..=0xd7af);
    let is_unspaced = |character: char| match u32::from(character) {
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff => true,
        code => code >= 0x2e80 && !is_hangul(character),
    };
    text.chars().any(|sign| sign.is_alphabetic() && is_unspaced(sign))
}

fn character_weight(character: char) -> u32 {
    match character {
        _ if character.is_alphabetic() && u32::from(character) >= 0x2e80 => WIDE_LETTER_WEIGHT,
        _ if character.is_alphabetic() => LETTER_WEIGHT,
        _ => OTHER_CHARACTER_WEIGHT,
    }
}
