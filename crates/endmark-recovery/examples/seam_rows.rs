//! Computes the features that the stitcher uses to judge seams, for `cargo xtask fit`. Reads cases of
//! `bench/recovery`, and writes one JSON array per line.
//!
//! The first line contains the names of the features. Each other line contains 1 for a correct seam or 0 for
//! a wrong one, and then the values.

use std::error::Error;
use std::io::{self, BufRead as _, BufWriter, Write as _};

use endmark_recovery::stitch::AskedFrom;
use endmark_recovery::stitch::fit::{is_correct, names, seam_features};
use endmark_text::Format;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut output = BufWriter::new(io::stdout().lock());
    writeln!(output, "{}", serde_json::to_string(&names())?)?;
    for line in io::stdin().lock().lines() {
        if let Some(row) = row(&serde_json::from_str(&line?)?)? {
            writeln!(output, "{}", serde_json::to_string(&row)?)?;
        }
    }
    Ok(output.flush()?)
}

/// Returns the row of one case, or `None` if it has no decision or its result cannot be judged.
fn row(case: &Value) -> Result<Option<Vec<f64>>, Box<dyn Error>> {
    let word = |name: &str| case[name].as_str().unwrap_or_default();
    let format = Format::parse(word("format"), None)?;
    let from = AskedFrom::parse(word("from")).ok_or("`from` is cut, token or unknown")?;
    let chunks: Vec<String> = serde_json::from_value(case["chunks"].clone())?;
    let is_blind = case["blind"] == true;
    let [first, second] = chunks.as_slice() else { return Ok(None) };
    let Some(judged) = seam_features(first, second, &format, from).filter(|_| !is_blind) else {
        return Ok(None);
    };
    // If the intended text is unknown, an unfinished result cannot be called wrong.
    if case["truth"].is_null() && !judged.is_whole {
        return Ok(None);
    }
    let accepted = case["accept"].as_array().into_iter().flatten().chain([&case["truth"]]);
    let right = accepted.filter_map(Value::as_str).any(|intended| is_correct(&judged, intended, &format));
    let mut row = vec![f64::from(u8::from(right))];
    row.extend(judged.row);
    Ok(Some(row))
}
