//! Shows answers: as an envelope, or as text for people.

pub(crate) mod answer;
pub(crate) mod paint;
pub(crate) mod recoveries;
pub(crate) mod runs;
pub(crate) mod seams;
pub(crate) mod table;
pub(crate) mod terminal;
