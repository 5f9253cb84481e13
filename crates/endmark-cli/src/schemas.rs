//! Compares the schemas in `docs/schemas` with the types of the answers.

use std::fs;
use std::path::{Path, PathBuf};

use endmark_console::reports;
use endmark_envelope::schema::for_answer;
use endmark_findings::ResultForm;
use schemars::Schema;
use serde_json::Value;

use crate::checks;
use crate::commands::{
    cap, compact, completions, config, count, demo, detect, findings, guard, hook, init, keys, man, read,
    resume, serve, setup, sim, stitch, store,
};
use crate::definition::definition;
use crate::supervision;
use crate::view::runs;

/// If this variable is set, the test writes the files instead of comparing them.
const UPDATE_VARIABLE: &str = "ENDMARK_UPDATE_SCHEMAS";

/// The schema of each command's answer.
fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("budget", for_answer::<reports::budgets::BudgetsReport>()),
        ("cap", for_answer::<cap::CapReport<'_>>()),
        ("compact", for_answer::<compact::CompactReport>()),
        ("completions", for_answer::<completions::CompletionsReport<'_>>()),
        ("config-check", for_answer::<checks::ChecksReport<'_>>()),
        ("config-path", for_answer::<config::PathReport>()),
        ("config-show", for_answer::<config::ConfigReport<'_>>()),
        ("count", for_answer::<count::CountReport>()),
        ("demo", for_answer::<demo::DemoReport<'_>>()),
        ("detect", for_answer::<detect::DetectReport<'_>>()),
        ("doctor", for_answer::<checks::ChecksReport<'_>>()),
        // The output of another program has an arbitrary shape.
        ("exec", for_answer::<Value>()),
        ("findings-check", for_answer::<findings::check::CheckReport<'_>>()),
        ("findings-fit", for_answer::<findings::fit::FitReport>()),
        ("findings-merge", for_answer::<findings::merge::MergeReport<'_>>()),
        ("findings-plan", for_answer::<endmark_findings::Plan<'_>>()),
        ("findings-progress", for_answer::<findings::progress::ProgressReport<'_>>()),
        ("findings-protocol", for_answer::<findings::protocol::ProtocolReport<'_>>()),
        ("findings-report", for_answer::<findings::merge::FinalReportAnswer<'_>>()),
        // The JSON form in which agents deliver results; it is not an answer of a command.
        ("findings-result", schemars::schema_for!(ResultForm)),
        ("guard", for_answer::<guard::GuardReport<'_>>()),
        ("hook-install", for_answer::<hook::install::InstallReport>()),
        ("init", for_answer::<init::InitReport>()),
        ("keys", for_answer::<keys::KeysReport>()),
        ("log", for_answer::<reports::recoveries::RecoveriesReport<'_>>()),
        ("mcp", for_answer::<()>()),
        ("man", for_answer::<man::ManReport<'_>>()),
        ("read", for_answer::<read::ReadReport<'_>>()),
        ("report", for_answer::<reports::cuts::CutsReport<'_>>()),
        ("resume", for_answer::<resume::ResumeReport<'_>>()),
        ("run", for_answer::<supervision::SupervisionReport>()),
        ("runs", for_answer::<runs::RunsReport>()),
        ("serve", for_answer::<serve::ServeReport>()),
        ("setup", for_answer::<setup::SetupReport>()),
        ("sim", for_answer::<sim::SimulationReport>()),
        ("stitch", for_answer::<stitch::StitchReport<'_>>()),
        ("store", for_answer::<store::StoreCopyReport>()),
        ("usage", for_answer::<reports::usage::UsageReport>()),
    ]
}

fn schemas_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

#[test]
fn documented_schemas_match_the_answers() {
    let folder = schemas_folder();
    for (name, schema) in schemas() {
        let file = folder.join(format!("{name}.json"));
        let expected = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os(UPDATE_VARIABLE).is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, expected).unwrap();
        } else {
            let found = fs::read_to_string(&file).unwrap_or_default();
            assert!(
                found == expected,
                "docs/schemas/{name}.json differs from the command's current answer: \
                 `{UPDATE_VARIABLE}=1 cargo test -p endmark-cli schemas` writes it"
            );
        }
    }
    let files = fs::read_dir(folder).unwrap().count();
    assert_eq!(files, schemas().len(), "a file in docs/schemas belongs to no command");
}

#[test]
fn every_command_has_a_schema() {
    let all = schemas();
    let of = |command: &str| {
        let prefix = format!("{command}-");
        all.iter().filter(|(name, _)| *name == command || name.starts_with(&prefix)).count()
    };
    let commands: Vec<String> =
        definition().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    assert!(commands.iter().all(|command| of(command) > 0), "{commands:?}");
    assert_eq!(commands.iter().map(|command| of(command)).sum::<usize>(), all.len());
}
