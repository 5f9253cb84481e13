//! Parses the table file: JSON with one model on each line.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::{Model, ModelTable, ModelsError, SourcePackage};
use crate::moment::Day;
use crate::price::{DailySpan, PriceEntry, Prices, Rate, Rates};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    as_of: String,
    #[serde(rename = "unit")]
    _unit: String,
    sources: Vec<SourcePackage>,
    models: Vec<ModelRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelRow {
    id: String,
    provider: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    begins: Vec<String>,
    context_tokens: Option<u64>,
    max_input_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    prefill: Option<bool>,
    cache_minimum_tokens: Option<u64>,
    retires: Option<String>,
    prices: Vec<PriceRow>,
    #[serde(default)]
    variants: BTreeMap<String, Vec<PriceRow>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    from: Option<String>,
    hours: Option<[String; 2]>,
    above: Option<LongPromptRates>,
    input: Option<Rate>,
    output: Option<Rate>,
    cached: Option<Rate>,
    cache_write: Option<Rate>,
    cache_write_1h: Option<Rate>,
    input_audio: Option<Rate>,
    cached_audio: Option<Rate>,
    output_audio: Option<Rate>,
    reasoning: Option<Rate>,
    web_search: Option<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPromptRates {
    prompt_tokens: u64,
    input: Option<Rate>,
    output: Option<Rate>,
    cached: Option<Rate>,
    cache_write: Option<Rate>,
    cache_write_1h: Option<Rate>,
}

pub(super) fn read(json: &str) -> Result<ModelTable, ModelsError> {
    let file: TableFile = serde_json::from_str(json)?;
    let mut models = ModelTable {
        as_of: Day::parse(&file.as_of).map(|_| file.as_of.clone()).ok_or(ModelsError::Day(file.as_of))?,
        sources: file.sources,
        entries: Vec::with_capacity(file.models.len()),
        by_name: HashMap::new(),
        prefixes: Vec::new(),
    };
    // A model's own name has priority over another model's alias.
    for (index, row) in file.models.iter().enumerate() {
        models.by_name.entry(row.id.clone()).or_insert(index);
    }
    for (index, row) in file.models.into_iter().enumerate() {
        for name in &row.names {
            models.by_name.entry(name.clone()).or_insert(index);
        }
        models.prefixes.extend(row.begins.iter().map(|beginning| (beginning.clone(), index)));
        models.entries.push(parse_model(row)?);
    }
    // The sort is stable, so the first of two models with the same prefix counts.
    models.prefixes.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
    Ok(models)
}

fn parse_model(row: ModelRow) -> Result<Model, ModelsError> {
    // Google lists a separate price for audio only if audio is more expensive than text. At OpenAI, audio is
    // always more expensive than text, but the table lacks some of its rates.
    let is_audio_as_text = row.provider == "google";
    let entries = |listed: Vec<PriceRow>| {
        listed.into_iter().map(|one| parse_price(one, is_audio_as_text)).collect::<Result<Vec<_>, _>>()
    };
    let variants = row.variants.into_iter().map(|(name, listed)| Ok((name, entries(listed)?)));
    Ok(Model {
        id: row.id,
        provider: row.provider,
        context_tokens: row.context_tokens,
        max_input_tokens: row.max_input_tokens,
        max_output_tokens: row.max_output_tokens,
        prefill: row.prefill,
        cache_minimum_tokens: row.cache_minimum_tokens,
        retires: row.retires,
        prices: Prices {
            variants: variants.collect::<Result<_, ModelsError>>()?,
            standard: entries(row.prices)?,
        },
    })
}

fn parse_price(entry: PriceRow, is_audio_as_text: bool) -> Result<PriceEntry, ModelsError> {
    let day = |text: String| Day::parse(&text).ok_or(ModelsError::Day(text));
    let hours = |[from, until]: [String; 2]| -> Result<DailySpan, ModelsError> {
        Ok(DailySpan { from_minute: parse_minute(&from)?, until_minute: parse_minute(&until)? })
    };
    let rates = Rates {
        input: entry.input,
        output: entry.output,
        cached: entry.cached,
        cache_write: entry.cache_write,
        cache_write_1h: entry.cache_write_1h,
        input_audio: entry.input_audio,
        cached_audio: entry.cached_audio,
        output_audio: entry.output_audio,
        reasoning: entry.reasoning,
        web_search: entry.web_search,
        is_audio_as_text,
    };
    Ok(PriceEntry {
        from: entry.from.map(day).transpose()?,
        hours: entry.hours.map(hours).transpose()?,
        rates,
        long_prompt_rates: entry.above.map(|above| {
            let dear = Rates {
                input: above.input,
                output: above.output,
                cached: above.cached,
                cache_write: above.cache_write,
                cache_write_1h: above.cache_write_1h,
                ..Rates::default()
            };
            (above.prompt_tokens, dear)
        }),
    })
}

/// Parses `HH:MM` into minutes since midnight.
fn parse_minute(text: &str) -> Result<u16, ModelsError> {
    let wrong = || ModelsError::Hour(text.to_owned());
    let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str, below: u16| text.parse().ok().filter(|number: &u16| *number < below);
    let hour = number(hour, 24).ok_or_else(wrong)?;
    Ok(hour * 60 + number(minute, 60).ok_or_else(wrong)?)
}
