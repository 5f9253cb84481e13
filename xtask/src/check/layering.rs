//! Checks that dependencies between crates point in one direction.

use crate::workspace::{Package, Workspace, WorkspaceError};

/// The permitted dependencies of each crate. A crate that is not listed has not been assigned to a layer.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("endmark-envelope", &["endmark-envelope-derive"]),
    ("endmark-envelope-derive", &[]),
    ("endmark-text", &[]),
    ("endmark-recovery", &["endmark-text"]),
    ("endmark-findings", &["endmark-text"]),
    ("endmark-context", &["endmark-envelope", "endmark-text"]),
    ("endmark-guard", &["endmark-text"]),
    ("endmark-wire", &["endmark-context", "endmark-recovery", "endmark-text"]),
    ("endmark-failure", &["endmark-envelope"]),
    ("endmark-setting", &[]),
    (
        "endmark-agents",
        &[
            "endmark-config",
            "endmark-console",
            "endmark-context",
            "endmark-envelope",
            "endmark-failure",
            "endmark-findings",
            "endmark-gateway",
            "endmark-guard",
            "endmark-process",
            "endmark-runs",
            "endmark-store",
            "endmark-text",
            "endmark-wire",
        ],
    ),
    (
        "endmark-config",
        &[
            "endmark-context",
            "endmark-failure",
            "endmark-gateway",
            "endmark-process",
            "endmark-recovery",
            "endmark-runs",
            "endmark-setting",
            "endmark-store",
            "endmark-wire",
        ],
    ),
    (
        "endmark-exec",
        &[
            "endmark-context",
            "endmark-envelope",
            "endmark-failure",
            "endmark-process",
            "endmark-store",
            "endmark-text",
        ],
    ),
    ("endmark-store", &["endmark-context", "endmark-envelope", "endmark-failure"]),
    (
        "endmark-gateway",
        &[
            "endmark-console",
            "endmark-context",
            "endmark-process",
            "endmark-recovery",
            "endmark-setting",
            "endmark-store",
            "endmark-text",
            "endmark-wire",
        ],
    ),
    ("endmark-process", &[]),
    ("endmark-runs", &["endmark-context", "endmark-guard", "endmark-process", "endmark-store"]),
    ("endmark-console", &["endmark-context", "endmark-runs", "endmark-store", "endmark-wire"]),
    (
        "endmark",
        &[
            "endmark-context",
            "endmark-envelope",
            "endmark-findings",
            "endmark-guard",
            "endmark-recovery",
            "endmark-text",
            "endmark-wire",
        ],
    ),
    (
        "endmark-cli",
        &[
            "endmark-agents",
            "endmark-config",
            "endmark-console",
            "endmark-context",
            "endmark-envelope",
            "endmark-exec",
            "endmark-failure",
            "endmark-findings",
            "endmark-gateway",
            "endmark-guard",
            "endmark-recovery",
            "endmark-process",
            "endmark-runs",
            "endmark-store",
            "endmark-text",
            "endmark-wire",
        ],
    ),
    ("testkit", &[]),
    ("xtask", &[]),
];

/// Dependencies that only tests may use: the test upstream, and for a derive macro the crate of its trait.
const ALLOWED_TEST_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("endmark-envelope-derive", &["endmark-envelope"]),
    ("endmark-store", &["testkit"]),
    ("endmark-gateway", &["testkit"]),
    ("endmark-runs", &["testkit"]),
    ("endmark-cli", &["testkit"]),
];

#[expect(clippy::unnecessary_wraps, reason = "all checks have one signature")]
pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    Ok(workspace.members().flat_map(package_failures).collect())
}

fn package_failures(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, may_see)) = ALLOWED_DEPENDENCIES.iter().find(|(known, _)| *known == name) else {
        return vec![format!(
            "the crate `{name}` is in no layer: list its dependencies in xtask/src/check/layering.rs, and the crate in ARCHITECTURE.md"
        )];
    };
    let is_wrong = |seen: &str, for_tests: bool| {
        let with = ALLOWED_TEST_DEPENDENCIES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(&[][..], |(_, with)| with);
        let may_test = for_tests && with.contains(&seen);
        !may_see.contains(&seen) && !may_test
    };
    let ours = package.dependencies.iter().filter(|dependency| dependency.is_in_workspace());
    let wrong = ours.filter(|dependency| is_wrong(&dependency.name, dependency.is_for_tests()));
    wrong
        .map(|dependency| {
            let section = if dependency.is_for_tests() { "dev-dependencies" } else { "dependencies" };
            let allowed = if may_see.is_empty() { "no crate of ours".to_owned() } else { may_see.join(", ") };
            format!(
                "`{name}` must not use `{}` ([{section}]); it may use {allowed}: move the needed items to a lower layer, or pass them in through a trait",
                dependency.name
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(name: &str, dependency: &str, kind: &str) -> Vec<String> {
        let package = format!(
            r#"{{"id":"p","name":"{name}","manifest_path":"/p/Cargo.toml","dependencies":[
                {{"name":"{dependency}","kind":{kind},"path":"/d"}},{{"name":"serde","kind":null}}]}}"#
        );
        package_failures(&serde_json::from_str(&package).unwrap())
    }

    #[test]
    fn crate_dependencies_go_one_way() {
        for (name, dependency, kind, failures_expected) in [
            ("endmark-cli", "endmark-gateway", "null", 0),
            ("endmark", "endmark-gateway", "null", 1),
            ("endmark-gateway", "endmark-cli", "null", 1),
            ("endmark-wire", "endmark-store", "null", 1),
            ("endmark-wire", "endmark-store", r#""dev""#, 1),
            ("endmark-text", "endmark-wire", r#""build""#, 1),
            ("endmark-gateway", "testkit", r#""dev""#, 0),
            ("endmark-gateway", "testkit", "null", 1),
            ("endmark-text", "testkit", r#""dev""#, 1),
            ("newcomer", "endmark-text", "null", 1),
        ] {
            let found = failures(name, dependency, kind);
            assert_eq!(found.len(), failures_expected, "{name} -> {dependency}: {found:?}");
        }
    }
}
