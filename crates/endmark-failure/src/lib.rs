//! Errors of commands: a code for programs, a message for people, a hint, and the exit code of the process.

mod check;
mod error;
mod exit;
mod nearest;
mod not_started;
mod shown;

pub use check::Check;
pub use error::CommandError;
pub use exit::ExitStatus;
pub use nearest::nearest;
pub use not_started::start_error;
pub use shown::{escape_control, is_terminal_control, to_safe_lines, to_single_line};
