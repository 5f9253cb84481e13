//! Compares `endmark usage` and the budgets with the upstream's bill, to the token and the nano-dollar. (CX-6, CX-7)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use endmark_store::{Reader, StoreLocation};
use serde_json::{Map, Value, json};
use testkit::{
    Answer, Fault, ModelFormat, ModelFormatAdapter, ReceivedRequest, Request, Respond, ScriptedModel,
    Upstream,
};
use tokio::sync::Semaphore;

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// The variable that sets the number of requests.
const REQUESTS_VARIABLE: &str = "ENDMARK_TEST_BILLED";

const TEXT: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";

/// Prefix of models that are called once each, by a client that does not wait for the reply.
const ABANDONED_MODEL_PREFIX: &str = "gone-before";

/// Nano-dollars per million tokens, chosen so that the cost of most calls must be rounded.
const INPUT_PRICE: u128 = 123_456_700;
const CACHED_INPUT_PRICE: u128 = 12_345_600;
const OUTPUT_PRICE: u128 = 2_718_281_800;

const CONFIGURATION: &str = "[prices.\"billed-*\"]\ninput = 0.1234567\ncached_input = 0.0123456\noutput = 2.7182818\n\
    [budget]\nday_tokens = 900_000_000\nkey_day_usd = 900\nunknown_price = \"count_tokens_only\"\n[limits]\nrequests = 500\n";

/// The wire formats; `None` is Chat Completions.
const FORMATS: [Option<ModelFormat>; 4] =
    [None, Some(ModelFormat::Responses), Some(ModelFormat::Messages), Some(ModelFormat::Gemini)];

/// The bill for all calls of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bill {
    calls: u64,
    prompt: u64,
    cached: u64,
    cache_write_tokens: u64,
    completion: u64,
    reasoning: u64,
    /// The cost, in millionths of nano-dollars.
    nano_usd_millionths: u128,
}

impl Bill {
    /// Returns the usage of the call with this number, without its cost.
    fn new(number: u64) -> Self {
        let prompt = 40 + number * 7_919 % 3_000;
        let cached = if number.is_multiple_of(3) { prompt / 2 } else { 0 };
        let written = if number % 5 == 1 { prompt / 4 } else { 0 };
        let completion = 10 + number * 104_729 % 700;
        let reasoning = if number.is_multiple_of(4) { completion / 3 } else { 0 };
        Self {
            calls: 1,
            prompt,
            cached,
            cache_write_tokens: written,
            completion,
            reasoning,
            nano_usd_millionths: 0,
        }
    }

    /// Returns the bill with the cost of its tokens.
    fn with_cost(self) -> Self {
        let plain = u128::from(self.prompt - self.cached);
        let sum = plain * INPUT_PRICE
            + u128::from(self.cached) * CACHED_INPUT_PRICE
            + u128::from(self.completion) * OUTPUT_PRICE;
        Self { nano_usd_millionths: sum, ..self }
    }

    /// Returns the bill with its cost rounded to nano-dollars.
    fn rounded(self) -> Self {
        Self { nano_usd_millionths: (self.nano_usd_millionths + 500_000) / 1_000_000 * 1_000_000, ..self }
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.prompt += other.prompt;
        self.cached += other.cached;
        self.cache_write_tokens += other.cache_write_tokens;
        self.completion += other.completion;
        self.reasoning += other.reasoning;
        self.nano_usd_millionths += other.nano_usd_millionths;
    }

    /// Replaces the usage in a reply with this bill. Returns whether the reply contained usage.
    fn replace_usage(&mut self, value: &mut Value) -> bool {
        if let Some(usage) = value.get_mut("usageMetadata").and_then(Value::as_object_mut) {
            self.cache_write_tokens = 0;
            usage.insert("promptTokenCount".to_owned(), json!(self.prompt));
            usage.insert("cachedContentTokenCount".to_owned(), json!(self.cached));
            usage.insert("candidatesTokenCount".to_owned(), json!(self.completion - self.reasoning));
            usage.insert("thoughtsTokenCount".to_owned(), json!(self.reasoning));
            usage.insert("totalTokenCount".to_owned(), json!(self.prompt + self.completion));
            return true;
        }
        let inner = ["response", "message"].into_iter().find(|name| value[*name]["usage"].is_object());
        let of = inner.map_or("", |name| if name == "message" { "anthropic" } else { "responses" });
        let place = match inner {
            Some(name) => &mut value[name],
            None => value,
        };
        let is_messages = of == "anthropic"
            || place["type"] == "message_delta"
            || (place["type"] == "message" && place["stop_reason"].is_string());
        let Some(usage) = place.get_mut("usage").and_then(Value::as_object_mut) else { return false };
        if usage.contains_key("prompt_tokens") {
            self.cache_write_tokens = 0;
            *usage = fields(json!({
                "prompt_tokens": self.prompt, "completion_tokens": self.completion,
                "total_tokens": self.prompt + self.completion,
                "prompt_tokens_details": {"cached_tokens": self.cached},
                "completion_tokens_details": {"reasoning_tokens": self.reasoning},
            }));
        } else if is_messages {
            self.reasoning = 0;
            if usage.contains_key("input_tokens") {
                usage.insert(
                    "input_tokens".to_owned(),
                    json!(self.prompt - self.cached - self.cache_write_tokens),
                );
                usage.insert("cache_read_input_tokens".to_owned(), json!(self.cached));
                usage.insert("cache_creation_input_tokens".to_owned(), json!(self.cache_write_tokens));
            }
            if of != "anthropic" {
                usage.insert("output_tokens".to_owned(), json!(self.completion));
            }
        } else {
            self.cache_write_tokens = 0;
            *usage = fields(json!({
                "input_tokens": self.prompt, "output_tokens": self.completion,
                "total_tokens": self.prompt + self.completion,
                "input_tokens_details": {"cached_tokens": self.cached},
                "output_tokens_details": {"reasoning_tokens": self.reasoning},
            }));
        }
        // Anthropic's first event contains usage, but the final count arrives later.
        of != "anthropic"
    }
}

/// Returns the fields of a JSON object.
fn fields(object: Value) -> Map<String, Value> {
    if let Value::Object(fields) = object { fields } else { Map::new() }
}

/// A model that bills exactly the usage that it reports.
struct BillingUpstream {
    chat: ScriptedModel,
    others: Vec<(ModelFormat, ModelFormatAdapter)>,
    next_number: AtomicU64,
    bills: Arc<Mutex<BTreeMap<String, Bill>>>,
    /// Models whose requests have arrived, and whose clients leave before the first byte of the reply.
    abandoned_models: Arc<Mutex<BTreeSet<String>>>,
}

impl BillingUpstream {
    fn new() -> Self {
        let speaking = |dialect| (dialect, ModelFormatAdapter::new(dialect, ScriptedModel::new(TEXT)));
        Self {
            chat: ScriptedModel::new(TEXT),
            others: FORMATS.into_iter().flatten().map(speaking).collect(),
            next_number: AtomicU64::new(0),
            bills: Arc::default(),
            abandoned_models: Arc::default(),
        }
    }

    fn answer(&self, request: &ReceivedRequest) -> Answer {
        let of = |stream: bool| {
            let path = |dialect: &ModelFormat| dialect.path(stream).split('?').next().unwrap().to_owned();
            let client_request = request.path.split('?').next().unwrap().to_owned();
            self.others.iter().find(|(dialect, _)| is_same_path(&path(dialect), &client_request))
        };
        match of(false).or_else(|| of(true)) {
            Some((_, model)) => model.respond(request),
            None => self.chat.respond(request),
        }
    }
}

/// Whether two paths are equal except for the model name in them.
fn is_same_path(one: &str, other: &str) -> bool {
    match (one.rsplit_once(':'), other.rsplit_once(':')) {
        (Some((_, one)), Some((_, other))) => one == other,
        (None, None) => one == other,
        _ => false,
    }
}

fn requested_model(request: &ReceivedRequest) -> String {
    let in_path =
        request.path.split_once("/models/").map(|(_, rest)| rest.split(':').next().unwrap().to_owned());
    in_path.unwrap_or_else(|| request.json()["model"].as_str().unwrap().to_owned())
}

impl Respond for BillingUpstream {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let model = requested_model(request);
        if model.starts_with("refused") {
            return Answer::error(400, "invalid_request_error", None, "no");
        }
        if model.starts_with(ABANDONED_MODEL_PREFIX) {
            self.abandoned_models.lock().unwrap().insert(model);
            return Answer::without_status(Fault::Stall);
        }
        let answer = self.answer(request);
        let mut bill = Bill::new(self.next_number.fetch_add(1, Ordering::Relaxed));
        let body = String::from_utf8(answer.body()).unwrap();
        let is_stream = body.contains("data: ");
        let (answer, is_reported) = if is_stream {
            let mut is_reported = false;
            let frames: Vec<String> = body
                .split_inclusive("\n\n")
                .map(|frame| {
                    let Some((before, data)) = frame.split_once("data: ") else { return frame.to_owned() };
                    let Ok(mut value) = serde_json::from_str::<Value>(data.trim()) else {
                        return frame.to_owned();
                    };
                    is_reported |= bill.replace_usage(&mut value);
                    format!("{before}data: {value}\n\n")
                })
                .collect();
            (Answer::sse(frames), is_reported)
        } else {
            let mut value: Value = serde_json::from_str(&body).unwrap();
            let is_reported = bill.replace_usage(&mut value);
            (Answer::json(200, &value), is_reported)
        };
        if model.starts_with("gone") {
            let half = answer.body().len() / 2;
            return answer.stall_after(half);
        }
        assert!(is_reported, "{body}");
        self.bills.lock().unwrap().entry(model).or_default().add(&bill.with_cost());
        answer
    }
}

/// One request of a client.
#[derive(Debug, Clone, Copy)]
struct ClientRequest {
    number: u64,
    format: Option<ModelFormat>,
    stream: bool,
}

impl ClientRequest {
    fn new(number: u64) -> Self {
        let format = FORMATS[usize::try_from(number % 4).unwrap()];
        Self { number, format, stream: (number / 4).is_multiple_of(2) }
    }

    fn model(self) -> String {
        match self.number % 23 {
            7 => "refused-1".to_owned(),
            11 if self.stream => "gone-1".to_owned(),
            11 => format!("{ABANDONED_MODEL_PREFIX}-{}", self.number),
            _ => format!("billed-{}", self.number % 3),
        }
    }

    fn request(self, served: &ServeProcess) -> Request {
        // Every third reply is cut. It is resumed if the client requests that.
        let limit = if self.number.is_multiple_of(3) { 4 } else { 4_096 };
        let mode = ["auto", "on", "off", "warn"][usize::try_from(self.number / 8 % 4).unwrap()];
        let model = self.model();
        let (path, mut body) = match self.format {
            None => {
                let user = json!([{"role": "user", "content": format!("Tell {}.", self.number)}]);
                (
                    "/v1/chat/completions",
                    json!({"max_tokens": limit, "stream": self.stream, "messages": user}),
                )
            }
            Some(dialect) => (dialect.path(self.stream), dialect.request(limit, self.stream)),
        };
        let named =
            path.split_once("/models/").and_then(|(before, rest)| Some((before, rest.split_once(':')?.1)));
        let path = if let Some((before, method)) = named {
            format!("{before}/models/{model}:{method}")
        } else {
            body["model"] = json!(model);
            path.to_owned()
        };
        // A Chat Completions stream reports its usage only on request.
        if self.format.is_none() && self.stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        let request = Request::post(served.address, &path).header("x-endmark-resume", mode);
        request.header("authorization", &format!("Bearer k-{}", self.number % 2)).json(&body)
    }
}

/// Sends one request. Some clients leave before the reply ends.
async fn ask(client_request: ClientRequest, request: Request, left: &Mutex<BTreeSet<String>>) {
    let model = client_request.model();
    if model.starts_with(ABANDONED_MODEL_PREFIX) {
        let asking = tokio::spawn(request.try_send());
        while !left.lock().unwrap().contains(&model) {
            assert!(!asking.is_finished(), "{client_request:?} was answered");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        return asking.abort();
    }
    let mut open = request.send().await;
    if model.starts_with("gone") {
        open.next_bytes().await.unwrap();
        open.reset();
        return;
    }
    let reply = open.read().await;
    let expected = if model.starts_with("refused") { 400 } else { 200 };
    assert_eq!(reply.status, expected, "{client_request:?}: {}", reply.text());
}

fn parse_bill(row: &Value) -> Bill {
    let count = |name: &str| row[name].as_u64().unwrap();
    let digits = row["usd"].as_str().unwrap().replace('.', "");
    Bill {
        calls: count("calls"),
        prompt: count("prompt_tokens"),
        cached: count("cached_tokens"),
        cache_write_tokens: count("cache_write_tokens"),
        completion: count("completion_tokens"),
        reasoning: count("reasoning_tokens"),
        nano_usd_millionths: digits.parse::<u128>().unwrap() * 1_000_000,
    }
}

#[test]
fn usage_and_budgets_equal_the_upstream_bill() {
    let requests: u64 = std::env::var(REQUESTS_VARIABLE).map_or(240, |requests| requests.parse().unwrap());
    in_runtime(async move {
        let billing = BillingUpstream::new();
        let (bills, left) = (Arc::clone(&billing.bills), Arc::clone(&billing.abandoned_models));
        let upstream = Upstream::start(billing).await;
        let place = TestFolder::new().with_file("endmark.toml", CONFIGURATION);
        let url = upstream.base_url();
        let served = ServeProcess::start(&place, &["--upstream", &url]);
        let at_once = Arc::new(Semaphore::new(32));
        let tasks: Vec<_> = (0..requests)
            .map(|number| {
                let (client_request, at_once, left) =
                    (ClientRequest::new(number), Arc::clone(&at_once), Arc::clone(&left));
                let request = client_request.request(&served);
                tokio::spawn(async move {
                    let _turn = at_once.acquire().await.unwrap();
                    ask(client_request, request, &left).await;
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(served.stop("-TERM").0, Some(0));

        let bills = bills.lock().unwrap().clone();
        let data = place.run(&["usage", "--json"]).envelope()["data"].clone();
        let rows = data["rows"].as_array().unwrap();
        let row = |model: &str| {
            rows.iter().find(|row| row["model"] == model).unwrap_or_else(|| panic!("{model}: {data}"))
        };
        for (model, bill) in &bills {
            let row = row(model);
            assert_eq!(parse_bill(row), bill.rounded(), "{model}");
            assert_eq!((&row["estimated_calls"], &row["unpriced_calls"]), (&json!(0), &json!(0)), "{model}");
        }
        assert!(bills.values().map(|bill| bill.calls).sum::<u64>() > requests * 8 / 10, "{bills:?}");
        let tokens =
            |row: &Value| row["prompt_tokens"].as_u64().unwrap() + row["completion_tokens"].as_u64().unwrap();
        let count = |begins: &str| {
            (0..requests).filter(|n| ClientRequest::new(*n).model().starts_with(begins)).count()
        };
        // The bills of clients that left before or during the reply are unknown.
        let gone = row("gone-1");
        let streams = count("gone") - count(ABANDONED_MODEL_PREFIX);
        assert_eq!((&gone["calls"], &gone["estimated_calls"]), (&json!(streams), &json!(streams)));
        let mut estimated = tokens(gone);
        for model in &*left.lock().unwrap() {
            let row = row(model);
            assert_eq!((&row["calls"], &row["estimated_calls"]), (&json!(1), &json!(1)), "{model}");
            assert_eq!(row["completion_tokens"], 0, "{model}");
            assert!(tokens(row) > 10, "{model}: {row}");
            estimated += tokens(row);
        }
        assert_eq!(left.lock().unwrap().len(), count(ABANDONED_MODEL_PREFIX));
        let refused = row("refused-1");
        assert_eq!((&refused["calls"], &refused["prompt_tokens"]), (&json!(count("refused")), &json!(0)));

        // The budgets contain the billed and the estimated tokens.
        let budgets = Reader::open(&StoreLocation::sqlite(place.store())).unwrap().budgets().unwrap();
        let day: u64 = budgets.iter().filter(|row| row.scope == "all").map(|row| row.spent).sum();
        let billed: u64 = bills.values().map(|bill| bill.prompt + bill.completion).sum();
        assert!(budgets.iter().all(|row| row.held == 0 && (row.spent, 0) == row.recomputed), "{budgets:?}");
        assert!(
            day >= billed && day <= billed + estimated,
            "{day} spent, {billed} billed, {estimated} estimated"
        );
    });
}

/// Number of requests in flight when the gateway is killed.
const REQUESTS_IN_FLIGHT: u64 = 24;

#[test]
fn budgets_after_a_kill_equal_the_bill_plus_calls_in_flight() {
    let kills: u64 = std::env::var("ENDMARK_TEST_BUDGET_KILLS").map_or(3, |kills| kills.parse().unwrap());
    in_runtime(async move {
        let place = TestFolder::new().with_file("endmark.toml", CONFIGURATION);
        let billing = BillingUpstream::new();
        let bills = Arc::clone(&billing.bills);
        let upstream = Upstream::start(billing).await;
        let url = upstream.base_url();
        let mut in_flight = 0;
        for kill in 0..kills {
            let served = ServeProcess::start(&place, &["--upstream", &url]);
            let tasks: Vec<_> = (0..REQUESTS_IN_FLIGHT)
                .map(|number| {
                    let client_request = ClientRequest {
                        number: number * 3 + 1,
                        format: None,
                        stream: number.is_multiple_of(2),
                    };
                    let body = json!({
                        "model": "billed-0", "max_tokens": 4_096, "stream": client_request.stream,
                        "stream_options": {"include_usage": true},
                        "messages": [{"role": "user", "content": format!("Tell {number}.")}],
                    });
                    let request = Request::post(served.address, "/v1/chat/completions").json(&body);
                    tokio::spawn(async move {
                        let Ok(open) = request.try_send().await else { return false };
                        let mut open = open;
                        loop {
                            match open.next_bytes().await {
                                Ok(Some(_)) => {}
                                Ok(None) => return true,
                                Err(_) => return false,
                            }
                        }
                    })
                })
                .collect();
            tokio::time::sleep(std::time::Duration::from_millis(kill * 7 % 60)).await;
            served.kill();
            for task in tasks {
                in_flight += u64::from(!task.await.unwrap());
            }
        }
        // The next start settles the calls that were in flight.
        let served = ServeProcess::start(&place, &["--upstream", &url]);
        assert_eq!(served.stop("-TERM").0, Some(0));
        let budgets = Reader::open(&StoreLocation::sqlite(place.store())).unwrap().budgets().unwrap();
        assert!(budgets.iter().all(|row| row.held == 0 && (row.spent, 0) == row.recomputed), "{budgets:?}");
        let spent: u64 = budgets.iter().filter(|row| row.scope == "all").map(|row| row.spent).sum();
        let billed: u64 = bills.lock().unwrap().values().map(|bill| bill.prompt + bill.completion).sum();
        // A call holds the bytes of its prompt plus its limit, and is billed at most 3,749 tokens.
        let (most_held, most_billed) = (4_096 + 120, 3_749);
        assert!(in_flight > 0, "some were in flight");
        assert!(
            spent <= billed + in_flight * most_held,
            "{spent} spent, {billed} billed, {in_flight} in flight"
        );
        assert!(
            spent + in_flight * most_billed >= billed,
            "{spent} spent, {billed} billed, {in_flight} in flight"
        );
    });
}
