//! Supervised runs of several machines that share a PostgreSQL database: each machine shows all runs.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{LinkState, Postgres, Request, ScriptedModel, TcpProxy, Upstream};

use crate::run::{CommandOutput, TestFolder};
use crate::serve::{ServeProcess, in_runtime};
use crate::shared::shared_folder_at;

const WRITING_AGENT: &str = "printf 'All is well.\\nThe harbour was quiet.\\n' > $1\n";

/// Returns a machine with its own journal, and an agent that writes the named file.
fn new_machine(url: &str, upstream: &Upstream, agent: &str) -> TestFolder {
    shared_folder_at(url, upstream, "")
        .with_file("criteria.yaml", "min_lines: 2\n")
        .with_file("agent.sh", agent)
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
}

fn supervise(place: &TestFolder, artifact: &str) -> CommandOutput {
    place.run(&arguments(artifact))
}

fn arguments(artifact: &str) -> [&str; 10] {
    ["run", "--json", "--template", "criteria.yaml", "--artifact", artifact, "--", "sh", "agent.sh", artifact]
}

/// Returns the runs that a machine lists, newest first.
fn list_runs(place: &TestFolder) -> Vec<Value> {
    place.run(&["runs", "--json"]).envelope()["data"]["runs"].as_array().unwrap().clone()
}

fn artifacts(runs: &[Value]) -> Vec<&str> {
    runs.iter().map(|run| run["artifact"].as_str().unwrap()).collect()
}

async fn get_fleet(served: &ServeProcess, path: &str) -> String {
    Request::get(served.address, path).send().await.read().await.text()
}

const COUNT_SUCCEEDED_RUNS: &str = "SELECT count(*) FROM em_runs WHERE state = 'succeeded'";

#[test]
fn every_machine_lists_all_runs_even_after_a_database_outage() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let proxy = TcpProxy::start(postgres.port());
        let url = format!("postgres://postgres@127.0.0.1:{}/endmark", proxy.port());
        let places = [(); 2].map(|()| new_machine(&url, &upstream, WRITING_AGENT));
        // A supervisor and a gateway use the same journal at the same time.
        let served = ServeProcess::start(&places[0], &[]);
        for (place, artifact) in places.iter().zip(["tides.md", "harbour.md"]) {
            let ran = supervise(place, artifact);
            assert_eq!((ran.code, &ran.envelope()["warnings"]), (0, &json!([])), "{}", ran.output);
        }
        postgres.wait_for_number(COUNT_SUCCEEDED_RUNS, 2).await;
        for place in &places {
            let runs = list_runs(place);
            assert_eq!(artifacts(&runs), ["harbour.md", "tides.md"]);
            assert_ne!(runs[0]["machine"]["instance"], runs[1]["machine"]["instance"]);
            assert!(runs.iter().all(|run| !run["machine"]["name"].as_str().unwrap().is_empty()));
        }
        let table = places[1].run(&["runs"]).output;
        assert!(table.contains("machine") && table.contains("tides.md"), "{table}");
        // A run of another machine is shown completely, with its events.
        let there = list_runs(&places[0])[0]["id"].as_str().unwrap().to_owned();
        let shown = places[0].run(&["runs", "show", &there, "--json"]).envelope();
        let events = shown["data"]["events"].as_array().unwrap();
        assert_eq!(events.iter().map(|event| &event["state"]).collect::<Vec<_>>(), ["running", "succeeded"]);
        assert_eq!(shown["data"]["runs"][0]["findings"], 0);
        let page = get_fleet(&served, "/endmark/runs").await;
        assert!(page.contains("tides.md") && page.contains("harbour.md"), "{page}");
        let page = get_fleet(&served, &format!("/endmark/runs/{there}")).await;
        assert!(page.contains("attempt 1 of 3") && page.contains("Instance"), "{page}");
        // The pages include the runs of all machines.
        let first: Value =
            serde_json::from_str(&get_fleet(&served, "/endmark/api/runs?limit=1").await).unwrap();
        let next = first["next"].as_str().unwrap().replace(' ', "%20");
        let second = get_fleet(&served, &format!("/endmark/api/runs?limit=1&before={next}")).await;
        assert!(second.contains("tides.md") && second.contains("\"next\":null"), "{second}");

        for (link, artifact) in [(LinkState::Cut, "later.md"), (LinkState::Frozen, "last.md")] {
            proxy.set_link(link);
            let ran = supervise(&places[1], artifact);
            assert_eq!(ran.code, 0, "{}", ran.output);
            let warning = ran.envelope()["warnings"][0]["message"].to_string();
            assert!(warning.contains("other machines do not see the runs"), "{warning}");
        }
        let alone = places[0].run(&["runs", "--json"]).envelope();
        assert_eq!(alone["warnings"][0]["code"], "THIS_GATEWAY_ALONE", "{alone}");
        assert_eq!(artifacts(alone["data"]["runs"].as_array().unwrap()), ["tides.md"]);
        let unknown = places[0].run(&["runs", "show", &there]);
        assert_eq!(unknown.code, 4, "{}", unknown.output);
        assert!(unknown.errors.contains("cannot be reached"), "{}", unknown.errors);
        let page = get_fleet(&served, "/endmark/runs").await;
        assert!(page.contains("of this machine alone") && !page.contains("harbour.md"), "{page}");
        let answer = get_fleet(&served, "/endmark/api/runs").await;
        assert!(answer.contains("this_gateway_alone"), "{answer}");

        // After the outage, the next run on that machine also publishes the waiting records.
        proxy.set_link(LinkState::Up);
        assert_eq!(supervise(&places[1], "again.md").code, 0);
        postgres.wait_for_number(COUNT_SUCCEEDED_RUNS, 5).await;
        let runs = list_runs(&places[0]);
        assert_eq!(artifacts(&runs), ["again.md", "last.md", "later.md", "harbour.md", "tides.md"]);
        assert_eq!(postgres.query("SELECT count(*) FROM em_run_events"), "10");
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn a_run_of_a_silent_machine_keeps_its_last_state() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let there = new_machine(&postgres.url(), &upstream, "exec sleep 600\n");
        // This machine only reads, so it has no journal.
        let here = new_machine(&postgres.url(), &upstream, WRITING_AGENT);
        let empty = here.run(&["runs", "--json"]).envelope();
        assert_eq!((&empty["data"]["runs"], &empty["warnings"]), (&json!([]), &json!([])));
        let mut supervisor = there.command(&arguments("tides.md"));
        let supervisor = supervisor.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut supervisor = supervisor.spawn().unwrap();
        // The tables do not exist before the first run is published.
        while postgres.query("SELECT to_regclass('em_runs') IS NOT NULL") != "t" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        postgres.wait_for_number("SELECT count(*) FROM em_runs WHERE state = 'running'", 1).await;
        let run = list_runs(&here).remove(0);
        assert_eq!((&run["isSupervised"], &run["machine"]["lastKnownAt"]), (&json!(true), &Value::Null));
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        postgres.query("UPDATE em_runs SET reported_at = reported_at - 300");
        let run = list_runs(&here).remove(0);
        assert_eq!((&run["state"], &run["isSupervised"]), (&json!("running"), &json!(false)));
        let at = run["machine"]["lastKnownAt"].as_str().unwrap().to_owned();
        let table = here.run(&["runs"]).output;
        assert!(table.contains(&format!("silent: as last known at {at}")), "{table}");
        let shown = here.run(&["runs", "show", run["id"].as_str().unwrap()]).output;
        assert!(shown.contains("its machine has not reported"), "{shown}");
        assert!(!here.path().join("journal.db").exists());
        // The machine itself detects that its supervisor died, and publishes it.
        assert_eq!(list_runs(&there)[0]["reason"], "SUPERVISOR_LOST");
        let run = list_runs(&here).remove(0);
        assert_eq!((&run["state"], &run["reason"]), (&json!("failed"), &json!("SUPERVISOR_LOST")));
        assert_eq!(run["machine"]["lastKnownAt"], Value::Null);
    });
}
