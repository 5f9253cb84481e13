//! Compiles programs that depend only on `endmark`, in packages outside of the workspace. One of them is the
//! first example of the README.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The library may have at most this many packages in total, including those of Endmark.
const MAX_PACKAGES: usize = 39;

const README: &str = include_str!("../../README.md");

/// Returns the first Rust block of the README as a program. Lines with `# ` are hidden by rustdoc, so they
/// are left out.
fn first_example() -> String {
    let (_, behind) = README.split_once("```rust\n").unwrap();
    let (block, _) = behind.split_once("```").unwrap();
    let shown: Vec<&str> = block.lines().filter(|line| !line.starts_with("# ")).collect();
    format!("fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{}\nOk(())\n}}\n", shown.join("\n"))
}

/// A program with limits for its output. The derived code finds the library under the name `endmark`.
const PROGRAM_WITH_LIMITS: &str = r#"
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

/// Creates a package with this program and this dependency on `endmark`.
fn create_package(dependency: &str, program: &str) -> tempfile::TempDir {
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
    // Use the versions of the workspace, so that nothing needs to be downloaded.
    std::fs::copy(workspace.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    folder
}

/// Runs cargo in this folder without a network, and returns its output.
fn run_cargo(folder: &Path, arguments: &[&str]) -> String {
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

/// Returns the names of the packages that are built for the program. Fails if a package is included that only
/// the command needs.
fn built_packages(folder: &Path) -> BTreeSet<String> {
    let tree = run_cargo(folder, &["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
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
        let folder = create_package(features, &first_example());
        run_cargo(folder.path(), &["check"]);
        let built = built_packages(folder.path());
        assert!(built.contains("endmark") && built.contains("endmark-recovery"), "{built:?}");
        assert!(built.len() <= MAX_PACKAGES, "{}: {built:?}", built.len());
    }
}

#[test]
fn each_module_has_a_feature() {
    for family in ["context", "envelope", "findings", "guard"] {
        let folder = create_package(&format!("features = [\"{family}\"]"), "fn main() {}");
        let built = built_packages(folder.path());
        assert!(built.contains(&format!("endmark-{family}")), "{family}: {built:?}");
    }
}

#[test]
fn limits_can_be_derived_with_endmark_as_the_only_dependency() {
    let folder = create_package("features = [\"envelope\"]", PROGRAM_WITH_LIMITS);
    run_cargo(folder.path(), &["check"]);
}
