//! Estimates the tokens of a text by its characters, in one pass and without a vocabulary.
//!
//! A vocabulary counts more exactly, but needs tens of megabytes, a thousand times as long, and the whole text. A tally
//! is updated as a text arrives, in pieces of any size. The tokens for each kind of character were measured with the
//! vocabularies in `data/`; see `rates.rs`.

use super::image::ASSUMED_DIMENSIONS;
use super::{Family, rates};

/// Number of unread bytes that count as one token.
const UNREAD_BYTES_PER_TOKEN: u64 = 4;

/// Returns the tokens of bytes without known text, such as a compressed reply that was not decoded.
pub fn unread_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(UNREAD_BYTES_PER_TOKEN)
}

/// Features that are counted in a text, in the order of the rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Feature {
    /// Words of ASCII letters that follow a space.
    SpacedWord,
    /// Other words of ASCII letters. A capital after a small letter begins a new word.
    Word,
    /// Letters of these words after their fourth.
    WordLetter,
    /// Letters of these words after their twelfth.
    LongWordLetter,
    /// Capitals that follow a capital.
    Capital,
    /// Groups of three digits.
    Digits,
    /// Digits.
    Digit,
    /// Changes between digits and letters, and of case after at most two letters, as in a hash or in base64.
    Mixed,
    /// Spaces before a digit.
    SpaceBeforeDigit,
    /// Runs of at least two spaces.
    WideSpace,
    /// Line ends, except those that follow a line end or a sign.
    LineEnd,
    /// ASCII signs that do not follow another sign.
    Signs,
    /// ASCII signs that follow a different sign.
    Sign,
    /// ASCII signs that repeat the one before.
    RepeatedSign,
    /// Letters of Latin scripts outside ASCII.
    Latin,
    /// Words in Greek, then their letters. The next scripts have the same order.
    GreekWord,
    Greek,
    CyrillicWord,
    Cyrillic,
    HangulWord,
    Hangul,
    /// Runs of Han characters, and the characters.
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
    /// The spaced words and the letters after the fourth, in a text of a Latin language other than English.
    AccentedWord,
    AccentedWordLetter,
    /// Signs and punctuation outside ASCII.
    Symbol,
    /// Emoji and private-use characters.
    Emoji,
}

/// Number of features.
pub(super) const FEATURES: usize = Feature::Emoji as usize + 1;

/// A text is not English if it has more than one letter outside ASCII in this many words. German has one in three to
/// four words, English almost none.
const WORDS_PER_ACCENT: u32 = 40;

/// The kind of a character, as far as it affects the next character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Start,
    Small,
    Capital,
    Digit,
    Space,
    LineEnd,
    Sign(u8),
    /// A letter outside ASCII, with its feature.
    Letter(Feature),
    Symbol,
}

/// Counts of a text so far, and of the media in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextTally {
    counts: [u32; FEATURES],
    last: Kind,
    /// Length of the current run, in characters.
    run: u32,
    media: u32,
    bytes: u64,
}

impl Default for TextTally {
    fn default() -> Self {
        Self { counts: [0; FEATURES], last: Kind::Start, run: 0, media: 0, bytes: 0 }
    }
}

impl TextTally {
    /// Returns the tally of a text.
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

    /// Returns the bytes of the text, which no token count exceeds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds an image or other media of unknown size.
    pub fn add_medium(&mut self) {
        self.media = self.media.saturating_add(1);
    }

    /// Returns the estimated tokens for models of this family. It is 0 only if nothing was added.
    pub fn tokens(&self, family: Family) -> u64 {
        let (rates, percent) = rates::family_rates(family);
        let terms = self.features().into_iter().zip(rates).map(|(count, rate)| u64::from(count) * rate);
        let text = terms.fold(0, u64::saturating_add).saturating_mul(percent).div_ceil(100_000);
        let media = u64::from(self.media).saturating_mul(family.image_tokens(ASSUMED_DIMENSIONS));
        text.max(u64::from(self.last != Kind::Start)).saturating_add(media)
    }

    /// Returns the counts in the order of the rates.
    #[doc(hidden)]
    pub fn features(&self) -> [u32; FEATURES] {
        let mut counts = self.counts;
        let (words, letters) = (Feature::SpacedWord as usize, Feature::WordLetter as usize);
        if counts[Feature::Latin as usize] > counts[words] / WORDS_PER_ACCENT {
            counts.swap(words, Feature::AccentedWord as usize);
            counts.swap(letters, Feature::AccentedWordLetter as usize);
        }
        counts
    }

    fn count(&mut self, feature: Feature) {
        let count = &mut self.counts[feature as usize];
        *count = count.saturating_add(1);
    }

    fn add_char(&mut self, c: char) {
        let kind = match c {
            'a'..='z' => Kind::Small,
            'A'..='Z' => Kind::Capital,
            '0'..='9' => Kind::Digit,
            ' ' | '\t' => Kind::Space,
            '\n' | '\r' => Kind::LineEnd,
            '\0'..='\x7f' => Kind::Sign(c as u8),
            _ => script_kind(c),
        };
        let last = std::mem::replace(&mut self.last, kind);
        match kind {
            Kind::Start => {}
            Kind::Small | Kind::Capital => self.add_letter(kind, last),
            Kind::Digit => {
                self.run = if last == Kind::Digit { self.run + 1 } else { 1 };
                if self.run % 3 == 1 {
                    self.count(Feature::Digits);
                }
                self.count(Feature::Digit);
                match last {
                    Kind::Space => self.count(Feature::SpaceBeforeDigit),
                    Kind::Small | Kind::Capital => self.count(Feature::Mixed),
                    _ => {}
                }
            }
            Kind::Space => {
                self.run = if last == Kind::Space { self.run + 1 } else { 1 };
                if self.run == 2 {
                    self.count(Feature::WideSpace);
                }
            }
            Kind::LineEnd => {
                if !matches!(last, Kind::LineEnd | Kind::Sign(_)) {
                    self.count(Feature::LineEnd);
                }
            }
            Kind::Sign(sign) => match last {
                Kind::Sign(before) if before == sign => self.count(Feature::RepeatedSign),
                Kind::Sign(_) => self.count(Feature::Sign),
                _ => self.count(Feature::Signs),
            },
            Kind::Letter(feature) => {
                let is_in_word = match last {
                    Kind::Letter(_) => true,
                    Kind::Small | Kind::Capital => feature == Feature::Latin,
                    _ => false,
                };
                self.count(feature);
                if !is_in_word && let Some(word) = word_feature(feature) {
                    self.count(word);
                }
            }
            Kind::Symbol => {
                let is_emoji = u32::from(c) >= 0xe000 && !('\u{fe00}'..='\u{fffe}').contains(&c);
                self.count(if is_emoji { Feature::Emoji } else { Feature::Symbol });
            }
        }
    }

    fn add_letter(&mut self, kind: Kind, last: Kind) {
        let is_in_word = match last {
            Kind::Small => kind == Kind::Small,
            Kind::Capital => true,
            Kind::Letter(feature) => feature == Feature::Latin,
            _ => false,
        };
        if kind == Kind::Capital && last == Kind::Small && self.run <= 2 {
            self.count(Feature::Mixed);
        }
        self.run = if is_in_word { self.run + 1 } else { 1 };
        match self.run {
            1 if last == Kind::Space => self.count(Feature::SpacedWord),
            1 => self.count(Feature::Word),
            5..=12 => self.count(Feature::WordLetter),
            13.. => self.count(Feature::LongWordLetter),
            _ => {}
        }
        if kind == Kind::Capital && last == Kind::Capital {
            self.count(Feature::Capital);
        }
        if last == Kind::Digit {
            self.count(Feature::Mixed);
        }
    }
}

/// Returns the feature for the words of a script, or `None` if only its letters count.
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
fn script_kind(c: char) -> Kind {
    let feature = match u32::from(c) {
        0x80..=0xa9 | 0xab..=0xb4 | 0xb6..=0xb9 | 0xbb..=0xbf | 0xd7 | 0xf7 => return Kind::Symbol,
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
        0x2000..=0x2bff | 0x3000..=0x303f | 0xe000..=0xf8ff | 0xfe00.. => return Kind::Symbol,
        _ => Feature::OtherLetter,
    };
    Kind::Letter(feature)
}
