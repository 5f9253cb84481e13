//! Builds the prompt that asks a model for the rest of its cut reply (PC-3).

use endmark_text::Format;

/// Placeholder for the last valid token in a configured prompt. It is required.
pub const TOKEN_PLACEHOLDER: &str = "{last_valid_token}";
/// Placeholder for the instruction of the format in a configured prompt. It is optional.
pub const INSTRUCTION_PLACEHOLDER: &str = "{instruction}";

/// The default prompt.
const DEFAULT_TEMPLATE: &str =
    "Your last reply was cut off. The last valid token that arrived is:\n{last_valid_token}\n{instruction}";

/// Error for a configured prompt that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptTemplateError {
    /// The placeholder for the last valid token is missing, so the model would not know where to continue.
    #[error("the resume prompt needs the placeholder {TOKEN_PLACEHOLDER}")]
    NoToken,
    /// The prompt contains an unknown placeholder.
    #[error(
        "the resume prompt has an unknown placeholder {0}: use {TOKEN_PLACEHOLDER} or {INSTRUCTION_PLACEHOLDER}"
    )]
    UnknownPlaceholder(String),
}

/// Checks a configured prompt (PC-3). It must contain the placeholder for the last valid token, and no
/// unknown placeholder.
///
/// ```
/// use endmark_recovery::{PromptTemplateError, check_prompt_template};
/// assert_eq!(check_prompt_template("Weiter nach {last_valid_token}"), Ok(()));
/// assert_eq!(check_prompt_template("Weiter!"), Err(PromptTemplateError::NoToken));
/// ```
pub fn check_prompt_template(template: &str) -> Result<(), PromptTemplateError> {
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        rest = rest.get(start..).unwrap_or_default();
        // Only a name in braces is a placeholder, because a prompt may also contain JSON.
        let name_len = rest.chars().skip(1).take_while(|c| c.is_ascii_lowercase() || *c == '_').count();
        let end = name_len + 2;
        match rest.get(..end) {
            Some(placeholder) if name_len > 0 && placeholder.ends_with('}') => {
                if placeholder != TOKEN_PLACEHOLDER && placeholder != INSTRUCTION_PLACEHOLDER {
                    return Err(PromptTemplateError::UnknownPlaceholder(placeholder.to_owned()));
                }
                rest = rest.get(end..).unwrap_or_default();
            }
            _ => rest = rest.get(1..).unwrap_or_default(),
        }
    }
    if template.contains(TOKEN_PLACEHOLDER) { Ok(()) } else { Err(PromptTemplateError::NoToken) }
}

/// Returns the prompt that requests the rest of a cut reply. It contains the exact last valid token and the
/// exact instruction of the format, but never the whole reply (PC-3).
///
/// The default prompt is used instead of a template that [`check_prompt_template`] rejects.
///
/// ```
/// use endmark_recovery::build_resume_prompt;
/// use endmark_text::Format;
/// let prompt = build_resume_prompt(r#""name": "#, &Format::Json, None);
/// assert!(prompt.contains(r#""name": "#));
/// assert!(prompt.ends_with(
///     "Continue the JSON payload from the last valid token. Output ONLY the remaining JSON. \
///      Do not repeat any content before the last valid token."
/// ));
/// ```
pub fn build_resume_prompt(last_valid_token: &str, format: &Format, template: Option<&str>) -> String {
    let template =
        template.filter(|template| check_prompt_template(template).is_ok()).unwrap_or(DEFAULT_TEMPLATE);
    // Insert the token last: it comes from the reply, and braces in it are not placeholders.
    template
        .replace(INSTRUCTION_PLACEHOLDER, &instruction(format))
        .replace(TOKEN_PLACEHOLDER, last_valid_token)
}

/// Returns the one-line instruction of a format.
fn instruction(format: &Format) -> String {
    let (whole, rest) = match format {
        Format::Json => ("JSON payload", "JSON".to_owned()),
        Format::Jsonl => ("JSON Lines", "JSON Lines".to_owned()),
        Format::Markdown => ("Markdown text", "Markdown".to_owned()),
        Format::Tags => ("text with its tags", "text, up to and including the last closing tag".to_owned()),
        Format::Text | Format::Auto => ("text", "text".to_owned()),
        Format::Marker(marker) => ("text", format!("text, up to and including its end marker {marker}")),
    };
    let anchored = match format {
        // These formats need no such hint: the quoted text ends between rows or members, and repeating it
        // would duplicate them.
        Format::Json | Format::Jsonl => "",
        Format::Markdown | Format::Tags | Format::Text | Format::Auto | Format::Marker(_) => {
            " Begin your answer with exactly the text of the last valid token, as it stands above, and go on from there."
        }
    };
    format!(
        "Continue the {whole} from the last valid token.{anchored} Output ONLY the remaining {rest}. \
         Do not repeat any content before the last valid token."
    )
}

#[cfg(test)]
mod tests;
