//! Generates documents for the measurements. The same source files always give the same bytes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

/// Bytes of 1 MB. All figures use decimal units.
pub const MEGABYTE: usize = 1_000_000;

/// A small pseudo-random number generator (xorshift).
pub struct Random(u64);

impl Random {
    /// Creates a generator. Generators with the same seed return the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next number. It is less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % end.max(1)
    }
}

/// Returns the source files of this repository as one text, which resembles what models write into strings.
#[must_use]
pub fn code() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "tests/real_model"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            files.push(path);
        }
    }
}

/// Returns a tool call of at least `length` bytes that writes files. Its strings contain 8 to 64 KB of real
/// code.
///
/// # Panics
///
/// Panics if the sources of this repository are missing.
#[must_use]
pub fn code_strings(length: usize) -> Vec<u8> {
    let code = code();
    assert!(code.len() > 100_000, "the sources of this repository are its input");
    let mut random = Random::new(1);
    let mut text = String::from(r#"{"tool": "write_files", "edits": ["#);
    let mut from = 0;
    while text.len() < length {
        let most = (8_000 + random.below(56_000)).min(length - text.len());
        let to = code.ceil_char_boundary((from + most).min(code.len()));
        let edit = json!({"path": format!("src/module_{}.rs", random.below(1_000)), "mode": 420, "content": &code[from..to]});
        let _ = write!(text, "{}{edit}", if text.ends_with('[') { "" } else { ", " });
        from = if to == code.len() { 0 } else { to };
    }
    text.push_str("]}");
    text.into_bytes()
}

/// Returns an array of at least `length` bytes, with small objects as in a list of records.
#[must_use]
pub fn small_objects(length: usize) -> Vec<u8> {
    const NAMES: [&str; 8] =
        ["river", "engine", "garden", "letter", "old window", "market hall", "signal", "teacher's bridge"];
    let mut random = Random::new(2);
    let mut text = String::from("[");
    let mut id = 0_u32;
    while text.len() < length {
        id += 1;
        let separator = if id == 1 { "" } else { ", " };
        let name = NAMES[random.below(NAMES.len())];
        let tag = NAMES[random.below(NAMES.len())];
        let active = random.below(3) > 0;
        let (whole, part) = (random.below(1_000), random.below(100));
        let _ = write!(
            text,
            r#"{separator}{{"id": {id}, "name": "{name}", "active": {active}, "score": {whole}.{part}, "tags": ["{tag}", "x{whole}"], "parent": null}}"#
        );
    }
    text.push(']');
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_reproducible_json_of_the_requested_size() {
        for make in [code_strings, small_objects] {
            let document = make(300_000);
            assert!((300_000..400_000).contains(&document.len()), "{}", document.len());
            serde_json::from_slice::<serde::de::IgnoredAny>(&document).unwrap();
            assert_eq!(document, make(300_000));
        }
    }
}
