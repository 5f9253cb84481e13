#![doc = include_str!("../README.md")]

mod artifact;
mod checks;
mod criteria;
mod finding;
mod guard;
mod phrases;
mod render;

pub use artifact::{Artifact, Kind};
pub use criteria::{Criteria, CriteriaError, Template};
pub use finding::{Check, Finding, Report, Verdict};
pub use guard::Guard;
pub use render::{Judged, github, junit, sarif};
