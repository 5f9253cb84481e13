//! Two calls whose pieces come one after the other, or alternate, in a stream that breaks off at any byte. A call that is not
//! whole is never delivered as finished, and a reply that may lack a call is never `whole`.
//!
//! `EVERY_BYTE=1` breaks off at every byte; otherwise at some bytes of each event.

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod frames;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::{Value, json};
use testkit::{Answer, Dialect, Fault, Received, Reply, Respond};
use tokio::task::JoinSet;

use crate::support::Endmark;
use crate::support::spoken::{End, Said, Wire};
use frames::{Layout, frames};

const WEATHER: (&str, &str) = ("get_weather", r#"{"city":"Paris"}"#);
const TIME: (&str, &str) = ("get_time", r#"{"tz":"C\u00e9T"}"#);

/// How the upstream answers a request for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Refuses,
    /// It makes both calls again.
    Both,
    /// Both, the second of them cut.
    BothCut,
    /// Only the first.
    First,
    /// The first with another value.
    Other,
    /// The arguments of the first as text, whichever it is asked for.
    FirstAsText,
    /// Words.
    Words,
}

impl Manner {
    const ALL: [Self; 7] =
        [Self::Refuses, Self::Both, Self::BothCut, Self::First, Self::Other, Self::FirstAsText, Self::Words];

    fn answer(self, wire: Wire, stream: bool) -> Answer {
        let call = |(name, arguments)| Said::Call(name, arguments);
        let (said, end) = match self {
            Self::Refuses => {
                let Wire::Other(dialect) = wire else {
                    return Answer::error(400, "invalid_request_error", None, "no more of it");
                };
                return dialect.error(400, "no more of it");
            }
            Self::Both => (vec![call(WEATHER), call(TIME)], End::Calls),
            Self::BothCut => (vec![call(WEATHER), call((TIME.0, r#"{"tz":"C"#))], End::Limit),
            Self::First => (vec![call(WEATHER)], End::Calls),
            Self::Other => (vec![call((WEATHER.0, r#"{"city":"Rome"}"#))], End::Calls),
            Self::FirstAsText => (vec![Said::Text(WEATHER.1)], End::Turn),
            Self::Words => (vec![Said::Text("Sorry, I cannot go on.")], End::Turn),
        };
        wire.answer(&said, end, stream)
    }
}

/// Breaks the stream of each request off once, where the request says, and answers every further one in its manner.
struct Alternating {
    wire: Wire,
    layout: Layout,
    manner: Manner,
    asked: Mutex<BTreeMap<u64, usize>>,
}

impl Respond for Alternating {
    fn respond(&self, request: &Received) -> Answer {
        let body = request.json();
        let at = body["break_at"].as_u64().unwrap();
        let mut asked = self.asked.lock().unwrap();
        let times = asked.entry(at).or_default();
        *times += 1;
        if *times == 1 {
            let frames = frames(self.wire, self.layout, [WEATHER, TIME]);
            return Answer::sse([frames.concat()]).fault(usize::try_from(at).unwrap(), Fault::Close);
        }
        let stream = body["stream"] == true || request.path.contains("alt=sse");
        self.manner.answer(self.wire, stream)
    }
}

fn is_whole(name: &str, arguments: &str) -> bool {
    let key = if name == WEATHER.0 { "city" } else { "tz" };
    serde_json::from_str::<Value>(arguments).is_ok_and(|value| value[key].is_string())
}

/// The calls that a client of a stream reads, in order, each with whether it is marked as finished.
#[derive(Debug, Default)]
struct Client {
    calls: Vec<(String, String, bool)>,
    stop: Option<String>,
    has_failed: bool,
    endmark: Value,
}

impl Client {
    fn of(wire: Wire, reply: &Reply) -> Self {
        let mut client = Self { has_failed: reply.status != 200, ..Self::default() };
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for event in reply.json_events() {
            client.has_failed |= event["error"].is_object() || event["type"] == "error";
            let endmark =
                [&event["endmark"], &event["response"]["endmark"]].into_iter().find(|told| told.is_object());
            client.endmark = endmark.unwrap_or(&client.endmark).clone();
            match wire {
                Wire::Chat => client.chat(&event, &mut places),
                Wire::Other(Dialect::Responses) => client.responses(&event, &mut places),
                Wire::Other(Dialect::Messages) => client.messages(&event, &mut places),
                Wire::Other(Dialect::Gemini) => client.gemini(&event),
            }
        }
        let is_finished = client.stop.as_deref() == Some(wire.word(End::Calls)) && !client.has_failed;
        if wire == Wire::Chat {
            // Nothing else says of a call that it is whole.
            client.calls.iter_mut().for_each(|call| call.2 = is_finished);
        }
        if client.has_failed {
            client.calls.iter_mut().for_each(|call| call.2 &= matches!(wire, Wire::Other(Dialect::Gemini)));
        }
        client
    }

    fn chat(&mut self, event: &Value, places: &mut BTreeMap<u64, usize>) {
        let choice = &event["choices"][0];
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let at = self.place(call["index"].as_u64().unwrap(), places);
            self.calls[at].0 += call["function"]["name"].as_str().unwrap_or_default();
            self.calls[at].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
        self.ends(&choice["finish_reason"]);
    }

    fn responses(&mut self, event: &Value, places: &mut BTreeMap<u64, usize>) {
        let kind = event["type"].as_str().unwrap_or_default();
        let is_call = event["item"]["type"] == "function_call" || kind.contains("function_call");
        if let Some(at) = event["output_index"].as_u64().filter(|_| is_call) {
            let at = self.place(at, places);
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
            self.ends(&event["response"]["status"]);
        }
    }

    fn messages(&mut self, event: &Value, places: &mut BTreeMap<u64, usize>) {
        if event["content_block"]["type"] == "tool_use" {
            let at = self.place(event["index"].as_u64().unwrap(), places);
            self.calls[at] =
                (event["content_block"]["name"].as_str().unwrap().to_owned(), String::new(), true);
        }
        if let Some(piece) = event["delta"]["partial_json"].as_str() {
            let at = self.place(event["index"].as_u64().unwrap(), places);
            self.calls[at].1 += piece;
        }
        self.ends(&event["delta"]["stop_reason"]);
    }

    fn gemini(&mut self, event: &Value) {
        let candidate = &event["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            if let Some(call) = part.get("functionCall") {
                self.calls.push((call["name"].as_str().unwrap().to_owned(), call["args"].to_string(), true));
            }
        }
        self.ends(&candidate["finishReason"]);
    }

    fn place(&mut self, number: u64, places: &mut BTreeMap<u64, usize>) -> usize {
        *places.entry(number).or_insert_with(|| {
            self.calls.push(<(String, String, bool)>::default());
            self.calls.len() - 1
        })
    }

    fn ends(&mut self, word: &Value) {
        self.stop = word.as_str().map(str::to_owned).or(self.stop.take());
    }

    /// What is wrong with it.
    fn fault(&self, wire: Wire, manner: Manner) -> Option<&'static str> {
        let is_finished = |call: &&(String, String, bool)| call.2;
        if !self.calls.iter().filter(is_finished).all(|call| is_whole(&call.0, &call.1)) {
            return Some("a call that is not whole is finished");
        }
        let says_calls = self.stop.as_deref() == Some(wire.word(End::Calls)) && !self.has_failed;
        if says_calls && !self.calls.iter().all(|call| call.2) {
            return Some("it ends with calls, and has one that is not finished");
        }
        if self.stop.is_none() && !self.has_failed {
            return Some("it has neither an end nor an error");
        }
        // What the model answered by a call and an end of its own is all that it wanted.
        let is_meant = match manner {
            Manner::First | Manner::Other => true,
            // It answered the request itself, of whose reply nothing had come.
            Manner::FirstAsText | Manner::Words => self.calls.is_empty(),
            Manner::Refuses | Manner::Both | Manner::BothCut => false,
        };
        let may_lack = self.calls.len() < 2 && !is_meant;
        let outcome = self.endmark["outcome"].as_str().unwrap_or("whole");
        let reason = self.endmark["reason"].as_str().unwrap_or_default();
        if says_calls && may_lack && (outcome == "whole" || !reason.starts_with("calls_may_be_missing")) {
            return Some("a call is missing, and nothing says so");
        }
        None
    }
}

/// How many exchanges were made, how many ended with both calls, and what is wrong.
#[derive(Debug, Default)]
struct Tally {
    made: usize,
    whole: usize,
    faults: Vec<String>,
}

async fn break_everywhere(wire: Wire, layout: Layout, manner: Manner) -> Tally {
    let upstream = Alternating { wire, layout, manner, asked: Mutex::default() };
    let endmark = Endmark::start_with(upstream, |settings| {
        settings.retry.budget_percent = 100;
    })
    .await;
    let frames = frames(wire, layout, [WEATHER, TIME]);
    let mut ends = Vec::new();
    let mut at = 0;
    for (number, frame) in frames.iter().enumerate() {
        // Before it, within it, or before its last byte; in every second one, other ones for other manners.
        if number % 2 == manner as usize % 2 {
            ends.push(at + [0, frame.len() / 2, frame.len() - 1][number % 3]);
        }
        at += frame.len();
    }
    ends.push(at);
    if std::env::var_os("EVERY_BYTE").is_some() {
        ends = (0..=at).collect();
    }
    let mut tally = Tally::default();
    let mut under_way = JoinSet::new();
    let mut read = |(at, reply): (usize, Reply)| {
        let client = Client::of(wire, &reply);
        tally.made += 1;
        let is_both = client.calls.len() == 2 && client.calls.iter().all(|call| call.2);
        tally.whole += usize::from(is_both);
        if let Some(fault) = client.fault(wire, manner) {
            let body = reply.text();
            tally.faults.push(format!("{wire:?} {layout:?} {manner:?} at {at}: {fault}\n{client:?}\n{body}"));
        }
    };
    for at in ends {
        if under_way.len() == 4 {
            under_way.join_next().await.map(Result::unwrap).into_iter().for_each(&mut read);
        }
        let mut body = wire.request(true);
        body["break_at"] = json!(at);
        let request = testkit::Request::post(endmark.address, wire.path(true)).json(&body);
        under_way.spawn(async move { (at, request.send().await.read().await) });
    }
    under_way.join_all().await.into_iter().for_each(read);
    endmark.stop().await;
    tally
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_not_whole_is_never_finished() {
    let mut all = Tally::default();
    for (wire, layout) in Wire::ALL.into_iter().flat_map(|wire| Layout::ALL.map(|layout| (wire, layout))) {
        for manner in Manner::ALL {
            let tally = break_everywhere(wire, layout, manner).await;
            println!("{wire:?} {layout:?} {manner:?}: {} of {} with both calls", tally.whole, tally.made);
            all.made += tally.made;
            all.whole += tally.whole;
            all.faults.extend(tally.faults);
        }
    }
    println!("{} exchanges, {} with both calls, {} faults", all.made, all.whole, all.faults.len());
    let mut shown: Vec<&str> = all.faults.iter().map(String::as_str).collect();
    // One of each kind.
    let mut kinds = BTreeSet::new();
    shown.retain(|fault| {
        let (head, _) = fault.split_once('\n').unwrap_or_default();
        let (place, fault) = head.split_once(" at ").unwrap_or_default();
        kinds.insert((place, fault.split_once(": ").unwrap_or_default().1))
    });
    assert!(all.faults.is_empty(), "{} faults:\n{}", all.faults.len(), shown.join("\n\n"));
}
