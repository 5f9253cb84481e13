//! Sums calls of the store, and applies the current prices.

use std::collections::{BTreeMap, HashMap};

use endmark_context::{Model, Models, Moment, Tokens, dollars, round_half_up};
use endmark_store::{
    Billing, CallClass, CallSums, CountedCalls, Dimension, Reader, SharedSums, StoreError, UsageRow, classify,
};
use serde::{Serialize, Serializer};

/// A time before all rows and a time after all rows.
pub const ALL_TIME: (&str, &str) = ("0000-01-01 00:00:00", "9999-12-31 23:59:59");

/// The property by which calls are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UsageKey {
    /// The session, by its hash.
    Session,
    /// The requested model.
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
    /// All keys, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Session, Self::Model, Self::Key, Self::Upstream, Self::Day, Self::Purpose];

    /// Returns the key's name in reports.
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

    /// Returns the dimension in which the store sums calls for this key.
    pub fn dimension(self) -> Dimension {
        match self {
            Self::Session => Dimension::Session,
            Self::Key => Dimension::Key,
            Self::Model | Self::Upstream | Self::Day | Self::Purpose => Dimension::Nothing,
        }
    }
}

/// Sums of calls, with all of them together.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// The dimension of the sums.
    pub by: &'static str,
    /// The sums, most expensive first. Days are in order.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>"))]
    pub rows: Vec<UsageSum>,
    /// All of them together.
    pub total: Total,
    /// The day that the table of prices is from.
    pub prices_as_of: String,
    /// Whether the calls of other gateways that share the database are missing.
    pub this_gateway_alone: bool,
}

impl UsageReport {
    /// Sums the calls that began at or after `since` and before `until`, both in the store's format.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn read(
        reader: &Reader,
        by: UsageKey,
        since: &str,
        until: &str,
        models: &Models,
    ) -> Result<Self, StoreError> {
        Self::sum(reader, by, (by.dimension(), None), (since, until), models)
    }

    /// Prices the sums of all gateways that share a database. The sums must have the dimension of the key.
    pub fn from_all_gateways(sums: &SharedSums, by: UsageKey, models: &Models) -> Self {
        let mut priced = Sums::new(by, models);
        sums.iter().for_each(|summed| priced.add(&summed));
        Self::from_sums(priced, &sums.separately_billed)
    }

    /// Sums all calls of a session, by model.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn for_session(reader: &Reader, session: &str, models: &Models) -> Result<Self, StoreError> {
        Self::sum(reader, UsageKey::Model, (Dimension::Session, Some(session)), ALL_TIME, models)
    }

    fn sum(
        reader: &Reader,
        by: UsageKey,
        of: (Dimension, Option<&str>),
        (since, until): (&str, &str),
        models: &Models,
    ) -> Result<Self, StoreError> {
        let mut sums = Sums::new(by, models);
        // Read these calls before the sums, so that all of them are also in the sums.
        let session = if of.0 == Dimension::Session { of.1 } else { None };
        let billed_apart = reader.separately_billed_calls(session, since, until)?;
        reader.sums(of, since, until, |summed| sums.add(summed))?;
        Ok(Self::from_sums(sums, &billed_apart))
    }

    fn from_sums(mut sums: Sums<'_>, billed_apart: &[UsageRow]) -> Self {
        for call in billed_apart {
            sums.correct_price(call);
        }
        let (by, prices_as_of) = (sums.by.name(), sums.models.as_of().to_owned());
        let (rows, total) = sums.into_rows();
        Self { by, rows, total, prices_as_of, this_gateway_alone: false }
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
    /// Calls whose tokens the provider did not report completely, and which are estimated.
    pub estimated_calls: u64,
    /// Calls of models without a known price.
    pub unpriced_calls: u64,
    /// Cost in dollars with nine decimal places. Null if a price is missing.
    pub usd: Option<String>,
    /// Cost in dollars of the calls with a known price.
    pub usd_at_least: String,
    #[serde(skip)]
    pub nano_usd: u64,
    /// Cost in millionths of nano-dollars. It is rounded only once, at the end.
    #[serde(skip)]
    millionths: u128,
}

/// One sum with its key. It is serialised as an object whose first field has the key's own name.
#[derive(Debug, Clone)]
pub struct UsageSum {
    /// The dimension of the sum.
    pub by: UsageKey,
    /// The session, model, key, upstream, day or purpose.
    pub key: String,
    /// Their sum.
    pub total: Total,
}

impl Serialize for UsageSum {
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

/// Sums to which calls are added.
pub struct Sums<'a> {
    by: UsageKey,
    models: &'a Models,
    /// The models that were already looked up, by name.
    known: HashMap<String, Option<&'a Model>>,
    rows: BTreeMap<String, Total>,
}

impl<'a> Sums<'a> {
    /// Creates empty sums by this key.
    pub fn new(by: UsageKey, models: &'a Models) -> Self {
        Self { by, models, known: HashMap::new(), rows: BTreeMap::new() }
    }

    /// Adds the sums of calls of one class.
    pub fn add(&mut self, summed: &CountedCalls<'_>) {
        let CountedCalls { started_at: at, class, sums, .. } = *summed;
        let day = at.get(..10).unwrap_or_default();
        let mut total = Total {
            calls: sums.calls,
            prompt_tokens: sums.prompt,
            cached_tokens: sums.cached,
            cache_write_tokens: sums.cache_write.saturating_add(sums.cache_write_1h),
            completion_tokens: sums.completion,
            reasoning_tokens: sums.reasoning,
            estimated_calls: sums.estimated,
            ..Total::default()
        };
        if class.kinds > 0 {
            match self.compute_cost(day, class, sums) {
                Some(cost) => total.millionths = cost,
                None => total.unpriced_calls = sums.calls,
            }
        }
        self.sum_mut(summed.key, day, class).add(&total);
    }

    /// Adds a single call with its own price.
    pub fn add_call(&mut self, call: &UsageRow) {
        let (class, sums) = classify(call);
        let key = self.key_of_call(call);
        self.add(&CountedCalls { started_at: &call.started_at, key, class: &class, sums: &sums });
        if call.billing != Billing::default() {
            self.correct_price_of_class(call, &class, &sums);
        }
    }

    /// Corrects the price of a call whose tokens were already added, for its service tier, its audio tokens
    /// and the provider's searches.
    pub fn correct_price(&mut self, call: &UsageRow) {
        let (class, counts) = classify(call);
        self.correct_price_of_class(call, &class, &counts);
    }

    /// Same as `correct`, for a call whose class and counts are known.
    fn correct_price_of_class(&mut self, call: &UsageRow, class: &CallClass, counts: &CallSums) {
        if class.kinds == 0 {
            return;
        }
        let day = call.started_at.get(..10).unwrap_or_default();
        let added = self.compute_cost(day, class, counts);
        let billing = &call.billing;
        let tokens = Tokens {
            cached: counts.cached.saturating_sub(billing.cached_audio),
            prompt_audio: billing.prompt_audio,
            cached_audio: billing.cached_audio,
            completion_audio: billing.completion_audio,
            web_searches: billing.web_searches,
            ..priced_tokens(counts)
        };
        let priced = self.find_pricing(day, class).and_then(|(model, at)| {
            let (cost, _) = model.prices.exact_cost(&tokens, at, billing.tier.as_deref())?;
            Some(cost)
        });
        let row = self.sum_mut(self.key_of_call(call), day, class);
        row.millionths =
            row.millionths.saturating_sub(added.unwrap_or(0)).saturating_add(priced.unwrap_or(0));
        let is_newly_unpriced = added.is_some() && priced.is_none();
        let is_newly_priced = added.is_none() && priced.is_some();
        row.unpriced_calls =
            (row.unpriced_calls + u64::from(is_newly_unpriced)).saturating_sub(u64::from(is_newly_priced));
    }

    /// Returns the session or key of a call, as in [`CountedCalls`].
    fn key_of_call<'c>(&self, call: &'c UsageRow) -> &'c str {
        match self.by {
            UsageKey::Session => &call.session,
            _ => call.credential.as_deref().unwrap_or_default(),
        }
    }

    /// Returns the sum to which calls of this session or key, day and class belong.
    fn sum_mut(&mut self, key: &str, day: &str, class: &CallClass) -> &mut Total {
        let key = match self.by {
            UsageKey::Session | UsageKey::Key => key,
            UsageKey::Model => &class.model,
            UsageKey::Upstream => &class.upstream,
            UsageKey::Day => day,
            UsageKey::Purpose => &class.purpose,
        };
        self.rows.entry(key.to_owned()).or_default()
    }

    /// Returns the cost in millionths of nano-dollars, or `None` if a price is unknown.
    fn compute_cost(&mut self, day: &str, class: &CallClass, sums: &CallSums) -> Option<u128> {
        let (model, at) = self.find_pricing(day, class)?;
        model.prices.batch_cost(&priced_tokens(sums), at, class.above_tokens.saturating_add(1))
    }

    /// Returns the billed model, and a time at which the price of these calls applies.
    fn find_pricing(&mut self, day: &str, class: &CallClass) -> Option<(&'a Model, Moment)> {
        // The answering model is billed. If its name is unknown, because some servers use other names, use
        // the requested model.
        let named = [&class.answered_model, &class.model].into_iter().filter(|name| !name.is_empty());
        let model = named.into_iter().find_map(|name| self.find_model(name))?;
        let (hour, minute) = (class.from_minute / 60, class.from_minute % 60);
        let at = Moment::parse(&format!("{day} {hour:02}:{minute:02}"))?;
        Some((model, at))
    }

    fn find_model(&mut self, name: &str) -> Option<&'a Model> {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let found = self.models.find(name);
        self.known.insert(name.to_owned(), found);
        found
    }

    /// Returns the sums and their total. The most expensive sum is first, but days are in chronological
    /// order.
    pub fn into_rows(self) -> (Vec<UsageSum>, Total) {
        let mut total = Total::default();
        let mut rows: Vec<UsageSum> = Vec::new();
        for (key, sum) in self.rows {
            total.add(&sum);
            rows.push(UsageSum { by: self.by, key, total: sum.with_dollars() });
        }
        if self.by != UsageKey::Day {
            let weight =
                |row: &UsageSum| (row.total.nano_usd, row.total.prompt_tokens + row.total.completion_tokens);
            rows.sort_by_key(|row| std::cmp::Reverse(weight(row)));
        }
        (rows, total.with_dollars())
    }
}

/// Converts sums to the token counts that have prices.
fn priced_tokens(sums: &CallSums) -> Tokens {
    Tokens {
        prompt: sums.plain_prompt.saturating_add(sums.cache_tokens()),
        cached: sums.cached,
        cache_write: sums.cache_write,
        cache_write_1h: sums.cache_write_1h,
        completion: sums.plain_completion.saturating_add(sums.reasoning),
        reasoning: sums.reasoning,
        ..Tokens::default()
    }
}

impl Total {
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
        self.millionths = self.millionths.saturating_add(other.millionths);
    }

    /// Formats the cost in dollars with `places` decimal places. If prices are missing, states the known sum
    /// and the number of calls without a price.
    ///
    /// ```
    /// use endmark_console::reports::usage::Total;
    /// let mut total = Total::default();
    /// (total.nano_usd, total.unpriced_calls) = (1_500_000_000, 2);
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

    /// Sets the fields in dollars. `usd` is null if a price is missing.
    fn with_dollars(self) -> Self {
        let nano_usd = round_half_up(self.millionths);
        let usd = dollars(nano_usd);
        Self {
            usd: Some(usd.clone()).filter(|_| self.unpriced_calls == 0),
            usd_at_least: usd,
            nano_usd,
            ..self
        }
    }
}

/// The usage and cost of one client's calls.
pub struct ClientUsage {
    /// Tokens of the prompts.
    pub prompt: u64,
    /// Tokens of the replies.
    pub completion: u64,
    /// The largest single call, prompt and completion together.
    pub largest_call: u64,
    /// `None` if a price is unknown.
    pub nano_usd: Option<u64>,
    /// The first requested model.
    pub model: Option<String>,
}

impl ClientUsage {
    /// Sums the calls of a client. Returns `None` if there are no calls.
    pub fn from_calls(calls: &[UsageRow], models: &Models) -> Option<Self> {
        let first = calls.first()?;
        let mut sums = Sums::new(UsageKey::Key, models);
        let mut largest_call = 0;
        for call in calls {
            let (_, counts) = classify(call);
            largest_call = counts.prompt.saturating_add(counts.completion).max(largest_call);
            sums.add_call(call);
        }
        let (_, total) = sums.into_rows();
        Some(Self {
            prompt: total.prompt_tokens,
            completion: total.completion_tokens,
            largest_call,
            nano_usd: Some(total.nano_usd).filter(|_| total.unpriced_calls == 0),
            model: Some(first.model.clone()).filter(|model| !model.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use endmark_context::Models;
    use endmark_store::{PRICE_CHANGE_MINUTES, PROMPT_PRICE_THRESHOLDS};

    #[test]
    fn usage_is_split_where_a_listed_price_changes() {
        let mut seen = (0, 0);
        for model in Models::builtin().iter() {
            let (prompts, minutes) = model.prices.price_changes();
            assert!(prompts.iter().all(|edge| PROMPT_PRICE_THRESHOLDS.contains(edge)), "{model:?}");
            let apart = PRICE_CHANGE_MINUTES.iter().find(|(word, _)| model.id.contains(word));
            let is_apart = |edge: &u16| apart.is_some_and(|(_, edges)| edges.contains(edge));
            assert!(minutes.iter().all(is_apart), "{model:?}");
            seen = (seen.0 + prompts.len(), seen.1 + minutes.len());
        }
        assert!(seen.0 > 10 && seen.1 > 5, "{seen:?}");
        // The price depends on the hour, whichever name the model has.
        for name in ["deepseek-r1-0528", "deepseek-v4-flash", "openrouter/DeepSeek/deepseek-chat-v3-0324"] {
            assert!(!Models::builtin().find(name).unwrap().prices.price_changes().1.is_empty(), "{name}");
            assert!(
                PRICE_CHANGE_MINUTES.iter().any(|(word, _)| name.to_lowercase().contains(word)),
                "{name}"
            );
        }
    }
}
