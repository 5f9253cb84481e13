//! Code outside the engine does not depend on SQLite.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn only_the_engine_uses_sqlite() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let is_engine = |file: &Path| file.starts_with(source.join("engine")) || file == source.join("engine.rs");
    let names = |file: &PathBuf| fs::read_to_string(file).unwrap().contains("rusqlite");
    let (engine, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_engine(file));
    assert!(engine.iter().any(names), "the engine is where it is looked for");
    let wrong: Vec<_> = others.into_iter().filter(names).collect();
    assert!(wrong.is_empty(), "move what needs it below `engine`: {wrong:?}");
}
