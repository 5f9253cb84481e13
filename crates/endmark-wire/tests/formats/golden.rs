//! Cases and their expectations.

use std::fmt::Write as _;
use std::path::PathBuf;

use endmark_text::Format;
use endmark_wire::ask::{Ask, Partial, PrefillVariant, Terms, ToolPrefill};
use endmark_wire::json::Value;
use endmark_wire::reply::{Choice, Event, Piece, ToolCall};
use endmark_wire::request::{Address, Request};
use endmark_wire::sse::Tail;
use endmark_wire::writer::{ChoiceEnd, ReportedEnd, StreamEnd};

use crate::relay::{cases, format, frames, relay, request};

const FORMATS: [&str; 3] = ["openai_responses", "anthropic_messages", "gemini"];

#[test]
fn requests_match_their_golden_files() {
    check(".request.json", golden_request);
}

#[test]
fn responses_match_their_golden_files() {
    check(".response.json", response);
}

#[test]
fn streams_match_their_golden_files() {
    check(".sse", stream);
}

/// Compares every case of this kind with its expectation.
fn check(kind: &str, render: impl Fn(&str, &[u8]) -> Result<String, std::fmt::Error>) {
    let mut wrong = Vec::new();
    for name in FORMATS {
        for case in cases(name, kind) {
            let rendered = render(name, &std::fs::read(&case).unwrap()).unwrap();
            let expectation = PathBuf::from(format!("{}.txt", case.display()));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&expectation, &rendered).unwrap();
            }
            let expected = std::fs::read_to_string(&expectation).unwrap_or_default();
            if rendered != expected {
                wrong.push(format!("{}\n--- expected\n{expected}\n--- rendered\n{rendered}", case.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn golden_request(name: &str, bytes: &[u8]) -> Result<String, std::fmt::Error> {
    let address = Address { base: "/v1/models/".to_owned(), model: Some("m".to_owned()), stream: Some(true) };
    let request = Request::parse(format(name), bytes, &address).unwrap();
    assert_eq!(request.body(), bytes);
    let view = request.view();
    let mut out = String::new();
    writeln!(out, "model {}, stream {}, usage {}", view.model, view.stream, view.include_usage)?;
    writeln!(out, "limit {:?} in {:?}", view.limit, view.limit_field)?;
    writeln!(out, "choices {}, stop {}, turns {}", view.choices, view.has_stop, request.reply_count())?;
    writeln!(out, "prefill {:?}, first user text {:?}", view.prefill, request.first_user_text())?;
    writeln!(out, "conversation {:?}, only passes {}", view.conversation, view.is_pass_through)?;
    writeln!(out, "echoes {:?}", request.echoes("Mercury, \"V"))?;
    let demanded = view.required_format.as_ref().map(Format::to_string);
    writeln!(out, "demanded {demanded:?}, schema {}", view.text_schema.as_deref().unwrap_or("none"))?;
    for tool in request.tools() {
        writeln!(out, "tool {}: {}", tool.name, tool.schema.as_deref().unwrap_or("no schema"))?;
    }
    writeln!(out, "path {:?}", request.path_for("other", false))?;
    let elsewhere = request.for_other_upstream(Some("other"));
    writeln!(out, "other model {:?}", elsewhere.map(|other| other.view().model.clone()).unwrap_or_default())?;
    writeln!(out, "path elsewhere {:?}", request.path_at_other_upstream(view.stream))?;

    let terms = Terms { limit: 4096, stream: view.stream, include_usage: view.include_usage };
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        ..ToolCall::default()
    };
    let (cut, before) = (call("call_9", "write", "{\"path\": \"a"), [call("call_8", "read", "{}")]);
    let text = Partial::Text("Mercury, \"V ");
    let cut_call = Partial::ToolCall { call: &cut, content_before: "", calls_before: &before };
    let prefill = |so_far, tool| Ask::Prefill { so_far, variant: PrefillVariant::Plain, tool };
    let mut asks = vec![
        ("prefill", prefill(text, ToolPrefill::Hermes)),
        ("prompt", Ask::Prompt { so_far: text, prompt: "Go on after `\"V`." }),
        ("again", Ask::Again),
        ("correction", Ask::Correction { wrong: text, prompt: "Correct it." }),
        ("native", Ask::Native { token: "tok" }),
    ];
    if view.has_tools {
        asks.push(("call, hermes", prefill(cut_call, ToolPrefill::Hermes)));
        asks.push(("call, calls", prefill(cut_call, ToolPrefill::Calls)));
        asks.push(("call, prompt", Ask::Prompt { so_far: cut_call, prompt: "Go on." }));
        asks.push(("call, correction", Ask::Correction { wrong: cut_call, prompt: "Correct it." }));
    }
    for (name, ask) in asks {
        let Some(asked) = request.continuation(&ask, terms) else {
            writeln!(out, "\n== {name}\ncannot be asked so")?;
            continue;
        };
        serde_json::from_slice::<serde_json::Value>(&asked.body).unwrap();
        let unshown = if asked.unshown_bytes > 0 {
            format!(", {} bytes not shown", asked.unshown_bytes)
        } else {
            String::new()
        };
        writeln!(out, "\n== {name}{unshown}\n{}", String::from_utf8(asked.body).unwrap().trim_end())?;
    }
    Ok(out)
}

fn response(name: &str, bytes: &[u8]) -> Result<String, std::fmt::Error> {
    let format = format(name);
    let mut out = String::new();
    let response = match request(format).response(bytes) {
        Ok(response) => response,
        Err(error) => {
            writeln!(out, "{error}")?;
            if let Some(error) = Value::parse(bytes).ok().and_then(|root| format.read_error(root)) {
                writeln!(out, "{error:?}, context length: {}", error.is_context_length())?;
            }
            return Ok(out);
        }
    };
    assert_eq!(response.body(), bytes);
    assert_eq!(response.edit().finish(), bytes);
    let reply = response.reply();
    writeln!(out, "id {:?}, model {}, usage {:?}", reply.id, reply.model, reply.usage)?;
    let mut edit = response.edit();
    for choice in &reply.choices {
        choice_lines(&mut out, choice)?;
        match choice.tool_calls.last() {
            Some(call) => edit.set_arguments(choice.index, call.index, "{\"path\":\"sea.txt\"}"),
            None => edit.set_text(choice.index, &format!("{} …", choice.text)),
        }
        edit.set_end(choice.index, normal_end(choice));
    }
    if let Some(usage) = &reply.usage {
        edit.set_usage(&(usage.clone() + usage.clone()));
    }
    edit.set_endmark(&endmark());
    let mended = edit.finish();
    serde_json::from_slice::<serde_json::Value>(&mended).unwrap();
    writeln!(out, "\n== mended\n{}", String::from_utf8(mended).unwrap().trim_end())?;
    Ok(out)
}

fn stream(name: &str, bytes: &[u8]) -> Result<String, std::fmt::Error> {
    let request = request(format(name));
    let mut out = String::new();
    let mut reader = request.stream(1 << 20);
    let (frames, tail) = frames(&[bytes]);
    for frame in &frames {
        match reader.read_frame(frame) {
            Ok(event) => writeln!(out, "{}", event_line(&event))?,
            Err(error) => writeln!(out, "! {error}")?,
        }
    }
    match tail {
        Tail::Clean => {}
        Tail::Frame(frame) => writeln!(out, "ends in {frame:?}")?,
        Tail::Residue(residue) => writeln!(out, "cut in {:?}", String::from_utf8(residue).unwrap())?,
    }
    let received = reader.received();
    writeln!(out, "\n== kept\ndone {}, usage {:?}", received.is_done(), received.usage())?;
    for choice in received.choices() {
        choice_lines(&mut out, choice)?;
        writeln!(out, "  ending {}", received.ending(choice.index).name())?;
    }
    let mut relayed = relay(&request, bytes);
    let received = relayed.reader.received();
    let choices: Vec<Choice> =
        received.choices().iter().filter(|choice| choice.can_continue()).cloned().collect();
    let usage = received.usage();
    writeln!(out, "\n== held\n{}", String::from_utf8(relayed.held).unwrap().trim_end())?;
    let mut written = Vec::new();
    for choice in &choices {
        match choice.tool_calls.last() {
            Some(call) => {
                let rest = relayed.writer.write_arguments(choice.index, call, "…\"}");
                let whole = ToolCall { arguments: "{\"path\":\"sea.txt\"}".to_owned(), ..call.clone() };
                written.extend(rest.unwrap_or_else(|| relayed.writer.write_tool_call(choice.index, &whole)));
            }
            None => written.extend(relayed.writer.write_text(choice.index, " …")),
        }
    }
    let endmark = endmark();
    let ends: Vec<ChoiceEnd<'_>> = choices
        .iter()
        .map(|choice| ChoiceEnd {
            choice: choice.index,
            end: Some(normal_end(choice)),
            endmark: Some(&endmark),
            is_rewritten: false,
        })
        .collect();
    let usage = usage.map(|usage| usage.clone() + usage.clone());
    written.extend(relayed.writer.close(&StreamEnd { choices: &ends, usage, ..StreamEnd::default() }));
    writeln!(out, "\n== written in its place\n{}", String::from_utf8(written).unwrap().trim_end())?;
    Ok(out)
}

fn endmark() -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(&serde_json::json!({"outcome": "resumed"})).unwrap()
}

fn normal_end(choice: &Choice) -> ReportedEnd {
    if choice.tool_calls.is_empty() { ReportedEnd::Turn } else { ReportedEnd::ToolCalls }
}

fn event_line(event: &Event) -> String {
    let mut summary: Vec<String> =
        event.pieces.iter().map(|delta| format!("{} {}", delta.choice, piece(&delta.piece))).collect();
    summary.extend(
        event
            .finishes
            .iter()
            .map(|finish| format!("{} ends: {} is {:?}", finish.choice, finish.reason, finish.stop)),
    );
    summary.extend(event.usage.as_ref().map(|usage| format!("{usage:?}")));
    summary.extend(event.error.as_ref().map(|error| format!("{error:?}")));
    for (is, word) in [(event.is_done, "done"), (event.completes_part, "closes"), (event.is_idle, "idle")] {
        summary.extend(is.then(|| word.to_owned()));
    }
    if summary.is_empty() { "nothing".to_owned() } else { summary.join(", ") }
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
        index, text, has_reasoning: reasoned, is_refused: refused, received_bytes: received, ..
    } = choice;
    let mendable = choice.can_continue();
    writeln!(
        out,
        "choice {index}: {received} bytes, text {text:?}, reasoned {reasoned}, refused {refused}, mendable {mendable}"
    )?;
    for ToolCall { index, id, name, arguments, .. } in &choice.tool_calls {
        writeln!(out, "  call {index}: {id:?} {name} {arguments:?}")?;
    }
    if let Some(continuation) = &choice.continuation {
        writeln!(out, "  goes on with {}", continuation.token)?;
    }
    match &choice.finish {
        Some(finish) => writeln!(out, "  ends: {} is {:?}", finish.reason, finish.stop),
        None => writeln!(out, "  has not ended"),
    }
}
