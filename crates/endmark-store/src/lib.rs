#![doc = include_str!("../README.md")]

//! # How it works
//!
//! A [`Store`] is one SQLite file in WAL mode. One thread writes. Requests pass their rows to it through a bounded
//! queue, and it commits all waiting rows in one transaction (group commit). An answer means *committed*, and
//! committed rows survive `kill -9`. When the queue is full, the request waits: no row is dropped to save time.
//!
//! An upstream call is recorded on a slate next to the file before it starts ([`Recorder::open_call`]). That takes
//! microseconds, and the record survives the process. After the call has ended, its row of `usage` is committed
//! together with others. The next [`Store::open`] turns the slate of a killed process into rows.
//!
//! A cut reply is written twice. [`Recorder::begin_cut`] writes a durable intent before the first continuation is
//! requested. [`Recorder::settle_cut`] turns it into one row of `partial_completion_log` when the outcome is known
//! (PC-7). If the process dies in between, the next [`Store::open`] finds the intent and logs the reply as
//! `EXHAUSTED`. It does not touch the intents of living processes, so several gateways can share a file.
//!
//! All records go through a [`Recorder`], which knows the secrets that texts from outside may contain, and removes
//! them.
//!
//! With a PostgreSQL URL, the file is the journal of one of several instances. They share budgets and keys, and their
//! rows are copied into the database. The database grants shares of a budget before the journal records them.
//!
//! A [`Reader`] only reads, creates nothing, and blocks. `endmark log` uses it.

mod budgets;
mod calls;
mod compactions;
mod copy;
mod copy_result;
mod counted;
mod engine;
mod error;
mod files;
mod fingerprint;
mod fleet;
mod keys;
mod late;
mod leases;
mod ledger;
mod location;
mod machine;
mod outputs;
mod owner;
mod queue;
mod recorder;
mod records;
mod refusals;
mod runs;
pub mod runtime;
mod scrub;
mod shared;
mod store;
mod writer;

pub use budgets::{BudgetRow, BudgetWarning, Claim, Hold, HoldOutcome, MAX_RAISE, Raised, RefusingBudget};
pub use calls::{Billing, CallSettled, CallStarted, Charge, Estimate, Purpose, Tokens, UsageRow, Word};
pub use compactions::{CLIENT, CondensedIn, KeptSummary, LOCAL_USER};
pub use copy::copy_store;
pub use copy_result::{CopyError, CopyProgress, CopyResult, CopySums};
pub use counted::{CallClass, CallSums, MINUTE_EDGES, PROMPT_EDGES, classify};
pub use engine::{
    BudgetDifference, BudgetPlace, CompactionRow, CountedCalls, CutPeriod, CutSummary, Dimension, KeptOutput,
    LogFilter, OutputPage, OutputPiece, ReadError, Reader, RequestChoices, RequestFilter, RequestPage,
    RequestRecords, RequestRow, SessionOutput, UsageReport, UsageSummary, utc, with_zone,
};
pub use error::StoreError;
pub use fingerprint::sha256_hex;
pub use fleet::{Fleet, FleetRecords};
pub use keys::{FoundKey, Key, KeyBook, KeyBudget, KeyError, KeySecret, KeyState, NewKey, SECRET_PREFIX};
pub use ledger::OpenCall;
pub use location::{LocationError, StoreLocation};
pub use outputs::{
    CapRequest, EachChunk, Handle, Keeper, MIN_SHARE, NewOutput, OutputDraft, cap_and_keep,
    cap_chunks_and_keep, cap_error, note_read, one_limit, read_failure, share, size,
};
pub use recorder::Recorder;
pub use records::{
    Condition, CutId, CutSettled, CutStarted, FinalStatus, Health, LEFT_BY_CLOSING_LIMIT, LEFT_BY_OWN_LIMIT,
    LEFT_BY_WARN, Leftover, LogCursor, LogRow, LoggedPiece, OtherGateway, Piece, Recovery,
};
pub use refusals::RefusedRequest;
pub use runs::{
    FleetRuns, RunCursor, RunEventRecord, RunMachine, RunRecord, RunTask, StoredRun, StoredRunEvent,
};
pub use scrub::{NoSecrets, Scrub};
pub use shared::address::{PostgresAddress, PostgresAddressError};
pub use shared::inspect::{DatabaseState, SharedBudgets, forfeit_instance, inspect_database, shared_sums};
pub use shared::reader::{SharedReader, SharedReport};
pub use shared::usage::SharedSums;
pub use store::Store;
