//! The tool `endmark_read`, which is added to the wrapped server's tools: it reads the omitted part of a result.

use endmark_config::Settings;
use endmark_context::cap::Limits;
pub(super) use endmark_context::read::tool::NAME;
use endmark_context::read::tool::{DESCRIPTION, ReadRequest, SCHEMA};
use endmark_failure::CommandError;
use endmark_store::{Handle, LOCAL_USER, Reader, cap_error, note_read, read_failure};
use serde_json::{Value, json};

/// Returns the tool's entry for the list of tools. MCP clients support more schema keywords than some providers do.
pub(super) fn definition() -> String {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    schema["properties"]["page"]["minimum"] = 1.into();
    schema["additionalProperties"] = false.into();
    json!({
        "name": NAME,
        "title": "Read omitted output",
        "description": DESCRIPTION,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
    .to_string()
}

/// Answers a call with a result that a model can read, also for an error.
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
    let ReadRequest { handle, part } = ReadRequest::parse(arguments).map_err(|error| {
        CommandError::Input { code: "bad_arguments", message: error.to_string(), hint: None }
    })?;
    let named = Handle::parse_known(&handle)?;
    let limits = Limits { handle: Some(handle), ..limits.clone() };
    let read = Reader::read_output(&settings.files.store, &named, |reader| {
        // This model must not see outputs that a gateway stores for its clients.
        Ok(reader.output(&named, LOCAL_USER)?.part(&part, &limits))
    });
    let excerpt = read.map_err(|error| read_failure(&error))?.map_err(|error| CommandError::from(&error))?;
    // If this fails, only the retention period does not restart. The model cannot change that.
    let _ = note_read(&settings.files.store, &named);
    excerpt.to_model_text(&limits).map_err(|error| cap_error(&error))
}
