//! Determines the format that a reply must have.

use endmark_text::Format;
use endmark_wire::request as wire;
use http::HeaderMap;

use super::own_header;
use crate::gateway::Gateway;
use crate::recovery::Schema;
use crate::refusals::Refusal;

/// Returns the grammar and the schema that the message text must match, if any.
pub(super) fn required_output(
    gateway: &Gateway,
    request: &wire::Request,
    headers: &HeaderMap,
) -> Result<(Option<Format>, Option<Schema>), Refusal> {
    let schema = text_schema(gateway, request, own_header(headers, "x-endmark-schema")?)?;
    let demanded = match own_header(headers, "x-endmark-format")? {
        Some(format) => named_format(format, own_header(headers, "x-endmark-marker")?)?,
        None => schema.as_ref().map(|_| Format::Json).or(request.view().required_format.clone()),
    };
    let schema = schema.filter(|_| demanded == Some(Format::Json));
    Ok((demanded, schema))
}

/// Converts the format that the client names. The format is required if it has a grammar.
fn named_format(name: &str, marker: Option<&str>) -> Result<Option<Format>, Refusal> {
    let format = Format::parse(name, marker).map_err(|error| {
        Refusal::BadRequest(format!("x-endmark-format: {error} (the marker goes into x-endmark-marker)"))
    })?;
    Ok(format.can_be_required().then_some(format))
}

/// Returns the schema of the message text: from the request, or else the configured schema that the client names.
fn text_schema(
    gateway: &Gateway,
    request: &wire::Request,
    name: Option<&str>,
) -> Result<Option<Schema>, Refusal> {
    if let Some(text) = &request.view().text_schema {
        // A schema that does not compile is left to the provider, and the gateway does not validate.
        return Ok(Schema::compile(text).ok());
    }
    let Some(name) = name else { return Ok(None) };
    match gateway.schemas.get(name) {
        Some(schema) => Ok(Some(schema.clone())),
        None => Err(Refusal::BadRequest(format!(
            "x-endmark-schema names `{name}`, which is not in [schemas] of the configuration"
        ))),
    }
}
