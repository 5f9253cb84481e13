//! What is known beforehand of the answer to a further call.

use endmark_core::{AskedFrom, Format};
use endmark_store::Purpose;

/// What the answer is expected to begin with, and where it may flow to.
pub(super) struct Expected<'a> {
    /// Why the call is made.
    pub(super) purpose: Purpose,
    /// What a prefill repeats before it goes on, if it repeats anything.
    pub(super) echo: &'a str,
    /// The joined text so far, which an echoed continuation goes on from.
    pub(super) so_far: &'a str,
    /// The grammar that says where to stop handing on.
    pub(super) demanded: Option<&'a Format>,
    /// Where an answer that repeats nothing is taken to go on; none where it is no continuation.
    pub(super) from: Option<AskedFrom>,
    /// Whether an answer goes on from the joined text to the byte, behind what it repeats of it.
    pub(super) exact: bool,
    /// Nothing is handed on before all of the answer is there.
    pub(super) closed: bool,
    /// Which of the answer's calls goes on with a tool call's arguments; none where the part is text.
    pub(super) call: Option<usize>,
}
