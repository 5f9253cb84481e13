//! Compiles JSON Schemas. The pipeline uses only the resulting validator.

use std::sync::Arc;

use endmark_recovery::{SchemaProblem, Validate};
use endmark_text::replace_lone_surrogates;
use serde_json::Value;

/// A compiled JSON Schema. References are resolved only within the schema, and nothing is downloaded.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    validator: Arc<jsonschema::Validator>,
}

/// Error for an unusable JSON Schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The JSON is not a valid JSON Schema.
    #[error("it is not a JSON Schema: {0}")]
    Schema(String),
}

impl Schema {
    /// Compiles a schema from its JSON text.
    pub(crate) fn compile(text: &str) -> Result<Self, SchemaError> {
        let value: Value = serde_json::from_str(text)?;
        let validator =
            jsonschema::validator_for(&value).map_err(|error| SchemaError::Schema(error.to_string()))?;
        Ok(Self { validator: Arc::new(validator) })
    }

    /// Whether a text is valid JSON that violates the schema.
    pub(crate) fn is_violated_by(&self, json: &str) -> bool {
        serde_json::from_str(&replace_lone_surrogates(json))
            .is_ok_and(|value: Value| !self.validator.is_valid(&value))
    }
}

impl Validate for Schema {
    fn validate(&self, json: &str) -> Vec<SchemaProblem> {
        let value: Value = match serde_json::from_str(&replace_lone_surrogates(json)) {
            Ok(value) => value,
            Err(error) => return vec![SchemaProblem { path: String::new(), message: error.to_string() }],
        };
        let mut problems: Vec<SchemaProblem> = self
            .validator
            .iter_errors(&value)
            .map(|error| SchemaProblem {
                path: error.instance_path().to_string(),
                message: error.to_string(),
            })
            .collect();
        problems.sort_by(|one, other| (&one.path, &one.message).cmp(&(&other.path, &other.message)));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_a_stable_order() {
        let schema = Schema::compile(
            r#"{"type":"object","required":["b","a"],"properties":{"z":{"type":"string"},"c":{"type":"integer"}}}"#,
        )
        .unwrap();
        let problems = schema.validate(r#"{"z":1,"c":"x"}"#);
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["", "", "/c", "/z"]);
        assert!(problems[0].message.contains("\"a\""), "{}", problems[0].message);
        assert!(schema.validate(r#"{"a":1,"b":2}"#).is_empty());
    }

    #[test]
    fn a_remote_reference_is_never_fetched() {
        assert!(Schema::compile(r#"{"$ref":"http://127.0.0.1:1/schema.json"}"#).is_err());
    }
}
