//! Builds the prompt that asks for the rest of a cut reply, and joins the parts.

use endmark::{DetectionReport, MergeError, Merged, Seam};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::{Failure, FailureKind};
use crate::offsets::Unit;
use crate::options::{answer, format, input_text, parse, parse_asked_from};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptOptions {
    format: String,
    #[serde(default)]
    marker: Option<String>,
    #[serde(default)]
    template: Option<String>,
}

pub(crate) fn build_resume_prompt(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (token, options): (_, PromptOptions) = (input_text(inputs, 0)?, parse(options)?);
    let template = options.template.as_deref();
    if let Some(template) = template {
        check_template(template)?;
    }
    let format = format(&options.format, options.marker.as_deref())?;
    answer(&endmark::build_resume_prompt(token, &format, template))
}

pub(crate) fn check_template(template: &str) -> Result<(), Failure> {
    endmark::check_prompt_template(template).map_err(|error| Failure::invalid("invalid_template", error))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    format: String,
    #[serde(default)]
    marker: Option<String>,
    from: String,
    #[serde(default)]
    offsets: Unit,
}

/// Converts the offset of a seam in this text to this unit.
pub(crate) fn convert_seam(seam: &Seam, text: &str, unit: Unit) -> Seam {
    Seam { at: unit.convert(text.as_bytes(), seam.at), ..seam.clone() }
}

#[derive(Serialize)]
struct ShownMerged<'m> {
    text: &'m str,
    seam: Seam,
    verdict: DetectionReport<'m>,
}

impl<'m> ShownMerged<'m> {
    fn new(merged: &'m Merged, unit: Unit) -> Self {
        Self {
            text: &merged.text,
            seam: convert_seam(&merged.seam, &merged.text, unit),
            verdict: DetectionReport::from_verdict(&merged.verdict)
                .with_offsets(|byte| unit.convert(merged.text.as_bytes(), byte)),
        }
    }
}

pub(crate) fn merge_chunks(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (initial, continuation) = (input_text(inputs, 0)?, input_text(inputs, 1)?);
    let options: Options = parse(options)?;
    let format = format(&options.format, options.marker.as_deref())?;
    let merged = endmark::merge_chunks(initial, continuation, &format, parse_asked_from(&options.from)?);
    match merged {
        Ok(merged) => answer(&ShownMerged::new(&merged, options.offsets)),
        Err(error) => Err(merge_failure(&error, options.offsets)),
    }
}

/// Returns the failure for a rejected merge, with all received text.
fn merge_failure(error: &MergeError, unit: Unit) -> Failure {
    let details = match error {
        MergeError::Ambiguous { best, .. } | MergeError::StillTruncated { merged: best } => {
            json!({"attempt": best.text, "verified_len": unit.convert(best.text.as_bytes(), settled_length(best)), "best": ShownMerged::new(best, unit)})
        }
        MergeError::Malformed { attempt, verified_len, .. }
        | MergeError::NothingToJoin { attempt, verified_len, .. }
        | MergeError::NoSeam { attempt, verified_len, .. } => {
            json!({"attempt": attempt, "verified_len": unit.convert(attempt.as_bytes(), *verified_len), "best": Value::Null})
        }
    };
    Failure::new(FailureKind::Merge, error.code(), error).with(details)
}

/// Returns the length of the verified part of a merged text. It ends at the first doubtful seam.
fn settled_length(merged: &Merged) -> usize {
    let end = merged.verdict.truncation().map_or(merged.text.len(), |cut| cut.truncation_index);
    if merged.seam.alternatives > 0 { end.min(merged.seam.at) } else { end }
}

#[derive(Serialize)]
struct ShownStitched<'s> {
    outcome: &'static str,
    text: &'s str,
    seams: Vec<Seam>,
    error: Option<Value>,
}

pub(crate) fn stitch(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let options: Options = parse(options)?;
    let format = format(&options.format, options.marker.as_deref())?;
    let chunks: Vec<String> = (0..inputs.len())
        .map(|index| input_text(inputs, index).map(str::to_owned))
        .collect::<Result<_, _>>()?;
    let stitched = endmark::stitch(&chunks, &format, parse_asked_from(&options.from)?);
    answer(&ShownStitched {
        outcome: stitched.outcome.name(),
        text: &stitched.text,
        seams: stitched
            .seams
            .iter()
            .map(|seam| convert_seam(seam, &stitched.text, options.offsets))
            .collect(),
        error: stitched.error.as_ref().map(|error| json!({"code": error.code, "message": error.message})),
    })
}
