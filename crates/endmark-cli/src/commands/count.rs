//! `endmark count`: how many tokens a text or a conversation has for a model, and what sending it costs. (CX-6)

use std::time::{SystemTime, UNIX_EPOCH};

use endmark_config::models;
use endmark_context::count::{self, Family};
use endmark_context::{Moment, Tokens, dollars};
use endmark_failure::CommandError;
use endmark_wire::conversation::Dialogue;
use endmark_wire::format;
use serde::Serialize;

use crate::arguments::count::Count;
use crate::context::{Context, configuration_warnings};
use crate::input::Input;
use crate::view::answer::{Answer, to_data};

/// The answer of `count`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CountReport {
    /// Tokens of the text or the request.
    tokens: u64,
    /// Whether the provider gets the same count; otherwise it is an estimate.
    exact: bool,
    /// The price of sending the tokens in dollars, with nine decimal places. Excludes the reply, and ignores
    /// caching. Null if the price is unknown.
    usd: Option<String>,
    /// The method: a published vocabulary, or the model family of the estimate.
    counted_as: &'static str,
    /// The date of the price table.
    prices_as_of: String,
}

/// Counts the named input.
pub(crate) fn run(context: &Context, arguments: &Count) -> Result<Answer, CommandError> {
    let effective = context.load_configuration(Vec::new())?;
    let models = models(&effective.settings);
    let text = Input::open(arguments.file.as_deref(), context.terminal)?.read_text()?;
    let model = arguments.model.as_str();
    let counted = match &arguments.format {
        None => count::text(&text, model),
        Some(name) => count_conversation(name, &text, model)?,
    };
    let tokens = Tokens { prompt: counted.tokens, ..Tokens::default() };
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Moment::from_unix_seconds(since_epoch.as_secs());
    let cost = models.find(model).and_then(|model| model.prices.cost(&tokens, now, None));
    let report = CountReport {
        tokens: counted.tokens,
        exact: counted.exact,
        usd: cost.map(|cost| dollars(cost.nano_usd)),
        counted_as: Family::of(model).name(),
        prices_as_of: models.as_of().to_owned(),
    };
    let description = describe(&report);
    Ok(Answer::yes(to_data(&report)?, description).with_warnings(configuration_warnings(&effective)))
}

/// Counts a conversation. The count does not depend on its wire format, but the named format is validated.
fn count_conversation(name: &str, body: &str, model: &str) -> Result<count::TokenCount, CommandError> {
    let bad = |message: String| {
        CommandError::input("not_a_conversation", message, "Without `--for` the input is counted as text.")
    };
    let format = format::find_by_name(name).ok_or_else(|| bad(format!("unknown wire format `{name}`")))?;
    Dialogue::read(format, body.as_bytes()).map_err(|error| bad(error.to_string()))?;
    count::request(body, model).map_err(|error| bad(error.to_string()))
}

/// Returns the result as readable text.
fn describe(report: &CountReport) -> String {
    let about = if report.exact { "" } else { "about " };
    let cost = match &report.usd {
        Some(usd) => format!("${usd} to send, at the prices of {}", report.prices_as_of),
        None => "the price is unknown".to_owned(),
    };
    format!("{about}{} tokens (counted as {}); {cost}\n", report.tokens, report.counted_as)
}
