//! Runs a test with both kinds of store: SQLite alone, and the journal of an instance with PostgreSQL.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use endmark_store::{Reader, Store, StoreLocation};
use tempfile::TempDir;
use testkit::{PgBouncer, Postgres};

/// The location of the stores of one test.
pub(crate) struct Place {
    folder: TempDir,
    /// The URL of the database, if the stores share one.
    url: Option<String>,
}

impl Place {
    fn new(url: Option<String>) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), url }
    }

    /// Whether the stores share PostgreSQL.
    pub(crate) fn is_shared(&self) -> bool {
        self.url.is_some()
    }

    /// Returns the location of the first store.
    pub(crate) fn location(&self) -> StoreLocation {
        self.location_of("a.db")
    }

    /// Returns the location of a store for another process: the same file, or another journal of the same
    /// database.
    pub(crate) fn other_location(&self) -> StoreLocation {
        self.location_of(if self.is_shared() { "b.db" } else { "a.db" })
    }

    /// Opens the first store.
    pub(crate) fn open(&self) -> (StoreLocation, Store) {
        let location = self.location();
        let store = Store::open(&location).unwrap();
        (location, store)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn location_of(&self, name: &str) -> StoreLocation {
        let path = self.folder.path().join(name);
        match &self.url {
            Some(url) => StoreLocation::parse(url).unwrap().with_journal(path),
            None => StoreLocation::sqlite(path),
        }
    }

    fn journals(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "db")).collect()
    }

    /// Asserts that the closed journals and the database have the same rows and costs.
    fn check(&self, postgres: &Postgres, database: &str) {
        let number = |sql: &str| postgres.run_sql(database, sql).parse::<u64>().unwrap();
        let rows = number("SELECT count(*) FROM em_usage");
        assert_eq!(
            number("SELECT count(DISTINCT (request_id, call)) FROM em_usage"),
            rows,
            "a row is there twice"
        );
        let known = postgres.run_sql(database, "SELECT request_id || ' ' || call FROM em_usage");
        let known: HashSet<&str> = known.lines().collect();
        let mut cost = 0;
        for path in self.journals() {
            let reader = Reader::open(&StoreLocation::sqlite(&path)).unwrap();
            for row in reader.recent_calls(100_000).unwrap() {
                let key = format!("{} {}", row.request_id, row.call);
                assert!(known.contains(key.as_str()), "{key} is not in the database");
            }
            cost += reader.budgets().unwrap().iter().map(|budget| budget.spent).sum::<u64>();
        }
        // The list of budgets does not contain rate limits.
        for table in ["em_budgets", "em_shares"] {
            let sql = format!("SELECT coalesce(sum(spent), 0) FROM {table} WHERE scope <> 'rate'");
            assert_eq!(number(&sql), cost, "what was spent, in {table}");
        }
    }
}

/// Runs a test with SQLite alone.
pub(crate) fn alone(story: impl AsyncFnOnce(&Place)) {
    in_runtime(story(&Place::new(None)));
}

/// A database server for all tests, with a pooler in transaction mode if one is installed.
pub(crate) struct Shared {
    postgres: Postgres,
    pooler: Option<PgBouncer>,
}

impl Shared {
    /// Starts the server. Returns `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let postgres = Postgres::start()?;
        let pooler = PgBouncer::start(&postgres);
        Some(Self { postgres, pooler })
    }

    /// Runs a test in a separate database.
    pub(crate) fn run(&self, name: &str, story: impl AsyncFnOnce(&Place)) {
        println!("{name}");
        let database = self.postgres.new_database();
        let port = self.pooler.as_ref().map_or(self.postgres.port(), PgBouncer::port);
        let place = Place::new(Some(format!("postgres://postgres@127.0.0.1:{port}/{database}")));
        in_runtime(story(&place));
        place.check(&self.postgres, &database);
    }
}

fn in_runtime(story: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.unwrap().block_on(story);
}

/// Defines each `async fn(&Place)` as a test with SQLite alone, and `all_over` to run all of them with
/// PostgreSQL.
macro_rules! over_both_stores {
    ($($story:ident),+ $(,)?) => {
        mod sqlite_alone {
            $(#[test]
            fn $story() {
                $crate::place::alone(super::$story);
            })+
        }

        pub(crate) fn all_over(shared: &$crate::place::Shared) {
            $(shared.run(stringify!($story), $story);)+
        }
    };
}
