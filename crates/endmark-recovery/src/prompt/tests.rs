use endmark_text::Format;
use proptest::prelude::*;

use super::{PromptTemplateError, build_resume_prompt, check_prompt_template};

const JSON_INSTRUCTION: &str = "Continue the JSON payload from the last valid token. Output ONLY the remaining JSON. Do not repeat any content before the last valid token.";

/// PC-3: the JSON prompt contains the exact token, and the exact instruction on one line.
#[test]
fn the_json_prompt_has_the_exact_token_and_instruction() {
    let prompt = build_resume_prompt("\"content\":\"", &Format::Json, None);
    assert!(prompt.contains("\"content\":\""));
    assert_eq!(prompt.lines().last(), Some(JSON_INSTRUCTION));
}

/// PC-3: the prompts of all other formats have the same structure.
#[test]
fn other_formats_have_the_same_prompt_structure() {
    for format in [
        Format::Jsonl,
        Format::Markdown,
        Format::Tags,
        Format::Text,
        Format::Auto,
        Format::Marker("<<END>>".to_owned()),
    ] {
        let prompt = build_resume_prompt("the last words", &format, None);
        let instruction = prompt.lines().last().unwrap();
        assert!(prompt.contains("\nthe last words\n"), "{prompt}");
        assert!(instruction.starts_with("Continue the "), "{instruction}");
        assert!(instruction.contains(" from the last valid token."));
        assert!(instruction.contains(" Output ONLY the remaining "));
        assert!(instruction.ends_with("Do not repeat any content before the last valid token."));
    }
    let marker = build_resume_prompt("x", &Format::Marker("<<END>>".to_owned()), None);
    assert!(marker.contains("its end marker <<END>>"));
}

/// PC-3: each format has its own instruction.
#[test]
fn every_format_has_its_own_instruction() {
    let marker = Format::Marker("<<END>>".to_owned());
    for (format, whole, rest) in [
        (Format::Json, "JSON payload", "JSON"),
        (Format::Jsonl, "JSON Lines", "JSON Lines"),
        (Format::Markdown, "Markdown text", "Markdown"),
        (Format::Tags, "text with its tags", "text, up to and including the last closing tag"),
        (Format::Text, "text", "text"),
        (Format::Auto, "text", "text"),
        (marker, "text", "text, up to and including its end marker <<END>>"),
    ] {
        let anchored = match format {
            Format::Json | Format::Jsonl => "",
            _ => {
                " Begin your answer with exactly the text of the last valid token, as it stands above, and go on \
                 from there."
            }
        };
        let expected = format!(
            "Continue the {whole} from the last valid token.{anchored} Output ONLY the remaining {rest}. Do not repeat \
             any content before the last valid token."
        );
        assert_eq!(build_resume_prompt("x", &format, None).lines().last(), Some(expected.as_str()));
    }
}

/// PC-3: a prompt can be configured. Placeholders within the token are not replaced.
#[test]
fn a_configured_prompt_is_filled_in() {
    let template = "Weiter nach «{last_valid_token}».\n{instruction}";
    assert_eq!(
        build_resume_prompt("{instruction}", &Format::Json, Some(template)),
        format!("Weiter nach «{{instruction}}».\n{JSON_INSTRUCTION}")
    );
    assert_eq!(build_resume_prompt("a", &Format::Json, Some("{last_valid_token}")), "a");
}

#[test]
fn a_configured_prompt_is_validated() {
    assert_eq!(check_prompt_template(""), Err(PromptTemplateError::NoToken));
    assert_eq!(check_prompt_template("Go on. {instruction}"), Err(PromptTemplateError::NoToken));
    assert_eq!(
        check_prompt_template("{token} {last_valid_token}"),
        Err(PromptTemplateError::UnknownPlaceholder("{token}".to_owned()))
    );
    assert_eq!(
        check_prompt_template("{\"a\": {}} { x } {é} {last_valid_token"),
        Err(PromptTemplateError::NoToken)
    );
    for unknown in ["{x}", "{the_token}"] {
        let error = PromptTemplateError::UnknownPlaceholder(unknown.to_owned());
        for before in ["", "Go on. ", "{"] {
            let template = format!("{before}{unknown} {{last_valid_token}}");
            assert_eq!(check_prompt_template(&template), Err(error.clone()), "{template}");
        }
    }
    // Only a lowercase name in braces is a placeholder.
    assert_eq!(check_prompt_template("name} {} {last_valid_token}"), Ok(()));
    assert_eq!(check_prompt_template("Like {\"a\": {}}, after {{last_valid_token}}"), Ok(()));
}

/// PC-3: the prompt always states where to continue, even if the configured template does not.
#[test]
fn a_template_without_the_token_is_not_used() {
    assert_eq!(
        build_resume_prompt("tok", &Format::Text, Some("Continue!")),
        build_resume_prompt("tok", &Format::Text, None)
    );
}

proptest! {
    /// PC-3: the prompt contains the exact token.
    #[test]
    fn the_token_is_exact(token in "\\PC{0,200}") {
        for format in [Format::Json, Format::Jsonl, Format::Text] {
            prop_assert!(build_resume_prompt(&token, &format, None).contains(&token));
        }
    }
}
