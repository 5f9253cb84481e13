//! Runs the tests of a file a second time, with gateways that share PostgreSQL through PgBouncer.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::Path;

use endmark_store::{KeyBook, KeyError, StoreLocation};
use testkit::{PgBouncer, Postgres};

use super::Endmark;

thread_local! {
    /// The server for the tests that run on this thread.
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

struct Server {
    postgres: Postgres,
    /// All gateways of a database share its two connections, so each transaction may use a different one.
    pooler: Option<PgBouncer>,
}

/// Defines a test that repeats the tests of its file with PostgreSQL. `alone` lists the tests that run only
/// with SQLite, with a reason for each.
macro_rules! over_postgresql {
    ($file:literal: $($test:ident),+ $(,)? ; alone: $($alone:ident: $reason:literal),* $(,)?) => {
        #[test]
        fn over_postgresql() {
            let tests: &[(&str, fn())] = &[$((stringify!($test), $test)),+];
            let alone: &[(&str, &str)] = &[$((stringify!($alone), $reason)),*];
            $crate::support::over_postgresql::run(include_str!($file), tests, alone);
        }
    };
}

/// Runs tests with PostgreSQL. Each gateway that they start has a separate database.
pub(crate) fn run(source: &str, tests: &[(&str, fn())], alone: &[(&str, &str)]) {
    let listed: Vec<&str> =
        tests.iter().map(|(name, _)| *name).chain(alone.iter().map(|(name, _)| *name)).collect();
    let unlisted: Vec<&str> = test_names(source).filter(|name| !listed.contains(name)).collect();
    assert!(unlisted.is_empty(), "list these in `over_postgresql!`: {unlisted:?}");
    let Some(postgres) = Postgres::start() else { return };
    let pooler = PgBouncer::start(&postgres);
    SERVER.set(Some(Server { postgres, pooler }));
    for (name, test) in tests {
        // The test harness prints this if a test fails.
        let _ = writeln!(std::io::stderr(), "{name}");
        test();
    }
    SERVER.set(None);
}

/// Returns the names of the tests in a file.
fn test_names(source: &str) -> impl Iterator<Item = &str> {
    let tests = source.split("#[tokio::test").skip(1);
    tests.filter_map(|test| test.split_once("async fn ")?.1.split_once('(')).map(|(name, _)| name)
}

/// Whether the tests of this thread currently use PostgreSQL.
pub(crate) fn is_over_postgresql() -> bool {
    SERVER.with_borrow(Option::is_some)
}

/// Returns the location of a new store: a new PostgreSQL database, or a SQLite file in this folder.
pub(super) fn location(folder: &Path) -> StoreLocation {
    let path = folder.join("endmark.db");
    SERVER.with_borrow(|server| {
        let Some(Server { postgres, pooler }) = server else { return StoreLocation::sqlite(path) };
        let port = pooler.as_ref().map_or(postgres.port(), PgBouncer::port);
        let url = format!("postgres://postgres@127.0.0.1:{port}/{}", postgres.new_database());
        StoreLocation::parse(&url).unwrap().with_journal(path)
    })
}

impl Endmark {
    /// Changes the gateway's own keys as `endmark keys` does, and waits until the gateway has read the
    /// change.
    pub(crate) async fn change_keys<T>(
        &self,
        change: impl AsyncFnOnce(&mut KeyBook) -> Result<T, KeyError>,
    ) -> T {
        let (location, version) = (self.store.location(), self.store.keys_version());
        // On a busy machine, connecting can exceed its timeout.
        let mut opened = KeyBook::open(location).await;
        for _ in 0..9 {
            if opened.is_err() {
                opened = KeyBook::open(location).await;
            }
        }
        let mut book = opened.unwrap();
        let changed = change(&mut book).await.unwrap();
        book.close().await;
        for _ in 0..400 {
            if location.postgres().is_none() || self.store.keys_version() > version {
                return changed;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("the gateway never reads the change");
    }
}
