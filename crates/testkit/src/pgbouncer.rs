//! PgBouncer in transaction mode, as a child process on a free port between a test and its PostgreSQL server.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Instant;

use crate::TEST_TIMEOUT;
use crate::postgres::{Postgres, as_system_user, create_folder, free_port, report_skipped};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running pooler. Dropping it stops the pooler and deletes its folder.
pub struct PgBouncer {
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl PgBouncer {
    /// Starts a pooler with two connections per database, so that a client's transactions use both of them.
    ///
    /// If PgBouncer is not installed, returns `None` and prints the reason.
    ///
    /// # Panics
    /// If PgBouncer does not start, or is not installed although `ENDMARK_TEST_NEEDS_POSTGRES` is set.
    pub fn start(postgres: &Postgres) -> Option<Self> {
        if !Path::new(PROGRAM).is_file() {
            report_skipped("PgBouncer is not installed as /usr/sbin/pgbouncer");
            return None;
        }
        let (folder, port) = (create_folder(), free_port());
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nserver_round_robin = 1\n",
            postgres.port()
        );
        let path = folder.join("pgbouncer.ini");
        fs::write(&path, settings).expect("the folder can be written");
        let mut command = as_system_user(Path::new(PROGRAM));
        command.arg("-q").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the pooler is a program");
        let begin = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(begin.elapsed() < TEST_TIMEOUT, "PgBouncer does not start");
            thread::sleep(std::time::Duration::from_millis(20));
        }
        Some(Self { folder, port, child })
    }

    /// Returns the port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
