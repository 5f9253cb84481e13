//! `endmark hook tool`: shortens a tool's result before the model reads it (CX-5).

mod texts;

use std::path::{Component, Path};

use endmark_failure::CommandError;
use endmark_process::read_regular;
use endmark_store::{CapRequest, MIN_TEXT_SHARE, OutputKeeper, cap_and_keep, fair_share, size};
use serde_json::Value;

use super::agent::{HookAgent, ShortenedResult};
use super::event::HookInput;

/// Maximum size in bytes of an output file that is read.
const MAX_OUTPUT_FILE_BYTES: u64 = 256 << 20;

/// Caps the result in an event, and stores it in full. Returns `None` if the result is small enough or cannot
/// be shortened. `warn` receives messages for the user.
pub fn cap_result(
    agent: HookAgent,
    event: &HookInput,
    request: CapRequest,
    mut keeper: OutputKeeper,
    warn: &dyn Fn(&str),
) -> Result<Option<Value>, CommandError> {
    let mut capping = HookResultCapper { request, keeper: &mut keeper, store_failure: None };
    let shortened = match agent {
        HookAgent::Claude => capping.shorten_texts(event),
        HookAgent::Codex | HookAgent::Gemini => capping.cap_text_result(agent, &event.tool_response),
    };
    if let Some(message) = capping.store_failure.take() {
        warn(&message);
    }
    keeper.close();
    Ok(shortened?.map(|result| agent.replacement_answer(result)))
}

struct HookResultCapper<'a> {
    request: CapRequest,
    keeper: &'a mut OutputKeeper,
    store_failure: Option<String>,
}

impl HookResultCapper<'_> {
    /// Returns a note about the cap and the shortened text, if the result is a text and too long.
    fn cap_text_result(
        &mut self,
        agent: HookAgent,
        response: &Value,
    ) -> Result<Option<ShortenedResult>, CommandError> {
        let Some(text) = texts::result_text(response) else { return Ok(None) };
        if size(&text, self.request.limits.unit) <= self.request.limits.most {
            return Ok(None);
        }
        let has_failed = response.get("error").is_some_and(|error| !error.is_null());
        let heading = match (agent, has_failed) {
            (_, true) => "[Endmark: the tool failed; this is its output, shortened.]\n",
            // Codex does not pass the exit code to hooks, and the shortened text replaces the line that
            // contains it.
            (HookAgent::Codex, false) => {
                "[Endmark: the tool ran; this is its output, shortened. It is not an error, and does not show the exit code.]\n"
            }
            (_, false) => "[Endmark: the tool ran; this is its output, shortened. It is not an error.]\n",
        };
        let room = size(heading, self.request.limits.unit);
        let capped = self.cap_text(&text, self.request.limits.most.saturating_sub(room))?;
        Ok(Some(ShortenedResult::Text(format!("{heading}{capped}"))))
    }

    /// Returns the original value with shorter texts.
    fn shorten_texts(&mut self, event: &HookInput) -> Result<Option<ShortenedResult>, CommandError> {
        let mut value = read_full_output(event);
        let unit = self.request.limits.unit;
        let mut found = texts::collect_texts(&mut value);
        let sizes: Vec<usize> = found.iter().map(|text| size(text, unit)).collect();
        let Some(share) = fair_share(&sizes, self.request.limits.most) else { return Ok(None) };
        if share < MIN_TEXT_SHARE {
            let message = "the result has too many texts to shorten each of them";
            return Err(CommandError::input("too_many_texts", message, "The result is not changed."));
        }
        for (text, _) in found.iter_mut().zip(&sizes).filter(|(_, size)| **size > share) {
            **text = self.cap_text(text, share)?;
        }
        Ok(Some(ShortenedResult::Shaped(value)))
    }

    fn cap_text(&mut self, text: &str, most: usize) -> Result<String, CommandError> {
        let mut cap_request = self.request.clone();
        cap_request.limits.most = most;
        let (capped, _) = cap_and_keep(text.as_bytes(), cap_request, Some(self.keeper))?;
        let not_kept = capped.warnings.iter().find(|warning| warning.code == "NOT_KEPT");
        self.store_failure =
            self.store_failure.take().or_else(|| not_kept.map(|warning| warning.message.clone()));
        Ok(capped.text)
    }
}

/// Returns a Claude Code result with its full output. A long result contains only the beginning and the path
/// of a file next to the session's transcript. The file contains the full output, and most lines with errors
/// are only there.
fn read_full_output(event: &HookInput) -> Value {
    let mut value = event.tool_response.clone();
    let Some(result) = value.as_object_mut() else { return value };
    let Some(path) = result.get("persistedOutputPath").and_then(Value::as_str) else { return value };
    let path = Path::new(path);
    let folder = event.transcript_path.as_deref().map(|transcript| transcript.with_extension(""));
    // Files elsewhere are not read, even if an event contains their paths.
    let is_of_session = folder.is_some_and(|folder| path.starts_with(folder))
        && path.components().all(|part| part != Component::ParentDir);
    if !is_of_session {
        return value;
    }
    let Some(all) = read(path) else { return value };
    result.insert("stdout".to_owned(), Value::String(all));
    result.remove("persistedOutputPath");
    result.remove("persistedOutputSize");
    value
}

fn read(path: &Path) -> Option<String> {
    let bytes = read_regular(path, MAX_OUTPUT_FILE_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
