//! Measures the throughput of calls that are held in a budget and then recorded, without HTTP: with SQLite
//! alone, with one instance on PostgreSQL, and with four instances.
//!
//! `cargo run --release -p endmark-store --example several -- [ROUNDS]`. Each round runs every configuration
//! once, so that other load on the machine affects all of them equally. CPU times depend less on that load.
//! PostgreSQL must be installed in /usr/lib/postgresql.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "it prints a measurement, and ends if that fails"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use endmark_context::budget::{Scope, Unit};
use endmark_store::{
    CallSettled, CallStarted, Claim, Hold, HoldOutcome, NoSecrets, Purpose, Recorder, Store, StoreLocation,
    Tokens,
};
use testkit::Postgres;

/// Number of concurrent calls on each instance.
const CALLS_PER_INSTANCE: u64 = 32;
/// Duration of each configuration in a round.
const ROUND_DURATION: Duration = Duration::from_secs(4);

fn hold(request_id: &str, session: &str) -> Hold {
    let claim = |scope, subject: &str| Claim {
        scope,
        subject: subject.to_owned(),
        window: "ever".to_owned(),
        unit: Unit::Tokens,
        limit: 1 << 40,
        amount: 500,
        closing_amount: 500,
    };
    let claims = vec![claim(Scope::All, ""), claim(Scope::Session, session)];
    Hold { request_id: request_id.to_owned(), call: 1, claims, may_close: false }
}

fn call_started(request_id: &str, session: &str) -> CallStarted {
    CallStarted {
        request_id: request_id.to_owned(),
        call: 1,
        purpose: Purpose::Reply,
        session: session.to_owned(),
        credential: None,
        upstream: "local".to_owned(),
        format: "openai_chat".into(),
        model: "m".to_owned(),
        streamed: false,
        mode: "auto".into(),
        // The database needs more time for a call that is reported more than half an hour after its start.
        started_ms: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_millis()
            .try_into()
            .unwrap(),
        sent_bytes: 40,
        prompt_estimate: 10,
        charges: Vec::new(),
    }
}

/// Makes a call. Returns the duration of its hold.
async fn call(recorder: &Recorder, request_id: &str, session: &str) -> Duration {
    let begin = Instant::now();
    let held = recorder.hold(hold(request_id, session)).await.unwrap();
    let took = begin.elapsed();
    assert!(matches!(held, HoldOutcome::Fits { .. }), "{held:?}");
    let open = recorder.open_call(call_started(request_id, session)).await;
    tokio::task::yield_now().await;
    open.settle(CallSettled {
        http_status: Some(200),
        ending: "clean".into(),
        tokens: Tokens { prompt: Some(200), output: Some(100), ..Tokens::default() },
        ..CallSettled::default()
    });
    took
}

/// Makes calls on these stores. Returns the number of calls, and the calls per second.
async fn measure_rate(stores: &[Store], round: u64) -> (f64, f64) {
    let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for (at, store) in stores.iter().enumerate() {
        for task in 0..CALLS_PER_INSTANCE {
            let (recorder, is_over, count) =
                (store.recorder(NoSecrets), Arc::clone(&is_over), Arc::clone(&count));
            tasks.push(tokio::spawn(async move {
                for number in 0_u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    call(&recorder, &format!("em_{round}_{at}_{task}_{number}"), &format!("s{task}")).await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
    }
    tokio::time::sleep(ROUND_DURATION).await;
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let calls = count.load(Ordering::Relaxed) as f64;
    (calls, calls / begin.elapsed().as_secs_f64())
}

/// Returns the CPU time that these processes used, in microseconds.
fn processor_us<'a>(processes: impl Iterator<Item = &'a str>) -> f64 {
    let ticks = |process: &str| -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program is in parentheses, and may have spaces.
        let mut fields =
            stat.rsplit_once(')')?.1.split_whitespace().skip(11).map_while(|field| field.parse::<f64>().ok());
        Some(fields.next()? + fields.next()?)
    };
    // A tick is a hundredth of a second.
    processes.filter_map(ticks).sum::<f64>() * 10_000.0
}

/// Prints the median and the 99th percentile.
fn print_percentiles(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    println!("{what}: p50 {:?}, p99 {:?} of {}", at(50), at(99), took.len());
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main]
async fn main() {
    let rounds: u64 = std::env::args().nth(1).map_or(5, |text| text.parse().unwrap());
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let shared = |name: &str| StoreLocation::parse(&postgres.url()).unwrap().with_journal(path(name));
    let transactions = || -> f64 {
        let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'endmark'";
        postgres.run_sql("postgres", sql).parse().unwrap()
    };
    let of_server = || processor_us(postgres.run_sql("postgres", "SELECT pid FROM pg_stat_activity").lines());
    let rows = || -> f64 {
        postgres
            .run_sql(
                "endmark",
                "SELECT coalesce((SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'em_usage'), 0)",
            )
            .parse()
            .unwrap()
    };
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    let mut costs: [[Vec<f64>; 3]; 3] = Default::default();
    let (mut ratios, mut commits) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let locations = [
            vec![StoreLocation::sqlite(path(&format!("alone-{round}.db")))],
            vec![shared(&format!("one-{round}.db"))],
            (0..4).map(|number| shared(&format!("four-{round}-{number}.db"))).collect(),
        ];
        for (kind, locations) in locations.iter().enumerate() {
            let stores: Vec<_> = locations.iter().map(|location| Store::open(location).unwrap()).collect();
            let before = transactions();
            let (own, server, uploaded) = (processor_us(std::iter::once("self")), of_server(), rows());
            let (calls, rate) = measure_rate(&stores, round * 3 + kind as u64).await;
            rates[kind].push(rate);
            costs[kind][0].push((processor_us(std::iter::once("self")) - own) / calls);
            costs[kind][1].push((of_server() - server) / calls);
            // The server publishes its statistics once a second.
            tokio::time::sleep(Duration::from_millis(1_100)).await;
            if kind == 2 {
                commits.push((transactions() - before) / (ROUND_DURATION.as_secs_f64() + 1.1));
            }
            costs[kind][2].push((rows() - uploaded) / calls * 100.0);
            for store in stores {
                store.close().await;
            }
        }
        let last = |kind: usize| rates[kind].last().copied().unwrap_or_default();
        ratios.push(last(1) / last(0));
    }
    let [alone, one, four] = rates.map(median);
    println!(
        "calls a second, median of {rounds} rounds: SQLite alone {alone:.0}, one instance over PostgreSQL {one:.0},"
    );
    println!("  four instances {four:.0} with {:.0} transactions a second", median(commits));
    println!("one instance over PostgreSQL to SQLite alone, median of the rounds: {:.2}", median(ratios));
    for (name, costs) in ["SQLite alone", "one instance", "four instances"].into_iter().zip(costs) {
        let [own, server, uploaded] = costs.map(median);
        println!(
            "{name}: a call takes {own:.1} µs of the processors, and {server:.1} in PostgreSQL; a second after the load \
             the database has {uploaded:.0} % of the rows"
        );
    }
    let store = Store::open(&shared("latency.db")).unwrap();
    let recorder = store.recorder(NoSecrets);
    let (mut within, mut without) = (Vec::new(), Vec::new());
    for number in 0..20_000 {
        within.push(call(&recorder, &format!("em_within_{number}"), "s").await);
    }
    for number in 0..100 {
        without.push(call(&recorder, &format!("em_without_{number}"), &format!("new-{number}")).await);
    }
    print_percentiles("a hold in a busy budget", within);
    print_percentiles("a hold in a new budget", without);
    store.close().await;
}
