//! The workspace as cargo and git report it. It is loaded once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The packages, their dependency graph, and the files.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    metadata: Metadata,
}

/// Error of loading the data for the checks.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    /// A program is missing or cannot be started.
    #[error("cannot run `{0}` ({1}): install it")]
    NotStarted(String, io::Error),
    /// A program failed.
    #[error("`{0}` failed: {1}")]
    Failed(String, String),
    /// The output of `cargo metadata` has an unexpected form.
    #[error("cannot read the answer of `cargo metadata`: {0}")]
    Metadata(#[from] serde_json::Error),
    /// A crate that a check names does not exist.
    #[error("there is no crate `{0}` in the workspace: update its name in xtask/src/check/")]
    UnknownCrate(&'static str),
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(PathBuf, io::Error),
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    workspace_members: BTreeSet<String>,
    packages: Vec<Package>,
    resolve: Resolve,
}

/// A package, as described by its manifest.
#[derive(Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency, as declared in the manifest.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, otherwise `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// The folder of a local dependency.
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    features: Vec<String>,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

impl Workspace {
    /// Runs `cargo metadata` and loads the workspace.
    pub(crate) fn load() -> Result<Self, WorkspaceError> {
        let answer = run_program(
            &cargo_path(),
            &["metadata", "--format-version", "1", "--all-features"],
            Path::new("."),
        )?;
        Self::parse(&answer)
    }

    /// Parses the output of `cargo metadata`.
    pub(crate) fn parse(answer: &str) -> Result<Self, WorkspaceError> {
        let metadata: Metadata = serde_json::from_str(answer)?;
        Ok(Self { root: metadata.workspace_root.clone(), metadata })
    }

    /// The workspace's own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.metadata.packages.iter().filter(|package| self.metadata.workspace_members.contains(&package.id))
    }

    /// Returns the member with this name.
    pub(crate) fn member(&self, name: &'static str) -> Result<&Package, WorkspaceError> {
        self.members().find(|package| package.name == name).ok_or(WorkspaceError::UnknownCrate(name))
    }

    /// Whether any crate of the workspace builds a package with this feature.
    pub(crate) fn has_feature(&self, package: &str, feature: &str) -> bool {
        let of =
            |id: &str| self.metadata.packages.iter().any(|other| other.id == id && other.name == package);
        let nodes = &self.metadata.resolve.nodes;
        nodes.iter().any(|node| node.features.iter().any(|own| own == feature) && of(&node.id))
    }

    /// Returns the names of all packages in the normal and build dependencies of a package, at any depth.
    ///
    /// Skips each dependency for which `without(package, dependency)` is true.
    pub(crate) fn dependency_closure(
        &self,
        package: &Package,
        without: fn(&str, &str) -> bool,
    ) -> BTreeSet<&str> {
        let names: BTreeMap<&str, &str> = self
            .metadata
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let name = |id: &str| names.get(id).copied().unwrap_or_default();
        let nodes: BTreeMap<&str, &Node> =
            self.metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let mut seen = BTreeSet::new();
        let mut open = vec![package.id.as_str()];
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let edges = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let built =
                edges.filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev")));
            let built = built.filter(|edge| !without(name(id), name(&edge.pkg)));
            open.extend(built.map(|edge| edge.pkg.as_str()));
        }
        let others = self.metadata.packages.iter().filter(|other| seen.contains(other.id.as_str()));
        others.map(|other| other.name.as_str()).collect()
    }

    /// Returns the tracked files, and the untracked files that git does not ignore. Paths are relative to the
    /// root.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, WorkspaceError> {
        let arguments = ["-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"];
        let listing = run_program("git", &arguments, &self.root)?;
        let files: BTreeSet<PathBuf> =
            listing.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
        // Git still lists files that were deleted but not committed.
        Ok(files.into_iter().filter(|file| self.root.join(file).is_file()).collect())
    }

    /// Returns the Rust files with their text.
    pub(crate) fn rust_files(&self) -> Result<Vec<(PathBuf, String)>, WorkspaceError> {
        let files =
            self.files()?.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs"));
        files.map(|file| self.read(&file).map(|text| (file, text))).collect()
    }

    /// Returns the text of a file. Invalid UTF-8 is replaced by U+FFFD.
    pub(crate) fn read(&self, file: &Path) -> Result<String, WorkspaceError> {
        let bytes = std::fs::read(self.root.join(file));
        let bytes = bytes.map_err(|error| WorkspaceError::File(file.to_owned(), error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Runs cargo in the root folder, and returns its output.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Result<String, WorkspaceError> {
        run_program(&cargo_path(), arguments, &self.root)
    }
}

impl Package {
    /// Returns the package's folder, relative to the root.
    pub(crate) fn folder<'a>(&'a self, workspace: &Workspace) -> &'a Path {
        let folder = self.manifest_path.parent().unwrap_or(&self.manifest_path);
        folder.strip_prefix(&workspace.root).unwrap_or(folder)
    }
}

impl Dependency {
    /// Whether the dependency is a package of this workspace.
    pub(crate) fn is_in_workspace(&self) -> bool {
        self.path.is_some()
    }

    /// Whether only tests, examples and benchmarks use the dependency.
    pub(crate) fn is_for_tests(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// Returns the path of the cargo that started this task.
fn cargo_path() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn run_program(program: &str, arguments: &[&str], folder: &Path) -> Result<String, WorkspaceError> {
    let command = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| WorkspaceError::NotStarted(program.to_owned(), error))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(WorkspaceError::Failed(command, String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
