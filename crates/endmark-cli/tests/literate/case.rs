//! A case: a question and its expected answer.

use serde_json::{Value, json};

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) question: CaseQuestion,
    pub(crate) expected: ExpectedAnswer,
}

pub(crate) enum CaseQuestion {
    Detect {
        format: String,
        marker: Option<String>,
        text: String,
    },
    Stitch {
        format: String,
        marker: Option<String>,
        chunks: Vec<String>,
        from: String,
    },
    /// `cap FORMAT, N chars`, or bytes, tokens, items, head or tail.
    Cap {
        format: String,
        limits: Vec<(&'static str, Value)>,
        text: String,
    },
    /// Any other command as typed, with the contents of the named files.
    Command {
        command: String,
        arguments: Vec<String>,
        files: Vec<(String, String)>,
    },
}

/// The expected outcome, and for a refusal optionally its code.
///
/// The text is the joined text (not compared if empty), or for `detect` lines of `name: value`.
pub(crate) struct ExpectedAnswer {
    pub(crate) outcome: String,
    pub(crate) code: Option<String>,
    pub(crate) text: String,
}

impl CaseQuestion {
    /// Returns the command whose batch mode answers this question, or `None`.
    pub(crate) fn batch_command(&self) -> Option<&'static str> {
        match self {
            Self::Detect { .. } => Some("detect"),
            Self::Stitch { .. } => Some("stitch"),
            Self::Cap { .. } => Some("cap"),
            Self::Command { .. } => None,
        }
    }

    pub(crate) fn request(&self) -> Value {
        match self {
            Self::Detect { format, marker, text } => {
                json!({"id": 0, "format": format, "marker": marker, "text": text})
            }
            Self::Stitch { format, marker, chunks, from } => {
                json!({"id": 0, "format": format, "marker": marker, "chunks": chunks, "from": from})
            }
            Self::Cap { format, limits, text } => {
                let mut request = json!({"id": 0, "format": format, "text": text});
                for (name, value) in limits {
                    request[*name] = value.clone();
                }
                request
            }
            Self::Command { .. } => Value::Null,
        }
    }
}

impl Case {
    /// Checks that an answer is the expected one. Otherwise describes the difference.
    pub(crate) fn check(&self, answer: &Value) -> Result<(), String> {
        match &self.question {
            CaseQuestion::Detect { .. } => self.check_detection(answer),
            CaseQuestion::Stitch { .. } => self.check_join(answer),
            CaseQuestion::Cap { .. } => self.check_capped(answer),
            CaseQuestion::Command { .. } => self.check_data(answer),
        }
    }

    /// Checks values of the envelope. Each expected line has a JSON Pointer into the data or a field of the
    /// error, and a value.
    fn check_data(&self, answer: &Value) -> Result<(), String> {
        let expected_exit = self.expected.code.as_deref().unwrap_or("0");
        let exit = answer["error"]["exit_code"].as_u64().unwrap_or(0).to_string();
        if self.expected.outcome != "exit" || exit != expected_exit {
            return Err(format!("exit {exit}, not `{} {expected_exit}`", self.expected.outcome));
        }
        for line in self.expected.text.lines().filter(|line| !line.is_empty()) {
            let (pointer, value) = line.split_once(": ").ok_or_else(|| format!("`{line}` says nothing"))?;
            // A pointer refers to the data, and a plain name to a field of the error.
            let place = if pointer.starts_with('/') { "data" } else { "error" };
            let pointer = if pointer.starts_with('/') { pointer.to_owned() } else { format!("/{pointer}") };
            let found = match answer[place].pointer(&pointer) {
                None => "nothing".to_owned(),
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                    format!("[{}]", items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
                }
                Some(other) => other.to_string(),
            };
            if found != value {
                return Err(format!("`{pointer}` is `{found}`, not `{value}`"));
            }
        }
        Ok(())
    }

    /// Checks the format and the whole text.
    fn check_capped(&self, answer: &Value) -> Result<(), String> {
        if answer["format"] != self.expected.outcome.as_str() {
            return Err(format!("{}, not `{}`", answer["format"], self.expected.outcome));
        }
        if answer["text"].as_str().map(|text| text.trim_end_matches('\n'))
            != Some(self.expected.text.as_str())
        {
            return Err(format!("the text is\n{}", answer["text"].as_str().unwrap_or_default()));
        }
        Ok(())
    }

    fn check_join(&self, answer: &Value) -> Result<(), String> {
        let expected = &self.expected;
        // Any refusal is accepted, unless the page states its exact outcome.
        let outcome = answer["outcome"].as_str().unwrap_or_default();
        let as_expected = match expected.outcome.as_str() {
            "refused" => outcome != "whole",
            word => outcome == word,
        };
        if !as_expected {
            return Err(format!("`{outcome}`, not `{}`", expected.outcome));
        }
        if let Some(code) = &expected.code
            && answer["error"]["code"] != code.as_str()
        {
            return Err(format!("the code is {}, not `{code}`", answer["error"]["code"]));
        }
        if !expected.text.is_empty() && answer["text"] != expected.text.as_str() {
            return Err(format!("the text is not {:?}", expected.text));
        }
        Ok(())
    }

    fn check_detection(&self, answer: &Value) -> Result<(), String> {
        if answer["verdict"] != self.expected.outcome.as_str() {
            return Err(format!("{}, not `{}`", answer["verdict"], self.expected.outcome));
        }
        for line in self.expected.text.lines() {
            let (name, value) = line.split_once(": ").ok_or_else(|| format!("`{line}` says nothing"))?;
            let found = match &answer[name] {
                Value::String(text) => text.clone(),
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
                other => other.to_string(),
            };
            if found != value {
                return Err(format!("`{name}` is `{found}`, not `{value}`"));
            }
        }
        Ok(())
    }
}
