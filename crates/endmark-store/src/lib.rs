#![doc = include_str!("../README.md")]

//! # How it works
//!
//! A [`Store`] is one SQLite file in WAL mode. One thread writes. Requests pass their rows to it through a
//! bounded queue, and it commits all waiting rows in one transaction (group commit). An answered write is
//! *committed*, and committed rows survive `kill -9`. If the queue is full, the request waits. Rows are never
//! dropped to save time.
//!
//! An upstream call is recorded on a slate next to the file before it starts ([`Recorder::open_call`]). That
//! needs microseconds, and the record survives a kill of the process. After the call has ended, its row of
//! `usage` is committed together with others. The next [`Store::open`] turns the slate of a killed process
//! into rows.
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
//! A [`Reader`] opens the file for reading, creates no files, and blocks. `endmark log` uses it.

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

pub use budgets::{
    BudgetRow, BudgetWarning, Claim, Hold, HoldOutcome, MAX_BUDGET_RAISE, RaiseOutcome, RefusingBudget,
};
pub use calls::{Billing, CallSettled, CallStarted, Charge, Label, Purpose, TokenEstimate, Tokens, UsageRow};
pub use compactions::{CLIENT_OWNER_PREFIX, CondensedSession, KeptSummary, LOCAL_USER};
pub use copy::copy_store;
pub use copy_result::{CopyError, CopyProgress, CopyResult, CopySums};
pub use counted::{CallClass, CallSums, PRICE_CHANGE_MINUTES, PROMPT_PRICE_THRESHOLDS, classify};
pub use engine::{
    BudgetDifference, BudgetPosition, CompactionRow, CountedCalls, CutPeriod, CutReport, CutSummary,
    Dimension, ExcerptReadError, KeptOutput, LogFilter, OutputPage, OutputPiece, Reader, RequestFilter,
    RequestFilterOptions, RequestPage, RequestRecords, RequestRow, SessionOutput, UsageSummary, utc,
    with_zone,
};
pub use error::StoreError;
pub use fingerprint::sha256_hex;
pub use fleet::{Fleet, FleetRecords};
pub use keys::{FoundKey, Key, KeyBook, KeyBudget, KeyError, KeySecret, KeyState, NewKey, SECRET_PREFIX};
pub use ledger::OpenCall;
pub use location::{LocationError, StoreLocation};
pub use outputs::{
    CapRequest, ChunkSink, Handle, MIN_TEXT_SHARE, NewOutput, OutputDraft, OutputKeeper, cap_and_keep,
    cap_chunks_and_keep, cap_error, fair_share, only_limit, read_error, record_read, size,
};
pub use recorder::Recorder;
pub use records::{
    CutId, CutSettled, CutStarted, FinalStatus, LoggedPiece, OtherGateway, REASON_CLIENT_LIMIT,
    REASON_CLOSING_LIMIT, REASON_WARN_MODE, Recovery, RecoveryCursor, RecoveryRow, ReplyPiece,
    StoreCondition, UncommittedRecords, WriterHealth,
};
pub use refusals::RefusedRequest;
pub use runs::{
    FleetRuns, RunCursor, RunEventRecord, RunMachine, RunRecord, RunResumeState, StoredRun, StoredRunEvent,
};
pub use scrub::{NoSecrets, Scrub};
pub use shared::address::{PostgresAddress, PostgresAddressError};
pub use shared::inspect::{DatabaseState, SharedBudgets, forfeit_instance, inspect_database, shared_sums};
pub use shared::reader::{SharedCutReport, SharedReader};
pub use shared::usage::SharedSums;
pub use store::Store;
