//! Parses the schemas of a request's tools once, and compiles each schema once.

use std::collections::HashMap;
use std::sync::OnceLock;

use endmark_wire::request::Request;

use crate::recovery::Schema;

/// The schemas of the tools' arguments, by the name of the tool.
#[derive(Default)]
pub(crate) struct ToolSchemas(OnceLock<HashMap<String, OfferedTool>>);

struct OfferedTool {
    schema_text: Option<String>,
    schema: OnceLock<Option<Schema>>,
}

impl ToolSchemas {
    /// Returns the schema of a tool. Returns `None` if the tool is not offered or its schema does not compile.
    pub(super) fn find(&self, request: &Request, name: &str) -> Option<Schema> {
        let offered = self.0.get_or_init(|| {
            let tools = request.tools().into_iter();
            tools
                .map(|tool| (tool.name, OfferedTool { schema_text: tool.schema, schema: OnceLock::new() }))
                .collect()
        });
        let offered = offered.get(name)?;
        let compiled = || offered.schema_text.as_deref().and_then(|text| Schema::compile(text).ok());
        offered.schema.get_or_init(compiled).clone()
    }
}
