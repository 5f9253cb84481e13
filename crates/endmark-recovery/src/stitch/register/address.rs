//! Determines whom a line addresses, and about what. A remark about an answer contains a word for the reader,
//! the writer or the answer. But a text that addresses its own reader may end in the same way.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::pieces::is_unspaced_letter;

/// The words by language. `bench/register` uses the same file to fit the weights.
const ADDRESS_WORDS: &str = include_str!("address.txt");

/// Average number of words per word that addresses the reader, in replies and in documents. Counted in 43,536
/// words of 919 real replies, and in 785,000 words of documentation and source code.
const WORDS_PER_ADDRESS_IN_REPLY: f64 = 13.0;
const WORDS_PER_ADDRESS_IN_DOCUMENT: f64 = 160.0;
/// Prior evidence, in bits, that a text is a reply if it ends like one.
const REPLY_PRIOR_BITS: f64 = 6.0;

/// The kinds of words that a line is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Address {
    /// Words for the writer or the reader.
    Reader,
    /// Words for an answer.
    Answer,
}

/// The words that must be separate words, and the words of scripts without spaces.
#[derive(Default)]
struct Vocabulary {
    words: HashSet<&'static str>,
    unspaced_words: Vec<&'static str>,
}

fn vocabulary(address: Address) -> &'static Vocabulary {
    static KNOWN: OnceLock<[Vocabulary; 2]> = OnceLock::new();
    let read = || {
        let (_, rest) = ADDRESS_WORDS.split_once("[reader]").unwrap_or_default();
        let (reader, answer) = rest.split_once("[answer]").unwrap_or_default();
        [reader, answer].map(|part| {
            let (wide, words): (Vec<_>, Vec<_>) =
                part.split_whitespace().partition(|word| word.starts_with(is_unspaced_letter));
            Vocabulary { words: words.into_iter().collect(), unspaced_words: wide }
        })
    };
    &KNOWN.get_or_init(read)[address as usize]
}

/// Whether a line contains one of these words.
pub(super) fn contains_word_for(address: Address, line: &str) -> bool {
    let vocabulary = vocabulary(address);
    words(line).any(|word| contains_word(vocabulary, word))
        || vocabulary.unspaced_words.iter().any(|word| line.contains(word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty())
}

/// Whether a word is in the vocabulary. A lower-case `i` does not count, because it is usually a letter or an
/// index.
fn contains_word(vocabulary: &Vocabulary, word: &str) -> bool {
    vocabulary.words.contains(word) || word != "i" && vocabulary.words.contains(word.to_lowercase().as_str())
}

/// Returns the evidence, in bits, that texts come from a document and not from a reply, based on how often
/// they address the reader.
pub(super) fn document_evidence(texts: [&str; 2]) -> f64 {
    let vocabulary = vocabulary(Address::Reader);
    let (mut answer_score, mut reader_score) = (0.0, 0.0);
    for text in texts {
        for word in words(text) {
            answer_score += 1.0;
            reader_score += f64::from(u8::from(contains_word(vocabulary, word)));
        }
        let wide: usize = vocabulary.unspaced_words.iter().map(|word| text.matches(word).count()).sum();
        reader_score += f64::from(u32::try_from(wide).unwrap_or(u32::MAX));
    }
    let rates = (WORDS_PER_ADDRESS_IN_REPLY.recip(), WORDS_PER_ADDRESS_IN_DOCUMENT.recip());
    answer_score * (rates.0 - rates.1) * std::f64::consts::LOG2_E
        - reader_score * (rates.0 / rates.1).log2()
        - REPLY_PRIOR_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addressee_is_detected_from_the_words() {
        for line in ["Let me know.", "I hope so", "Ich hoffe, das hilft.", "如有问题，请告诉我。"] {
            assert!(contains_word_for(Address::Reader, line), "{line}");
        }
        for line in
            ["That completes the file.", "Damit ist das Dokument fertig.", "[END OF OUTPUT]", "以上です。"]
        {
            assert!(contains_word_for(Address::Answer, line), "{line}");
        }
        for line in ["The end.", "See the appendix.", "for i in boats", "Anna Berg", "He never came back."] {
            assert!(
                !contains_word_for(Address::Reader, line) && !contains_word_for(Address::Answer, line),
                "{line}"
            );
        }
    }

    #[test]
    fn a_text_that_addresses_its_reader_is_not_a_document() {
        let document = "The boats lay in the harbour and the nets hung on the wall. ".repeat(12);
        assert!(document_evidence([&document, ""]) > 4.0);
        let reply = "Your flight leaves at noon. You can change it until ten, if you like. ".repeat(12);
        assert!(document_evidence([&reply, ""]) < -8.0);
        // A few words are not enough evidence.
        assert!(document_evidence(["The boats lay in the harbour.", ""]) < 0.0);
    }
}
