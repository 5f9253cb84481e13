//! Caps the results of tools, and adds the read tool to the list of tools.
//!
//! Messages are edited in place, so the other bytes do not change.

use endmark_context::cap::{CappedValue, READ_TOOL, RequestedFormat as Format};
use endmark_envelope::{FieldPath, Warning};
use endmark_failure::CommandError;
use endmark_store::{CapRequest, MIN_TEXT_SHARE, OutputKeeper, cap_and_keep, fair_share, size};
use endmark_wire::edit::{EditError, Edits};
use endmark_wire::json::{Kind, Value};
use jsonschema::Validator;

use super::read_tool;

/// The reason why a message could not be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResultError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Cap(#[from] CommandError),
    #[error("it has too much content besides its texts")]
    TooLong,
}

/// A changed message, with warnings about its changes.
pub(super) struct ChangedMessage {
    pub(super) line: String,
    pub(super) warnings: Vec<Warning>,
}

/// Adds the read tool after the server's last tool. Returns `None` if the server already has a tool with this
/// name.
pub(super) fn with_read_tool(line: &[u8]) -> Result<Option<String>, EditError> {
    let mut edits = Edits::new(line)?;
    let original = edits.original();
    let tools: Vec<_> = original.at("result.tools").into_iter().flat_map(Value::items).collect();
    let is_read =
        |tool: &Value<'_>| tool.field("name").and_then(Value::text).as_deref() == Some(read_tool::NAME);
    if tools.iter().any(is_read) {
        return Ok(None);
    }
    if original.at("result.nextCursor").is_none_or(Value::is_null) {
        edits.push("result.tools", &read_tool::tool_definition())?;
    }
    Ok(Some(finish_edits(edits)))
}

/// The message was valid UTF-8 before the edits, so it still is.
fn finish_edits(edits: Edits<'_>) -> String {
    String::from_utf8(edits.finish())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Number of parts with separate limits: the texts of a result, its structured content, and an error.
const LIMITED_PARTS: usize = 3;

/// Returns the message with its result or error cut to the limit. Returns `None` if it is already within the
/// limit.
///
/// The limit applies separately to texts, to structured content and to an error. With `is_whole_bounded`, the
/// whole message without images, audio and binary data also has at most four times the limit, and fields that
/// the protocol does not define are removed.
///
/// Structured content stays valid under the tool's `schema`. If this is impossible, the result becomes a tool
/// error, because clients reject structured content that violates the schema.
pub(super) fn cap_message(
    line: &[u8],
    is_whole_bounded: bool,
    schema: Option<&Validator>,
    cap_request: &CapRequest,
    keeper: &mut OutputKeeper,
) -> Result<Option<ChangedMessage>, ResultError> {
    let mut capping = McpResultCapper { request: cap_request, keeper, schema, warnings: Vec::new() };
    let shortened = capping.shorten_known_parts(line)?;
    let changed = |line: String, capping: McpResultCapper<'_>| {
        Ok(Some(ChangedMessage { line, warnings: capping.warnings }))
    };
    let text = shortened.as_deref().map_or(line, str::as_bytes);
    let bound = cap_request.limits.most.saturating_mul(LIMITED_PARTS + 1);
    let is_bounded = |text: &[u8]| {
        let rest = || Value::parse(text).map(without_media);
        // A text never has more characters or tokens than bytes.
        text.len() <= bound || rest().is_ok_and(|rest| size(&rest, cap_request.limits.unit) <= bound)
    };
    if !is_whole_bounded || is_bounded(text) {
        return shortened.map_or(Ok(None), |line| changed(line, capping));
    }
    let stripped = strip_unknown_fields(Value::parse(text).map_err(EditError::Value)?);
    if is_bounded(stripped.as_bytes()) { changed(stripped, capping) } else { Err(ResultError::TooLong) }
}

struct McpResultCapper<'a> {
    request: &'a CapRequest,
    keeper: &'a mut OutputKeeper,
    schema: Option<&'a Validator>,
    warnings: Vec<Warning>,
}

impl McpResultCapper<'_> {
    /// Returns the message with its known parts cut to their limits. Returns `None` if they are already
    /// within them.
    fn shorten_known_parts(&mut self, line: &[u8]) -> Result<Option<String>, ResultError> {
        let mut edits = Edits::new(line)?;
        let original = edits.original();
        let mut is_changed = false;
        if let Some(result) = original.field("result") {
            let note = self.shorten_structured(&mut edits, result)?;
            is_changed |= note.is_some();
            is_changed |= self.shorten_texts(&mut edits, &result_texts(result), Some(result), note)?;
        }
        if let Some(error) = original.field("error") {
            is_changed |= self.shorten_texts(&mut edits, &error_texts(error), None, None)?;
        }
        Ok(is_changed.then(|| finish_edits(edits)))
    }

    /// Shortens texts that exceed the limit together. If each text would get less than [`MIN_SHARE`], they
    /// are joined into one text. A `note` is appended to the result's content.
    fn shorten_texts(
        &mut self,
        edits: &mut Edits<'_>,
        texts: &[TextPart],
        result: Option<Value<'_>>,
        note: Option<String>,
    ) -> Result<bool, ResultError> {
        let note = note.map(|note| format!(r#"{{"type":"text","text":{}}}"#, quote_json(&note)));
        let CapRequest { limits, format, .. } = self.request;
        let (most, unit) = (limits.most, limits.unit);
        let sizes: Vec<usize> = texts.iter().map(|part| size(&part.text, unit)).collect();
        let share = fair_share(&sizes, most);
        if let Some(note) = note.as_deref().filter(|_| share.is_none_or(|share| share >= MIN_TEXT_SHARE)) {
            match result.and_then(|result| result.field("content")).filter(|it| it.kind() == Kind::Array) {
                Some(_) => edits.push("result.content", note)?,
                None => edits.set("result.content", &format!("[{note}]"))?,
            }
        }
        let Some(share) = share else { return Ok(false) };
        if let Some(result) = result.filter(|_| share < MIN_TEXT_SHARE) {
            let joined: Vec<&str> = texts.iter().map(|part| part.text.as_str()).collect();
            let text = self.cap_text(&joined.join("\n"), *format, most)?;
            edits.set("result.content", &with_one_text(result, &text, note))?;
            return Ok(true);
        }
        let share = share.max(MIN_TEXT_SHARE.min(most));
        for (part, _) in texts.iter().zip(&sizes).filter(|(_, size)| **size > share) {
            let text = quote_json(&self.cap_text(&part.text, *format, share)?);
            let is_item = part.is_item;
            edits.set(
                &part.path,
                &if is_item { format!(r#"{{"type":"text","text":{text}}}"#) } else { text },
            )?;
        }
        Ok(true)
    }

    /// Shortens structured content without changing its types. Returns a note about this for the model.
    fn shorten_structured(
        &mut self,
        edits: &mut Edits<'_>,
        result: Value<'_>,
    ) -> Result<Option<String>, ResultError> {
        let (most, unit) = (self.request.limits.most, self.request.limits.unit);
        let value = result.field("structuredContent").filter(|value| size(value.raw(), unit) > most);
        let Some(value) = value else { return Ok(None) };
        let mut cap_request = self.request.clone();
        (cap_request.format, cap_request.limits.keeps_types) = (Format::Json, true);
        let (capped, handle) = cap_and_keep(value.raw().as_bytes(), cap_request, Some(self.keeper))?;
        self.keep_warnings(&capped);
        let way = handle.map(|handle| format!(" {READ_TOOL} {}", handle.as_str())).unwrap_or_default();
        let is_object = Value::parse_str(&capped.text).is_ok_and(|value| value.kind() == Kind::Object);
        let is_fit = is_object && size(&capped.text, unit) <= most;
        let is_valid = is_fit
            && self.schema.is_none_or(|schema| {
                serde_json::from_str(&capped.text).is_ok_and(|value| schema.is_valid(&value))
            });
        if is_valid {
            edits.set("result.structuredContent", &capped.text)?;
            return Ok(Some(format!(
                "[structuredContent is shortened: {}]{way}",
                describe_omissions(&capped)
            )));
        }
        if self.schema.is_none() {
            let text = self.cap_text(value.raw(), self.request.format, most)?;
            edits.set("result.structuredContent", &format!(r#"{{"shortened":{}}}"#, quote_json(&text)))?;
            return Ok(Some(format!("[The structured result is shortened as text]{way}")));
        }
        edits.remove("result.structuredContent")?;
        edits.set("result.isError", "true")?;
        let mut note = format!(
            "[The structured result has {} characters, and its outputSchema allows no shorter form. Request less: use a filter, fewer fields, or pages.]{way}",
            value.raw().chars().count()
        );
        if result_texts(result).is_empty() {
            note = format!("{note}\n{}", self.cap_text(value.raw(), Format::Json, most)?);
        }
        Ok(Some(note))
    }

    fn cap_text(&mut self, text: &str, format: Format, most: usize) -> Result<String, CommandError> {
        let mut cap_request = self.request.clone();
        (cap_request.format, cap_request.limits.most) = (format, most);
        let (capped, _) = cap_and_keep(text.as_bytes(), cap_request, Some(self.keeper))?;
        self.keep_warnings(&capped);
        Ok(capped.text)
    }

    /// Collects the warnings that the user of the proxy must see.
    fn keep_warnings(&mut self, capped: &CappedValue) {
        let warnings = capped.warnings.iter().filter(|warning| warning.code == "NOT_KEPT");
        self.warnings.extend(warnings.cloned());
    }
}

/// Describes which parts of a structured result are omitted, with their JSON Pointers into the full result.
/// Lists come first, the most shortened one at the beginning, with their counts. Other values follow. At most
/// 20 parts are described, and the others are counted.
fn describe_omissions(capped: &CappedValue) -> String {
    const MAX_NAMED_OMISSIONS: usize = 20;
    // The paths begin with the name of the capped value. For the pointers, this value is the root.
    let pointer = |path: &FieldPath| path.without_first().pointer();
    let mut lists: Vec<_> = capped.lists.iter().collect();
    lists.sort_by_key(|list| std::cmp::Reverse(list.of - list.kept));
    let lists = lists
        .into_iter()
        .map(|list| format!("{}: {} of {} items are shown", pointer(&list.path), list.kept, list.of));
    let is_list = |path: &FieldPath| capped.lists.iter().any(|list| list.path == *path);
    let texts = capped.warnings.iter().filter_map(|warning| Some((warning.field.as_ref()?, warning)));
    let texts = texts.filter(|(path, _)| !is_list(path));
    let texts = texts.map(|(path, warning)| format!("{}: {}", pointer(path), warning.message));
    let mut parts = lists.chain(texts);
    let named: Vec<String> = parts.by_ref().take(MAX_NAMED_OMISSIONS).collect();
    match parts.count() {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
}

/// A text that a model may read.
struct TextPart {
    path: String,
    text: String,
    /// Whether the text replaces a whole item of the result's content. Items of unknown types are read as
    /// JSON.
    is_item: bool,
}

/// Returns all texts of a result.
fn result_texts(result: Value<'_>) -> Vec<TextPart> {
    let parts = result.field("content").into_iter().flat_map(Value::items).enumerate();
    let text = |(position, part): (usize, Value<'_>)| {
        let path = format!("result.content[{position}]");
        match path_to_text(part).and_then(|field| Some((field, part.at(field)?.text()?))) {
            Some((field, text)) => {
                Some(TextPart { path: format!("{path}.{field}"), text: text.into_owned(), is_item: false })
            }
            None if media_data(part).is_some() => None,
            None => Some(TextPart { path, text: part.raw().to_owned(), is_item: true }),
        }
    };
    parts.filter_map(text).collect()
}

/// Returns the message and the data of an error.
fn error_texts(error: Value<'_>) -> Vec<TextPart> {
    let text = |name: &str| {
        let value = error.field(name)?;
        let text = value.text().map_or_else(|| value.raw().to_owned(), std::borrow::Cow::into_owned);
        Some(TextPart { path: format!("error.{name}"), text, is_item: false })
    };
    ["message", "data"].into_iter().filter_map(text).collect()
}

/// Returns the path of the text in a content item. Returns `None` for an image or other media.
fn path_to_text(part: Value<'_>) -> Option<&'static str> {
    match part.field("type").and_then(Value::text).as_deref() {
        Some("text") => Some("text"),
        Some("resource") => part.at("resource.text").map(|_| "resource.text"),
        _ => None,
    }
}

/// Returns the binary data of a content item. Its size is not limited, because clients show it as an image or
/// not at all.
fn media_data(part: Value<'_>) -> Option<Value<'_>> {
    match part.field("type").and_then(Value::text).as_deref() {
        Some("image" | "audio") => part.field("data"),
        Some("resource") => part.at("resource.blob"),
        _ => None,
    }
    .filter(|data| data.kind() == Kind::String)
}

/// Returns a message without binary data. Each JSON escape is counted as one character.
fn without_media(message: Value<'_>) -> String {
    let content = message.at("result.content").into_iter().flat_map(Value::items);
    let mut rest = message.raw();
    let mut kept = String::new();
    for data in content.filter_map(media_data) {
        // The data is a slice of the message, so the distance between the pointers is its offset.
        let Some(start) = (data.raw().as_ptr() as usize).checked_sub(rest.as_ptr() as usize) else {
            continue;
        };
        let (Some(before), Some(after)) = (rest.get(..start), rest.get(start + data.raw().len()..)) else {
            continue;
        };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    let mut signs = kept.chars();
    let mut unescaped = String::with_capacity(kept.len());
    while let Some(sign) = signs.next() {
        unescaped.push(sign);
        if sign == '\\' && signs.next() == Some('u') {
            signs.nth(3);
        }
    }
    unescaped
}

/// Returns a message with only those fields that the protocol defines and clients may show.
fn strip_unknown_fields(message: Value<'_>) -> String {
    let object = |value: Value<'_>, names: &[&str]| {
        if value.kind() != Kind::Object {
            return value.raw().to_owned();
        }
        let fields = names
            .iter()
            .filter_map(|name| Some(format!("{}:{}", quote_json(name), value.field(name)?.raw())));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    let head =
        ["jsonrpc", "id"].into_iter().filter_map(|name| Some((name, message.field(name)?.raw().to_owned())));
    let result = message.field("result").map(|it| object(it, &["content", "structuredContent", "isError"]));
    let error = message.field("error").map(|it| object(it, &["code", "message", "data"]));
    let parts =
        [("result", result), ("error", error)].into_iter().filter_map(|(name, json)| Some((name, json?)));
    let fields: Vec<String> =
        head.chain(parts).map(|(name, json)| format!("{}:{json}", quote_json(name))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Returns content that consists of one text, the binary items, and the note.
fn with_one_text(result: Value<'_>, text: &str, note: Option<String>) -> String {
    let others = result.field("content").into_iter().flat_map(Value::items);
    let others = others.filter(|part| media_data(*part).is_some()).map(|part| part.raw().to_owned());
    let text = format!(r#"{{"type":"text","text":{}}}"#, quote_json(text));
    format!("[{}]", std::iter::once(text).chain(others).chain(note).collect::<Vec<_>>().join(","))
}

fn quote_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
