//! Supervised runs of several machines that share a PostgreSQL database: each machine shows the runs of all.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Link, Postgres, Request, ScriptedModel, TcpProxy, Upstream};

use crate::run::{Place, Run};
use crate::serve::{Served, in_runtime};
use crate::shared::place_at;

const WRITES: &str = "printf 'All is well.\\nThe harbour was quiet.\\n' > $1\n";

/// A machine with its own journal, and an agent that writes the named file.
fn machine(url: &str, upstream: &Upstream, agent: &str) -> Place {
    place_at(url, upstream, "")
        .with_file("criteria.yaml", "min_lines: 2\n")
        .with_file("agent.sh", agent)
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
}

fn supervise(place: &Place, artifact: &str) -> Run {
    place.run(&arguments(artifact))
}

fn arguments(artifact: &str) -> [&str; 10] {
    ["run", "--json", "--template", "criteria.yaml", "--artifact", artifact, "--", "sh", "agent.sh", artifact]
}

/// The runs that a machine lists, the newest first.
fn listed(place: &Place) -> Vec<Value> {
    place.run(&["runs", "--json"]).envelope()["data"]["runs"].as_array().unwrap().clone()
}

fn artifacts(runs: &[Value]) -> Vec<&str> {
    runs.iter().map(|run| run["artifact"].as_str().unwrap()).collect()
}

async fn fleet(served: &Served, path: &str) -> String {
    Request::get(served.address, path).send().await.read().await.text()
}

const RUNS: &str = "SELECT count(*) FROM em_runs WHERE state = 'succeeded'";

#[test]
fn every_machine_lists_all_runs_even_after_a_database_outage() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let proxy = TcpProxy::start(postgres.port());
        let url = format!("postgres://postgres@127.0.0.1:{}/endmark", proxy.port());
        let places = [(); 2].map(|()| machine(&url, &upstream, WRITES));
        // A supervisor runs at the same time as a gateway with the same journal.
        let served = Served::start(&places[0], &[]);
        for (place, artifact) in places.iter().zip(["tides.md", "harbour.md"]) {
            let ran = supervise(place, artifact);
            assert_eq!((ran.code, &ran.envelope()["warnings"]), (0, &json!([])), "{}", ran.output);
        }
        postgres.becomes(RUNS, 2).await;
        for place in &places {
            let runs = listed(place);
            assert_eq!(artifacts(&runs), ["harbour.md", "tides.md"]);
            assert_ne!(runs[0]["machine"]["instance"], runs[1]["machine"]["instance"]);
            assert!(runs.iter().all(|run| !run["machine"]["name"].as_str().unwrap().is_empty()));
        }
        let table = places[1].run(&["runs"]).output;
        assert!(table.contains("machine") && table.contains("tides.md"), "{table}");
        // Everything about a run of another machine, with its events.
        let there = listed(&places[0])[0]["id"].as_str().unwrap().to_owned();
        let shown = places[0].run(&["runs", "show", &there, "--json"]).envelope();
        let events = shown["data"]["events"].as_array().unwrap();
        assert_eq!(events.iter().map(|event| &event["state"]).collect::<Vec<_>>(), ["running", "succeeded"]);
        assert_eq!(shown["data"]["runs"][0]["findings"], 0);
        let page = fleet(&served, "/endmark/runs").await;
        assert!(page.contains("tides.md") && page.contains("harbour.md"), "{page}");
        let page = fleet(&served, &format!("/endmark/runs/{there}")).await;
        assert!(page.contains("attempt 1 of 3") && page.contains("Instance"), "{page}");
        // Pages continue over the runs of all machines.
        let first: Value = serde_json::from_str(&fleet(&served, "/endmark/api/runs?limit=1").await).unwrap();
        let next = first["next"].as_str().unwrap().replace(' ', "%20");
        let second = fleet(&served, &format!("/endmark/api/runs?limit=1&before={next}")).await;
        assert!(second.contains("tides.md") && second.contains("\"next\":null"), "{second}");

        for (link, artifact) in [(Link::Cut, "later.md"), (Link::Frozen, "last.md")] {
            proxy.set(link);
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
        let page = fleet(&served, "/endmark/runs").await;
        assert!(page.contains("of this machine alone") && !page.contains("harbour.md"), "{page}");
        let answer = fleet(&served, "/endmark/api/runs").await;
        assert!(answer.contains("this_gateway_alone"), "{answer}");

        // When the database is available again, the next run there also reports the waiting data.
        proxy.set(Link::Up);
        assert_eq!(supervise(&places[1], "again.md").code, 0);
        postgres.becomes(RUNS, 5).await;
        let runs = listed(&places[0]);
        assert_eq!(artifacts(&runs), ["again.md", "last.md", "later.md", "harbour.md", "tides.md"]);
        assert_eq!(postgres.query("SELECT count(*) FROM em_run_events"), "10");
        assert_eq!(served.end("-TERM").0, Some(0));
    });
}

#[test]
fn a_run_of_a_silent_machine_keeps_its_last_state() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let there = machine(&postgres.url(), &upstream, "exec sleep 600\n");
        // A machine that only looks: it has no journal.
        let here = machine(&postgres.url(), &upstream, WRITES);
        let empty = here.run(&["runs", "--json"]).envelope();
        assert_eq!((&empty["data"]["runs"], &empty["warnings"]), (&json!([]), &json!([])));
        let mut supervisor = there.command(&arguments("tides.md"));
        let supervisor = supervisor.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut supervisor = supervisor.spawn().unwrap();
        // The tables do not exist before the first report.
        while postgres.query("SELECT to_regclass('em_runs') IS NOT NULL") != "t" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        postgres.becomes("SELECT count(*) FROM em_runs WHERE state = 'running'", 1).await;
        let run = listed(&here).remove(0);
        assert_eq!((&run["isSupervised"], &run["machine"]["lastKnownAt"]), (&json!(true), &Value::Null));
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        postgres.query("UPDATE em_runs SET reported_at = reported_at - 300");
        let run = listed(&here).remove(0);
        assert_eq!((&run["state"], &run["isSupervised"]), (&json!("running"), &json!(false)));
        let at = run["machine"]["lastKnownAt"].as_str().unwrap().to_owned();
        let table = here.run(&["runs"]).output;
        assert!(table.contains(&format!("silent: as last known at {at}")), "{table}");
        let shown = here.run(&["runs", "show", run["id"].as_str().unwrap()]).output;
        assert!(shown.contains("its machine has not reported"), "{shown}");
        assert!(!here.path().join("journal.db").exists());
        // The machine itself detects that its supervisor died, and reports it.
        assert_eq!(listed(&there)[0]["reason"], "SUPERVISOR_LOST");
        let run = listed(&here).remove(0);
        assert_eq!((&run["state"], &run["reason"]), (&json!("failed"), &json!("SUPERVISOR_LOST")));
        assert_eq!(run["machine"]["lastKnownAt"], Value::Null);
    });
}
