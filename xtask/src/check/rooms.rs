//! Checks that dependencies between the modules of a crate point in one direction.

use std::path::Path;

use crate::source::{is_test_file, lines_without_tests};
use crate::workspace::{Workspace, WorkspaceError};

mod list;

use list::MODULE_LAYERS;

/// The layers of a crate, from lowest to highest. Each layer may use only lower layers.
///
/// A layer is a module with its submodules. A submodule that is also listed is a separate layer. `+` joins
/// modules that need each other into one layer. In `parent::*` each submodule is a separate layer, and none
/// of them may use another.
type ModuleLayers = &'static [&'static str];

/// The layer of a module path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LayerPosition<'a> {
    /// The index of the layer, counted from the lowest.
    index: usize,
    /// The submodule, for a layer `parent::*`.
    sibling: Option<&'a str>,
}

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let files = workspace.rust_files()?;
    let mut failures = Vec::new();
    for package in workspace.members() {
        let Some((_, rooms)) = MODULE_LAYERS.iter().find(|(name, _)| *name == package.name) else {
            failures.push(format!(
                "the crate `{}` has no module layers: list its modules in `xtask/src/check`",
                package.name
            ));
            continue;
        };
        let source = package.folder(workspace).join("src");
        for (file, text) in files.iter().filter(|(file, _)| !is_test_file(file)) {
            if let Ok(inside) = file.strip_prefix(&source) {
                failures.extend(path_failures(rooms, file, inside, text));
            }
        }
    }
    Ok(failures)
}

fn path_failures(rooms: ModuleLayers, file: &Path, inside: &Path, text: &str) -> Vec<String> {
    let module = module_path(inside);
    if module.is_empty() {
        return Vec::new();
    }
    let Some(own) = find_room(rooms, &module) else {
        return vec![format!(
            "{} is in no layer: list its module in the module layers of `xtask/src/check` and in ARCHITECTURE.md",
            file.display()
        )];
    };
    let mut failures = Vec::new();
    for (line, path) in used_paths(&module, text) {
        let Some(other) = find_room(rooms, &path) else { continue };
        let (from, to) = (room_name(rooms, own), room_name(rooms, other));
        let file = file.display();
        if other.index > own.index {
            failures.push(format!(
                "{file}:{line}: `{from}` must not use `{to}`, which is in a higher layer: move the needed items to a layer below both, or pass them as arguments"
            ));
        } else if other.index == own.index && other.sibling != own.sibling {
            failures.push(format!(
                "{file}:{line}: `{from}` must not use `{to}`, which is in the same layer: move the shared items to a lower layer"
            ));
        }
    }
    failures
}

/// Returns the name of a layer for messages.
fn room_name(rooms: ModuleLayers, place: LayerPosition<'_>) -> String {
    let room = rooms[place.index];
    place.sibling.map_or_else(|| room.to_owned(), |sibling| room.replace('*', sibling))
}

/// Returns the module path of a file. It is empty for the crate's root.
fn module_path(inside: &Path) -> Vec<String> {
    let mut module: Vec<String> =
        inside.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if matches!(module.as_slice(), [root] if root == "lib" || root == "main") {
        module.clear();
    }
    module
}

/// Returns the layer of a path: the one with the longest matching prefix.
fn find_room(rooms: ModuleLayers, path: &[String]) -> Option<LayerPosition<'_>> {
    let behind = |module: &str| {
        let mut parts = path.iter();
        module.split("::").all(|part| parts.next().is_some_and(|own| own == part)).then(|| parts.next())
    };
    let found = rooms.iter().enumerate().flat_map(|(at, room)| {
        room.split(" + ").filter_map(move |module| {
            let Some(parent) = module.strip_suffix("::*") else {
                behind(module)?;
                return Some((module.len(), LayerPosition { index: at, sibling: None }));
            };
            let sibling = behind(parent)??;
            Some((module.len(), LayerPosition { index: at, sibling: Some(sibling) }))
        })
    });
    found.max_by_key(|(length, _)| *length).map(|(_, place)| place)
}

/// Returns the paths inside the crate that a module uses outside tests, with their lines.
fn used_paths(module: &[String], text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let lines = lines_without_tests(text);
    let code: Vec<(usize, &str)> = lines
        .into_iter()
        .map(|(number, line)| (number, line.split("//").next().unwrap_or_default()))
        .collect();
    for (at, (number, line)) in code.iter().enumerate() {
        for (root, base) in [("crate::", 0), ("super::", module.len().saturating_sub(1))] {
            for (begin, _) in line.match_indices(root) {
                let before = line.get(..begin).unwrap_or_default();
                let continues_path = before.ends_with("::")
                    || before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
                if continues_path {
                    continue;
                }
                // A group of imports may continue on the next lines.
                let mut rest = line.get(begin + root.len()..).unwrap_or_default().to_owned();
                let following = code.iter().skip(at + 1).map(|(_, line)| line.trim());
                for next in following.take_while(|_| line.contains("use ")) {
                    if rest.contains(';') {
                        break;
                    }
                    rest.push_str(next);
                }
                let start = module.get(..base).unwrap_or_default().to_vec();
                found.extend(expand_use(start, &rest).into_iter().map(|path| (*number, path)));
            }
        }
    }
    found
}

/// Returns the paths of a `use` declaration after `start`: two paths for `a::{b, c::d}`.
fn expand_use(mut start: Vec<String>, text: &str) -> Vec<Vec<String>> {
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            return members(group).into_iter().flat_map(|member| expand_use(start.clone(), member)).collect();
        }
        let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        match word {
            "" => return vec![start],
            "super" => drop(start.pop()),
            word => start.push(word.to_owned()),
        }
        match behind.strip_prefix("::") {
            Some(next) => rest = next,
            None => return vec![start],
        }
    }
}

/// Returns the members of a group, up to its closing brace.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut members) = (0_usize, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                members.push(group.get(begin..at).unwrap_or_default().trim());
                begin = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_layers(name: &str) -> ModuleLayers {
        MODULE_LAYERS.iter().find(|(of, _)| *of == name).unwrap().1
    }

    fn file_failures(name: &str, file: &str, text: &str) -> Vec<String> {
        path_failures(crate_layers(name), Path::new(file), Path::new(file), text)
    }

    fn failures(file: &str, text: &str) -> Vec<String> {
        file_failures("endmark-gateway", file, text)
    }

    #[test]
    fn every_crate_rejects_an_upward_import() {
        for (name, file, text, expected) in [
            ("endmark-store", "queue.rs", "use crate::engine::Session;", 0),
            ("endmark-store", "queue.rs", "use crate::writer::Writer;", 1),
            ("endmark-store", "engine/usage.rs", "use crate::ledger::encoding::clipped;", 0),
            ("endmark-store", "engine/usage.rs", "use crate::ledger::Ledger;", 1),
            ("endmark-store", "ledger/slate.rs", "use crate::engine::Session;", 1),
            ("endmark-store", "keys.rs", "use crate::store::Store;", 1),
            ("endmark-store", "keys/operations.rs", "use crate::store::Store;", 0),
            // Modules of one layer may use each other.
            ("endmark-wire", "request.rs", "use crate::wire_format::WireFormat;", 0),
            ("endmark-wire", "wire_format.rs", "use crate::request::Request;", 0),
            ("endmark-wire", "wire_format.rs", "use crate::format::FORMATS;", 1),
            ("endmark-wire", "gemini/stream.rs", "use crate::format::find;", 1),
            ("endmark-wire", "openai_chat.rs", "use crate::gemini::Gemini;", 1),
            ("endmark-context", "conversation.rs", "use crate::compact::Plan;", 1),
            ("endmark-context", "compact/plan.rs", "use crate::conversation::Turn;", 0),
            ("endmark-guard", "artifact.rs", "use crate::checks::Check;", 1),
            ("endmark-guard", "newcomer.rs", "", 1),
        ] {
            let found = file_failures(name, file, text);
            assert_eq!(found.len(), expected, "{name}: {file}: {text}: {found:?}");
        }
    }

    #[test]
    fn a_command_cannot_import_another() {
        for (file, text, expected) in [
            ("commands/runs.rs", "use crate::commands::run::Report;", 1),
            ("commands/runs/watch.rs", "use super::super::run;", 1),
            ("commands/runs/watch.rs", "use super::page;", 0),
            ("commands/runs.rs", "use crate::commands::runs::watch;", 0),
            ("commands/runs.rs", "use crate::view::runs;", 0),
            ("commands/runs.rs", "use crate::commands::{cap, runs};", 1),
            ("arguments/runs.rs", "use crate::commands::runs::Report;", 1),
            ("commands.rs", "use crate::commands::cap;", 0),
        ] {
            let found = file_failures("endmark-cli", file, text);
            assert_eq!(found.len(), expected, "{file}: {text}: {found:?}");
        }
    }

    #[test]
    fn an_upward_import_is_rejected_in_every_spelling() {
        for (file, text, expected) in [
            ("recovery/mend.rs", "use crate::reply::Part;", 0),
            ("recovery/mend.rs", "use crate::exchange::Exchange;", 1),
            ("recovery/mend.rs", "use crate::{exchange::Exchange, reply::Part};", 1),
            ("recovery/mend.rs", "use crate::{\n    reply::Part,\n    stage::mend::choice,\n};", 1),
            ("recovery/mend.rs", "fn f(of: &crate::gateway::Gateway) {}", 1),
            ("recovery/mend.rs", "use super::super::stack;", 1),
            ("recovery/mend.rs", "use super::ask::Asker;", 0),
            ("recovery/mend.rs", "// use crate::stack;", 0),
            ("recovery/mend.rs", "#[cfg(test)]\nmod tests {\n    use crate::stack;\n}", 0),
            ("upstream/client.rs", "use crate::edge::Claim;", 1),
            ("edge/service.rs", "use crate::stack;", 0),
            ("stack.rs", "use crate::stage::{disclose, mend};", 0),
            ("lib.rs", "pub use crate::edge::serve;", 0),
            ("newcomer.rs", "", 1),
        ] {
            let found = failures(file, text);
            assert_eq!(found.len(), expected, "{file}: {text}: {found:?}");
        }
    }

    #[test]
    fn a_stage_that_imports_a_later_stage_is_rejected() {
        let stages: Vec<&str> =
            crate_layers("endmark-gateway").iter().filter_map(|room| room.strip_prefix("stage::")).collect();
        assert!(stages.len() > 5);
        for (at, stage) in stages.iter().enumerate() {
            for (other_at, other) in stages.iter().enumerate() {
                let file = format!("stage/{stage}.rs");
                for path in [format!("use crate::stage::{other}::X;"), format!("use super::{other}::X;")] {
                    assert_eq!(failures(&file, &path).len(), usize::from(other_at > at), "{file}: {path}");
                }
            }
        }
    }
}
