//! The schemas of the tools that a request offers: parsed once, and each compiled once.

use std::collections::HashMap;
use std::sync::OnceLock;

use endmark_wire::request::Request;

use crate::recovery::Schema;

/// The schemas of the arguments of each tool.
#[derive(Default)]
pub(crate) struct ToolSchemas(OnceLock<HashMap<String, Offered>>);

struct Offered {
    text: Option<String>,
    schema: OnceLock<Option<Schema>>,
}

impl ToolSchemas {
    /// Returns the schema of this tool, or `None` if it is not offered or has no schema that compiles.
    pub(super) fn of(&self, request: &Request, name: &str) -> Option<Schema> {
        let offered = self.0.get_or_init(|| {
            let tools = request.tools().into_iter();
            tools.map(|tool| (tool.name, Offered { text: tool.schema, schema: OnceLock::new() })).collect()
        });
        let offered = offered.get(name)?;
        let compiled = || offered.text.as_deref().and_then(|text| Schema::compile(text).ok());
        offered.schema.get_or_init(compiled).clone()
    }
}
