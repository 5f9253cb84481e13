//! Average number of tokens for each feature of a text.
//!
//! The rates were measured with the vocabularies in `data/` on translations of `github/opensource.guide` and
//! of Django's messages, source code, JSON, tables, logs and encoded bytes. They minimise the relative error,
//! and no rate is negative. `bench/tokens` generates this table, and reports the error for each kind of text.

use super::Family;
use super::family::UNKNOWN_VOCABULARY_PERCENT;
use super::tally::FEATURES;

/// The number of measured vocabularies: `o200k_base`, `cl100k_base`, Claude 3 and Claude 4.7.
const VOCABULARIES: usize = 4;

/// Returns the rates of a family in thousandths of a token, and a percentage that is applied to their sum.
pub(super) fn family_rates(family: Family) -> (impl Iterator<Item = u64>, u64) {
    let (vocabulary, percent) = match family {
        Family::O200k | Family::LaterOpenAi => (0, 100),
        Family::Cl100k => (1, 100),
        Family::Claude3 => (2, 100),
        Family::Claude47 | Family::Claude48 => (3, 100),
        Family::Gemini | Family::Other => (0, UNKNOWN_VOCABULARY_PERCENT),
    };
    (RATES.iter().map(move |rates| u64::from(rates[vocabulary])), percent)
}

/// Thousandths of a token for each feature. The rows have the order of the features.
#[rustfmt::skip]
const RATES: [[u32; VOCABULARIES]; FEATURES] = [
    [922, 973, 969, 1006], // SpacedWord
    [768, 906, 1482, 1903], // Word
    [39, 13, 61, 304], // WordLetter
    [905, 1854, 2647, 4370], // LongWordLetter
    [107, 60, 177, 1003], // Capital
    [844, 977, 997, 751], // Digits
    [48, 6, 0, 84], // Digit
    [222, 138, 0, 0], // Mixed
    [1124, 1048, 1055, 1120], // SpaceBeforeDigit
    [887, 863, 1836, 1309], // WideSpace
    [1917, 1046, 645, 1814], // LineEnd
    [985, 990, 897, 999], // Signs
    [191, 59, 0, 159], // Sign
    [0, 0, 301, 581], // RepeatedSign
    [1345, 2017, 1298, 1297], // Latin
    [606, 167, 659, 803], // GreekWord
    [278, 1009, 643, 610], // Greek
    [1513, 2118, 495, 487], // CyrillicWord
    [0, 131, 352, 344], // Cyrillic
    [578, 0, 448, 783], // HangulWord
    [475, 1193, 1251, 1122], // Hangul
    [835, 531, 1201, 965], // HanWord
    [558, 986, 956, 928], // Han
    [663, 933, 788, 763], // Kana
    [444, 1174, 869, 859], // Hebrew
    [339, 852, 799, 790], // Arabic
    [356, 1212, 881, 869], // Devanagari
    [419, 1957, 988, 960], // Indic
    [500, 1435, 1092, 1050], // Southeast
    [368, 2138, 816, 789], // OtherLetter
    [749, 703, 808, 1155], // AccentedWord
    [131, 218, 317, 452], // AccentedWordLetter
    [1277, 2154, 1455, 1664], // Symbol
    [1796, 2011, 5215, 6916], // Emoji
];
