//! Recovers a tool call that was cut in the middle of a file. Its string contains raw line feeds.
//!
//!     cargo run -p endmark-recovery --example write_file

#![expect(clippy::print_stdout, reason = "it is an example, and prints what it does")]

use endmark_recovery::{
    AskedFrom, Join, MergeError, Reply, ResumePolicy, Stop, build_resume_prompt, merge_chunks,
    resume_if_truncated,
};
use endmark_text::{Format, Verdict, detect, escape_control_characters};

const CUT: &str =
    "{\"action\":\"write_file\",\"parameters\":{\"path\":\"/src/foo.ts\",\"content\":\"line1\nline";
const REST: &str = "2\nline3\"}}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (whole, prompt) = recover()?;
    println!("{prompt}\n\n{whole}");
    Ok(())
}

/// Returns the whole document, and the prompt that requested the missing part.
fn recover() -> Result<(String, String), Box<dyn std::error::Error>> {
    let Verdict::Truncated(truncation) = detect(CUT.as_bytes(), &Format::Json).verdict else {
        return Err("it is not seen to be cut".into());
    };
    let prompt = build_resume_prompt(&truncation.last_valid_token, &Format::Json, None);
    let merged = merge_chunks(CUT, REST, &Format::Json, AskedFrom::Cut)?;
    let resumed = resume_if_truncated(
        ResumePolicy::default(),
        Some(Format::Json),
        Reply::with_stop(CUT, Stop::Limit),
        |_| Ok((Reply::with_stop(REST, Stop::Normal), Join::Stitched(AskedFrom::Cut))),
    )
    .into_text()?;
    if resumed != merged.text {
        return Err("the two ways differ".into());
    }
    // Strict parsers require escaped line feeds.
    let whole = escape_control_characters(&resumed).0.into_owned();
    match merge_chunks(&whole, "and more", &Format::Json, AskedFrom::Cut) {
        Err(MergeError::NothingToJoin { .. }) => Ok((whole, prompt)),
        other => Err(format!("something was joined to a whole document: {other:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_call_is_completed() {
        let (whole, prompt) = recover().unwrap();
        let value: serde_json::Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(value["parameters"]["content"], "line1\nline2\nline3");
        assert!(prompt.contains("line1\nline"), "{prompt}");
        assert!(prompt.ends_with("Do not repeat any content before the last valid token."));
    }
}
