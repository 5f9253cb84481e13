//! A tool's result within its limits, and the list of tools with one more.
//!
//! Both are edited in place: what is not shortened stays byte for byte.

use endmark_context::cap::Asked as Format;
use endmark_envelope::Warning;
use endmark_wire::edit::{EditError, Edits};
use endmark_wire::json::{Kind, Value};

use super::read_tool;
use crate::commands::cap::{Asked, Keeper, LEAST_SHARE, cap_and_keep, share, size};
use crate::error::CommandError;

/// Why a message cannot be changed; it passes as it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResultError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Cap(#[from] CommandError),
}

/// A message that is another one now, and what is worth knowing about that.
pub(super) struct Changed {
    pub(super) line: String,
    pub(super) warnings: Vec<Warning>,
}

/// The list of tools with the one that reads, behind the last of the server's. None where the server has one of that name.
///
/// What a tool promises of its structured results is left out: shortened ones may break the promise, and clients refuse what
/// does.
pub(super) fn with_read_tool(line: &[u8]) -> Result<Option<String>, EditError> {
    let mut edits = Edits::new(line)?;
    let original = edits.original();
    let tools: Vec<_> = original.at("result.tools").into_iter().flat_map(Value::items).collect();
    let is_read =
        |tool: &Value<'_>| tool.field("name").and_then(Value::text).as_deref() == Some(read_tool::NAME);
    if tools.iter().any(is_read) {
        return Ok(None);
    }
    for position in (0..tools.len()).filter(|position| tools[*position].field("outputSchema").is_some()) {
        edits.remove(&format!("result.tools[{position}].outputSchema"))?;
    }
    if original.at("result.nextCursor").is_none_or(Value::is_null) {
        edits.push("result.tools", &read_tool::definition())?;
    }
    Ok(Some(finished(edits)))
}

/// Bytes that were valid UTF-8 stay valid after the edits.
fn finished(edits: Edits<'_>) -> String {
    String::from_utf8(edits.finish())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The message with a result that is no longer than asked; none where it is short enough.
pub(super) fn capped(
    line: &[u8],
    asked: &Asked,
    keeper: &mut Keeper,
) -> Result<Option<Changed>, ResultError> {
    let mut edits = Edits::new(line)?;
    let original = edits.original();
    let Some(result) = original.field("result") else { return Ok(None) };
    let mut capping = Capping { asked, keeper, warnings: Vec::new() };
    let texts = texts(result);
    let sizes: Vec<usize> = texts.iter().map(|(_, text)| size(text, asked.limits.unit)).collect();
    let share = share(&sizes, asked.limits.most);
    let structured = result.field("structuredContent").filter(|value| value.kind() == Kind::Object);
    let structured = structured.filter(|value| size(value.raw(), asked.limits.unit) > asked.limits.most);
    if share.is_none() && structured.is_none() {
        return Ok(None);
    }
    if let Some(share) = share {
        if share < LEAST_SHARE {
            let joined: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
            let text = capping.capped(&joined.join("\n"), asked.format, asked.limits.most)?;
            edits.set("result.content", &with_one_text(result, &text))?;
        } else {
            for ((path, text), _) in texts.iter().zip(&sizes).filter(|(_, size)| **size > share) {
                edits.set(path, &quoted(&capping.capped(text, asked.format, share)?))?;
            }
        }
    }
    if let Some(value) = structured {
        let shortened = capping.capped(value.raw(), Format::Json, asked.limits.most)?;
        edits.set("result.structuredContent", &shortened)?;
    }
    let warnings = capping.warnings;
    Ok(Some(Changed { line: finished(edits), warnings }))
}

struct Capping<'a> {
    asked: &'a Asked,
    keeper: &'a mut Keeper,
    warnings: Vec<Warning>,
}

impl Capping<'_> {
    fn capped(&mut self, text: &str, format: Format, most: usize) -> Result<String, CommandError> {
        let mut asked = self.asked.clone();
        (asked.format, asked.limits.most) = (format, most);
        let (capped, _) = cap_and_keep(text.as_bytes(), asked, Some(self.keeper))?;
        self.warnings.extend(capped.warnings.into_iter().filter(|warning| warning.code == "NOT_KEPT"));
        Ok(capped.text)
    }
}

/// Every text that a model may be shown, with the path to it.
fn texts(result: Value<'_>) -> Vec<(String, String)> {
    let parts = result.field("content").into_iter().flat_map(Value::items).enumerate();
    let text = |(position, part): (usize, Value<'_>)| {
        let path = path_to_text(part)?;
        let text = part.at(path).and_then(Value::text)?.into_owned();
        Some((format!("result.content[{position}].{path}"), text))
    };
    parts.filter_map(text).collect()
}

/// Where a part of a result has its text; none where it is an image or the like.
fn path_to_text(part: Value<'_>) -> Option<&'static str> {
    match part.field("type").and_then(Value::text).as_deref() {
        Some("text") => Some("text"),
        Some("resource") => part.at("resource.text").map(|_| "resource.text"),
        _ => None,
    }
}

/// The parts that are no text, and one text.
fn with_one_text(result: Value<'_>, text: &str) -> String {
    let others = result.field("content").into_iter().flat_map(Value::items);
    let others = others.filter(|part| path_to_text(*part).is_none()).map(|part| part.raw().to_owned());
    let text = format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
    format!("[{}]", std::iter::once(text).chain(others).collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
