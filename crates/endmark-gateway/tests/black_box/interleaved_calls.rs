//! Streams with several calls whose pieces arrive in sequence or alternate. Two calls break off at any byte,
//! and three calls are cut at the model's limit. An incomplete call is never delivered as finished, and a
//! reply that may lack a call is never `whole`.
//!
//! `EVERY_BYTE=1` cuts at every byte, and `EVERY_BYTE=17` at every seventeenth. By default, some bytes of
//! each event are tested.

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod frames;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::{Value, json};
use testkit::{Answer, Fault, ModelFormat, ReceivedRequest, Reply, Respond};
use tokio::task::JoinSet;

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use frames::{Layout, frames};

const WEATHER: (&str, &str) = ("get_weather", r#"{"city":"Paris"}"#);
const TIME: (&str, &str) = ("get_time", r#"{"tz":"C\u00e9T"}"#);
const WIND: (&str, &str) = ("get_wind", r#"{"at":"buoy \"7\""}"#);
const ROME: &str = r#"{"city":"Rome"}"#;

/// How the first reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEnding {
    /// Two calls. The connection breaks off after a number of bytes.
    BreaksOff,
    /// Three calls whose arguments have a number of bytes in total. The server closes each call and reports
    /// that the limit is reached.
    ReachesLimit,
    /// The same three calls, but the stream ends without a final event.
    Stops,
}

impl StreamEnding {
    fn calls(self) -> &'static [(&'static str, &'static str)] {
        if self == Self::BreaksOff { &[WEATHER, TIME] } else { &[WEATHER, TIME, WIND] }
    }

    fn frames(self, wire: Wire, layout: Layout, at: usize) -> Vec<String> {
        let end = match self {
            Self::BreaksOff => return frames(wire, layout, self.calls(), Some(End::Calls)),
            Self::ReachesLimit => Some(End::Limit),
            Self::Stops => None,
        };
        // Distribute the bytes evenly among the calls.
        let mut lengths = vec![0; self.calls().len()];
        for _ in 0..at {
            let open = |call: &usize| lengths[*call] < self.calls()[*call].1.len();
            let next = (0..lengths.len()).filter(open).min_by_key(|call| lengths[*call]);
            if let Some(call) = next {
                lengths[call] += 1;
            }
        }
        let cut = |(call, length): (&(&'static str, &'static str), usize)| (call.0, &call.1[..length]);
        let calls: Vec<_> = self.calls().iter().zip(lengths).map(cut).collect();
        frames(wire, layout, &calls, end)
    }

    fn answer(self, wire: Wire, layout: Layout, at: usize) -> Answer {
        let frames = self.frames(wire, layout, at);
        let length = if self == Self::BreaksOff { at } else { frames.concat().len() };
        let answer = Answer::sse([frames.concat()]);
        if self == Self::ReachesLimit { answer } else { answer.fault(length, Fault::Close) }
    }

    /// Returns the positions of the cuts, which differ for each manner.
    fn cuts(self, wire: Wire, layout: Layout, manner: AnswerStyle) -> Vec<usize> {
        if self != Self::BreaksOff {
            // A call without received arguments may be a complete call without arguments. In the layout
            // `LastFirst` the server ends each call before the previous one continues, so every call needs at
            // least one byte.
            let least = if layout == Layout::LastFirst { self.calls().len() } else { 1 };
            let all = least..=self.calls().iter().map(|call| call.1.len()).sum();
            let is_tried =
                |at: &usize| configured_step().is_some() || at % AnswerStyle::ALL.len() == manner as usize;
            return all.filter(is_tried).collect();
        }
        let frames = self.frames(wire, layout, 0);
        let (mut cuts, mut at) = (Vec::new(), 0);
        for (number, frame) in frames.iter().enumerate() {
            // The cut is before the frame, in its middle, or before its last byte.
            if number % 2 == manner as usize % 2 {
                cuts.push(at + [0, frame.len() / 2, frame.len() - 1][number % 3]);
            }
            at += frame.len();
        }
        cuts.push(at);
        configured_step().map_or(cuts, |step| (0..=at).skip(manner as usize % step).step_by(step).collect())
    }
}

/// Returns the distance between cuts in bytes, if `EVERY_BYTE` is set.
fn configured_step() -> Option<usize> {
    Some(std::env::var("EVERY_BYTE").ok()?.parse().unwrap_or(1).max(1))
}

/// How the upstream answers a request for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerStyle {
    Refuses,
    /// Repeats all calls.
    AllCalls,
    /// Repeats all calls, but the last one is cut.
    LastCallCut,
    /// Repeats only the first call.
    FirstCall,
    /// Repeats the first call with another value.
    OtherValue,
    /// Returns the arguments of the first call as text, whichever call was requested.
    FirstAsText,
    /// Answers with a sentence.
    Sentence,
}

impl AnswerStyle {
    const ALL: [Self; 7] = [
        Self::Refuses,
        Self::AllCalls,
        Self::LastCallCut,
        Self::FirstCall,
        Self::OtherValue,
        Self::FirstAsText,
        Self::Sentence,
    ];

    fn answer(self, wire: Wire, calls: &[(&'static str, &'static str)], stream: bool) -> Answer {
        let call = |(name, arguments): &(&'static str, &'static str)| ReplyPart::Call(name, arguments);
        let (call_arguments, end) = match self {
            Self::Refuses => {
                let Wire::Other(dialect) = wire else {
                    return Answer::error(400, "invalid_request_error", None, "no more of it");
                };
                return dialect.error(400, "no more of it");
            }
            Self::AllCalls => (calls.iter().map(call).collect(), End::Calls),
            Self::LastCallCut => {
                let mut call_arguments: Vec<_> = calls.iter().map(call).collect();
                if let Some(ReplyPart::Call(_, arguments)) = call_arguments.last_mut() {
                    *arguments = &arguments[..8];
                }
                (call_arguments, End::Limit)
            }
            Self::FirstCall => (vec![call(&WEATHER)], End::Calls),
            Self::OtherValue => (vec![call(&(WEATHER.0, ROME))], End::Calls),
            Self::FirstAsText => (vec![ReplyPart::Text(WEATHER.1)], End::Turn),
            Self::Sentence => (vec![ReplyPart::Text("Sorry, I cannot go on.")], End::Turn),
        };
        wire.answer(&call_arguments, end, stream)
    }
}

/// Cuts the first reply to each request at `cut_at`, and answers further requests in its manner.
struct CuttingUpstream {
    wire: Wire,
    layout: Layout,
    scene: StreamEnding,
    manner: AnswerStyle,
    requests_by_number: Mutex<BTreeMap<u64, usize>>,
}

impl Respond for CuttingUpstream {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let body = request.json();
        let at = body["cut_at"].as_u64().unwrap();
        let mut requested = self.requests_by_number.lock().unwrap();
        let times = requested.entry(at).or_default();
        *times += 1;
        if *times == 1 {
            return self.scene.answer(self.wire, self.layout, usize::try_from(at).unwrap());
        }
        let stream = body["stream"] == true || request.path.contains("alt=sse");
        self.manner.answer(self.wire, self.scene.calls(), stream)
    }
}

/// Whether a request asks for the rest by prompt, so that the answer may contain only the requested part.
fn is_prompt(body: &Value) -> bool {
    let turns = ["messages", "input", "contents"].into_iter().find_map(|name| body[name].as_array());
    let last = turns.filter(|turns| turns.len() > 1).and_then(|turns| turns.last());
    last.is_some_and(|last| last["role"] == "user")
}

fn is_whole_call(manner: AnswerStyle, name: &str, arguments: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    // Arguments as text do not show which call they belong to.
    let is_known = |known: &(&str, &str)| known.0 == name || manner == AnswerStyle::FirstAsText;
    let mut known = [WEATHER, TIME, WIND, (WEATHER.0, ROME)].into_iter().filter(is_known);
    known.any(|known| value(arguments) == value(known.1))
}

/// What a client reads from a stream: each call is its name, its arguments, and whether it is marked as
/// finished.
#[derive(Debug, Default)]
struct ReceivedStream {
    calls: Vec<(String, String, bool)>,
    stop: Option<String>,
    has_failed: bool,
    endmark: Value,
}

impl ReceivedStream {
    fn new(wire: Wire, reply: &Reply) -> Self {
        let mut client = Self { has_failed: reply.status != 200, ..Self::default() };
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for event in reply.json_events() {
            client.has_failed |= event["error"].is_object() || event["type"] == "error";
            let endmark = [&event["endmark"], &event["response"]["endmark"]]
                .into_iter()
                .find(|disclosed| disclosed.is_object());
            client.endmark = endmark.unwrap_or(&client.endmark).clone();
            match wire {
                Wire::Chat => client.read_chat(&event, &mut places),
                Wire::Other(ModelFormat::Responses) => client.read_responses(&event, &mut places),
                Wire::Other(ModelFormat::Messages) => client.read_messages(&event, &mut places),
                Wire::Other(ModelFormat::Gemini) => client.read_gemini(&event),
            }
        }
        let is_finished =
            client.stop.as_deref() == Some(wire.finish_reason(End::Calls)) && !client.has_failed;
        if wire == Wire::Chat {
            // In Chat, only the finish reason marks calls as finished.
            client.calls.iter_mut().for_each(|call| call.2 = is_finished);
        }
        if client.has_failed {
            client
                .calls
                .iter_mut()
                .for_each(|call| call.2 &= matches!(wire, Wire::Other(ModelFormat::Gemini)));
        }
        client
    }

    fn read_chat(&mut self, event: &Value, places: &mut BTreeMap<u64, usize>) {
        let choice = &event["choices"][0];
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let at = self.call_index(call["index"].as_u64().unwrap(), places);
            self.calls[at].0 += call["function"]["name"].as_str().unwrap_or_default();
            self.calls[at].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
        self.set_stop(&choice["finish_reason"]);
    }

    fn read_responses(&mut self, event: &Value, places: &mut BTreeMap<u64, usize>) {
        let kind = event["type"].as_str().unwrap_or_default();
        let is_call = event["item"]["type"] == "function_call" || kind.contains("function_call");
        if let Some(at) = event["output_index"].as_u64().filter(|_| is_call) {
            let at = self.call_index(at, places);
            let call = &mut self.calls[at];
            match kind {
                "response.output_item.added" => {
                    event["item"]["name"].as_str().unwrap().clone_into(&mut call.0);
                }
                "response.function_call_arguments.delta" => call.1 += event["delta"].as_str().unwrap(),
                "response.output_item.done" => {
                    event["item"]["arguments"].as_str().unwrap().clone_into(&mut call.1);
                    call.2 = event["item"]["status"] == "completed";
                }
                _ => {}
            }
        }
        if matches!(kind, "response.completed" | "response.incomplete") {
            let items = event["response"]["output"].as_array().unwrap().iter();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            self.calls = items
                .filter(|item| item["type"] == "function_call")
                .map(|item| (text(&item["name"]), text(&item["arguments"]), item["status"] == "completed"))
                .collect();
            self.set_stop(&event["response"]["status"]);
        }
    }

    fn read_messages(&mut self, event: &Value, places: &mut BTreeMap<u64, usize>) {
        if event["content_block"]["type"] == "tool_use" {
            let at = self.call_index(event["index"].as_u64().unwrap(), places);
            self.calls[at] =
                (event["content_block"]["name"].as_str().unwrap().to_owned(), String::new(), true);
        }
        if let Some(piece) = event["delta"]["partial_json"].as_str() {
            let at = self.call_index(event["index"].as_u64().unwrap(), places);
            self.calls[at].1 += piece;
        }
        self.set_stop(&event["delta"]["stop_reason"]);
    }

    fn read_gemini(&mut self, event: &Value) {
        let candidate = &event["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            if let Some(call) = part.get("functionCall") {
                self.calls.push((call["name"].as_str().unwrap().to_owned(), call["args"].to_string(), true));
            }
        }
        self.set_stop(&candidate["finishReason"]);
    }

    fn call_index(&mut self, number: u64, places: &mut BTreeMap<u64, usize>) -> usize {
        *places.entry(number).or_insert_with(|| {
            self.calls.push(<(String, String, bool)>::default());
            self.calls.len() - 1
        })
    }

    fn set_stop(&mut self, word: &Value) {
        self.stop = word.as_str().map(str::to_owned).or(self.stop.take());
    }

    /// Returns what is wrong with the result, or `None`. `requested` are the requests for the rest.
    fn fault(
        &self,
        wire: Wire,
        scene: StreamEnding,
        manner: AnswerStyle,
        requested: &[Value],
    ) -> Option<&'static str> {
        let is_finished = |call: &&(String, String, bool)| call.2;
        if !self.calls.iter().filter(is_finished).all(|call| is_whole_call(manner, &call.0, &call.1)) {
            return Some("a call that is not whole is finished");
        }
        let says_calls = self.stop.as_deref() == Some(wire.finish_reason(End::Calls)) && !self.has_failed;
        if says_calls && !self.calls.iter().all(|call| call.2) {
            return Some("it ends with calls, and has one that is not finished");
        }
        if self.stop.is_none() && !self.has_failed {
            return Some("it has neither an end nor an error");
        }
        // A model that answers with one call and ends by itself wanted no further call, unless the prompt
        // asked for one call only.
        let is_meant = match manner {
            AnswerStyle::FirstCall | AnswerStyle::OtherValue => {
                requested.last().is_some_and(|last| !is_prompt(last))
            }
            // Nothing of the reply had arrived, so the model answered the original request.
            AnswerStyle::FirstAsText | AnswerStyle::Sentence => self.calls.is_empty(),
            AnswerStyle::Refuses | AnswerStyle::AllCalls | AnswerStyle::LastCallCut => false,
        };
        let count = scene.calls().len();
        let may_lack = self.calls.len() < count && !is_meant;
        let outcome = self.endmark["outcome"].as_str().unwrap_or("whole");
        let says_missing =
            self.endmark["reason"].as_str().is_some_and(|reason| reason.starts_with("calls_may_be_missing"));
        if says_calls && may_lack && (outcome == "whole" || !says_missing) {
            return Some("a call is missing, and nothing says so");
        }
        let is_all = manner == AnswerStyle::AllCalls && !requested.is_empty() && self.calls.len() == count;
        if says_calls && is_all && says_missing {
            return Some("the answer has all calls, and one is called missing");
        }
        None
    }
}

/// Number of exchanges, number of those with all calls, and the faults.
#[derive(Debug, Default)]
struct Tally {
    exchange_count: usize,
    whole: usize,
    faults: Vec<String>,
}

async fn cut_everywhere(wire: Wire, layout: Layout, scene: StreamEnding, manner: AnswerStyle) -> Tally {
    let upstream = CuttingUpstream { wire, layout, scene, manner, requests_by_number: Mutex::default() };
    let endmark = Endmark::start_with(upstream, |settings| {
        settings.retry.budget_percent = 100;
    })
    .await;
    let mut under_way = JoinSet::new();
    let mut replies: Vec<(usize, Reply)> = Vec::new();
    for at in scene.cuts(wire, layout, manner) {
        if under_way.len() == 4 {
            replies.extend(under_way.join_next().await.map(Result::unwrap));
        }
        let mut body = wire.request(true);
        body["cut_at"] = json!(at);
        let request = testkit::Request::post(endmark.address, wire.path(true)).json(&body);
        under_way.spawn(async move { (at, request.send().await.read().await) });
    }
    replies.extend(under_way.join_all().await);
    let mut requested: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for request in endmark.upstream.requests() {
        let body = request.json();
        requested.entry(body["cut_at"].as_u64().unwrap()).or_default().push(body);
    }
    let mut tally = Tally { exchange_count: replies.len(), ..Tally::default() };
    for (at, reply) in replies {
        let client = ReceivedStream::new(wire, &reply);
        let is_all = client.calls.len() == scene.calls().len() && client.calls.iter().all(|call| call.2);
        tally.whole += usize::from(is_all);
        if let Some(fault) = client.fault(wire, scene, manner, &requested[&(at as u64)][1..]) {
            let body = reply.text();
            let what = format!("{wire:?} {layout:?} {scene:?} {manner:?} at {at}: {fault}");
            tally.faults.push(format!("{what}\n{client:?}\n{body}"));
        }
    }
    endmark.stop().await;
    tally
}

#[expect(clippy::print_stdout, reason = "the figures of a long run")]
async fn assert_no_cut_call_is_finished(scene: StreamEnding) {
    let (mut all, mut answered) = (Tally::default(), Tally::default());
    // If Gemini cannot end a call, it omits the call.
    let has_cut_calls =
        |wire: &Wire| scene == StreamEnding::BreaksOff || *wire != Wire::Other(ModelFormat::Gemini);
    let wires = Wire::ALL.into_iter().filter(has_cut_calls);
    for (wire, layout) in wires.flat_map(|wire| Layout::ALL.map(|layout| (wire, layout))) {
        for manner in AnswerStyle::ALL {
            let tally = cut_everywhere(wire, layout, scene, manner).await;
            println!(
                "{wire:?} {layout:?} {manner:?}: {} of {} with all calls",
                tally.whole, tally.exchange_count
            );
            all.exchange_count += tally.exchange_count;
            all.whole += tally.whole;
            if manner == AnswerStyle::AllCalls {
                answered.exchange_count += tally.exchange_count;
                answered.whole += tally.whole;
            }
            all.faults.extend(tally.faults);
        }
    }
    println!("{} exchanges, {} with all calls, {} faults", all.exchange_count, all.whole, all.faults.len());
    // An answer with all calls completes all cut calls.
    assert!(
        scene == StreamEnding::BreaksOff || answered.whole * 10 >= answered.exchange_count * 9,
        "{answered:?}"
    );
    let mut shown: Vec<&str> = all.faults.iter().map(String::as_str).collect();
    // Print one fault of each kind.
    let mut kinds = BTreeSet::new();
    shown.retain(|fault| {
        let (head, _) = fault.split_once('\n').unwrap_or_default();
        let (place, fault) = head.split_once(" at ").unwrap_or_default();
        kinds.insert((place, fault.split_once(": ").unwrap_or_default().1))
    });
    assert!(all.faults.is_empty(), "{} faults:\n{}", all.faults.len(), shown.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_interleaved_call_is_never_finished() {
    assert_no_cut_call_is_finished(StreamEnding::BreaksOff).await;
}

/// Each call may be cut, although the server reports all of them as complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_their_server_closed_early_are_never_finished() {
    assert_no_cut_call_is_finished(StreamEnding::ReachesLimit).await;
    assert_no_cut_call_is_finished(StreamEnding::Stops).await;
}
