//! A child process in its group. Its output is forwarded as it arrives, time and silence are limited, it is asked to
//! end and then killed, and it never outlives its supervisor, even one that is killed.
//!
//! [`run`] runs one child to its end and passes its output to a [`Listener`]. [`run_captured`] keeps the head and the
//! tail of the output in bounded memory. A [`Keeper`] ends the group if the process that started it is gone.

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

pub use capture::{Capture, Captured};
pub use captured::{CaptureLimits, FinishedCommand, run_captured};
pub use child::{CommandEnd, Listener, ListenerDecision, Plan, Stdin, run};
pub use keeper::Keeper;
pub use passing::ErrorWriter;
pub use patience::{End, ForcedEnd, OutputLeft, Times};
pub use regular::{MAX_WRITTEN_BYTES, open_regular, open_to_write, read_regular, read_regular_text};
pub use signals::Signals;
pub use spool::{SpoolError, SpooledInput, spool};
pub use transcript::Transcript;
