//! The storage engine: SQLite. Only this folder depends on SQLite. Other code runs its writes on a
//! [`Session`] with the functions of these modules, and reads with a [`Reader`]. Another engine would have to
//! provide the same interface.

pub(crate) mod budgets;
pub(crate) mod capabilities;
pub(crate) mod compactions;
mod connection;
pub(crate) mod copying;
pub(crate) mod cuts;
mod excerpt;
mod fault;
pub(crate) mod fetched_output;
pub(crate) mod integers;
pub(crate) mod journal;
mod kept_output;
pub(crate) mod keys;
mod leases;
mod migrate;
mod output_parts;
pub(crate) mod outputs;
mod preparation;
mod quota;
mod reader;
pub(crate) mod recoveries;
pub(crate) mod runs;
mod session;
pub(crate) mod sums;
mod timestamps;
pub(crate) mod usage;

pub(crate) use connection::BUSY_TIMEOUT;
pub use excerpt::ExcerptReadError;
pub(crate) use fault::StatementError;
pub use kept_output::{KeptOutput, OutputPiece};
pub(crate) use migrate::newest_known as known_schema;
pub use output_parts::OutputPage;
pub use reader::{
    BudgetDifference, BudgetPosition, CompactionRow, CountedCalls, CutPeriod, CutReport, CutSummary,
    LogFilter, Reader, RequestFilter, RequestFilterOptions, RequestPage, RequestRecords, RequestRow,
    SessionOutput, UsageSummary,
};
pub(crate) use reader::{CutReportBuilder, MAX_CANDIDATES, PageBuilder, REPLY_PURPOSES};
pub(crate) use session::{RowOutcome, Session};
pub use sums::Dimension;
pub use timestamps::{utc, with_zone};
