//! `endmark run`: agent commands, supervised until their artifacts are complete or a reason to give up is found.
//! (CG-3 to CG-5)

use endmark_failure::CommandError;

use crate::arguments::run::Run;
use crate::context::Context;
use crate::supervision::supervise;
use crate::view::answer::Answer;

/// Supervises one command, or those of a file, to their ends.
pub(crate) fn run(context: &Context, arguments: &Run) -> Result<Answer, CommandError> {
    supervise(context, arguments)
}
