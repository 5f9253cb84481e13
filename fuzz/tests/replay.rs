//! Replays every committed seed, so that a fixed failure cannot return unnoticed.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use endmark_fuzz::TARGETS;

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<_> = listing.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

#[test]
fn every_seed_passes() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut failed = Vec::new();
    for (name, check) in TARGETS {
        let seeds = entries(&corpora.join(name));
        assert!(!seeds.is_empty(), "the target `{name}` has no seed");
        for seed in seeds {
            let bytes = fs::read(&seed).unwrap();
            if catch_unwind(|| check(&bytes)).is_err() {
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "these seeds fail: {failed:#?}");
}

#[test]
fn every_corpus_has_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |paths: Vec<PathBuf>| -> BTreeSet<String> {
        paths.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(entries(&folder.join("corpus"))), targets);
    assert_eq!(names(entries(&folder.join("fuzz_targets"))), targets);
}
