//! `endmark stitch`: joins the pieces of a reply (PC-4).

use std::borrow::Cow;

use endmark_envelope::Warning;
use endmark_failure::CommandError;
use endmark_recovery::stitch::{AskedFrom, Merged, Outcome as Stitch, Seam, Stitched, candidates, stitch};
use endmark_text::{Format, detect::detect, replace_lone_surrogates};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{self, FromChoice};
use crate::batch::{self, Field, LineAnswer, LineError};
use crate::context::Context;
use crate::format;
use crate::input::Input;
use crate::pieces;
use crate::saved;
use crate::view::answer::{Answer, Outcome, to_data};
use crate::view::seams::{LEFT_OUT_CODE, SeamReport, dropped_warnings};

/// Maximum number of parts that are joined at once, because all earlier parts are read again for each part.
const MAX_PARTS: usize = 100;

/// Joins the named pieces, or those of each line.
pub(crate) fn run(context: &Context, arguments: &arguments::Stitch) -> Result<Outcome, CommandError> {
    let format = format::from_arguments(&arguments.format)?;
    let from = match arguments.from {
        FromChoice::Cut => AskedFrom::Cut,
        FromChoice::Token => AskedFrom::Token,
        FromChoice::Unknown => AskedFrom::Unknown,
    };
    let files = arguments.files.as_slice();
    if arguments.batch {
        if files.len() > 1 {
            let hint = "Join the files first: `cat *.jsonl | endmark stitch --batch`.";
            return Err(CommandError::input("usage", "--batch reads one file", hint));
        }
        let input = Input::open(files.first().map(AsRef::as_ref), context.terminal)?;
        return batch::run(input, |line| answer_line(line, &format, from)).map(Outcome::Streamed);
    }
    if files.len() < 2 {
        let hint = "Name the cut text, then its continuation: `endmark stitch first.json rest.json`.";
        return Err(CommandError::input("usage", "a continuation is missing", hint));
    }
    if files.len() > MAX_PARTS {
        let hint = "Join the first parts, then join the result with the others.";
        return Err(CommandError::input("usage", too_many_parts(files.len()), hint));
    }
    let mut received = Vec::new();
    for file in files {
        let bytes = Input::open(Some(file), context.terminal)?.read_bytes()?;
        // A line of JSON Lines may be a saved reply as data.
        let saved = if format == Format::Jsonl { None } else { saved::text_to_continue(&bytes)? };
        received.push(saved.map_or(bytes, |(text, _)| text.into_bytes()));
    }
    let (texts, half_bytes) = pieces::decode_pieces(received).map_err(|error| {
        let message = format!("`{}` is not UTF-8: byte {}", files[error.piece].display(), error.at);
        CommandError::Input { code: "not_utf8", message, hint: None }
    })?;
    let halves = (half_bytes > 0).then(|| {
        let message =
            format!("{half_bytes} bytes are omitted: incomplete characters that no other part completes");
        Warning::notice(LEFT_OUT_CODE, message)
    });
    Ok(answer(&texts, &format, from)?.with_warnings(halves).into())
}

fn too_many_parts(parts: usize) -> String {
    format!("{parts} parts are too many: the limit is {MAX_PARTS} at once")
}

fn answer(texts: &[String], format: &Format, from: AskedFrom) -> Result<Answer, CommandError> {
    let stitched = &stitch(texts, format, from);
    let choices = match (stitched.outcome, texts) {
        (Stitch::Ambiguous, [initial, continuation]) => candidates(initial, continuation, format, from),
        _ => Vec::new(),
    };
    let mut report = StitchReport::new(stitched, None);
    report.candidates = choices.iter().map(CandidateReport::new).collect();
    let data = to_data(&report)?;
    let Some(error) = &stitched.error else {
        return Ok(Answer::yes(data, stitched.text.as_str()).with_warnings(dropped_warnings(&stitched.seams)));
    };
    let message = match stitched.outcome {
        Stitch::Ambiguous => {
            let shown: String = choices.iter().map(seam_context).collect();
            format!("{}{}{shown}", error.message, describe_seam(stitched.seams.last()))
        }
        Stitch::Whole | Stitch::Error => {
            format!(
                "{}; verified up to byte {}{}",
                error.message,
                stitched.text.len(),
                describe_open_context(stitched, format)
            )
        }
    };
    let hint = match stitched.outcome {
        Stitch::Ambiguous if from == AskedFrom::Unknown => {
            "State with `--from` where the model was asked to continue; `--json` shows the complete candidates."
        }
        Stitch::Ambiguous => "`--json` shows the complete candidates.",
        Stitch::Whole | Stitch::Error if error.code == "nothing_to_join" => {
            "If the parts are not one JSON text, name their format with `--format`."
        }
        Stitch::Whole | Stitch::Error => "`--json` shows the verified beginning.",
    };
    Ok(Answer::no(data, error.code, message, Some(hint.to_owned())))
}

fn describe_seam(seam: Option<&Seam>) -> String {
    seam.map(|seam| format!(" at byte {}", seam.at)).unwrap_or_default()
}

/// Shows the text around the seam of a candidate on one line, so that people can compare candidates.
fn seam_context(merged: &Merged) -> String {
    const MAX_SHOWN_CHARS: usize = 32;
    let (before, behind) = merged.text.split_at(merged.text.floor_char_boundary(merged.seam.at));
    let from = before.char_indices().nth_back(MAX_SHOWN_CHARS - 1).map_or(0, |(at, _)| at);
    let to = behind.char_indices().nth(MAX_SHOWN_CHARS).map_or(behind.len(), |(at, _)| at);
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let shown = format!("{}{}", &before[from..], &behind[..to]);
    format!(
        "\n  {:3.0} % {}{}{}",
        merged.seam.confidence * 100.0,
        cut(from > 0),
        shown.escape_debug().to_string().replace("\\\"", "\""),
        cut(to < behind.len())
    )
}

/// Describes what is still open at the end of the verified text.
fn describe_open_context(stitched: &Stitched, format: &Format) -> String {
    let detection = detect(stitched.text.as_bytes(), format);
    match detection.verdict.truncation().and_then(|truncation| truncation.open.last()) {
        Some(innermost) => format!(", inside `{}`", innermost.opener()),
        None => String::new(),
    }
}

/// The fields of a batch line, in addition to its id.
const FIELDS: [Field; 4] =
    [Field::Text("format"), Field::Text("marker"), Field::Texts("chunks"), Field::Text("from")];

/// One line of a batch.
#[derive(Deserialize)]
struct BatchRequest {
    #[serde(default)]
    id: Value,
    format: Option<String>,
    marker: Option<String>,
    chunks: Vec<String>,
    from: Option<String>,
}

fn answer_line(line: &str, default: &Format, default_from: AskedFrom) -> Result<LineAnswer, LineError> {
    let readable = replace_lone_surrogates(line);
    let request: BatchRequest = batch::parse_request(&readable, &FIELDS)?;
    let failed = |message: String| LineError { id: request.id.clone(), message };
    let is_halved = |chunk: &String| {
        chunk.starts_with(char::REPLACEMENT_CHARACTER) || chunk.ends_with(char::REPLACEMENT_CHARACTER)
    };
    if matches!(readable, Cow::Owned(_)) && request.chunks.iter().any(is_halved) {
        // Both halves of the character were already replaced, so it cannot be restored.
        return Err(failed(
            "a chunk begins or ends with half a character: split the text between characters".to_owned(),
        ));
    }
    let format = format::find_format(request.format.as_deref(), request.marker.as_deref(), default)
        .map_err(|error| failed(error.to_string()))?;
    let from = match &request.from {
        None => default_from,
        Some(word) => AskedFrom::parse(word)
            .ok_or_else(|| failed(format!("unknown `from`: `{word}`: use cut, token or unknown")))?,
    };
    if request.chunks.is_empty() {
        return Err(failed("`chunks` is empty".to_owned()));
    }
    if request.chunks.len() > MAX_PARTS {
        return Err(failed(too_many_parts(request.chunks.len())));
    }
    let stitched = stitch(&request.chunks, &format, from);
    let json = serde_json::to_string(&StitchReport::new(&stitched, Some(&request.id)))
        .map_err(|error| failed(error.to_string()))?;
    Ok(LineAnswer { json, is_yes: stitched.outcome == Stitch::Whole })
}

/// Answer data: the joined text. The field names are public. Offsets are UTF-8 bytes of `text`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StitchReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    outcome: &'static str,
    text: &'a str,
    seams: Vec<SeamReport>,
    /// The candidates of a single ambiguous continuation; not in a batch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateReport<'a>>,
    error: Option<ErrorReport<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CandidateReport<'a> {
    text: &'a str,
    seam: SeamReport,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ErrorReport<'a> {
    code: &'a str,
    message: &'a str,
}

impl<'a> CandidateReport<'a> {
    fn new(merged: &'a Merged) -> Self {
        Self { text: &merged.text, seam: SeamReport::new(&merged.seam) }
    }
}

impl<'a> StitchReport<'a> {
    fn new(stitched: &'a Stitched, id: Option<&'a Value>) -> Self {
        let error = stitched.error.as_ref();
        Self {
            id,
            outcome: stitched.outcome.name(),
            text: &stitched.text,
            seams: stitched.seams.iter().map(SeamReport::new).collect(),
            candidates: Vec::new(),
            error: error.map(|error| ErrorReport { code: error.code, message: &error.message }),
        }
    }
}
