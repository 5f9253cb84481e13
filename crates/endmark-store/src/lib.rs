//! What Endmark remembers: cut replies and how they ended, and what upstreams can do.
//!
//! A [`Store`] is one SQLite file in WAL mode. One thread writes; requests hand it their rows through a
//! bounded queue, and it commits as many as are waiting in one transaction (group commit). An answer means
//! *committed*, and committed rows survive `kill -9`. When the queue is full, the request waits: no row is
//! lost to save time.
//!
//! An upstream call is noted on a slate beside the file before it is made ([`Store::open_call`]), which takes
//! microseconds and survives the process; when it is over, its one row of `usage` is committed with others. What a
//! killed process left on its slate becomes rows at the next [`Store::open`].
//!
//! A cut reply is written twice: [`Store::begin_cut`] leaves a durable intent before the first continuation
//! is asked for, and [`Store::settle_cut`] turns it into one row of `partial_completion_log` when the outcome
//! is known (PC-7). If the process dies in between, the next [`Store::open`] finds the intent and logs the
//! reply as `EXHAUSTED`. Intents of other processes that are still alive are left alone, so that several
//! gateways can share a file.
//!
//! A [`Reader`] only reads, creates nothing, and blocks; it is what `endmark log` uses.

mod calls;
mod capabilities;
mod connection;
mod error;
mod fingerprint;
mod late;
mod ledger;
mod location;
mod migrate;
mod moment;
mod owner;
mod reader;
mod records;
mod recoveries;
mod store;
mod usage;
mod writer;

pub use calls::{CallSettled, CallStarted, Purpose, Tokens, Word};
pub use error::StoreError;
pub use fingerprint::sha256_hex;
pub use ledger::OpenCall;
pub use location::{LocationError, StoreLocation};
pub use reader::{CutSummary, LogFilter, Reader, ResumeCost, UsageReport, UsageRow, UsageSummary};
pub use records::{
    Condition, CutId, CutSettled, CutStarted, FinalStatus, Health, Leftover, LogRow, LoggedPiece, Piece,
    Recovery,
};
pub use store::Store;
