//! Instances that share a PostgreSQL database show each other's runs, through a pooler.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use endmark_store::{
    Fleet, NoSecrets, RunCursor, RunEventRecord, RunRecord, RunResumeState, Store, StoreLocation, StoredRun,
};
use tempfile::TempDir;
use testkit::{PgBouncer, Postgres};

fn run(id: &str, state: &str) -> RunRecord {
    RunRecord {
        id: id.to_owned(),
        state: state.to_owned(),
        agent: "codex".to_owned(),
        command: "[\"codex\",\"exec\"]".to_owned(),
        folder: "/work".to_owned(),
        artifact: "a\0b.md".to_owned(),
        attempt: 1,
        max_attempts: 3,
        input_tokens: 7,
        cost_nanodollars: Some(5),
        findings: Some(2),
        name: Some("chapter 1".to_owned()),
        task: Some(RunResumeState { prompt_text: "{\"secret\":1}".to_owned(), ..RunResumeState::default() }),
        ..RunRecord::default()
    }
}

async fn record(store: &Store, run: RunRecord) {
    let event = RunEventRecord { name: "agent_run.started".to_owned(), message: run.state.clone() };
    store.recorder(NoSecrets).record_run(run, vec![event]).await.unwrap();
}

fn location(url: &str, folder: &TempDir, name: &str) -> StoreLocation {
    StoreLocation::parse(url).unwrap().with_journal(folder.path().join(name))
}

async fn fleet_runs(location: &StoreLocation) -> Vec<StoredRun> {
    let found = Fleet::at(location).runs(None, 10).await.unwrap();
    assert_eq!(found.failure, None);
    found.runs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_shown_as_last_reported_until_it_is_deleted() {
    let Some(postgres) = Postgres::start() else { return };
    let Some(pooler) = PgBouncer::start(&postgres) else { return };
    let url = format!("postgres://postgres@127.0.0.1:{}/endmark?sslmode=disable", pooler.port());
    let folder = tempfile::tempdir().unwrap();
    let [here, there] = ["a.db", "b.db"].map(|name| location(&url, &folder, name));
    // Two supervisors share a journal.
    let stores = [(); 2].map(|()| Store::open_for_runs(&there).unwrap());
    record(&stores[0], run("run_1", "running")).await;
    record(&stores[1], run("run_2", "running")).await;
    let gateway = Store::open(&here).unwrap();
    postgres.wait_for_number("SELECT count(*) FROM em_runs WHERE state = 'running'", 2).await;
    let runs = fleet_runs(&here).await;
    let expected = RunRecord { artifact: "a\u{fffd}b.md".to_owned(), task: None, ..run("run_2", "running") };
    assert_eq!((&runs[0].run, runs[0].is_supervised), (&expected, true));
    assert!(!postgres.query("SELECT * FROM em_runs").contains("secret"), "the request stays on its machine");
    let (found, events) = Fleet::of(&gateway).run("run_1", 10).await.unwrap().unwrap();
    assert_eq!((found.run.id.as_str(), events.len()), ("run_1", 1));
    assert_eq!(Fleet::of(&gateway).run("run_", 10).await.unwrap(), None, "two runs begin with that");
    let cursor = RunCursor { started_at: runs[0].started_at.clone(), id: "run_2".to_owned() };
    let after = Fleet::of(&gateway).runs(Some(cursor), 10).await.unwrap().runs;
    assert_eq!(after.iter().map(|run| run.run.id.as_str()).collect::<Vec<_>>(), ["run_1"]);

    // A silent run is shown in its last state until its supervisor reports again.
    let mut silent = fleet_runs(&here).await.remove(0);
    // The supervisors report every five seconds, perhaps just before the runs are read.
    for _ in 0..10 {
        if !silent.is_supervised {
            break;
        }
        postgres.query("UPDATE em_runs SET reported_at = reported_at - 300");
        silent = fleet_runs(&here).await.remove(0);
    }
    assert!(!silent.is_supervised && silent.machine.unwrap().last_known_at.is_some());
    let is_heard =
        "SELECT count(*) FROM em_runs WHERE reported_at > extract(epoch FROM clock_timestamp()) - 60";
    postgres.wait_for_number(is_heard, 2).await;
    assert!(fleet_runs(&here).await[0].is_supervised);

    // A process that reports an older state does not replace a newer one.
    postgres.query("UPDATE em_runs SET revision = revision + 100, findings = 9 WHERE id = 'run_1'");
    record(&stores[0], run("run_1", "succeeded")).await;
    record(&stores[1], run("run_2", "succeeded")).await;
    for store in &stores {
        store.close().await;
        assert_eq!(store.publication_failure(), None);
    }
    let states = postgres.query("SELECT state, findings FROM em_runs ORDER BY id");
    assert_eq!(states, "running|9\nsucceeded|2");
    assert_eq!(postgres.query_number("SELECT count(*) FROM em_run_events"), 4);

    postgres.query("UPDATE em_runs SET reported_at = reported_at - 40 * 86400 WHERE id = 'run_2'");
    gateway.delete_older_than(30).await.unwrap();
    postgres.wait_for_number("SELECT count(*) FROM em_runs", 1).await;
    assert_eq!(postgres.query("SELECT id FROM em_runs"), "run_1");
    assert_eq!(postgres.query_number("SELECT count(*) FROM em_run_events"), 2);
    gateway.close().await;
}
