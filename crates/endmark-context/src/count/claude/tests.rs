//! Compares counts with `ctok` 1.3.0, for texts of many kinds and scripts, and for random texts of the characters that
//! the rules distinguish.

use super::Generation;

/// Texts with the counts of `ctok` for 3.0, 4.7 and 4.8, without the frame of a message.
const COUNTS: &str = include_str!("counts.json");

fn tokens(text: &str, generation: Generation) -> u64 {
    super::tokens(text, generation, || false)
}

#[test]
fn counts_match_the_reconstruction() {
    let counts: Vec<(String, u64, u64, u64)> = serde_json::from_str(COUNTS).unwrap();
    assert!(counts.len() > 140);
    let generations = [Generation::Three, Generation::FourSeven, Generation::FourEight];
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
fn a_vocabulary_is_read_whole() {
    // Single characters, pieces with escapes, and a run of spaces.
    for (text, count) in [("\\", 1), ("\t", 1), ("a", 1)] {
        assert!(tokens(text, Generation::Three) <= count + 1, "{text:?}");
    }
    assert_eq!(tokens(&"word ".repeat(1_000), Generation::Three), 1_001);
}
