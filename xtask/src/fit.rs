//! Fits the weights of the stitcher with a logistic regression. The features are those by which the stitcher
//! judges seams.
//!
//! The cases are the half `fit` of `bench/recovery`, in files that its `run.py --write` writes.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// The generated Rust file.
const WEIGHTS_FILE: &str = "crates/endmark-recovery/src/stitch/decision/weights.rs";
/// Weights are stored as integers in 1/1024 of the natural logarithm of the odds, as in `decision.rs`.
const WEIGHT_SCALE: f64 = 1024.0;
/// Strength of the regularisation. It prevents large weights for features that occur in few cases.
const REGULARISATION_STRENGTH: f64 = 1.0;
/// Number of steps of the fit, and the largest change of a weight in one step.
const FIT_STEPS: usize = 150;
const MAX_WEIGHT_CHANGE: f64 = 4.0;
/// Text that the names of all likelihood weights contain.
const LIKELIHOOD_NAME_PART: &str = "AheadOf";

/// A candidate seam: whether it is right, and the values of its features.
struct CandidateSeam {
    correctness: f64,
    values: Vec<f64>,
}

/// Fits the weights to the cases in these files, and writes them.
pub(crate) fn fit_and_write(files: &[String]) -> Result<(), String> {
    if files.is_empty() {
        return Err("usage: cargo xtask fit CASES.jsonl…".to_owned());
    }
    let (mut names, mut rows) = (Vec::new(), Vec::new());
    for file in files {
        let (known, more) = read_cases(file)?;
        names = known;
        rows.extend(more);
    }
    let weights = fit_weights(&rows, &names)?;
    let of = |(name, weight): (&String, f64)| format!("    (\"{name}\", {:.0}),\n", weight * WEIGHT_SCALE);
    let lines: String = names.iter().zip(weights).map(of).collect();
    let count = names.len();
    let text = format!(
        "//! Written by `cargo xtask fit`.\n\n/// The weights with their names, in 1/1024 of the natural logarithm of the odds.\n\
         pub(super) const WEIGHTS: [(&str, i32); {count}] = [\n{lines}];\n"
    );
    fs::write(WEIGHTS_FILE, text).map_err(|error| format!("cannot write {WEIGHTS_FILE}: {error}"))
}

/// Returns the names of the weights, and the candidate seams of the cases in a file.
fn read_cases(file: &str) -> Result<(Vec<String>, Vec<CandidateSeam>), String> {
    let cases = File::open(Path::new(file)).map_err(|error| format!("cannot read {file}: {error}"))?;
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--release", "-p", "endmark-recovery", "--features", "fit"])
        .args(["--example", "seam_rows"])
        .stdin(cases)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("the stitcher failed for {file}: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let wrong = |error: serde_json::Error| format!("{file}: {error}");
    let names = serde_json::from_str(lines.next().unwrap_or_default()).map_err(wrong)?;
    let rows = lines.map(|line| {
        let mut values: Vec<f64> = serde_json::from_str(line).map_err(wrong)?;
        let right = if values.is_empty() { 0.0 } else { values.remove(0) };
        Ok(CandidateSeam { correctness: right, values })
    });
    Ok((names, rows.collect::<Result<_, String>>()?))
}

/// Returns the weights that maximise the likelihood of the right decisions, found with Newton's method.
///
/// Likelihood weights are never negative, so that a more likely seam never gets a lower probability.
fn fit_weights(rows: &[CandidateSeam], names: &[String]) -> Result<Vec<f64>, String> {
    if let Some(row) = rows.iter().find(|row| row.values.len() != names.len()) {
        return Err(format!("a row has {} values for {} names", row.values.len(), names.len()));
    }
    let mut weights = vec![0.0; names.len()];
    let mut odds = vec![0.0_f64; rows.len()];
    for _ in 0..FIT_STEPS {
        for (at, name) in names.iter().enumerate() {
            let (mut gradient, mut curvature) =
                (-REGULARISATION_STRENGTH * weights[at], REGULARISATION_STRENGTH);
            for (row, odds) in rows.iter().zip(&odds).filter(|(row, _)| row.values[at] != 0.0) {
                let probability = 1.0 / (1.0 + (-odds).exp());
                gradient += (row.correctness - probability) * row.values[at];
                curvature += probability * (1.0 - probability) * row.values[at].powi(2);
            }
            let better = weights[at] + (gradient / curvature).clamp(-MAX_WEIGHT_CHANGE, MAX_WEIGHT_CHANGE);
            let better = if name.contains(LIKELIHOOD_NAME_PART) { better.max(0.0) } else { better };
            for (odds, row) in odds.iter_mut().zip(rows) {
                *odds += (better - weights[at]) * row.values[at];
            }
            weights[at] = better;
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reliable_feature_gets_a_larger_weight() {
        let row =
            |right: f64, values: [f64; 3]| CandidateSeam { correctness: right, values: values.to_vec() };
        let rows: Vec<CandidateSeam> = (0..60)
            .flat_map(|at| {
                let chance = f64::from(u8::from(at % 4 == 0));
                [row(1.0, [1.0, 1.0, 0.0]), row(0.0, [1.0, 0.0, 1.0]), row(chance, [1.0, 0.0, 0.0])]
            })
            .collect();
        let names = ["Any", "Good", "Bad"].map(str::to_owned);
        let weights = fit_weights(&rows, &names).unwrap();
        let probability = |odds: f64| 1.0 / (1.0 + (-odds).exp());
        assert!(probability(weights[0] + weights[1]) > 0.9, "{weights:?}");
        assert!(probability(weights[0] + weights[2]) < 0.1, "{weights:?}");
        assert!((probability(weights[0]) - 0.25).abs() < 0.05, "{weights:?}");
        assert!(fit_weights(&rows, &names[1..]).is_err());
        let likelihoods = ["Any", "Good", "AheadOfAll"].map(str::to_owned);
        assert!(fit_weights(&rows, &likelihoods).unwrap()[2].abs() < 1e-9);
    }
}
