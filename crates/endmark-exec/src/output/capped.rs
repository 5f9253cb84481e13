//! Caps data to the size that a model may read, and reports the omitted parts. (CX-5)

use endmark_context::cap::{CapError, CappedValue, Capper, Format, Limits, RequestedFormat};
use endmark_envelope::{FieldPath, Segment, Warning};
use endmark_text::replace_lone_surrogates;
use serde_json::{Map, Value};

use super::super::manifest::OutputKind;
use super::{OutputData, possibly_incomplete_value};

/// Returns the data within these limits.
///
/// `printed` is the complete output, which was capped while it arrived. For JSON, it is only used if a part
/// of the output was not captured. Otherwise, the parsed data is capped.
///
/// # Errors
///
/// [`CapError`] if the limits are too small.
pub(crate) fn cap_data(
    data: OutputData,
    is_all_captured: bool,
    kind: OutputKind,
    printed: CappedValue,
    limits: Limits,
    unended: Option<&str>,
) -> Result<OutputData, CapError> {
    let is_json = match kind {
        OutputKind::Json => printed.format == Format::Json,
        OutputKind::Jsonl => printed.format == Format::JsonLines,
        OutputKind::Auto => matches!(printed.format, Format::Json | Format::JsonLines),
        OutputKind::Text => false,
    };
    let seen =
        (is_json && !is_all_captured && data.fault.is_none()).then(|| parse_capped(&printed)).flatten();
    let mut data = if let Some(value) = seen {
        OutputData {
            value,
            is_text: false,
            cuts: Vec::new(),
            warnings: join_warnings(data.warnings, printed.warnings),
            ..data
        }
    } else if data.is_text {
        let text = Map::from_iter([("text".to_owned(), Value::from(printed.text))]);
        let warnings = join_warnings(data.warnings, printed.warnings.into_iter().map(move_to_text));
        // The capper has read the complete output, even if only a part was captured.
        let cuts = data.cuts.into_iter().filter(|cut| cut.original.is_none()).collect();
        OutputData { value: text.into(), warnings, cuts, ..data }
    } else {
        let mut capper = Capper::new(RequestedFormat::Json, limits)?.with_path(FieldPath::data());
        capper.push(data.value.to_string().as_bytes())?;
        let shortened = capper.finish()?;
        let Some(value) = parse_capped(&shortened) else { return Ok(data) };
        // The paths inside the data have changed by capping, so only cuts of the whole value are kept.
        let cuts = data.cuts.into_iter().filter(|cut| cut.pointer.is_empty()).collect();
        OutputData { value, cuts, warnings: join_warnings(data.warnings, shortened.warnings), ..data }
    };
    if let Some(why) = unended.filter(|_| data.cuts.is_empty()) {
        data.cuts.extend(possibly_incomplete_value(&data.value, why));
    }
    Ok(data)
}

fn join_warnings(before: Vec<Warning>, more: impl IntoIterator<Item = Warning>) -> Vec<Warning> {
    before.into_iter().chain(more).collect()
}

/// Parses the JSON in a capped text. Returns `None` if it is not JSON.
fn parse_capped(capped: &CappedValue) -> Option<Value> {
    let text = replace_lone_surrogates(&capped.text);
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut values = values.collect::<Result<Vec<_>, _>>().ok()?;
    match capped.format {
        Format::JsonLines => Some(Value::Array(values)),
        Format::Json => values.pop().filter(|value| value.is_array() || value.is_object()),
        Format::Text | Format::Csv(_) | Format::Diff | Format::Binary(_) => None,
    }
}

/// Moves a warning about the whole output to `data.text`.
fn move_to_text(warning: Warning) -> Warning {
    let field = warning.field.as_ref().map(|field| {
        let below = field.segments().iter().skip(1);
        below.fold(FieldPath::data().key("text"), |path, segment| match segment {
            Segment::Key(name) => path.key(name.as_str()),
            Segment::Index(index) => path.index(*index),
        })
    });
    Warning { field, ..warning }
}
