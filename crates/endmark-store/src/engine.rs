//! The storage engine: SQLite. Only this folder depends on SQLite. Other code passes work that runs on a
//! [`Session`], calls the functions of these modules, and reads with a [`Reader`]. Another engine would have
//! to implement the same interface.

pub(crate) mod budgets;
pub(crate) mod capabilities;
pub(crate) mod compactions;
mod connection;
pub(crate) mod copying;
pub(crate) mod cuts;
mod excerpt;
mod fault;
pub(crate) mod fetched;
pub(crate) mod integers;
pub(crate) mod journal;
mod kept;
pub(crate) mod keys;
mod leases;
mod migrate;
mod moment;
pub(crate) mod outputs;
mod parts;
mod preparation;
mod reader;
pub(crate) mod recoveries;
mod room;
pub(crate) mod runs;
mod session;
pub(crate) mod sums;
pub(crate) mod usage;

pub(crate) use connection::BUSY_TIMEOUT;
pub use excerpt::ReadError;
pub(crate) use fault::Fault;
pub use kept::{KeptOutput, OutputPiece};
pub(crate) use migrate::newest_known as known_schema;
pub use moment::{utc, with_zone};
pub use parts::OutputPage;
pub use reader::{
    BudgetDifference, BudgetPlace, CompactionRow, CountedCalls, CutPeriod, CutSummary, LogFilter, Reader,
    RequestChoices, RequestFilter, RequestPage, RequestRecords, RequestRow, SessionOutput, UsageReport,
    UsageSummary,
};
pub(crate) use reader::{MAX_CANDIDATES, PageBuilder, REPLY_PURPOSES, ReportParts};
pub(crate) use session::{Recorded, Session};
pub use sums::Dimension;
