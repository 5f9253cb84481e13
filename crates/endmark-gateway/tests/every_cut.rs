//! Recorded streams, cut at every byte with every ending and split in every way, without a socket: so cheap that
//! all of it can be counted. Whether a beginning is whole is decided by an oracle that shares no code with what is
//! tested: the frames are split at blank lines, and JSON is read by another parser.
//!
//! `EVERY_BYTE=1` does all of it; else what fits into a moment. A wire format is one row of [`FORMATS`].

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

use std::collections::BTreeMap;
use std::path::Path;

use endmark_core::detect::Detector;
use endmark_core::{Ending, Evidence, Format, Judgement, Stop, judge};
use endmark_wire::openai_chat::{ChatRequest, ChatStream, Choice};
use endmark_wire::sse::{Decoder, Tail};
use serde_json::Value;

/// More than any recording has.
const CAP: usize = 1 << 20;

/// How the bytes of a stream stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stops {
    /// The connection is closed: FIN, or a chunk of HTTP that cannot be read.
    Closed,
    Reset,
    /// Nothing comes any more.
    Stall,
    /// The body ends as HTTP says.
    InOrder,
    /// After a broken event.
    Malformed,
    /// After an event that says that the server failed.
    ErrorEvent,
}

const STOPS: [Stops; 6] =
    [Stops::Closed, Stops::Reset, Stops::Stall, Stops::InOrder, Stops::Malformed, Stops::ErrorEvent];

impl Stops {
    /// What stands behind the cut.
    fn last_words(self) -> &'static [u8] {
        match self {
            Self::Malformed => b"data: {\"choices\":[{\"index\":0,\"del\n\n",
            Self::ErrorEvent => {
                b"data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n"
            }
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

/// A stream being read by what is tested.
trait Reading: Clone {
    fn begin() -> Self;
    /// Takes bytes; false once the stream has ended for its reader.
    fn push(&mut self, bytes: &[u8]) -> bool;
    /// What every event said, in words.
    fn events(&self) -> &[String];
    /// The bytes that went on, those after the last whole event included.
    fn forwarded(self) -> Vec<u8>;
    /// Whether the reply is judged whole, or not Endmark's business.
    fn is_whole(&self, stops: Stops) -> bool;
}

#[derive(Clone)]
struct Chat {
    decoder: Decoder,
    stream: ChatStream,
    events: Vec<String>,
    forwarded: Vec<u8>,
    failed: bool,
}

impl Reading for Chat {
    fn begin() -> Self {
        let request = ChatRequest::parse(br#"{"model":"m","messages":[],"stream":true}"#).unwrap();
        Self {
            decoder: Decoder::new(CAP),
            stream: ChatStream::new(&request, CAP),
            events: Vec::new(),
            forwarded: Vec::new(),
            failed: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        self.decoder.push(bytes).unwrap();
        if self.failed {
            return false;
        }
        while let Some(frame) = self.decoder.next_frame() {
            let said = self.stream.frame(&frame);
            self.events.push(format!("{said:?}"));
            self.forwarded.extend_from_slice(&frame.raw);
            match said {
                Ok(event) if event.error.is_some() => self.failed = true,
                Err(error) if error.is_broken_chunk() => self.failed = true,
                Ok(_) | Err(_) => {}
            }
            if self.failed {
                return false;
            }
        }
        true
    }

    fn events(&self) -> &[String] {
        &self.events
    }

    fn forwarded(self) -> Vec<u8> {
        let mut forwarded = self.forwarded;
        match self.decoder.finish() {
            Tail::Clean => {}
            Tail::Frame(frame) => forwarded.extend(frame.raw),
            Tail::Residue(bytes) => forwarded.extend(bytes),
        }
        forwarded
    }

    fn is_whole(&self, stops: Stops) -> bool {
        let choices = self.stream.choices();
        let ending = |choice: &Choice| match self.stream.ending(choice.index) {
            Ending::Dropped => stops.ending(),
            known => known,
        };
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
        reasoned: choice.reasoned,
    });
    matches!(judgement, Judgement::Cut(_))
}

/// What the oracle heard of one choice.
#[derive(Default)]
struct Told {
    calls: BTreeMap<u64, String>,
    finish: Option<String>,
}

/// Whether a beginning of a chat stream is a whole reply, as anybody would say who looks at it.
fn chat_is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut choices: BTreeMap<u64, Told> = BTreeMap::new();
    let mut frames: Vec<&str> = text.split("\n\n").collect();
    // What stands behind the last blank line is no event.
    frames.pop();
    for frame in frames {
        let lines = frame.lines().filter_map(|line| line.strip_prefix("data:"));
        let data = lines.map(str::trim).collect::<Vec<_>>().join("\n");
        if data.is_empty() || data == "[DONE]" {
            continue;
        }
        // Behind what cannot be read nothing counts.
        let Ok(chunk) = serde_json::from_str::<Value>(&data) else { break };
        if chunk.get("error").is_some() {
            break;
        }
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            let told = choices.entry(choice["index"].as_u64().unwrap_or(0)).or_default();
            for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                told.calls.entry(call["index"].as_u64().unwrap_or(0)).or_default().push_str(arguments);
            }
            if let Some(finish) = choice["finish_reason"].as_str() {
                told.finish = Some(finish.to_owned());
            }
        }
    }
    !choices.is_empty() && choices.values().all(is_told_whole)
}

/// A call is whole where its arguments are a document, whoever says what; text where its server says that it ended.
fn is_told_whole(told: &Told) -> bool {
    match told.calls.last_key_value() {
        Some((_, arguments)) => serde_json::from_str::<Value>(arguments).is_ok(),
        None => told.finish.as_deref() == Some("stop"),
    }
}

/// A wire format: its recordings, how they are read, and the oracle.
struct WireFormat {
    folder: &'static str,
    recordings: &'static [&'static str],
    run: fn(&WireFormat) -> Count,
    is_whole: fn(&[u8]) -> bool,
}

/// Where the recordings are from stands in the README of their folder.
const FORMATS: &[WireFormat] = &[WireFormat {
    folder: "openai_chat",
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
    run: run::<Chat>,
    is_whole: chat_is_whole,
}];

#[derive(Default)]
struct Count {
    cuts: usize,
    whole: usize,
    splits: usize,
}

/// Every cut and every split of every recording of a format.
fn run<R: Reading>(format: &WireFormat) -> Count {
    let everything = std::env::var_os("EVERY_BYTE").is_some();
    let mut count = Count::default();
    for name in format.recordings {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../endmark-wire/tests/{}/{name}.sse", format.folder));
        let stream = std::fs::read(path).unwrap();
        cut::<R>(format, name, &stream, if everything { 1 } else { 97 }, &mut count);
        // Three-way splits grow with the square of the length.
        let step = if everything { (stream.len() / 1_200).max(1) } else { stream.len() / 12 };
        split::<R>(name, &stream, step, &mut count);
    }
    count
}

fn cut<R: Reading>(format: &WireFormat, name: &str, stream: &[u8], step: usize, count: &mut Count) {
    let mut read = R::begin();
    for at in 0..=stream.len() {
        if at > 0 {
            read.push(&stream[at - 1..at]);
        }
        if !at.is_multiple_of(step) && at != stream.len() {
            continue;
        }
        for stops in STOPS {
            let mut read = read.clone();
            read.push(stops.last_words());
            let expected = (format.is_whole)(&[&stream[..at], stops.last_words()].concat());
            let found = read.is_whole(stops);
            assert!(found || !expected, "{name} cut at byte {at}, {stops:?}: a false alarm");
            assert!(!found || expected, "{name} cut at byte {at}, {stops:?}: a false whole");
            count.cuts += 1;
            count.whole += usize::from(found);
        }
    }
}

fn split<R: Reading>(name: &str, stream: &[u8], step: usize, count: &mut Count) {
    let mut unsplit = R::begin();
    unsplit.push(stream);
    let events = unsplit.events().to_vec();
    assert_eq!(unsplit.forwarded(), stream, "{name}");
    let same = |read: R, first: usize, second: usize| {
        assert!(read.events() == events, "{name} split at {first} and {second}: other events");
        assert!(read.forwarded() == stream, "{name} split at {first} and {second}: other bytes");
    };
    let mut beginning = R::begin();
    for first in 0..=stream.len() {
        if first > 0 {
            beginning.push(&stream[first - 1..first]);
        }
        if first.is_multiple_of(step.min(97)) {
            let mut two = R::begin();
            two.push(&stream[..first]);
            two.push(&stream[first..]);
            same(two, first, first);
            count.splits += 1;
        }
        if !first.is_multiple_of(step) {
            continue;
        }
        for second in (first..=stream.len()).step_by(step) {
            let mut three = beginning.clone();
            three.push(&stream[first..second]);
            three.push(&stream[second..]);
            same(three, first, second);
            count.splits += 1;
        }
    }
}

#[test]
fn no_cut_of_a_recorded_stream_is_taken_for_whole_and_no_whole_one_for_cut() {
    for format in FORMATS {
        let count = (format.run)(format);
        println!(
            "{}: {} cuts of {} recordings, {} of them whole: 0 false wholes, 0 false alarms; {} splits: same events, \
             same bytes",
            format.folder,
            count.cuts,
            format.recordings.len(),
            count.whole,
            count.splits
        );
        assert!(count.whole > 0 && count.cuts > count.whole, "{}: nothing was tried", format.folder);
    }
}
