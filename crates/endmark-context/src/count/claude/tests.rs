//! Compares counts with those of `ctok` 1.3.0: for texts of many kinds and scripts, and for random texts of
//! the characters that the rules distinguish.

use super::TokenizerVersion;

/// Texts with the counts that `ctok` returns for 3.0, 4.7 and 4.8, without the frame of a message.
const COUNTS: &str = include_str!("counts.json");

fn tokens(text: &str, generation: TokenizerVersion) -> u64 {
    super::count_tokens(text, generation, || false)
}

#[test]
fn counts_match_ctok() {
    let counts: Vec<(String, u64, u64, u64)> = serde_json::from_str(COUNTS).unwrap();
    assert!(counts.len() > 140);
    let generations = [TokenizerVersion::Three, TokenizerVersion::FourSeven, TokenizerVersion::FourEight];
    let mut wrong = Vec::new();
    for (text, three, four_seven, four_eight) in &counts {
        let own = generations.map(|generation| tokens(text, generation));
        if own != [*three, *four_seven, *four_eight] {
            wrong.push((text, own, [*three, *four_seven, *four_eight]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ: {wrong:#?}", wrong.len(), counts.len());
}

#[test]
fn a_vocabulary_is_read_completely() {
    // These texts test single characters, pieces with escapes, and a run of spaces.
    for (text, count) in [("\\", 1), ("\t", 1), ("a", 1)] {
        assert!(tokens(text, TokenizerVersion::Three) <= count + 1, "{text:?}");
    }
    assert_eq!(tokens(&"word ".repeat(1_000), TokenizerVersion::Three), 1_001);
}
