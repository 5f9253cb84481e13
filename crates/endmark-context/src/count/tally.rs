//! Estimates the tokens of a text from its characters, in one pass and without a vocabulary.
//!
//! A vocabulary counts more exactly, but it needs tens of megabytes, takes a thousand times as long, and
//! needs the whole text. A tally can be updated while a text arrives in pieces of any size. The tokens for
//! each kind of character were measured with the vocabularies in `data/`; see `rates.rs`.

use super::image::ASSUMED_DIMENSIONS;
use super::{Family, rates};

/// This many bytes of unknown content count as one token.
const UNREAD_BYTES_PER_TOKEN: u64 = 4;

/// Returns the estimated tokens of bytes whose text is unknown, such as a compressed reply that was not
/// decoded.
pub fn unread_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(UNREAD_BYTES_PER_TOKEN)
}

/// The features that are counted in a text. The rates have the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Feature {
    /// Words of ASCII letters after a space.
    SpacedWord,
    /// Other words of ASCII letters. A capital after a small letter begins a new word.
    Word,
    /// Letters in words after the fourth letter.
    WordLetter,
    /// Letters in words after the twelfth letter.
    LongWordLetter,
    /// Capitals after another capital.
    Capital,
    /// Groups of three digits.
    Digits,
    /// Digits.
    Digit,
    /// Changes between digits and letters, and changes of case after at most two letters. They are typical of
    /// hashes and base64.
    Mixed,
    /// Spaces before a digit.
    SpaceBeforeDigit,
    /// Runs of at least two spaces.
    WideSpace,
    /// Line ends, except those after another line end or a sign.
    LineEnd,
    /// ASCII signs that do not follow another sign.
    Signs,
    /// ASCII signs after a different sign.
    Sign,
    /// ASCII signs that repeat the previous sign.
    RepeatedSign,
    /// Letters of Latin script outside ASCII.
    Latin,
    /// Words in Greek, then their letters. The next scripts follow the same order.
    GreekWord,
    Greek,
    CyrillicWord,
    Cyrillic,
    HangulWord,
    Hangul,
    /// Runs of Han characters, then the characters themselves.
    HanWord,
    Han,
    Kana,
    Hebrew,
    Arabic,
    Devanagari,
    /// Other scripts of India.
    Indic,
    /// Thai, Lao, Burmese and Khmer.
    Southeast,
    /// Letters of all other scripts.
    OtherLetter,
    /// Spaced words, then letters after the fourth letter, in texts of a Latin language other than English.
    AccentedWord,
    AccentedWordLetter,
    /// Signs and punctuation outside ASCII.
    Symbol,
    /// Emoji and private-use characters.
    Emoji,
}

/// Number of features.
pub(super) const FEATURES: usize = Feature::Emoji as usize + 1;

/// A text is not English if it has more than one accented letter per this many words. German has one per
/// three or four words, and English hardly any.
const MIN_ENGLISH_WORDS_PER_ACCENT: u32 = 40;

/// The kind of the previous character, as far as it affects how the next one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CharKind {
    #[default]
    Start,
    Small,
    Capital,
    Digit,
    Space,
    LineEnd,
    Sign(u8),
    /// A letter outside ASCII. The feature identifies its script.
    Letter(Feature),
    Symbol,
}

/// The feature counts of a text and of the media in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextTally {
    counts: [u32; FEATURES],
    last: CharKind,
    /// Length of the current run of equal kinds, in characters.
    run_length: u32,
    media: u32,
    bytes: u64,
}

impl Default for TextTally {
    fn default() -> Self {
        Self { counts: [0; FEATURES], last: CharKind::Start, run_length: 0, media: 0, bytes: 0 }
    }
}

impl TextTally {
    /// Returns the tally of a complete text.
    ///
    /// ```
    /// use endmark_context::count::{Family, TextTally};
    /// let text = "Der Hafen war still, und alle Boote lagen fest.";
    /// let estimated = TextTally::of(text).tokens(Family::O200k);
    /// assert!(Family::O200k.tokens(text).abs_diff(estimated) <= 3);
    /// ```
    pub fn of(text: &str) -> Self {
        let mut tally = Self::default();
        tally.add(text);
        tally
    }

    /// Adds the next piece of the text.
    pub fn add(&mut self, piece: &str) {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        for c in piece.chars() {
            self.add_char(c);
        }
    }

    /// Returns the size of the text in bytes. A text never has more tokens than bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds an image or another medium of unknown size.
    pub fn add_medium(&mut self) {
        self.media = self.media.saturating_add(1);
    }

    /// Returns the estimated tokens for models of this family. Returns 0 only if nothing was added.
    pub fn tokens(&self, family: Family) -> u64 {
        let (rates, percent) = rates::family_rates(family);
        let terms = self.features().into_iter().zip(rates).map(|(count, rate)| u64::from(count) * rate);
        let text = terms.fold(0, u64::saturating_add).saturating_mul(percent).div_ceil(100_000);
        let media = u64::from(self.media).saturating_mul(family.image_tokens(ASSUMED_DIMENSIONS));
        text.max(u64::from(self.last != CharKind::Start)).saturating_add(media)
    }

    /// Returns the counts of the features, in the order of the rates.
    #[doc(hidden)]
    pub fn features(&self) -> [u32; FEATURES] {
        let mut counts = self.counts;
        let (words, letters) = (Feature::SpacedWord as usize, Feature::WordLetter as usize);
        if counts[Feature::Latin as usize] > counts[words] / MIN_ENGLISH_WORDS_PER_ACCENT {
            counts.swap(words, Feature::AccentedWord as usize);
            counts.swap(letters, Feature::AccentedWordLetter as usize);
        }
        counts
    }

    fn count_feature(&mut self, feature: Feature) {
        let count = &mut self.counts[feature as usize];
        *count = count.saturating_add(1);
    }

    fn add_char(&mut self, c: char) {
        let kind = match c {
            'a'..='z' => CharKind::Small,
            'A'..='Z' => CharKind::Capital,
            '0'..='9' => CharKind::Digit,
            ' ' | '\t' => CharKind::Space,
            '\n' | '\r' => CharKind::LineEnd,
            '\0'..='\x7f' => CharKind::Sign(c as u8),
            _ => script_kind(c),
        };
        let last = std::mem::replace(&mut self.last, kind);
        match kind {
            CharKind::Start => {}
            CharKind::Small | CharKind::Capital => self.add_letter(kind, last),
            CharKind::Digit => {
                self.run_length = if last == CharKind::Digit { self.run_length + 1 } else { 1 };
                if self.run_length % 3 == 1 {
                    self.count_feature(Feature::Digits);
                }
                self.count_feature(Feature::Digit);
                match last {
                    CharKind::Space => self.count_feature(Feature::SpaceBeforeDigit),
                    CharKind::Small | CharKind::Capital => self.count_feature(Feature::Mixed),
                    _ => {}
                }
            }
            CharKind::Space => {
                self.run_length = if last == CharKind::Space { self.run_length + 1 } else { 1 };
                if self.run_length == 2 {
                    self.count_feature(Feature::WideSpace);
                }
            }
            CharKind::LineEnd => {
                if !matches!(last, CharKind::LineEnd | CharKind::Sign(_)) {
                    self.count_feature(Feature::LineEnd);
                }
            }
            CharKind::Sign(sign) => match last {
                CharKind::Sign(before) if before == sign => self.count_feature(Feature::RepeatedSign),
                CharKind::Sign(_) => self.count_feature(Feature::Sign),
                _ => self.count_feature(Feature::Signs),
            },
            CharKind::Letter(feature) => {
                let is_in_word = match last {
                    CharKind::Letter(_) => true,
                    CharKind::Small | CharKind::Capital => feature == Feature::Latin,
                    _ => false,
                };
                self.count_feature(feature);
                if !is_in_word && let Some(word) = word_feature(feature) {
                    self.count_feature(word);
                }
            }
            CharKind::Symbol => {
                let is_emoji = u32::from(c) >= 0xe000 && !('\u{fe00}'..='\u{fffe}').contains(&c);
                self.count_feature(if is_emoji { Feature::Emoji } else { Feature::Symbol });
            }
        }
    }

    fn add_letter(&mut self, kind: CharKind, last: CharKind) {
        let is_in_word = match last {
            CharKind::Small => kind == CharKind::Small,
            CharKind::Capital => true,
            CharKind::Letter(feature) => feature == Feature::Latin,
            _ => false,
        };
        if kind == CharKind::Capital && last == CharKind::Small && self.run_length <= 2 {
            self.count_feature(Feature::Mixed);
        }
        self.run_length = if is_in_word { self.run_length + 1 } else { 1 };
        match self.run_length {
            1 if last == CharKind::Space => self.count_feature(Feature::SpacedWord),
            1 => self.count_feature(Feature::Word),
            5..=12 => self.count_feature(Feature::WordLetter),
            13.. => self.count_feature(Feature::LongWordLetter),
            _ => {}
        }
        if kind == CharKind::Capital && last == CharKind::Capital {
            self.count_feature(Feature::Capital);
        }
        if last == CharKind::Digit {
            self.count_feature(Feature::Mixed);
        }
    }
}

/// Returns the feature for words of a script. Returns `None` if only its letters are counted.
fn word_feature(letters: Feature) -> Option<Feature> {
    match letters {
        Feature::Latin => Some(Feature::Word),
        Feature::Greek => Some(Feature::GreekWord),
        Feature::Cyrillic => Some(Feature::CyrillicWord),
        Feature::Hangul => Some(Feature::HangulWord),
        Feature::Han => Some(Feature::HanWord),
        _ => None,
    }
}

/// Returns the kind of a character outside ASCII.
fn script_kind(c: char) -> CharKind {
    let feature = match u32::from(c) {
        0x80..=0xa9 | 0xab..=0xb4 | 0xb6..=0xb9 | 0xbb..=0xbf | 0xd7 | 0xf7 => return CharKind::Symbol,
        0xaa..=0x36f | 0x1e00..=0x1eff => Feature::Latin,
        0x370..=0x3ff | 0x1f00..=0x1fff => Feature::Greek,
        0x400..=0x52f => Feature::Cyrillic,
        0x590..=0x5ff => Feature::Hebrew,
        0x600..=0x8ff | 0xfb50..=0xfdff | 0xfe70..=0xfefe => Feature::Arabic,
        0x900..=0x97f => Feature::Devanagari,
        0x980..=0xdff => Feature::Indic,
        0xe00..=0xeff | 0x1000..=0x109f | 0x1780..=0x17ff => Feature::Southeast,
        0x1100..=0x11ff | 0x3130..=0x318f | 0xac00..=0xd7af => Feature::Hangul,
        0x3040..=0x30ff | 0xff66..=0xff9f => Feature::Kana,
        0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff => Feature::Han,
        0x2000..=0x2bff | 0x3000..=0x303f | 0xe000..=0xf8ff | 0xfe00.. => return CharKind::Symbol,
        _ => Feature::OtherLetter,
    };
    CharKind::Letter(feature)
}
