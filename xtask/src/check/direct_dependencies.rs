//! Limits the number of direct dependencies of the base crates.

use crate::workspace::{Workspace, WorkspaceError};

const BASE_CRATES: &[&str] = &["endmark-text", "endmark-recovery", "endmark-findings"];
const MAX_DIRECT_DEPENDENCIES: usize = 8;

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let mut failures = Vec::new();
    for name in BASE_CRATES {
        let package = workspace.member(name)?;
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind.is_none()).count();
        if normal > MAX_DIRECT_DEPENDENCIES {
            failures.push(format!(
                "`{name}` has {normal} dependencies, at most {MAX_DIRECT_DEPENDENCIES}: make what needs another one a trait, and implement it in a crate above"
            ));
        }
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(dependencies: usize) -> usize {
        let dependency = r#"{"name":"d","kind":null},"#.repeat(dependencies) + r#"{"name":"t","kind":"dev"}"#;
        let package = |name: &str, dependencies: &str| {
            format!(
                r#"{{"id":"{name}","name":"{name}","manifest_path":"/c/Cargo.toml","dependencies":[{dependencies}]}}"#
            )
        };
        let packages: Vec<String> = BASE_CRATES
            .iter()
            .map(|name| package(name, if *name == "endmark-recovery" { &dependency } else { "" }))
            .collect();
        let members: Vec<String> = BASE_CRATES.iter().map(|name| format!("\"{name}\"")).collect();
        let metadata = format!(
            r#"{{"workspace_root":"/","workspace_members":[{}],"resolve":{{"nodes":[]}},"packages":[{}]}}"#,
            members.join(","),
            packages.join(",")
        );
        run(&Workspace::parse(&metadata).unwrap()).unwrap().len()
    }

    #[test]
    fn a_ninth_dependency_is_rejected() {
        assert_eq!((failures(8), failures(9)), (0, 1));
    }
}
