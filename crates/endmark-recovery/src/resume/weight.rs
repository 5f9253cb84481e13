//! How much a piece of text says: how unlikely it is that another one begins so by chance.

/// What an answer repeats has to weigh so much to be no coincidence: three letters.
pub(super) const TELLING: u32 = 6;

/// The same where something else may be meant as well: behind words of the answer's own, behind white space that may be the
/// beginning of what follows the cut, and where the cut stands behind a word, which may be followed by the same word.
pub(super) const TELLING_IN_DOUBT: u32 = 18;

/// What a letter counts for; one of a script with thousands of them; a digit or a sign.
const LETTER: u32 = 2;
const WIDE_LETTER: u32 = 6;
const OTHER: u32 = 1;

/// How much a text says, in bits or so. What is one sign over and over says nothing, and white space counts for nothing.
pub(super) fn weight(text: &str) -> u32 {
    let mut signs = text.chars().filter(|sign| !sign.is_whitespace());
    let first = signs.clone().next();
    if signs.clone().all(|sign| Some(sign) == first) && signs.clone().nth(1).is_some() {
        return 0;
    }
    signs.try_fold(0, |sum: u32, sign| sum.checked_add(of(sign))).unwrap_or(u32::MAX)
}

/// Whether a text has letters of a script that sets its words apart by no white space: those of East Asia but Korean, Thai, Lao,
/// Burmese, Khmer.
pub(super) fn has_unspaced(text: &str) -> bool {
    let is_hangul = |sign: char| matches!(u32::from(sign), 0xac00..=0xd7af);
    let is_unspaced = |sign: char| match u32::from(sign) {
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff => true,
        code => code >= 0x2e80 && !is_hangul(sign),
    };
    text.chars().any(|sign| sign.is_alphabetic() && is_unspaced(sign))
}

fn of(sign: char) -> u32 {
    match sign {
        _ if sign.is_alphabetic() && u32::from(sign) >= 0x2e80 => WIDE_LETTER,
        _ if sign.is_alphabetic() => LETTER,
        _ => OTHER,
    }
}
