use crate::{Artifact, Assessment, Criteria, Guard};

fn judge(text: &str) -> Assessment {
    Guard::new(Criteria::default()).judge(&Artifact::read(text))
}

/// Returns the checks that failed, with their quotes.
fn failed_checks(text: &str) -> Vec<(&'static str, String)> {
    judge(text).findings().iter().map(|finding| (finding.check.name(), finding.text.clone())).collect()
}

fn names(text: &str) -> Vec<&'static str> {
    failed_checks(text).into_iter().map(|(name, _)| name).collect()
}

mod code;
mod criteria;
mod endings;
mod phrases;
