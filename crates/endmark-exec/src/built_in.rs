//! The built-in manifests. The first words of a command select one of them. (EN-4)

use std::ffi::OsString;

use super::limits::matches_command;
use super::manifest::{self, Manifest};

/// Each manifest is a separate file, so that users can copy and change it.
const BUILT_IN_MANIFESTS: [&str; 4] = [
    include_str!("../manifests/curl.toml"),
    include_str!("../manifests/git-log.toml"),
    include_str!("../manifests/jq.toml"),
    include_str!("../manifests/sqlite3.toml"),
];

/// Returns the built-in manifest for this command. Returns the general manifest if the command has no
/// manifest of its own.
pub(crate) fn find_manifest(command: &[OsString]) -> Manifest {
    let known = BUILT_IN_MANIFESTS.iter().filter_map(|text| manifest::parse(text).ok());
    known.into_iter().find(|known| matches_command(known, command)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(Into::into).collect()
    }

    #[test]
    fn every_manifest_can_be_parsed() {
        for text in BUILT_IN_MANIFESTS {
            assert!(!manifest::parse(text).unwrap().command.is_empty());
        }
    }

    #[test]
    fn a_command_is_recognised_by_its_first_words_without_its_path() {
        assert_eq!(find_manifest(&command(&["git", "log", "-n", "1"])).command, ["git", "log"]);
        assert_eq!(find_manifest(&command(&["/usr/bin/jq", "."])).command, ["jq"]);
        assert_eq!(find_manifest(&command(&["git", "status"])), Manifest::default());
    }
}
