//! A program that depends on `endmark` alone: its README's first example, in a package outside of the workspace.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// So many packages at most come with the library, Endmark's own among them.
const MAX_CRATES: usize = 39;

const README: &str = include_str!("../../README.md");

/// The first block of Rust in a README, as a program: `# ` marks what rustdoc hides.
fn first_example() -> String {
    let (_, behind) = README.split_once("```rust\n").unwrap();
    let (block, _) = behind.split_once("```").unwrap();
    let shown: Vec<&str> = block.lines().filter(|line| !line.starts_with("# ")).collect();
    format!("fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{}\nOk(())\n}}\n", shown.join("\n"))
}

/// A program that limits what it writes: the derive finds the library through `endmark`.
const LIMITED: &str = r#"
#[derive(endmark::envelope::Limits)]
#[limits(crate = "endmark::envelope")]
struct NewIssue {
    #[limits(max_bytes = 255)]
    title: String,
}

fn main() {
    let checked = endmark::envelope::Checked::new(NewIssue { title: "The gate sticks".to_owned() });
    assert!(checked.is_ok_and(|issue| issue.title.len() == 15));
}
"#;

/// An empty package with what its manifest says of its dependency.
fn package(dependency: &str, program: &str) -> tempfile::TempDir {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let path = toml::Value::from(env!("CARGO_MANIFEST_DIR")).to_string();
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nendmark = {{ path = {path}, {dependency} }}\n"
    );
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), program).unwrap();
    // The versions that are here already: nothing is downloaded.
    std::fs::copy(workspace.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    folder
}

/// What cargo prints, run in this folder without a network.
fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--offline")
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The names of the packages that are built for the program, beside its own; none is of the command alone.
fn built_packages(folder: &Path) -> BTreeSet<String> {
    let tree = cargo(folder, &["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<String> =
        names.filter(|name| !name.is_empty() && *name != "outside").map(str::to_owned).collect();
    for heavy in ["tokio", "hyper", "rusqlite", "clap", "tracing"] {
        assert!(!names.contains(heavy), "{heavy} is the command's: {names:?}");
    }
    names
}

#[test]
fn the_readme_example_needs_one_dependency() {
    for features in ["features = []", "default-features = false"] {
        let folder = package(features, &first_example());
        cargo(folder.path(), &["check"]);
        let built = built_packages(folder.path());
        assert!(built.contains("endmark") && built.contains("endmark-recovery"), "{built:?}");
        assert!(built.len() <= MAX_CRATES, "{}: {built:?}", built.len());
    }
}

#[test]
fn each_family_is_a_feature() {
    for family in ["context", "envelope", "findings", "guard"] {
        let folder = package(&format!("features = [\"{family}\"]"), "fn main() {}");
        let built = built_packages(folder.path());
        assert!(built.contains(&format!("endmark-{family}")), "{family}: {built:?}");
    }
}

#[test]
fn limits_are_derivable_through_the_one_dependency() {
    let folder = package("features = [\"envelope\"]", LIMITED);
    cargo(folder.path(), &["check"]);
}
