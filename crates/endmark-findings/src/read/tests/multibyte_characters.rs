//! Inserts multi-byte characters anywhere in the foreign files. The parser must not panic, and every position must be
//! within the text.

use std::path::Path;

use crate::{Position, read};

/// Characters of two, three and four bytes, and a zero-width joiner.
const LETTERS: [&str; 4] = ["é", "漢", "🦀", "\u{200d}"];

fn check(name: &str, text: &[u8]) {
    let is_inside = |position: Position| position.byte <= text.len();
    let transcript = read(text);
    let findings = transcript.results.iter().flat_map(|result| &result.findings);
    let checkpoints = transcript.checkpoints.iter().map(|checkpoint| checkpoint.position);
    let places = findings.map(|read| read.position).chain(checkpoints);
    let mut places = places.chain(transcript.remarks.iter().map(|remark| remark.position));
    assert!(places.all(is_inside), "{name}: {}", String::from_utf8_lossy(text));
}

/// Inserts each of the letters before every character of the files, and replaces every character by it. Without
/// `ENDMARK_TEST_CUTS`, tests only a sample.
#[test]
fn multibyte_letters_are_allowed_anywhere() {
    let is_all = std::env::var_os("ENDMARK_TEST_CUTS").is_some();
    let step = if is_all { 1 } else { 29 };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/read/tests/foreign");
    let mut texts = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        for (number, (at, ch)) in text.char_indices().enumerate().skip(name.len() % step).step_by(step) {
            let chosen = LETTERS.iter().enumerate().filter(|(kind, _)| is_all || number / step % 4 == *kind);
            for (_, letter) in chosen {
                for tail in [at, at + ch.len_utf8()] {
                    check(&name, [&text[..at], letter, &text[tail..]].concat().as_bytes());
                    texts += 1;
                }
            }
        }
    }
    assert!(texts > 1_000, "{texts}");
    println!("{texts} texts");
}
