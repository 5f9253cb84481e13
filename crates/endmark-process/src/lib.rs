//! Runs child processes in process groups. Their output is forwarded while it arrives, and their time and
//! silence are limited. A process that exceeds a limit is asked to end, and then killed. No process outlives
//! its supervisor, even if the supervisor is killed.
//!
//! [`run`] runs a command until it ends, and passes its output to an [`OutputListener`]. [`run_captured`]
//! captures the head and the tail of the output in bounded memory. A [`GroupKeeper`] ends a group if the
//! process that started it no longer exists.

mod capture;
mod captured;
mod child;
mod keeper;
mod passing;
mod patience;
mod regular;
pub mod signals;
mod spool;
mod transcript;

pub use capture::{CapturedStream, StreamCapture};
pub use captured::{CaptureLimits, FinishedCommand, run_captured};
pub use child::{CommandEnd, CommandInput, CommandPlan, ListenerDecision, OutputListener, run};
pub use keeper::GroupKeeper;
pub use passing::ErrorWriter;
pub use patience::{ForcedEnd, OutputState, ProcessExit, TimeLimits};
pub use regular::{MAX_WRITTEN_BYTES, open_regular, open_to_write, read_regular, read_regular_text};
pub use signals::EndSignals;
pub use spool::{SpoolError, SpooledInput, spool};
pub use transcript::OutputTranscript;
