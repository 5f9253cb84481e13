//! SQLite files: the log of cut replies, and the full values of capped results. The addon contains its own
//! SQLite.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use endmark_bindings::{
    KEEP_OUTPUT, LOG_TABLE, OUTPUTS_TABLE, READ_OUTPUT, REMOVE_OLDEST_OUTPUTS, USE_OUTPUT,
};
use napi::bindgen_prelude::{AsyncTask, Buffer, Error, Result, Uint8Array};
use napi::{Env, Task};
use napi_derive::napi;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

/// How long a write waits for other processes: on a thread of Node's pool, and on the thread of the event
/// loop.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
const EVENT_LOOP_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

fn failed(error: rusqlite::Error) -> Error {
    Error::from_reason(error.to_string())
}

/// A SQLite file. `None` after it was closed.
struct File(Option<Connection>);

impl File {
    fn open(path: &str, table: &str, patience: Duration) -> Result<Self> {
        let connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(patience).map_err(failed)?;
        connection.execute_batch(table).map_err(failed)?;
        Ok(Self(Some(connection)))
    }

    fn connection(&self) -> Result<&Connection> {
        self.0.as_ref().ok_or_else(|| Error::from_reason("the file is closed"))
    }
}

/// The table `partial_completion_log` of a SQLite file.
#[napi]
pub struct LogFile(Arc<Mutex<File>>);

#[napi]
impl LogFile {
    /// Opens the file, and creates the table if it is missing.
    #[napi(constructor)]
    pub fn new(path: String) -> Result<Self> {
        let file = File::open(&path, LOG_TABLE, BUSY_TIMEOUT)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// Writes a row on a thread of Node's pool. Lengths are in bytes.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn write(&self, row: String, task_id: String, turn_number: i64) -> AsyncTask<Write> {
        AsyncTask::new(Write { file: Arc::clone(&self.0), row, task_id, turn_number })
    }

    /// Closes the file. Closing it again has no effect.
    #[napi]
    pub fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
    }
}

/// A row that is being written.
pub struct Write {
    file: Arc<Mutex<File>>,
    row: String,
    task_id: String,
    turn_number: i64,
}

impl Task for Write {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        let row: Value =
            serde_json::from_str(&self.row).map_err(|error| Error::from_reason(error.to_string()))?;
        let number = |name: &str| row.get(name).and_then(Value::as_i64);
        let sql = "INSERT INTO partial_completion_log (task_id, turn_number, truncation_index, initial_chunk_length, resume_attempts, final_status) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (index, length) = (number("truncation_index"), number("initial_chunk_length"));
        let attempts = number("resume_attempts").unwrap_or_default();
        let status = row.get("final_status").and_then(Value::as_str);
        let values = params![self.task_id, self.turn_number, index, length, attempts, status];
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.connection()?.execute(sql, values).map_err(failed)?;
        Ok(())
    }

    fn resolve(&mut self, _: Env, (): ()) -> Result<()> {
        Ok(())
    }
}

/// The full values of capped results in a SQLite file, with the maximum of their total size in bytes.
#[napi]
pub struct OutputsFile(File, i64);

#[napi]
impl OutputsFile {
    /// Opens the file, and creates the table if it is missing.
    #[napi(constructor)]
    pub fn new(path: String, max_bytes: i64) -> Result<Self> {
        Ok(Self(File::open(&path, OUTPUTS_TABLE, EVENT_LOOP_BUSY_TIMEOUT)?, max_bytes))
    }

    /// Stores a value. Removes the least recently used values if the total size exceeds the maximum.
    #[napi]
    pub fn keep(&self, handle: String, value: Uint8Array) -> Result<()> {
        let connection = self.0.connection()?;
        connection.execute(KEEP_OUTPUT, params![handle, value.as_ref()]).map_err(failed)?;
        connection.execute(REMOVE_OLDEST_OUTPUTS, params![self.1, handle]).map_err(failed)?;
        Ok(())
    }

    /// Returns the value of a handle, if it exists.
    #[napi]
    pub fn get(&self, handle: String) -> Result<Option<Buffer>> {
        let connection = self.0.connection()?;
        let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
        let found = connection.query_row(READ_OUTPUT, params![handle], read).optional();
        connection.execute(USE_OUTPUT, params![handle]).map_err(failed)?;
        Ok(found.map_err(failed)?.map(Buffer::from))
    }

    /// Closes the file. Closing it again has no effect.
    #[napi]
    pub fn close(&mut self) {
        self.0.0 = None;
    }
}
