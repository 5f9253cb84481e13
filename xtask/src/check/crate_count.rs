//! Limits the number of crates in the product, because each of them has to be trusted.

use std::collections::BTreeSet;

use crate::workspace::{Workspace, WorkspaceError};

const PRODUCT_CRATE: &str = "endmark-cli";
const MAX_CRATES: usize = 250;

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let arguments =
        ["tree", "-p", PRODUCT_CRATE, "-e", "normal,build", "--prefix", "none", "--format", "{p}"];
    let count = listed_crates(&workspace.cargo(&arguments)?).len();
    let failure = format!(
        "`{PRODUCT_CRATE}` is built from {count} crates, at most {MAX_CRATES}: see which one brought them with `cargo tree -p {PRODUCT_CRATE} -e normal,build`, and leave it or its features out"
    );
    Ok((count > MAX_CRATES).then_some(failure).into_iter().collect())
}

/// Returns names and versions. Cargo marks a repeated crate with `(*)`.
fn listed_crates(tree: &str) -> BTreeSet<(&str, &str)> {
    let name_and_version = |line: &'_ str| -> Option<(usize, usize)> {
        let name = line.find(' ')?;
        let version = line[name + 1..].find(' ').map_or(line.len(), |end| name + 1 + end);
        Some((name, version))
    };
    tree.lines()
        .filter_map(|line| name_and_version(line).map(|(n, v)| (&line[..n], &line[n + 1..v])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once_per_version() {
        let tree = "endmark v0.1.0 (/x)\na v1.0.0\nb v1.0.0 (proc-macro)\na v1.0.0 (*)\n\na v2.0.0\n";
        assert_eq!(listed_crates(tree).len(), 4);
    }
}
