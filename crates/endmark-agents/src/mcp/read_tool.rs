//! The tool `endmark_read`, which reads omitted parts of results. The proxy adds it to the server's tools.

use endmark_config::Settings;
use endmark_context::cap::Limits;
pub(super) use endmark_context::read::tool::NAME;
use endmark_context::read::tool::{DESCRIPTION, ReadRequest, SCHEMA};
use endmark_failure::CommandError;
use endmark_store::{Handle, LOCAL_USER, Reader, cap_error, read_error, record_read};
use serde_json::{Value, json};

/// Returns the tool's entry for the list of tools. Its schema uses keywords that MCP clients support, but not
/// every provider.
pub(super) fn tool_definition() -> String {
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

/// Returns the response to a call of the tool. Errors are returned as a result, so that the model can read
/// them.
pub(super) fn answer_call(id: &str, arguments: Option<&str>, settings: &Settings, limits: &Limits) -> String {
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
    let named = Handle::parse_or_unknown(&handle)?;
    let limits = Limits { handle: Some(handle), ..limits.clone() };
    let read = Reader::read_output(&settings.files.store, &named, |reader| {
        // Outputs that a gateway has stored for its clients must not be visible to this model.
        Ok(reader.output(&named, LOCAL_USER)?.part(&part, &limits))
    });
    let excerpt = read.map_err(|error| read_error(&error))?.map_err(|error| CommandError::from(&error))?;
    // If this fails, only the retention period is not extended, and the model could not change that.
    let _ = record_read(&settings.files.store, &named);
    excerpt.to_model_text(&limits).map_err(|error| cap_error(&error))
}
