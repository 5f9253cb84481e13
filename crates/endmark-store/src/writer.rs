//! The one thread that writes: a bounded queue in, group commits, answers out.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::{Fault, StoreError};
use crate::owner::Owner;

/// Writes that wait for the thread; when it is full, callers wait for room (a row is a few hundred bytes).
pub(crate) const QUEUE: usize = 1024;

/// The most writes in one transaction: enough to make its cost vanish, few enough to answer within
/// milliseconds.
const BATCH: usize = 256;

/// The writing end of a store. Dropping it writes what is queued, then ends the thread.
pub(crate) struct Writer {
    path: Arc<Path>,
    sender: Option<mpsc::Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// What the thread did since it was started.
#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    writes: AtomicU64,
}

enum Message {
    Write(Box<dyn Write>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the thread on an open connection; the owner is let go of when the thread ends.
    pub(crate) fn start(
        connection: Connection,
        owner: Owner,
        path: &Path,
        queue: usize,
    ) -> Result<Self, StoreError> {
        let path: Arc<Path> = Arc::from(path);
        let counters = Arc::new(Counters::default());
        let (sender, receiver) = mpsc::channel(queue);
        let desk = Desk { connection, path: Arc::clone(&path), counters: Arc::clone(&counters) };
        let thread = thread::Builder::new()
            .name("endmark-store".to_owned())
            .spawn(move || desk.run(receiver, owner))
            .map_err(|error| StoreError::Failed { path: path.to_path_buf(), detail: error.to_string() })?;
        Ok(Self { path, sender: Some(sender), thread: Some(thread), counters })
    }

    /// Runs `work` in the next transaction and answers once it is committed. It is done even when the caller
    /// stops waiting for the answer.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let write = Typed { path: Arc::clone(&self.path), work: Some(work), outcome: None, reply };
        let sender = self.sender.as_ref().ok_or(StoreError::Closed)?;
        sender.send(Message::Write(Box::new(write))).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Takes no more writes, and returns when those that wait are committed and the file is tidy.
    pub(crate) async fn close(&self) {
        let (reply, answer) = oneshot::channel();
        let Some(sender) = &self.sender else { return };
        if sender.send(Message::Close(reply)).await.is_ok() {
            // An error here means that the thread is gone, which is what was asked for.
            let _ = answer.await;
        }
    }

    /// Transactions committed, and writes in them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counters.commits.load(Ordering::Relaxed), self.counters.writes.load(Ordering::Relaxed))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it happened; there is nothing left to save here.
            let _ = thread.join();
        }
    }
}

/// Where the thread works.
struct Desk {
    connection: Connection,
    path: Arc<Path>,
    counters: Arc<Counters>,
}

impl Desk {
    fn run(self, mut receiver: mpsc::Receiver<Message>, owner: Owner) {
        let mut closers = Vec::new();
        while let Some(first) = receiver.blocking_recv() {
            let mut batch = Vec::new();
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Write(write) => batch.push(write),
                    Message::Close(reply) => {
                        closers.push(reply);
                        receiver.close();
                    }
                }
                next = if batch.len() < BATCH { receiver.try_recv().ok() } else { None };
            }
            self.commit(batch);
        }
        // Moves the journal into the file; should another process be in the way, SQLite does it later.
        let _ = self.connection.pragma_query(None, "wal_checkpoint", |_| Ok(()));
        drop(self.connection);
        drop(owner);
        for closer in closers {
            // Nobody waits any more: fine.
            let _ = closer.send(());
        }
    }

    /// Runs a batch in one transaction. A write that fails is undone alone; if the transaction fails, all of
    /// them are answered with that failure.
    fn commit(&self, mut batch: Vec<Box<dyn Write>>) {
        if batch.is_empty() {
            return;
        }
        let result = self.transact(&mut batch);
        if result.is_ok() {
            self.counters.commits.fetch_add(1, Ordering::Relaxed);
            self.counters.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        for write in batch {
            write.answer(result.as_ref().err());
        }
    }

    fn transact(&self, batch: &mut [Box<dyn Write>]) -> Result<(), StoreError> {
        self.execute("BEGIN IMMEDIATE")?;
        for write in batch {
            self.execute("SAVEPOINT one")?;
            let result = write.run(&self.connection);
            // A full disk and the like end the whole transaction, whatever else the batch holds.
            if let (Err(error), true) = (&result, self.connection.is_autocommit()) {
                return Err(error.clone());
            }
            if result.is_err() {
                self.execute("ROLLBACK TO one")?;
            }
            self.execute("RELEASE one")?;
        }
        self.execute("COMMIT")
    }

    /// Runs a statement of the transaction itself; if it fails, the transaction is over.
    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        let result = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        result.map(|_| ()).map_err(|error| {
            if !self.connection.is_autocommit() {
                // The first error is the one to report.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            StoreError::of_sqlite(&self.path, &error)
        })
    }
}

/// One request to write, whatever its answer's type.
trait Write: Send {
    /// Does it, within the open transaction.
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError>;
    /// Tells the caller, now that the transaction is committed or has failed.
    fn answer(self: Box<Self>, failure: Option<&StoreError>);
}

struct Typed<T, F> {
    path: Arc<Path>,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Write for Typed<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let outcome = work(connection).map_err(|fault| StoreError::of_fault(&self.path, &fault));
        let result = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        result
    }

    fn answer(self: Box<Self>, failure: Option<&StoreError>) {
        let answer = match (failure, self.outcome) {
            (Some(failure), _) => Err(failure.clone()),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(StoreError::Closed),
        };
        // The caller may have gone away; what is committed stays committed.
        let _ = self.reply.send(answer);
    }
}

#[cfg(test)]
mod tests;
