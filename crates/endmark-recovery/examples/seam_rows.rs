//! What the stitcher judges seams by, for `cargo xtask fit`: cases of `bench/recovery` in, one JSON array a line out.
//!
//! The first line has the names. Each other one has 1 or 0, for a seam that is right or wrong, and the values.

use std::error::Error;
use std::io::{self, BufRead as _, BufWriter, Write as _};

use endmark_recovery::stitch::AskedFrom;
use endmark_recovery::stitch::fit::{is_right, names, seam_features};
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

/// Returns the row of one case, or `None` for cases whose intended text is unknown.
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
    // A result that is not whole cannot be called wrong if no text was intended.
    if case["truth"].is_null() && !judged.is_whole {
        return Ok(None);
    }
    let accepted = case["accept"].as_array().into_iter().flatten().chain([&case["truth"]]);
    let right = accepted.filter_map(Value::as_str).any(|intended| is_right(&judged, intended, &format));
    let mut row = vec![f64::from(u8::from(right))];
    row.extend(judged.row);
    Ok(Some(row))
}
