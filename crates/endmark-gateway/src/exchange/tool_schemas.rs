//! The schemas of the tools that a request offers: read once, and each compiled once, however often the tools are called.

use std::collections::HashMap;
use std::sync::OnceLock;

use endmark_wire::request::Request;

use crate::recovery::Schema;

/// What arguments of each tool have to be like.
#[derive(Default)]
pub(crate) struct ToolSchemas(OnceLock<HashMap<String, Offered>>);

struct Offered {
    text: Option<String>,
    schema: OnceLock<Option<Schema>>,
}

impl ToolSchemas {
    /// The schema of the tool of this name; none where it has none that can be compiled, or is not offered.
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
