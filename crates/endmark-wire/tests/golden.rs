//! Golden files: the content that is read from valid and faulty messages, and the output that replaces them.
//!
//! Each case in `tests/openai_chat` has its expectation next to it (`case.sse` and `case.sse.txt`). After an
//! intended change, `UPDATE_GOLDEN=1 cargo test -p endmark-wire --test golden` rewrites the expectations:
//! review the difference. The README there states the source of the cases.

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use endmark_wire::openai_chat::{
    ChatRequest, ChatResponse, ChatStream, Choice, LimitField, Partial, Piece, PrefillVariant, Terms,
    ToolCall, ToolPrefill, read_error,
};
use endmark_wire::sse::{Decoder, Frame, Tail};

#[test]
fn requests_match_their_golden_files() {
    check(".request.json", |bytes| request(bytes).unwrap());
}

#[test]
fn responses_match_their_golden_files() {
    check(".response.json", |bytes| response(bytes).unwrap());
}

#[test]
fn streams_match_their_golden_files() {
    check(".sse", |bytes| stream(bytes).unwrap());
}

/// Compares every case of this kind with its expectation.
fn check(kind: &str, render: impl Fn(&[u8]) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai_chat");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.to_string_lossy().ends_with(kind));
    cases.sort();
    assert!(cases.len() >= 5, "the cases of kind {kind} are gone");
    let mut wrong = Vec::new();
    for case in cases {
        let rendered = render(&std::fs::read(&case).unwrap());
        let expectation = PathBuf::from(format!("{}.txt", case.display()));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&expectation, &rendered).unwrap();
        }
        let expected = std::fs::read_to_string(&expectation).unwrap_or_default();
        if rendered != expected {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- rendered\n{rendered}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn request(bytes: &[u8]) -> Result<String, std::fmt::Error> {
    let request = ChatRequest::parse(bytes).unwrap();
    assert_eq!(request.body(), bytes);
    let mut out = String::new();
    writeln!(out, "model {}, stream {}, usage {}", request.model, request.stream, request.include_usage)?;
    writeln!(out, "limit {:?} in {:?}", request.limit, request.limit_field.map(LimitField::name))?;
    writeln!(out, "choices {}, stop {}", request.choices, request.has_stop)?;
    writeln!(out, "prefill {:?}", request.prefill)?;
    writeln!(out, "echoes {:?}", request.echoes("Mercury, \"V"))?;
    writeln!(
        out,
        "demanded {:?}, schema {}",
        request.required_format,
        request.text_schema.as_deref().unwrap_or("none")
    )?;
    for name in request.tool_names() {
        writeln!(out, "tool {name}: {}", request.tool_schema(&name).unwrap_or_default())?;
    }
    let terms = Terms { limit: 4096, stream: request.stream, include_usage: request.include_usage };
    let call = ToolCall {
        id: Some("call_9".into()),
        name: "write".into(),
        arguments: "{\"path\": \"a".into(),
        ..Default::default()
    };
    let before = [ToolCall {
        id: Some("call_8".into()),
        name: "read".into(),
        arguments: "{}".into(),
        ..Default::default()
    }];
    let text = Partial::Text("Mercury, \"V");
    let cut_call = Partial::ToolCall { call: &call, content_before: "", calls_before: &before };
    let mut summary_lines = vec![
        ("prefill", request.with_prefill(&text, terms, PrefillVariant::Plain, ToolPrefill::Hermes)),
        ("prompt", request.with_prompt(&text, "Go on after `\"V`.", terms)),
        ("limit", request.with_limit(terms)),
        ("correction", request.with_correction(&text, "Correct it.", terms)),
    ];
    if request.has_tools {
        summary_lines.push((
            "call, hermes",
            request.with_prefill(&cut_call, terms, PrefillVariant::Plain, ToolPrefill::Hermes),
        ));
        summary_lines.push((
            "call, calls",
            request.with_prefill(&cut_call, terms, PrefillVariant::Plain, ToolPrefill::Calls),
        ));
        summary_lines.push(("call, prompt", request.with_prompt(&cut_call, "Go on.", terms)));
        summary_lines.push(("call, correction", request.with_correction(&cut_call, "Correct it.", terms)));
    } else {
        for variant in PrefillVariant::ALL.into_iter().skip(1) {
            summary_lines
                .push((variant.name(), request.with_prefill(&text, terms, variant, ToolPrefill::Hermes)));
        }
    }
    for (name, body) in summary_lines {
        serde_json::from_slice::<serde_json::Value>(&body).unwrap();
        writeln!(out, "\n== {name}\n{}", String::from_utf8(body).unwrap().trim_end())?;
    }
    Ok(out)
}

fn response(bytes: &[u8]) -> Result<String, std::fmt::Error> {
    let with_stop = ChatRequest::parse(br#"{"messages":[],"stop":["END"]}"#).unwrap();
    let mut out = String::new();
    let response = match ChatResponse::parse(bytes, &with_stop) {
        Ok(response) => response,
        Err(error) => {
            writeln!(out, "{error}")?;
            if let Some(error) = read_error(bytes) {
                writeln!(out, "{error:?}, context length: {}", error.is_context_length())?;
            }
            return Ok(out);
        }
    };
    assert_eq!(response.body(), bytes);
    writeln!(out, "id {:?}, model {}, usage {:?}", response.id, response.model, response.usage)?;
    let mut edit = response.edit();
    for choice in &response.choices {
        choice_lines(&mut out, choice)?;
        match choice.tool_calls.last() {
            Some(call) => edit.set_arguments(choice.index, call.index, &format!("{}…\"}}", call.arguments)),
            None => edit.set_text(choice.index, &format!("{} …", choice.text)),
        }
        edit.set_finish(choice.index, choice.normal_finish_reason());
    }
    if let Some(usage) = &response.usage {
        edit.set_usage(&(usage.clone() + usage.clone()));
    }
    let mended = edit.finish();
    serde_json::from_slice::<serde_json::Value>(&mended).unwrap();
    writeln!(out, "\n== mended\n{}", String::from_utf8(mended).unwrap().trim_end())?;
    Ok(out)
}

fn stream(bytes: &[u8]) -> Result<String, std::fmt::Error> {
    let request = ChatRequest::parse(br#"{"model":"m","messages":[],"stream":true}"#).unwrap();
    let (frames, tail) = decode(&[bytes]);
    for cut in (0..bytes.len()).step_by(7) {
        assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), (frames.clone(), tail.clone()), "cut at {cut}");
    }
    let mut out = String::new();
    let mut stream = ChatStream::new(&request, 1 << 20);
    for frame in &frames {
        match stream.read_frame(frame) {
            Err(error) => writeln!(out, "! {error}")?,
            Ok(_) if frame.data.is_none() => writeln!(out, "comment")?,
            Ok(chunk) => {
                let mut summary: Vec<String> = chunk
                    .pieces
                    .iter()
                    .map(|delta| format!("{} {}", delta.choice, piece(&delta.piece)))
                    .collect();
                summary.extend(
                    chunk.finishes.iter().map(|finish| {
                        format!("{} ends: {} is {:?}", finish.choice, finish.reason, finish.stop)
                    }),
                );
                summary.extend(chunk.usage.map(|usage| format!("{usage:?}")));
                summary.extend(chunk.error.map(|error| format!("{error:?}")));
                summary.extend(chunk.is_done.then(|| "done".to_owned()));
                summary.extend((summary.is_empty() && chunk.has_no_choices).then(|| "no choices".to_owned()));
                writeln!(
                    out,
                    "{}",
                    if summary.is_empty() { "nothing".to_owned() } else { summary.join(", ") }
                )?;
            }
        }
    }
    match tail {
        Tail::Clean => {}
        Tail::Frame(frame) => writeln!(out, "ends in {frame:?}")?,
        Tail::Residue(residue) => writeln!(out, "cut in {:?}", String::from_utf8(residue).unwrap())?,
    }
    writeln!(out, "\n== kept\ndone {}, output tokens {:?}", stream.is_done(), stream.output_tokens())?;
    for choice in stream.choices() {
        choice_lines(&mut out, choice)?;
        writeln!(out, "  ending {}", stream.ending(choice.index).name())?;
    }
    writeln!(out, "\n== made")?;
    for choice in stream.choices() {
        let template = stream.template();
        let chunk = match choice.tool_calls.last() {
            Some(call) => template.tool_arguments_chunk(choice.index, call, "…\"}"),
            None => template.text_chunk(choice.index, " …"),
        };
        for chunk in [chunk, template.finish_chunk(choice.index, choice.normal_finish_reason(), None)] {
            serde_json::from_slice::<serde_json::Value>(&chunk).unwrap();
            writeln!(out, "{}", String::from_utf8(chunk).unwrap())?;
        }
    }
    Ok(out)
}

fn decode(pieces: &[&[u8]]) -> (Vec<Frame>, Tail) {
    let mut decoder = Decoder::new(1 << 20);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece).unwrap();
        frames.extend(std::iter::from_fn(|| decoder.next_frame()));
    }
    (frames, decoder.finish())
}

fn piece(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => format!("text {text:?}"),
        Piece::Reasoning(text) => format!("reasoning {text:?}"),
        Piece::Refusal(text) => format!("refusal {text:?}"),
        Piece::ToolCall { index, id: None, name: None, arguments } => format!("call {index} {arguments:?}"),
        Piece::ToolCall { index, id, name, arguments } => {
            format!("call {index} begins {id:?} {name:?} {arguments:?}")
        }
    }
}

fn choice_lines(out: &mut String, choice: &Choice) -> std::fmt::Result {
    let Choice {
        index,
        text,
        tool_calls,
        has_reasoning: reasoned,
        is_refused: refused,
        finish,
        is_mendable: mendable,
        exact,
        received_bytes: received,
        continuation: _,
        ends_in_unshown_part: _,
        last_part_start: _,
        signature: _,
        is_unfinished: _,
        half_open,
        last_call_at: _,
        web_searches: _,
        written: _,
        has_unrequestable_part: beside,
    } = choice;
    writeln!(
        out,
        "choice {index}: {received} bytes, text {text:?}, reasoned {reasoned}, refused {refused}, mendable {}",
        *mendable && !*beside && *exact && !*half_open
    )?;
    for call in tool_calls {
        let ToolCall { index, id, name, arguments, legacy, .. } = call;
        writeln!(
            out,
            "  call {index}: {id:?} {name} {arguments:?}{}",
            if *legacy { ", legacy" } else { "" }
        )?;
    }
    match finish {
        Some(finish) => writeln!(out, "  ends: {} is {:?}", finish.reason, finish.stop),
        None => writeln!(out, "  has not ended"),
    }
}
