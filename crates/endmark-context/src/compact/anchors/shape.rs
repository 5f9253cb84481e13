//! Classifies words by their form (CX-4), because no list of words can contain the ids of every system.

/// The form of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WordShape {
    /// A URL with a scheme.
    Url,
    /// A path or a file name.
    File,
    /// Letters mixed with digits, or joined words with a digit: ids, codes, hashes, versions, mail addresses.
    Identifier,
    /// A date or a time.
    Date,
    /// A number, possibly with a unit or a currency sign.
    Number,
    /// Anything else.
    Word,
}

/// Longer words are data, not anchors.
const MAX_WORD_BYTES: usize = 200;

/// Maximum length of a file extension.
const MAX_EXTENSION_BYTES: usize = 5;

/// Returns the shape of a word. The caller has removed surrounding punctuation.
pub(crate) fn word_shape(word: &str) -> WordShape {
    // Fast path: most words consist of lower-case ASCII letters.
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return WordShape::Word;
    }
    let (mut letters, mut digits, mut joints, mut others) = (0_usize, 0_usize, 0_usize, 0_usize);
    for character in word.chars() {
        match character {
            _ if character.is_ascii_digit() => digits += 1,
            _ if character.is_alphabetic() => letters += 1,
            '-' | '_' | '.' | ':' | '/' | '@' | '#' | '+' | '\\' | '~' | '=' => joints += 1,
            _ => others += 1,
        }
    }
    if word.len() > MAX_WORD_BYTES || letters + digits == 0 {
        return WordShape::Word;
    }
    // Fast path: most other words consist only of letters.
    if digits + joints + others == 0 {
        // Words in capitals only are often codes.
        let is_code = letters >= 5 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        return if is_code || is_joined(word) { WordShape::Identifier } else { WordShape::Word };
    }
    // Only words with at least three joints can contain `://`. Searching every word would cost more than all
    // other checks.
    if joints >= 3
        && word.split_once("://").is_some_and(|(scheme, rest)| is_plain(scheme) && !rest.is_empty())
    {
        return WordShape::Url;
    }
    if joints > 0 && is_date(word) {
        return WordShape::Date;
    }
    if others == 0 && joints > 0 && is_file(word, digits) {
        return WordShape::File;
    }
    let behind_sign = word.trim_start_matches(['-', '+', '$', '€', '£', '¥']);
    if behind_sign.starts_with(|sign: char| sign.is_ascii_digit())
        && letters <= 2
        && !behind_sign.contains('-')
        && word.chars().all(is_numeric)
    {
        return WordShape::Number;
    }
    if others == 0 && letters > 0 && (digits > 0 || is_joined(word) || is_mail_address(word)) {
        return WordShape::Identifier;
    }
    // Groups of digits, as in card, phone and account numbers.
    if others == 0 && letters == 0 && digits >= 4 && joints > 0 {
        WordShape::Identifier
    } else {
        WordShape::Word
    }
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
}

fn is_numeric(character: char) -> bool {
    character.is_ascii_digit() || character.is_alphabetic() || ".,%$€£¥+-".contains(character)
}

/// Whether words are joined as in code: `snake_case`, `SCREAMING_CASE` or `camelCase`.
fn is_joined(word: &str) -> bool {
    let joined = word.trim_matches('_').contains('_');
    let humps =
        word.as_bytes().windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    joined || humps
}

fn is_mail_address(word: &str) -> bool {
    word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}

/// Whether the word is a date (a four-digit year and two more groups), a time of day, or both.
fn is_date(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"-/:TZ.+".contains(&byte);
    if !word.bytes().all(is_part) {
        return false;
    }
    let groups: Vec<&str> = word.split(['-', '/', ':', 'T', 'Z', '.', '+']).collect();
    let numbers = groups.iter().filter(|group| !group.is_empty()).map(|group| group.parse::<u32>().ok());
    let Some(numbers) = numbers.collect::<Option<Vec<u32>>>() else { return false };
    let is_day = word.get(4..5).is_some_and(|sign| sign == "-" || sign == "/")
        && numbers.len() >= 3
        && (1000..3000).contains(&numbers[0])
        && (1..=12).contains(&numbers[1])
        && (1..=31).contains(&numbers[2]);
    let is_time = word.contains(':') && numbers.len() >= 2 && numbers[0] < 24 && numbers[1] < 60;
    is_day || is_time
}

/// Whether the word is a path with several segments, or a file name with an extension.
fn is_file(word: &str, digits: usize) -> bool {
    // Remove a drive letter.
    let word = word.get(1..).filter(|rest| rest.starts_with(":\\")).map_or(word, |rest| &rest[1..]);
    let steps = word.split(['/', '\\']).filter(|step| !step.is_empty()).count();
    let is_rooted = word.starts_with(['/', '~']) || word.starts_with("./") || word.starts_with("../");
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let has_ending = last.rsplit_once('.').is_some_and(|(name, ending)| {
        !name.is_empty()
            && (1..=MAX_EXTENSION_BYTES).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_lowercase())
    });
    let is_name = !word.contains(['@', ':', '=']);
    is_name
        && ((is_rooted && steps >= 1 && word.len() > 2)
            || (has_ending && (steps > 1 || digits < last.len() / 2))
            || steps > 2)
}

/// Whether a word has this many consonants in a row. Such words are unpronounceable, so they are usually
/// codes.
pub(crate) fn is_unpronounceable(word: &str, consonants: usize) -> bool {
    if word.len() < MIN_UNPRONOUNCEABLE_BYTES {
        return false;
    }
    let (mut run, mut longest) = (0, 0);
    for byte in word.bytes() {
        run = match byte.to_ascii_lowercase() {
            b'a' | b'e' | b'i' | b'o' | b'u' | b'y' => 0,
            b'a'..=b'z' => run + 1,
            _ => return false,
        };
        longest = longest.max(run);
    }
    longest >= consonants
}

/// Shorter words may be abbreviations.
const MIN_UNPRONOUNCEABLE_BYTES: usize = 6;

/// Bytes that may end a word: separators, and the first bytes of non-ASCII white space.
static MAY_END_WORD: [bool; 256] = {
    let bytes = b" \t\n\x0b\x0c\r\"'`()[]{}<>|,;*\xc2\xe1\xe2\xe3";
    let mut table = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Returns the words of a text without surrounding punctuation.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let parts = std::iter::from_fn(move || {
        let (part, behind) = (!rest.is_empty()).then(|| rest.split_at(word_end(rest)))?;
        let mut behind = behind.chars();
        behind.next();
        rest = behind.as_str();
        Some(part)
    });
    parts.map(without_punctuation).filter(|word| !word.is_empty())
}

/// Returns the position of the first separator, or the length of the text if there is no separator.
fn word_end(text: &str) -> usize {
    let mut end = 0;
    loop {
        let rest = &text.as_bytes()[end..];
        end += rest.iter().position(|byte| MAY_END_WORD[usize::from(*byte)]).unwrap_or(rest.len());
        match text[end..].chars().next() {
            Some(inside) if !inside.is_ascii() && !inside.is_whitespace() => end += inside.len_utf8(),
            _ => return end,
        }
    }
}

fn without_punctuation(word: &str) -> &str {
    let is_plain = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    if is_plain(word.as_bytes().first()) && is_plain(word.as_bytes().last()) {
        return word;
    }
    let stays =
        |sign: char| matches!(sign, '/' | '~' | '_' | '$' | '€' | '£' | '¥' | '#' | '@' | '-' | '+' | '%');
    let around = |character: char| !character.is_alphanumeric() && !stays(character);
    word.trim_matches(around).trim_end_matches(['-', '/', '+'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_classified_by_shape() {
        for (shape, words) in [
            (WordShape::Url, "https://example.com/a?b=1 postgres://u@h/db"),
            (WordShape::File, "src/main.rs /etc/hosts ~/.ssh/config Cargo.toml ../x C:\\a\\b.txt a/b/c"),
            (
                WordShape::Identifier,
                "mia_li_3668 3RK2T9 HAT069 call-9f3a a1b2c3d4e5 max_tokens camelCase x@example.com 4111-1111-2222 v2.0.1a",
            ),
            (WordShape::Date, "2024-05-20 2024-05-20T15:00:00 15:04 2024/05/20"),
            (WordShape::Number, "158 $1,200.50 98% 12ms -3.5"),
            (WordShape::Word, "Hello economy and self-employed é --"),
        ] {
            for word in words.split(' ') {
                assert_eq!(word_shape(word), shape, "{word}");
            }
        }
    }

    #[test]
    fn surrounding_punctuation_is_trimmed_from_words() {
        let text = "See **Flight HAT069** (\"src/a.rs\"), `x_1`: $51, a/b; mia@example.com.";
        let found: Vec<&str> = words(text).collect();
        assert_eq!(found, ["See", "Flight", "HAT069", "src/a.rs", "x_1", "$51", "a/b", "mia@example.com"]);
    }

    #[test]
    fn only_white_space_and_separators_end_words() {
        for sign in '\0'..='\u{FFFF}' {
            let text = format!("a{sign}b");
            let count = words(&text).count();
            let separates = sign.is_whitespace() || "\"'`()[]{}<>|,;*".contains(sign);
            assert_eq!(count, if separates { 2 } else { 1 }, "{sign:?}");
        }
    }
}
