//! The weight of a text: how unlikely it is that another text begins in the same way by chance.

/// Minimum weight of a repetition that is not a coincidence: three letters.
pub(super) const MIN_PROOF_WEIGHT: u32 = 6;

/// Minimum weight in doubtful cases: after the answer's own words, after white space that may precede the rest, and
/// if the cut follows a word, which may be repeated.
pub(super) const MIN_PROOF_WEIGHT_IN_DOUBT: u32 = 18;

/// Weights of a letter, of a character in a script with thousands of them, and of a digit or sign.
const LETTER: u32 = 2;
const WIDE_LETTER: u32 = 6;
const OTHER_SIGN: u32 = 1;

/// Returns the approximate information in a text, in bits. White space and a repeated sign have no weight.
pub(super) fn weight(text: &str) -> u32 {
    let mut signs = text.chars().filter(|sign| !sign.is_whitespace());
    let first = signs.clone().next();
    if signs.clone().all(|sign| Some(sign) == first) && signs.clone().nth(1).is_some() {
        return 0;
    }
    signs.try_fold(0, |sum: u32, sign| sum.checked_add(sign_weight(sign))).unwrap_or(u32::MAX)
}

/// Whether a text has letters of a script without spaces between words: East Asian scripts except Korean, Thai, Lao,
/// Burmese and Khmer.
pub(super) fn has_unspaced(text: &str) -> bool {
    let is_hangul = |sign: char| matches!(u32::from(sign), 0xac00..=0xd7af);
    let is_unspaced = |sign: char| match u32::from(sign) {
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff => true,
        code => code >= 0x2e80 && !is_hangul(sign),
    };
    text.chars().any(|sign| sign.is_alphabetic() && is_unspaced(sign))
}

fn sign_weight(sign: char) -> u32 {
    match sign {
        _ if sign.is_alphabetic() && u32::from(sign) >= 0x2e80 => WIDE_LETTER,
        _ if sign.is_alphabetic() => LETTER,
        _ => OTHER_SIGN,
    }
}
