//! `endmark run`: supervises agent commands until their artifacts are complete, or there is a reason to give up
//! (CG-3 to CG-5).

use endmark_failure::CommandError;

use crate::arguments::run::Run;
use crate::context::Context;
use crate::supervision::supervise;
use crate::view::answer::Answer;

/// Supervises one command, or all runs of a file, until they end.
pub(crate) fn run(context: &Context, arguments: &Run) -> Result<Answer, CommandError> {
    supervise(context, arguments)
}
