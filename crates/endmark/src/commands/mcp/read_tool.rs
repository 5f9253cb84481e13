//! The tool `endmark_read`, which a wrapped server offers besides its own: a part of an output that was left out.

use endmark_context::cap::Limits;
use endmark_context::read::tool::DESCRIPTION;
pub(super) use endmark_context::read::tool::NAME;
use endmark_store::{Handle, Reader, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commands::cap::LOCAL_USER;
use crate::commands::read::arguments::Part;
use crate::commands::read::{ReadPart, failed, part, unknown, used};
use crate::config::Settings;
use crate::error::CommandError;

/// The tool as a list of tools names it.
pub(super) fn definition() -> String {
    let string = |description: &str| json!({"type": "string", "description": description});
    json!({
        "name": NAME,
        "title": "Read what was left out",
        "description": DESCRIPTION,
        "inputSchema": {
            "type": "object",
            "properties": {
                "handle": string("The handle that a marker names"),
                "page": {"type": "integer", "minimum": 1, "description": "This page, from 1"},
                "lines": string("Lines from A to B, from 1, as in 1200:1260; A: and :B are open"),
                "bytes": string("Bytes from A on and before B, from 0, as in 0:4096"),
                "pointer": string("What a JSON Pointer points to, as in /items/417"),
                "grep": string("The lines that match this regular expression, with their numbers"),
            },
            "required": ["handle"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
    .to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    handle: String,
    page: Option<u64>,
    lines: Option<String>,
    bytes: Option<String>,
    pointer: Option<String>,
    grep: Option<String>,
}

/// Answers a call with a result that a model can read, also where it is an error.
pub(super) fn answer(id: &str, arguments: Option<&str>, settings: &Settings, limits: &Limits) -> String {
    let read = read(arguments.unwrap_or("{}"), settings, limits);
    let (text, is_error) = match read {
        Ok(text) => (text, false),
        Err(error) => {
            let body = error.body();
            (
                format!("{}{}", body.message, body.hint.map(|hint| format!(" {hint}")).unwrap_or_default()),
                true,
            )
        }
    };
    let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn read(arguments: &str, settings: &Settings, limits: &Limits) -> Result<String, CommandError> {
    let bad = |message: String| CommandError::Input { code: "bad_arguments", message, hint: None };
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| bad(format!("bad arguments: {error}")))?;
    let Arguments { handle, page, lines, bytes, pointer, grep } = arguments;
    let given = [page.is_some(), lines.is_some(), bytes.is_some(), pointer.is_some(), grep.is_some()];
    if given.into_iter().filter(|is_given| *is_given).count() > 1 {
        return Err(bad("give at most one of page, lines, bytes, pointer and grep".to_owned()));
    }
    let named = Handle::parse(&handle).ok_or_else(|| unknown(&handle))?;
    let reader = Reader::open(&settings.store).map_err(|error| CommandError::of_store(&error))?;
    // What a gateway keeps for its clients is none of a model's business.
    let output = reader.output(&named, LOCAL_USER).map_err(|error: StoreError| failed(&error))?;
    let limits = Limits { handle: Some(handle), ..limits.clone() };
    let read = part(&output, &Part { page, lines, bytes, pointer, grep }, limits, &named)?;
    // Whether its days begin anew is nothing that a model could do anything about.
    let _ = used(settings, &named);
    Ok(shown(read))
}

fn shown(read: ReadPart) -> String {
    let ReadPart { answer, raw, page } = read;
    let text = match (&answer.refusal, raw) {
        (Some(refusal), _) => refusal.error.message.clone(),
        (None, Some(_)) => {
            let base64 = answer.data.get("base64").and_then(Value::as_str).unwrap_or_default();
            format!("[this part is no text; in Base64:]\n{base64}")
        }
        (None, None) => answer.text,
    };
    match page {
        Some([page, pages]) if pages > 1 => format!("{text}\n[page {page} of {pages}]"),
        _ => text,
    }
}
