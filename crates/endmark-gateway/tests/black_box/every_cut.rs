//! Recorded streams, cut at every byte with every ending and split in every way, without a socket. This is cheap
//! enough to test all combinations. An oracle that shares no code with the tested code decides whether a beginning is
//! whole: it splits the frames at blank lines, and reads JSON with another parser.
//!
//! `EVERY_BYTE=1` tests everything. Otherwise a short selection is tested. Each wire format is one row of [`FORMATS`].

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

/// More than any recording has.
const CAP: usize = 1 << 20;

/// How the bytes of a stream end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stops {
    /// The connection is closed: FIN, or a chunk of HTTP that cannot be read.
    Closed,
    Reset,
    /// Nothing comes any more.
    Stall,
    /// The body ends normally by HTTP.
    InOrder,
    /// After a broken event.
    Malformed,
    /// After an event that reports an error of the server.
    ErrorEvent,
    /// The same with an event name, as in Messages and Responses.
    NamedError,
    /// Within the name of the next event.
    HalfName,
    /// After a ping event.
    Ping,
    /// Within a character.
    Character,
}

const STOPS: [Stops; 10] = [
    Stops::Closed,
    Stops::Reset,
    Stops::Stall,
    Stops::InOrder,
    Stops::Malformed,
    Stops::ErrorEvent,
    Stops::NamedError,
    Stops::HalfName,
    Stops::Ping,
    Stops::Character,
];

impl Stops {
    /// The bytes after the cut.
    fn last_words(self) -> &'static [u8] {
        match self {
            Self::Malformed => b"data: {\"choices\":[{\"index\":0,\"del\n\n",
            Self::ErrorEvent => {
                b"data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n"
            }
            Self::NamedError => {
                b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n"
            }
            Self::HalfName => b"\nevent: mess",
            Self::Ping => b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
            Self::Character => b"data: {\"delta\":\"caf\xc3",
            Self::Closed | Self::Reset | Self::Stall | Self::InOrder => b"",
        }
    }

    fn ending(self) -> Ending {
        match self {
            Self::Stall => Ending::Stalled,
            _ => Ending::Dropped,
        }
    }
}

/// A stream that the tested code is reading.
struct Read {
    decoder: Decoder,
    reader: Box<dyn Reader>,
    /// The content of every event, in words.
    events: Vec<String>,
    forwarded: Vec<u8>,
    failed: bool,
}

impl Read {
    fn begin(format: &str) -> Self {
        let address = Address { model: Some("m".to_owned()), stream: Some(true), ..Address::default() };
        let body = br#"{"model":"m","stream":true,"messages":[],"input":[],"contents":[]}"#;
        let request = Request::parse(find_by_name(format).unwrap(), body, &address).unwrap();
        Self {
            decoder: Decoder::new(CAP),
            reader: request.stream(CAP),
            events: Vec::new(),
            forwarded: Vec::new(),
            failed: false,
        }
    }

    /// A copy that can continue differently.
    fn fork(&self) -> Self {
        Self {
            decoder: self.decoder.clone(),
            reader: self.reader.fork(),
            events: self.events.clone(),
            forwarded: self.forwarded.clone(),
            failed: self.failed,
        }
    }

    /// A copy without the events so far.
    fn fork_silent(&self) -> Self {
        Self {
            decoder: self.decoder.clone(),
            reader: self.reader.fork(),
            events: Vec::new(),
            forwarded: Vec::new(),
            failed: self.failed,
        }
    }

    /// Adds bytes. Bytes after the end that the reader sees are ignored.
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

    /// The forwarded bytes, including those after the last complete event.
    fn into_forwarded(self) -> Vec<u8> {
        let mut forwarded = self.forwarded;
        match self.decoder.finish() {
            Tail::Clean => {}
            Tail::Frame(frame) => forwarded.extend(frame.raw),
            Tail::Residue(bytes) => forwarded.extend(bytes),
        }
        forwarded
    }

    /// Whether the reply is judged whole, or is not Endmark's concern.
    fn is_whole(&self, stops: Stops) -> bool {
        let received = self.reader.received();
        let ending = |choice: &Choice| match received.ending(choice.index) {
            Ending::Dropped => stops.ending(),
            known => known,
        };
        let choices = received.choices();
        !choices.is_empty() && choices.iter().all(|choice| !is_cut(choice, ending(choice)))
    }
}

/// The judgement of a choice's part that may be cut: its text, or the arguments of its last call.
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

/// The content of one choice for the oracle.
#[derive(Default)]
struct HeardChoice {
    calls: BTreeMap<u64, String>,
    finish: Option<String>,
}

/// The events of a beginning, up to one that cannot be parsed or reports an error of the server.
fn events(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    let mut frames: Vec<&str> = text.split("\n\n").collect();
    // Bytes after the last blank line are not an event.
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
            // Nothing after an unreadable event counts.
            _ => break,
        }
    }
    events
}

/// Whether a beginning of a chat stream is obviously a whole reply.
fn chat_is_whole(bytes: &[u8]) -> bool {
    let mut choices: BTreeMap<u64, HeardChoice> = BTreeMap::new();
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

/// The same for a stream of Responses.
fn response_is_whole(bytes: &[u8]) -> bool {
    let mut heard_choice = HeardChoice::default();
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

/// The same for a stream of Messages.
fn message_is_whole(bytes: &[u8]) -> bool {
    let mut heard_choice = HeardChoice::default();
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

/// The same for a stream of Gemini.
fn content_is_whole(bytes: &[u8]) -> bool {
    let mut choices: BTreeMap<u64, HeardChoice> = BTreeMap::new();
    for chunk in events(bytes) {
        for candidate in chunk["candidates"].as_array().into_iter().flatten() {
            let heard_choice = choices.entry(candidate["index"].as_u64().unwrap_or(0)).or_default();
            let finish = candidate["finishReason"].as_str();
            for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                if let Some(call) = part.get("functionCall") {
                    // For a call with cut arguments, a server sends no arguments.
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

/// A call is whole if its arguments are a document. Text is whole if its server reports the end.
fn is_reported_whole(heard_choice: &HeardChoice, ends: &[&str]) -> bool {
    match heard_choice.calls.last_key_value() {
        Some((_, arguments)) => serde_json::from_str::<Value>(arguments).is_ok(),
        None => heard_choice.finish.as_deref().is_some_and(|finish| ends.contains(&finish)),
    }
}

/// A wire format: its recordings, and the oracle.
struct Recorded {
    format: &'static str,
    recordings: &'static [&'static str],
    is_whole: fn(&[u8]) -> bool,
}

/// The README of the folder states the sources of the recordings.
const FORMATS: &[Recorded] = &[
    Recorded {
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
    Recorded {
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
    Recorded {
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
    Recorded {
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
        is_whole: content_is_whole,
    },
];

/// In the short run, one of this many bytes is cut: over fifty thousand cuts in total.
const SHORT_STEP: usize = 20;

#[derive(Default)]
struct Count {
    cuts: usize,
    whole: usize,
    splits: usize,
}

/// Every cut and every split of every recording of a format.
fn run(format: &Recorded) -> Count {
    let everything = std::env::var_os("EVERY_BYTE").is_some();
    let mut count = Count::default();
    for name in format.recordings {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../endmark-wire/tests/{}/{name}.sse", format.format));
        let stream = std::fs::read(path).unwrap();
        cut(format, name, &stream, if everything { 1 } else { SHORT_STEP }, &mut count);
        // Three-way splits grow with the square of the length.
        let step = if everything { (stream.len() / 1_200).max(1) } else { stream.len() / 8 };
        split(format, name, &stream, step, &mut count);
    }
    count
}

fn cut(format: &Recorded, name: &str, stream: &[u8], step: usize, count: &mut Count) {
    let mut read = Read::begin(format.format);
    // Bytes after the last blank line are not an event, so only a further event changes the oracle's result.
    let mut oracle: Option<(usize, bool)> = None;
    for at in 0..=stream.len() {
        if at > 0 {
            read.push(&stream[at - 1..at]);
        }
        if !at.is_multiple_of(step) && at != stream.len() {
            continue;
        }
        for stops in STOPS {
            let mut read = read.fork_silent();
            read.push(stops.last_words());
            let blank_line = stream[..at].windows(2).rposition(|two| two == b"\n\n");
            let settled = blank_line.map_or(0, |place| place + 2);
            let expected = match oracle {
                Some((place, whole)) if place == settled && stops.last_words().is_empty() => whole,
                _ => (format.is_whole)(&[&stream[..at], stops.last_words()].concat()),
            };
            if stops.last_words().is_empty() {
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

fn split(format: &Recorded, name: &str, stream: &[u8], step: usize, count: &mut Count) {
    let mut unsplit = Read::begin(format.format);
    unsplit.push(stream);
    let events = unsplit.events.clone();
    assert_eq!(unsplit.into_forwarded(), stream, "{name}");
    let same = |read: Read, first: usize, second: usize| {
        assert!(read.events == events, "{name} split at {first} and {second}: other events");
        assert!(read.into_forwarded() == stream, "{name} split at {first} and {second}: other bytes");
    };
    let mut beginning = Read::begin(format.format);
    for first in 0..=stream.len() {
        if first > 0 {
            beginning.push(&stream[first - 1..first]);
        }
        if first.is_multiple_of(step.min(97)) {
            let mut two = Read::begin(format.format);
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

/// No cut of a recorded stream is judged whole, and no whole stream is judged cut.
fn every_cut(format: &str) -> String {
    let format = FORMATS.iter().find(|recorded| recorded.format == format).unwrap();
    let count = run(format);
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
fn chat_completions_recover_from_every_cut() {
    println!("{}", every_cut("openai_chat"));
}

#[test]
fn responses_recover_from_every_cut() {
    println!("{}", every_cut("openai_responses"));
}

#[test]
fn messages_recover_from_every_cut() {
    println!("{}", every_cut("anthropic_messages"));
}

#[test]
fn gemini_recovers_from_every_cut() {
    println!("{}", every_cut("gemini"));
}
