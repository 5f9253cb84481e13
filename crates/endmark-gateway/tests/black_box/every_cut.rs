//! Cuts and splits recorded streams at every byte, with every ending. No sockets are used, so all
//! combinations can be tested quickly. An oracle decides whether the bytes before a cut are a whole reply. It
//! shares no code with the tested code: it splits frames at blank lines, and reads JSON with another parser.
//!
//! `EVERY_BYTE=1` tests everything; the default is a selection. Each wire format is one row of [`FORMATS`].

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

use std::collections::BTreeMap;
use std::path::Path;

use endmark_recovery::{Ending, Evidence, Judgement, Stop, judge};
use endmark_text::Format;
use endmark_text::detect::Detector;
use endmark_wire::format::find_by_name;
use endmark_wire::reply::Choice;
use endmark_wire::request::{Address, Request};
use endmark_wire::sse::{Decoder, Tail};
use endmark_wire::stream::Reader;
use serde_json::Value;

/// A size limit that no recording reaches.
const MAX_STREAM_BYTES: usize = 1 << 20;

/// What follows the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    /// The connection is closed, or its next HTTP chunk cannot be read.
    Closed,
    Reset,
    /// No more data arrives.
    Stall,
    /// The HTTP body ends normally.
    NormalHttpEnd,
    /// A broken event.
    BrokenEvent,
    /// An event that reports a server error.
    ErrorEvent,
    /// An error event with an event name, as in Messages and Responses.
    NamedErrorEvent,
    /// A part of the next event's name.
    HalfEventName,
    /// A ping event.
    Ping,
    /// An incomplete UTF-8 character.
    HalfCharacter,
}

const STREAM_ENDS: [StreamEnd; 10] = [
    StreamEnd::Closed,
    StreamEnd::Reset,
    StreamEnd::Stall,
    StreamEnd::NormalHttpEnd,
    StreamEnd::BrokenEvent,
    StreamEnd::ErrorEvent,
    StreamEnd::NamedErrorEvent,
    StreamEnd::HalfEventName,
    StreamEnd::Ping,
    StreamEnd::HalfCharacter,
];

impl StreamEnd {
    /// Returns the bytes after the cut.
    fn bytes_after_cut(self) -> &'static [u8] {
        match self {
            Self::BrokenEvent => b"data: {\"choices\":[{\"index\":0,\"del\n\n",
            Self::ErrorEvent => {
                b"data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n"
            }
            Self::NamedErrorEvent => {
                b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n"
            }
            Self::HalfEventName => b"\nevent: mess",
            Self::Ping => b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
            Self::HalfCharacter => b"data: {\"delta\":\"caf\xc3",
            Self::Closed | Self::Reset | Self::Stall | Self::NormalHttpEnd => b"",
        }
    }

    fn ending(self) -> Ending {
        match self {
            Self::Stall => Ending::Stalled,
            _ => Ending::Dropped,
        }
    }
}

/// The decoder and the reader under test, with their output so far.
struct StreamUnderTest {
    decoder: Decoder,
    reader: Box<dyn Reader>,
    /// The debug output of each event.
    events: Vec<String>,
    forwarded: Vec<u8>,
    failed: bool,
}

impl StreamUnderTest {
    fn new(format: &str) -> Self {
        let address = Address { model: Some("m".to_owned()), stream: Some(true), ..Address::default() };
        let body = br#"{"model":"m","stream":true,"messages":[],"input":[],"contents":[]}"#;
        let request = Request::parse(find_by_name(format).unwrap(), body, &address).unwrap();
        Self {
            decoder: Decoder::new(MAX_STREAM_BYTES),
            reader: request.stream(MAX_STREAM_BYTES),
            events: Vec::new(),
            forwarded: Vec::new(),
            failed: false,
        }
    }

    /// Returns a copy that can read another continuation.
    fn fork(&self) -> Self {
        Self {
            decoder: self.decoder.clone(),
            reader: self.reader.fork(),
            events: self.events.clone(),
            forwarded: self.forwarded.clone(),
            failed: self.failed,
        }
    }

    /// Like [`Self::fork`], but without the events and bytes so far.
    fn fork_silent(&self) -> Self {
        Self {
            decoder: self.decoder.clone(),
            reader: self.reader.fork(),
            events: Vec::new(),
            forwarded: Vec::new(),
            failed: self.failed,
        }
    }

    /// Adds bytes. Bytes after an error are ignored.
    fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes).unwrap();
        while let Some(frame) = (!self.failed).then(|| self.decoder.next_frame()).flatten() {
            let frame_event = self.reader.read_frame(&frame);
            self.events.push(format!("{frame_event:?}"));
            self.forwarded.extend_from_slice(&frame.raw);
            self.failed = match frame_event {
                Ok(event) => event.error.is_some(),
                Err(error) => error.is_broken_chunk(),
            };
        }
    }

    /// Returns the forwarded bytes, including those after the last complete event.
    fn into_forwarded(self) -> Vec<u8> {
        let mut forwarded = self.forwarded;
        match self.decoder.finish() {
            Tail::Clean => {}
            Tail::Frame(frame) => forwarded.extend(frame.raw),
            Tail::Residue(bytes) => forwarded.extend(bytes),
        }
        forwarded
    }

    /// Whether no choice of the reply is judged cut.
    fn is_whole(&self, stops: StreamEnd) -> bool {
        let received = self.reader.received();
        let ending = |choice: &Choice| match received.ending(choice.index) {
            Ending::Dropped => stops.ending(),
            known => known,
        };
        let choices = received.choices();
        !choices.is_empty() && choices.iter().all(|choice| !is_cut(choice, ending(choice)))
    }
}

/// Whether a choice is judged cut, by the arguments of its last call or, without calls, by its text.
fn is_cut(choice: &Choice, ending: Ending) -> bool {
    let (text, demanded) = match choice.tool_calls.last() {
        Some(call) => (&call.arguments, true),
        None => (&choice.text, false),
    };
    let mut detector = Detector::new(&if demanded { Format::Json } else { Format::Text });
    detector.push(text.as_bytes());
    let verdict = detector.verdict();
    let stop = choice.finish.as_ref().and_then(|finish| finish.stop);
    let without_arguments = text.is_empty() && stop == Some(Stop::Normal);
    let judgement = judge(&Evidence {
        ending,
        stop,
        grammar: (demanded && !without_arguments).then_some(&verdict),
        marker: false,
        output_tokens: None,
        limit: None,
        has_text: !text.is_empty(),
        reasoned: choice.has_reasoning,
    });
    matches!(judgement, Judgement::Cut(_))
}

/// What the oracle read of one choice.
#[derive(Default)]
struct OracleChoice {
    calls: BTreeMap<u64, String>,
    finish: Option<String>,
}

/// Returns the events in these bytes, up to an unreadable event or a server error.
fn events(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    let mut frames: Vec<&str> = text.split("\n\n").collect();
    // The bytes after the last blank line are not a complete event.
    frames.pop();
    let mut events = Vec::new();
    for frame in frames {
        let lines = frame.lines().filter_map(|line| line.strip_prefix("data:"));
        let data = lines.map(str::trim).collect::<Vec<_>>().join("\n");
        if data.is_empty() || data == "[DONE]" {
            continue;
        }
        match serde_json::from_str::<Value>(&data) {
            Ok(event) if event.get("error").is_none_or(Value::is_null) => events.push(event),
            // Clients stop at an unreadable event.
            _ => break,
        }
    }
    events
}

/// Whether the bytes of a cut Chat stream are a whole reply.
fn chat_is_whole(bytes: &[u8]) -> bool {
    let mut choices: BTreeMap<u64, OracleChoice> = BTreeMap::new();
    for chunk in events(bytes) {
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            let heard_choice = choices.entry(choice["index"].as_u64().unwrap_or(0)).or_default();
            for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                heard_choice
                    .calls
                    .entry(call["index"].as_u64().unwrap_or(0))
                    .or_default()
                    .push_str(arguments);
            }
            if let Some(finish) = choice["finish_reason"].as_str() {
                heard_choice.finish = Some(finish.to_owned());
            }
        }
    }
    !choices.is_empty() && choices.values().all(|heard_choice| is_reported_whole(heard_choice, &["stop"]))
}

/// Whether the bytes of a cut Responses stream are a whole reply.
fn response_is_whole(bytes: &[u8]) -> bool {
    let mut heard_choice = OracleChoice::default();
    for event in events(bytes) {
        let place = event["output_index"].as_u64().unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                heard_choice.calls.insert(place, String::new());
            }
            "response.function_call_arguments.delta" => {
                heard_choice
                    .calls
                    .entry(place)
                    .or_default()
                    .push_str(event["delta"].as_str().unwrap_or_default());
            }
            _ => {}
        }
        let ended = event["response"]["status"].as_str().filter(|status| *status != "in_progress");
        heard_choice.finish = ended.map(str::to_owned).or(heard_choice.finish);
    }
    is_reported_whole(&heard_choice, &["completed"])
}

/// Whether the bytes of a cut Messages stream are a whole reply.
fn message_is_whole(bytes: &[u8]) -> bool {
    let mut heard_choice = OracleChoice::default();
    for event in events(bytes) {
        let place = event["index"].as_u64().unwrap_or(0);
        if event["content_block"]["type"] == "tool_use" {
            heard_choice.calls.insert(place, String::new());
        }
        if let (Some(arguments), Some(piece)) =
            (heard_choice.calls.get_mut(&place), event["delta"]["partial_json"].as_str())
        {
            arguments.push_str(piece);
        }
        if let Some(stop) = event["delta"]["stop_reason"].as_str() {
            heard_choice.finish = Some(stop.to_owned());
        }
    }
    is_reported_whole(&heard_choice, &["end_turn", "pause_turn", "refusal", "stop_sequence"])
}

/// Whether the bytes of a cut Gemini stream are a whole reply.
fn gemini_is_whole(bytes: &[u8]) -> bool {
    let mut choices: BTreeMap<u64, OracleChoice> = BTreeMap::new();
    for chunk in events(bytes) {
        for candidate in chunk["candidates"].as_array().into_iter().flatten() {
            let heard_choice = choices.entry(candidate["index"].as_u64().unwrap_or(0)).or_default();
            let finish = candidate["finishReason"].as_str();
            for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                if let Some(call) = part.get("functionCall") {
                    // If the limit cuts the arguments, the server sends an empty object.
                    let none = finish == Some("MAX_TOKENS") && call["args"] == serde_json::json!({});
                    let next = u64::try_from(heard_choice.calls.len()).unwrap();
                    heard_choice
                        .calls
                        .insert(next, if none { String::new() } else { call["args"].to_string() });
                }
            }
            heard_choice.finish = finish.map(str::to_owned).or(heard_choice.finish.take());
        }
    }
    !choices.is_empty()
        && choices
            .values()
            .all(|heard_choice| is_reported_whole(heard_choice, &["STOP", "CONTINUATION", "SAFETY"]))
}

/// A call is whole if its arguments are valid JSON. Text is whole if the server reports its end.
fn is_reported_whole(heard_choice: &OracleChoice, ends: &[&str]) -> bool {
    match heard_choice.calls.last_key_value() {
        Some((_, arguments)) => serde_json::from_str::<Value>(arguments).is_ok(),
        None => heard_choice.finish.as_deref().is_some_and(|finish| ends.contains(&finish)),
    }
}

/// A wire format with its recordings and its oracle.
struct RecordedFormat {
    format: &'static str,
    recordings: &'static [&'static str],
    is_whole: fn(&[u8]) -> bool,
}

/// The README of each folder names the sources of its recordings.
const FORMATS: &[RecordedFormat] = &[
    RecordedFormat {
        format: "openai_chat",
        recordings: &[
            "text-whole",
            "text-cut-by-limit",
            "call-cut-by-limit",
            "call-continued-by-prefill",
            "two-choices",
            "prefill-echoed",
            "parallel-calls-dropped",
            "reasoning-used-up-the-limit",
        ],
        is_whole: chat_is_whole,
    },
    RecordedFormat {
        format: "openai_responses",
        recordings: &[
            "text-whole",
            "text-cut-by-limit",
            "call-whole",
            "call-cut-by-limit",
            "mock-calls-parallel",
            "mock-reasoned",
            "mock-text-and-call",
            "incomplete-numbered",
            "prefill-echoed",
            "reasoning-used-up-the-limit",
        ],
        is_whole: response_is_whole,
    },
    RecordedFormat {
        format: "anthropic_messages",
        recordings: &[
            "text-whole",
            "text-cut-by-limit",
            "call-whole",
            "call-cut-by-limit",
            "mock-calls-parallel",
            "mock-reasoned",
            "paused",
            "prefill-echoed",
            "sdk-refusal",
            "sdk-tool-use",
            "sdk-incomplete-partial-json",
            "thinking-used-up-the-limit",
        ],
        is_whole: message_is_whole,
    },
    RecordedFormat {
        format: "gemini",
        recordings: &[
            "mock-text-whole",
            "mock-text-cut",
            "mock-call-whole",
            "mock-call-cut",
            "mock-calls-parallel",
            "mock-reasoned",
            "mock-refused",
            "continuation",
            "signed-thoughts",
            "two-candidates",
        ],
        is_whole: gemini_is_whole,
    },
];

/// Distance between cuts in a short run, in bytes. A short run has more than 50,000 cuts.
const QUICK_STEP_BYTES: usize = 20;

#[derive(Default)]
struct CutCounts {
    cuts: usize,
    whole: usize,
    splits: usize,
}

/// Tests all cuts and splits of a format's recordings.
fn test_recordings(format: &RecordedFormat) -> CutCounts {
    let everything = std::env::var_os("EVERY_BYTE").is_some();
    let mut count = CutCounts::default();
    for name in format.recordings {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../endmark-wire/tests/{}/{name}.sse", format.format));
        let stream = std::fs::read(path).unwrap();
        test_cuts(format, name, &stream, if everything { 1 } else { QUICK_STEP_BYTES }, &mut count);
        // The number of three-way splits grows with the square of the length.
        let step = if everything { (stream.len() / 1_200).max(1) } else { stream.len() / 8 };
        test_splits(format, name, &stream, step, &mut count);
    }
    count
}

fn test_cuts(format: &RecordedFormat, name: &str, stream: &[u8], step: usize, count: &mut CutCounts) {
    let mut read = StreamUnderTest::new(format.format);
    // The oracle ignores bytes after the last blank line, so its result changes only after a further event.
    let mut oracle: Option<(usize, bool)> = None;
    for at in 0..=stream.len() {
        if at > 0 {
            read.push(&stream[at - 1..at]);
        }
        if !at.is_multiple_of(step) && at != stream.len() {
            continue;
        }
        for stops in STREAM_ENDS {
            let mut read = read.fork_silent();
            read.push(stops.bytes_after_cut());
            let blank_line = stream[..at].windows(2).rposition(|two| two == b"\n\n");
            let settled = blank_line.map_or(0, |place| place + 2);
            let expected = match oracle {
                Some((place, whole)) if place == settled && stops.bytes_after_cut().is_empty() => whole,
                _ => (format.is_whole)(&[&stream[..at], stops.bytes_after_cut()].concat()),
            };
            if stops.bytes_after_cut().is_empty() {
                oracle = Some((settled, expected));
            }
            let found = read.is_whole(stops);
            assert!(found || !expected, "{name} cut at byte {at}, {stops:?}: a false alarm");
            assert!(!found || expected, "{name} cut at byte {at}, {stops:?}: a false whole");
            count.cuts += 1;
            count.whole += usize::from(found);
        }
    }
}

fn test_splits(format: &RecordedFormat, name: &str, stream: &[u8], step: usize, count: &mut CutCounts) {
    let mut unsplit = StreamUnderTest::new(format.format);
    unsplit.push(stream);
    let events = unsplit.events.clone();
    assert_eq!(unsplit.into_forwarded(), stream, "{name}");
    let same = |read: StreamUnderTest, first: usize, second: usize| {
        assert!(read.events == events, "{name} split at {first} and {second}: other events");
        assert!(read.into_forwarded() == stream, "{name} split at {first} and {second}: other bytes");
    };
    let mut beginning = StreamUnderTest::new(format.format);
    for first in 0..=stream.len() {
        if first > 0 {
            beginning.push(&stream[first - 1..first]);
        }
        if first.is_multiple_of(step.min(97)) {
            let mut two = StreamUnderTest::new(format.format);
            two.push(&stream[..first]);
            two.push(&stream[first..]);
            same(two, first, first);
            count.splits += 1;
        }
        if !first.is_multiple_of(step) {
            continue;
        }
        for second in (first..=stream.len()).step_by(step) {
            let mut three = beginning.fork();
            three.push(&stream[first..second]);
            three.push(&stream[second..]);
            same(three, first, second);
            count.splits += 1;
        }
    }
}

/// Checks that no cut of a recorded stream is judged whole, and that no whole stream is judged cut.
fn test_format(format: &str) -> String {
    let format = FORMATS.iter().find(|recorded| recorded.format == format).unwrap();
    let count = test_recordings(format);
    assert!(count.whole > 0 && count.cuts > count.whole, "{}: nothing was tried", format.format);
    format!(
        "{}: {} cuts of {} recordings, {} of them whole: 0 false wholes, 0 false alarms; {} splits: same events, same \
         bytes",
        format.format,
        count.cuts,
        format.recordings.len(),
        count.whole,
        count.splits
    )
}

#[test]
fn chat_completions_judge_every_cut_correctly() {
    println!("{}", test_format("openai_chat"));
}

#[test]
fn responses_judge_every_cut_correctly() {
    println!("{}", test_format("openai_responses"));
}

#[test]
fn messages_judge_every_cut_correctly() {
    println!("{}", test_format("anthropic_messages"));
}

#[test]
fn gemini_judges_every_cut_correctly() {
    println!("{}", test_format("gemini"));
}
