//! A PostgreSQL server for one test. It is created with `initdb`, runs as a child process on a free port, and
//! is deleted at the end.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable that makes tests fail without PostgreSQL. Otherwise they are skipped.
const REQUIRE_POSTGRES_VARIABLE: &str = "ENDMARK_TEST_NEEDS_POSTGRES";

/// The user that runs the server if the test runs as root, because PostgreSQL refuses to run as root.
const SYSTEM_USER: &str = "postgres";

/// Maximum time until the server accepts connections.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum time until a query returns the expected value.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

static STARTED_SERVERS: AtomicU32 = AtomicU32::new(0);

/// A running server. Dropping it stops and deletes the server.
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Starts a server with an empty database `endmark`. If PostgreSQL is not installed, returns `None` and prints the
    /// reason.
    ///
    /// # Panics
    /// If the server does not start, or PostgreSQL is not installed although `ENDMARK_TEST_NEEDS_POSTGRES` is set.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            report_skipped("PostgreSQL is not installed below /usr/lib/postgresql");
            return None;
        };
        let mut postgres = Self { programs, folder: create_folder(), port: free_port(), server: None };
        let data = postgres.data_folder();
        let arguments =
            ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D"];
        run(postgres.program("initdb").args(arguments).arg(data));
        postgres.restart();
        postgres.run_sql("postgres", "CREATE DATABASE endmark");
        Some(postgres)
    }

    /// Restarts the stopped server on the same port, with the same data.
    pub fn restart(&mut self) {
        let log = fs::File::create(self.folder.with_extension("log")).expect("the log can be written");
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data_folder()).arg("-p").arg(self.port.to_string());
        command
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=60", "-k"])
            .arg(&self.folder);
        if self.data_folder().join("server.key").exists() {
            command.args(["-c", "ssl=on"]);
        }
        command.stdout(Stdio::null()).stderr(log).stdin(Stdio::null());
        self.server = Some(command.spawn().expect("the server is a program"));
        let begin = Instant::now();
        while !self.try_run_sql("postgres", "SELECT 1").0 {
            assert!(begin.elapsed() < START_TIMEOUT, "PostgreSQL does not start: {}", self.read_log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server at once, without a checkpoint.
    pub fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let mut control = self.program("pg_ctl");
        run(control.args(["stop", "-m", "immediate", "-D"]).arg(self.data_folder()));
        server.wait().expect("a child can be waited for");
    }

    /// Requires a password for every connection over TCP.
    pub fn require_passwords(&self) {
        let rules = "local all all trust\nhost all all all scram-sha-256\n";
        fs::write(self.data_folder().join("pg_hba.conf"), rules).expect("the server's folder can be written");
        self.query("SELECT pg_reload_conf()");
    }

    /// Kills the server with `kill -9`, as after a power failure.
    pub fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        server.kill().expect("a child can be killed");
        server.wait().expect("a child can be waited for");
    }

    /// Starts a standby that follows this server by streaming replication. From then on, this server confirms
    /// a commit only after the standby has received it.
    #[must_use]
    pub fn standby(&self) -> Self {
        let mut standby = Self {
            programs: self.programs.clone(),
            folder: create_folder(),
            port: free_port(),
            server: None,
        };
        let mut copy = standby.program("pg_basebackup");
        copy.args(["--no-sync", "--checkpoint=fast", "-R", "-U", "postgres", "-h"]).arg(&self.folder);
        run(copy.args(["-p", &self.port.to_string(), "-D"]).arg(standby.data_folder()));
        standby.restart();
        self.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.query("SELECT pg_reload_conf()");
        let begin = Instant::now();
        while self.query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
            assert!(begin.elapsed() < START_TIMEOUT, "the standby does not follow: {}", standby.read_log());
            thread::sleep(Duration::from_millis(50));
        }
        standby
    }

    /// Promotes a standby, so that it accepts writes.
    pub fn promote(&self) {
        run(self.program("pg_ctl").args(["promote", "-w", "-D"]).arg(self.data_folder()));
    }

    /// Creates an empty database. Returns its name.
    pub fn new_database(&self) -> String {
        let name = format!("endmark_{}", STARTED_SERVERS.fetch_add(1, Ordering::Relaxed));
        self.query(&format!("CREATE DATABASE {name}"));
        name
    }

    /// Restarts the server with TLS, using this certificate and key in PEM format.
    pub fn use_tls(&mut self, certificate: &str, key: &str) {
        self.stop();
        for (name, pem) in [("server.crt", certificate), ("server.key", key)] {
            let path = self.data_folder().join(name);
            fs::write(&path, pem).expect("the server's folder can be written");
            run(Command::new("chmod").arg("600").arg(&path));
            if is_root() {
                run(Command::new("chown").arg(SYSTEM_USER).arg(&path));
            }
        }
        self.restart();
    }

    /// Returns the port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the database `endmark`, without TLS and without a password.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/endmark", self.port)
    }

    /// Runs SQL in the database `endmark`. Returns the rows without alignment, and without the last line
    /// break.
    pub fn query(&self, sql: &str) -> String {
        self.run_sql("endmark", sql)
    }

    /// Runs a query in the database `endmark`, and returns its only value.
    pub fn query_number(&self, sql: &str) -> u64 {
        let text = self.query(sql);
        text.parse().unwrap_or_else(|_| panic!("{sql}: `{text}` is not a number"))
    }

    /// Waits until a query in the database `endmark` returns this value.
    pub async fn wait_for_number(&self, sql: &str, expected: u64) {
        let begin = Instant::now();
        while self.query_number(sql) != expected {
            assert!(begin.elapsed() < WAIT_TIMEOUT, "{sql}: {}, not {expected}", self.query_number(sql));
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Runs SQL in a database.
    pub fn run_sql(&self, database: &str, sql: &str) -> String {
        let (is_done, text) = self.try_run_sql(database, sql);
        assert!(is_done, "{sql}: {text}");
        text.trim_end().to_owned()
    }

    fn try_run_sql(&self, database: &str, sql: &str) -> (bool, String) {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"]).arg(&self.folder);
        let output = command.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]).output();
        let output = output.expect("psql is a program");
        let text = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn data_folder(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn read_log(&self) -> String {
        fs::read_to_string(self.folder.with_extension("log")).unwrap_or_default()
    }

    fn program(&self, name: &str) -> Command {
        as_system_user(&self.programs.join(name))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = self
                .program("pg_ctl")
                .args(["stop", "-m", "immediate", "-D"])
                .arg(self.data_folder())
                .output();
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file(self.folder.with_extension("log"));
    }
}

/// Prints that a test is skipped. Fails the test if `ENDMARK_TEST_NEEDS_POSTGRES` is set.
pub(crate) fn report_skipped(why: &str) {
    assert!(std::env::var_os(REQUIRE_POSTGRES_VARIABLE).is_none(), "{why}");
    // A test cannot report that it was skipped. This line is visible with `--nocapture`.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Returns the folder with the programs of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    programs.filter(|programs| programs.join("initdb").is_file()).max()
}

/// Returns a command that runs a program as the system user if the test runs as root.
pub(crate) fn as_system_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", SYSTEM_USER, "--regid", SYSTEM_USER, "--clear-groups"]).arg(program);
    command.current_dir("/");
    command
}

/// Creates a folder that the system user can write.
pub(crate) fn create_folder() -> PathBuf {
    let number = STARTED_SERVERS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("endmark-pg-{}-{number}", std::process::id()));
    fs::create_dir(&folder).expect("the temporary folder can be written");
    if is_root() {
        run(Command::new("chown").arg(SYSTEM_USER).arg(&folder));
    }
    folder
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(Path::new("/proc/self")).is_ok_and(|process| process.uid() == 0)
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port is free");
    listener.local_addr().expect("a listener has an address").port()
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it is a program");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use super::Postgres;

    #[test]
    fn a_test_server_keeps_its_data_after_a_crash_and_is_removed() {
        let Some(mut postgres) = Postgres::start() else { return };
        let folder = postgres.folder.clone();
        postgres.query("CREATE TABLE kept (n bigint); INSERT INTO kept VALUES (7)");
        postgres.stop();
        assert!(!postgres.try_run_sql("endmark", "SELECT 1").0);
        postgres.restart();
        assert_eq!(postgres.query("SELECT n FROM kept"), "7");
        drop(postgres);
        assert!(!folder.exists());
    }
}
