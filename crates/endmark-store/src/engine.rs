//! The engine that holds the rows: SQLite. Nothing outside of this folder knows it; what is outside hands over work that is
//! done on a [`Session`], and asks the functions of these modules for it.

pub(crate) mod budgets;
pub(crate) mod capabilities;
pub(crate) mod compactions;
mod connection;
mod desk;
mod fault;
mod kept;
pub(crate) mod keys;
mod migrate;
mod moment;
mod moving_in;
pub(crate) mod outputs;
mod reader;
pub(crate) mod recoveries;
pub(crate) mod runs;
pub(crate) mod usage;

use std::path::Path;
use std::time::Duration;

pub(crate) use connection::BUSY_TIMEOUT;
pub(crate) use desk::Desk;
pub(crate) use fault::Fault;
pub use kept::{KeptOutput, OutputPiece};
pub(crate) use migrate::known as known_schema;
pub use moment::utc;
pub use reader::{CutSummary, LogFilter, Reader, ResumeCost, UsageReport, UsageRow, UsageSummary};
/// An open session of the engine. To the rest of the crate it is opaque: it is what the functions of this folder take.
pub(crate) use rusqlite::Connection as Session;

use crate::error::StoreError;
use crate::owner::Owner;

/// Opens the store for writing: made, brought up to date, and rid of what the dead left open.
pub(crate) fn open(path: &Path, busy_timeout: Duration) -> Result<(Session, Owner), StoreError> {
    let mut session = connection::open_for_writing(path, busy_timeout)?;
    let owner = moving_in::move_in(&mut session, path, || Owner::register(path))?;
    Ok((session, owner))
}

/// Cut replies that are open, from a session that is known to take writes: where it failed, only a write that changes
/// something shows that it works again.
pub(crate) fn open_cuts(session: &Session, has_failed: bool) -> Result<u64, Fault> {
    if has_failed {
        desk::probe(session)?;
    }
    Ok(recoveries::open_cuts(session)?)
}
