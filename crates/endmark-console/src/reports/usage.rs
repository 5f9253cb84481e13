//! Calls, summed: each is priced by itself, since the price of its tokens depends on its length, its hour and its tier.

use std::collections::BTreeMap;

use endmark_context::budget::BYTES_PER_TOKEN;
use endmark_context::{Models, Moment, Tokens, dollars};
use endmark_store::{Reader, StoreError, UsageRow, may_be_billed};
use serde::{Serialize, Serializer};

/// A moment before every row, and one after it.
pub const EVER: (&str, &str) = ("0000-01-01 00:00:00", "9999-12-31 23:59:59");

/// By what calls are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UsageKey {
    /// The session, by its hash.
    Session,
    /// The model that was asked for.
    Model,
    /// The client's key, by its hash.
    Key,
    /// The upstream.
    Upstream,
    /// The day, UTC.
    Day,
    /// Why the call was made.
    Purpose,
}

impl UsageKey {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Session, Self::Model, Self::Key, Self::Upstream, Self::Day, Self::Purpose];

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Model => "model",
            Self::Key => "key",
            Self::Upstream => "upstream",
            Self::Day => "day",
            Self::Purpose => "purpose",
        }
    }
}

/// Sums of calls, with all of them together.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// By what the calls are summed.
    pub by: &'static str,
    /// The sums, the dearest first; days in their order.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>"))]
    pub rows: Vec<Row>,
    /// All of them together.
    pub total: Total,
    /// The day that the table of prices is from.
    pub prices_as_of: String,
}

impl Report {
    /// Sums the calls that began from `since` on and before `until`, as the store writes moments.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn read(
        reader: &Reader,
        by: UsageKey,
        since: &str,
        until: &str,
        models: &Models,
    ) -> Result<Self, StoreError> {
        let mut sums = Sums::new(by, models);
        reader.each_call(since, until, |row| sums.add(&row))?;
        let (rows, total) = sums.finish();
        Ok(Self { by: by.name(), rows, total, prices_as_of: models.as_of().to_owned() })
    }
}

/// Sums over calls.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Total {
    pub calls: u64,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub cache_write_tokens: u64,
    pub completion_tokens: u64,
    pub reasoning_tokens: u64,
    /// Calls whose tokens the provider did not report: they are estimated by their bytes, four to a token.
    pub estimated_calls: u64,
    /// Calls of models whose price is not known.
    pub unpriced_calls: u64,
    /// Dollars with nine places; null where a price is missing.
    pub usd: Option<String>,
    /// Dollars of the calls whose price is known.
    pub usd_at_least: String,
    #[serde(skip)]
    pub nano_usd: u64,
}

/// One sum under its key. It is written as an object whose first field has the key's own name.
#[derive(Debug, Clone)]
pub struct Row {
    /// By what the calls are summed.
    pub by: UsageKey,
    /// The session, model, key, upstream, day or purpose.
    pub key: String,
    /// Their sum.
    pub total: Total,
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named<'a> {
            #[serde(flatten)]
            key: BTreeMap<&'a str, &'a str>,
            #[serde(flatten)]
            total: &'a Total,
        }
        let key = BTreeMap::from([(self.by.name(), self.key.as_str())]);
        Named { key, total: &self.total }.serialize(serializer)
    }
}

/// Sums in the making.
pub struct Sums<'a> {
    by: UsageKey,
    models: &'a Models,
    rows: BTreeMap<String, Total>,
}

impl<'a> Sums<'a> {
    /// None yet, by this key.
    pub fn new(by: UsageKey, models: &'a Models) -> Self {
        Self { by, models, rows: BTreeMap::new() }
    }

    /// Adds a call.
    pub fn add(&mut self, call: &UsageRow) {
        let total = self.rows.entry(key(self.by, call)).or_default();
        let (tokens, is_estimated) = tokens(call);
        total.calls += 1;
        total.estimated_calls += u64::from(is_estimated);
        total.count(&tokens);
        if tokens == Tokens::default() {
            return;
        }
        // What answered is billed; some servers answer with a name of their own for a model.
        let named = call.answered_model.iter().chain([&call.model]);
        let model = named.filter(|name| !name.is_empty()).find_map(|name| self.models.find(name));
        let at = Moment::parse(&call.started_at);
        let cost = model.zip(at).and_then(|(model, at)| model.prices.cost(&tokens, at, None));
        match cost {
            Some(cost) => total.nano_usd = total.nano_usd.saturating_add(cost.nano_usd),
            None => total.unpriced_calls += 1,
        }
    }

    /// The rows, the dearest first (days in their order), and their sum.
    pub fn finish(self) -> (Vec<Row>, Total) {
        let mut total = Total::default();
        let mut rows: Vec<Row> = Vec::new();
        for (key, sum) in self.rows {
            total.add(&sum);
            rows.push(Row { by: self.by, key, total: sum.priced() });
        }
        if self.by != UsageKey::Day {
            let weight =
                |row: &Row| (row.total.nano_usd, row.total.prompt_tokens + row.total.completion_tokens);
            rows.sort_by_key(|row| std::cmp::Reverse(weight(row)));
        }
        (rows, total.priced())
    }
}

impl Total {
    fn count(&mut self, tokens: &Tokens) {
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        add(&mut self.prompt_tokens, tokens.prompt);
        add(&mut self.cached_tokens, tokens.cached);
        add(&mut self.cache_write_tokens, tokens.cache_write.saturating_add(tokens.cache_write_1h));
        add(&mut self.completion_tokens, tokens.completion);
        add(&mut self.reasoning_tokens, tokens.reasoning);
    }

    fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        add(&mut self.calls, other.calls);
        add(&mut self.prompt_tokens, other.prompt_tokens);
        add(&mut self.cached_tokens, other.cached_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.completion_tokens, other.completion_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
        add(&mut self.estimated_calls, other.estimated_calls);
        add(&mut self.unpriced_calls, other.unpriced_calls);
        add(&mut self.nano_usd, other.nano_usd);
    }

    /// Its dollars for people, with as many places: where prices are missing, what is known and for how many calls
    /// nothing is.
    ///
    /// ```
    /// use endmark_console::reports::usage::Total;
    /// let total = Total { nano_usd: 1_500_000_000, unpriced_calls: 2, ..Total::default() };
    /// assert_eq!(total.dollars_in_words(2), "1.50 + 2 calls without a price");
    /// ```
    pub fn dollars_in_words(&self, places: usize) -> String {
        if self.unpriced_calls > 0 && self.nano_usd == 0 {
            return "no price".to_owned();
        }
        let usd = dollars(self.nano_usd);
        let end = usd.find('.').map_or(usd.len(), |point| (point + 1 + places).min(usd.len()));
        let usd = usd.get(..end).unwrap_or(&usd);
        match self.unpriced_calls {
            0 => usd.to_owned(),
            1 => format!("{usd} + 1 call without a price"),
            calls => format!("{usd} + {calls} calls without a price"),
        }
    }

    /// With its dollars written out: null, and not too few, where a price is missing.
    fn priced(self) -> Self {
        let usd = dollars(self.nano_usd);
        Self { usd: Some(usd.clone()).filter(|_| self.unpriced_calls == 0), usd_at_least: usd, ..self }
    }
}

/// What the calls of one client came to.
pub struct Spent {
    /// Tokens of the prompts.
    pub prompt: u64,
    /// Tokens of the replies.
    pub completion: u64,
    /// The largest single call, prompt and completion together.
    pub largest_call: u64,
    /// None where the price of one is not known.
    pub nano_usd: Option<u64>,
    /// The model that was asked for first.
    pub model: Option<String>,
}

impl Spent {
    /// Sums calls; none where there are no calls.
    pub fn of(calls: &[UsageRow], models: &Models) -> Option<Self> {
        let first = calls.first()?;
        let mut sums = Sums::new(UsageKey::Key, models);
        for call in calls {
            sums.add(call);
        }
        let (_, total) = sums.finish();
        let size = |call: &UsageRow| {
            let (tokens, _) = tokens(call);
            tokens.prompt.saturating_add(tokens.completion)
        };
        Some(Self {
            prompt: total.prompt_tokens,
            completion: total.completion_tokens,
            largest_call: calls.iter().map(size).max().unwrap_or(0),
            nano_usd: Some(total.nano_usd).filter(|_| total.unpriced_calls == 0),
            model: Some(first.model.clone()).filter(|model| !model.is_empty()),
        })
    }
}

fn key(by: UsageKey, call: &UsageRow) -> String {
    match by {
        UsageKey::Session => call.session.clone(),
        UsageKey::Model => call.model.clone(),
        UsageKey::Key => call.credential.clone().unwrap_or_default(),
        UsageKey::Upstream => call.upstream.clone(),
        UsageKey::Day => call.started_at.get(..10).unwrap_or_default().to_owned(),
        UsageKey::Purpose => call.purpose.clone(),
    }
}

/// The tokens of a call, and whether they are estimated: where it may be billed and none were reported.
fn tokens(call: &UsageRow) -> (Tokens, bool) {
    let reported = &call.tokens;
    if reported.prompt.is_none() && reported.output.is_none() {
        // Of one whose gateway was killed nobody knows what came: its prompt went out.
        let was_served = call.ended_at.is_none() || may_be_billed(call.http_status, call.text_bytes);
        let estimated = Tokens {
            prompt: call.sent_bytes.div_ceil(BYTES_PER_TOKEN),
            completion: call.text_bytes.or(call.received_bytes).unwrap_or(0).div_ceil(BYTES_PER_TOKEN),
            ..Tokens::default()
        };
        return (if was_served { estimated } else { Tokens::default() }, was_served);
    }
    let written_1h = reported.cache_written_1h.unwrap_or(0);
    let counted = Tokens {
        prompt: reported.prompt.unwrap_or(0),
        cached: reported.cached.unwrap_or(0),
        cache_write: reported.cache_written.unwrap_or(0).saturating_sub(written_1h),
        cache_write_1h: written_1h,
        completion: reported.output.unwrap_or(0),
        reasoning: reported.reasoning.unwrap_or(0),
        ..Tokens::default()
    };
    (counted, false)
}
