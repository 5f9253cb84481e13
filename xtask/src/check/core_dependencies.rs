//! The core stays light: few direct dependencies, so that everything can be built on it.

use crate::workspace::{Workspace, WorkspaceError};

const CORE: &str = "endmark-core";
const AT_MOST: usize = 8;

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let core = workspace.member(CORE)?;
    let normal = core.dependencies.iter().filter(|dependency| dependency.kind.is_none()).count();
    let failure = format!(
        "`{CORE}` has {normal} dependencies, at most {AT_MOST}: make what needs another one a trait, and implement it in a crate above"
    );
    Ok((normal > AT_MOST).then_some(failure).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(dependencies: usize) -> usize {
        let dependency = r#"{"name":"d","kind":null},"#.repeat(dependencies) + r#"{"name":"t","kind":"dev"}"#;
        let metadata = format!(
            r#"{{"workspace_root":"/","workspace_members":["c"],"resolve":{{"nodes":[]}},"packages":[
                {{"id":"c","name":"{CORE}","manifest_path":"/c/Cargo.toml","dependencies":[{dependency}]}}]}}"#
        );
        run(&Workspace::parse(&metadata).unwrap()).unwrap().len()
    }

    #[test]
    fn the_ninth_is_too_many() {
        assert_eq!((failures(8), failures(9)), (0, 1));
    }
}
