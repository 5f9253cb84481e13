//! `endmark keys`: the clients of the gateway, with their models, budgets and expiry (CX-7).

mod parsing;

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use endmark_config::{EffectiveConfig, Settings};
use endmark_context::Moment;
use endmark_context::budget::{Period, RateLimits, Unit};
use endmark_failure::CommandError;
use endmark_store::{Key, KeyBook, KeyError, KeySecret, KeyState, NewKey, Reader, runtime};
use endmark_wire::openai_chat::OPENAI;
use serde::Serialize;

use crate::arguments::keys::{Add, Keys, KeysCommand, Rotate};
use crate::arguments::store::StoreArgument;
use crate::context::{Context, configuration_warnings};
use crate::serving::key_hint;
use crate::view::answer::{Answer, to_data};

/// The answer of `keys`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct KeysReport {
    /// All keys, by name.
    keys: Vec<KeyRow>,
    /// The secret of a new or rotated key; it is not shown again.
    secret: Option<String>,
}

/// One key.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KeyRow {
    /// The key's name.
    name: String,
    /// `valid`, `ended` or `revoked`.
    state: &'static str,
    /// Patterns of the models that the key may use; empty for all models.
    models: Vec<String>,
    /// The key's own budget; null without one.
    budget: Option<KeyBudgetReport>,
    /// The key's own rate limits; null for each limit that is not set.
    rates: KeyRatesReport,
    /// When the key expires, in seconds since 1970; null for never.
    ends_at: Option<u64>,
    /// When the key was created, in seconds since 1970.
    created_at: u64,
}

/// The budget of a key.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KeyBudgetReport {
    /// `tokens` or `nano_usd`.
    unit: &'static str,
    /// The limit, in this unit.
    limit: u64,
    /// `day`, `month` or `ever`.
    per: &'static str,
}

/// The rate limits of a key.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KeyRatesReport {
    /// Requests in one minute.
    requests_per_minute: Option<u64>,
    /// Tokens in one minute.
    tokens_per_minute: Option<u64>,
    /// Most requests at the same time.
    parallel: Option<u64>,
}

/// Creates, lists, rotates or revokes keys.
pub(crate) fn run(context: &Context, arguments: &Keys) -> Result<Answer, CommandError> {
    match &arguments.command {
        KeysCommand::Add(add) => add_key(context, add),
        KeysCommand::List(list) => {
            let effective = load_effective(context, &list.store)?;
            let report = KeysReport { keys: load_rows(&effective)?, secret: None };
            let text = render_text(&report.keys);
            answer(&effective, &report, text)
        }
        KeysCommand::Rotate(rotate) => rotate_key(context, rotate),
        KeysCommand::Revoke(revoke) => {
            let effective = load_effective(context, &revoke.store)?;
            let ((), keys) = change_keys(&effective, async |book| book.revoke(&revoke.name).await)?;
            let report = KeysReport { keys, secret: None };
            answer(&effective, &report, format!("The key {} is revoked.\n", revoke.name))
        }
    }
}

fn add_key(context: &Context, add: &Add) -> Result<Answer, CommandError> {
    let effective = load_effective(context, &add.store)?;
    let new = NewKey {
        name: add.name.clone(),
        models: add.models.iter().map(|pattern| pattern.trim().to_owned()).collect(),
        budget: parsing::parse_budget(add)?,
        rates: parsing::parse_rates(add)?,
        ends_at: add.until.as_deref().map(|until| parsing::parse_expiry(until, unix_now())).transpose()?,
    };
    let made = change_keys(&effective, async |book| book.add(new).await)?;
    show_secret(context, &effective, &add.name, made)
}

/// Returns the instructions for a new secret, for standard error. Standard output contains only the secret,
/// for scripts.
fn usage_instructions(settings: &Settings, name: &str) -> String {
    let url = OPENAI.base_url_for_origin(&settings.listener_url(settings.gateway.listener.listen));
    let mut text = format!(
        "The key of `{name}`. It is shown only once, because only its hash is stored. A client sends it instead of its provider's key, to the \
         address in the configuration:\n\n  OPENAI_BASE_URL={url} OPENAI_API_KEY=KEY your-application\n"
    );
    for upstream in settings.upstreams_without_key() {
        let name = &upstream.name;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\nThe upstream `{name}` has no key, so this key gets 403 there: {}.\n",
            key_hint(name)
        );
    }
    text
}

fn rotate_key(context: &Context, rotate: &Rotate) -> Result<Answer, CommandError> {
    let effective = load_effective(context, &rotate.store)?;
    let overlap = parsing::parse_overlap(&rotate.overlap)?;
    let made = change_keys(&effective, async |book| book.rotate(&rotate.name, overlap).await)?;
    show_secret(context, &effective, &rotate.name, made)
}

/// Shows a new secret.
fn show_secret(
    context: &Context,
    effective: &EffectiveConfig,
    name: &str,
    (secret, keys): (KeySecret, Vec<KeyRow>),
) -> Result<Answer, CommandError> {
    context.terminal.progress(&usage_instructions(&effective.settings, name));
    let text = format!("{}\n", secret.reveal());
    answer(effective, &KeysReport { keys, secret: Some(secret.reveal().to_owned()) }, text)
}

fn load_effective(context: &Context, store: &StoreArgument) -> Result<EffectiveConfig, CommandError> {
    context.load_configuration(store.overrides())
}

fn answer(effective: &EffectiveConfig, report: &KeysReport, text: String) -> Result<Answer, CommandError> {
    Ok(Answer::yes(to_data(report)?, text).with_warnings(configuration_warnings(effective)))
}

/// Changes keys in the store. Also returns all keys.
fn change_keys<T>(
    effective: &EffectiveConfig,
    change: impl AsyncFnOnce(&mut KeyBook) -> Result<T, KeyError>,
) -> Result<(T, Vec<KeyRow>), CommandError> {
    let failed = |error| CommandError::from_store(&error);
    let done = runtime::block_on(async {
        let mut book = KeyBook::open(&effective.settings.files.store).await.map_err(failed)?;
        let done = match change(&mut book).await {
            Ok(done) => {
                book.all_keys().await.map(|keys| (done, KeyRow::from_keys(keys))).map_err(KeyError::Store)
            }
            Err(error) => Err(error),
        };
        book.close().await;
        Ok::<_, CommandError>(done)
    })??;
    done.map_err(|error| match error {
        KeyError::Store(error) => CommandError::from_store(&error),
        KeyError::NoRandomBytes(_) => CommandError::Bug(error.to_string()),
        KeyError::Unknown(_) => {
            CommandError::input("no_such_key", error.to_string(), "`endmark keys list` shows all of them.")
        }
        KeyError::NameTaken(_) => CommandError::input(
            "key_exists",
            error.to_string(),
            "`endmark keys rotate` gives the key a new secret.",
        ),
        KeyError::BadName(_) => {
            CommandError::input("bad_name", error.to_string(), "Example: `endmark keys add team-a`.")
        }
        KeyError::TooLarge(_) => {
            CommandError::input("bad_amount", error.to_string(), "Write a smaller one, or 0 for no limit.")
        }
        KeyError::BadModel(_) => {
            CommandError::input("bad_pattern", error.to_string(), "`*` matches any text, as in `gpt-5*`.")
        }
    })
}

fn load_rows(effective: &EffectiveConfig) -> Result<Vec<KeyRow>, CommandError> {
    let failed = |error| CommandError::from_store(&error);
    let location = &effective.settings.files.store;
    let keys = if location.postgres().is_some() {
        runtime::block_on(async { KeyBook::open(location).await?.all_keys().await })?.map_err(failed)?
    } else {
        Reader::open(location).and_then(|reader| reader.keys()).map_err(failed)?
    };
    Ok(KeyRow::from_keys(keys))
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl KeyRow {
    fn from_keys(keys: Vec<Key>) -> Vec<Self> {
        let now = unix_now();
        keys.into_iter().map(|key| Self::new(key, now)).collect()
    }

    fn new(key: Key, now: u64) -> Self {
        let state = match key.state(now) {
            KeyState::Valid => "valid",
            KeyState::Expired => "ended",
            KeyState::Revoked => "revoked",
        };
        let budget = key.budget.map(|budget| KeyBudgetReport {
            unit: budget.unit.name(),
            limit: budget.limit,
            per: budget.period.name(),
        });
        Self {
            name: key.name,
            state,
            models: key.models,
            budget,
            rates: KeyRatesReport::new(key.rates),
            ends_at: key.ends_at,
            created_at: key.created_at,
        }
    }
}

/// Returns the keys as readable text.
fn render_text(rows: &[KeyRow]) -> String {
    if rows.is_empty() {
        return "There are no keys. `endmark keys add NAME` creates one.\n".to_owned();
    }
    let mut text = String::new();
    for row in rows {
        let models = if row.models.is_empty() { "all models".to_owned() } else { row.models.join(", ") };
        let budget = row
            .budget
            .as_ref()
            .map_or_else(|| "no budget of its own".to_owned(), KeyBudgetReport::show_secret);
        let end = row
            .ends_at
            .map_or_else(String::new, |at| format!("  until {}", Moment::from_unix_seconds(at).day()));
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{}  {}  {models}  {budget}{}{end}", row.name, row.state, row.rates.show_secret());
    }
    text
}

impl KeyRatesReport {
    fn new(rates: RateLimits) -> Self {
        let RateLimits { requests_per_minute, tokens_per_minute, parallel } = rates;
        Self { requests_per_minute, tokens_per_minute, parallel }
    }

    fn show_secret(&self) -> String {
        let shown = |limit: Option<u64>, unit: &str| limit.map(|limit| format!("  {limit} {unit}"));
        [
            shown(self.requests_per_minute, "requests/min"),
            shown(self.tokens_per_minute, "tokens/min"),
            shown(self.parallel, "in parallel"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl KeyBudgetReport {
    fn show_secret(&self) -> String {
        let unit = Unit::from_name(self.unit);
        let amount = unit.format(self.limit);
        if self.per == Period::Ever.name() { amount } else { format!("{amount} a {}", self.per) }
    }
}
