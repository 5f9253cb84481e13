//! The tool with which a model reads omitted parts of a result: its name, description, schema and arguments.

use serde::Deserialize;

use super::{Part, RangeError};

/// Name of the tool. Markers contain it if the model has the tool.
pub const NAME: &str = crate::cap::READ_TOOL;

/// Description of the tool for models.
pub const DESCRIPTION: &str = "Reads a part of a tool's result that was too long to be shown in full. A marker such as \
    `[… 1,234 lines (56,789 characters) left out …] endmark_read HANDLE` or `\"endmark_omitted\": {…, \"handle\": \"HANDLE\"}` \
    stands where something was left out, and names the handle. Give at most one of page, lines, bytes, pointer and grep; \
    without any the first page is read.";

/// JSON Schema of the tool's arguments. It uses only keywords that every provider supports.
pub const SCHEMA: &str = r#"{"type":"object","properties":{"handle":{"type":"string","description":"The handle that a marker names"},"page":{"type":"integer","description":"This page, from 1"},"lines":{"type":"string","description":"Lines from A to B, from 1, as in 1200:1260; A: and :B are open"},"bytes":{"type":"string","description":"Bytes from A on and before B, from 0, as in 0:4096"},"pointer":{"type":"string","description":"What a JSON Pointer points to, as in /items/417"},"grep":{"type":"string","description":"The lines that match this regular expression, with their numbers"}},"required":["handle"]}"#;

/// The parsed arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The handle as the model wrote it.
    pub handle: String,
    /// The requested part of the output.
    pub part: Part,
}

/// Error of invalid arguments.
#[derive(Debug, thiserror::Error)]
pub enum ReadRequestError {
    /// The arguments do not match the schema.
    #[error("bad arguments: {0}")]
    Arguments(#[from] serde_json::Error),
    /// The call requests several parts at once.
    #[error("give at most one of page, lines, bytes, pointer and grep")]
    SeveralParts,
    /// A range of lines or bytes is invalid.
    #[error(transparent)]
    Range(#[from] RangeError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    handle: String,
    page: Option<u64>,
    lines: Option<String>,
    bytes: Option<String>,
    pointer: Option<String>,
    grep: Option<String>,
}

impl ReadRequest {
    /// Parses the arguments of a call. Without a part, they mean the first page.
    ///
    /// ```
    /// use endmark_context::read::{Part, tool::ReadRequest};
    /// let wanted = ReadRequest::parse(r#"{"handle": "h1", "grep": "ERROR"}"#).unwrap();
    /// assert_eq!(wanted.part, Part::Grep("ERROR".to_owned()));
    /// assert_eq!(ReadRequest::parse(r#"{"handle": "h1", "lines": null}"#).unwrap().part, Part::Page(1));
    /// assert!(ReadRequest::parse(r#"{"handle": "h1", "grep": "a", "page": 2}"#).is_err());
    /// ```
    pub fn parse(arguments: &str) -> Result<Self, ReadRequestError> {
        let ReadArguments { handle, page, lines, bytes, pointer, grep } = serde_json::from_str(arguments)?;
        let part = match (page, lines, bytes, pointer, grep) {
            (page, None, None, None, None) => Part::Page(page.unwrap_or(1)),
            (None, Some(lines), None, None, None) => Part::Lines(lines.parse()?),
            (None, None, Some(bytes), None, None) => Part::Bytes(bytes.parse()?),
            (None, None, None, Some(pointer), None) => Part::Pointer(pointer),
            (None, None, None, None, Some(grep)) => Part::Grep(grep),
            _ => return Err(ReadRequestError::SeveralParts),
        };
        Ok(Self { handle, part })
    }
}
