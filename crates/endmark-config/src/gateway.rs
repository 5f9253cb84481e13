//! Builds the gateway's settings from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use endmark_context::{Model, Models, Prices, Rates};
use endmark_failure::CommandError;
use endmark_gateway as gateway;
use endmark_process::{MAX_WRITTEN_BYTES, read_regular_text};

use super::environment::Environment;
use super::network::client_upstream;
use super::settings::{Settings, Upstream};

/// Returns the gateway's settings. Reads the secrets and schemas that the configuration refers to.
pub fn to_gateway(settings: &Settings, environment: &Environment) -> Result<gateway::Settings, CommandError> {
    let mut upstreams = Vec::with_capacity(settings.upstreams.len());
    for upstream in &settings.upstreams {
        upstreams.push(self::gateway_upstream(settings, upstream, environment)?);
    }
    Ok(gateway::Settings {
        tls: tls_files(settings),
        upstreams,
        models: Some(Arc::new(models(settings))),
        budget: settings.budget.to_gateway(),
        schemas: read_schemas(settings)?,
        ..settings.gateway.clone()
    })
}

fn gateway_upstream(
    settings: &Settings,
    upstream: &Upstream,
    environment: &Environment,
) -> Result<gateway::Upstream, CommandError> {
    let what = format!("the key of the upstream `{}`", upstream.name);
    let api_key = upstream.api_key.as_ref().map(|source| source.read(environment, &what)).transpose()?;
    Ok(gateway::Upstream {
        api_key,
        provider: upstream.format,
        conditions: upstream.conditions.clone(),
        prefill: upstream.prefill,
        fallback: upstream.fallback.clone(),
        model: upstream.model.clone(),
        summary_model: upstream.summary_model.clone(),
        endmark: upstream.endmark,
        ..client_upstream(settings, upstream, environment)?
    })
}

fn tls_files(settings: &Settings) -> Option<gateway::TlsFiles> {
    let (certificate, key) = settings.tls.certificate.clone().zip(settings.tls.key.clone())?;
    Some(gateway::TlsFiles { certificate, key })
}

fn read_schemas(settings: &Settings) -> Result<BTreeMap<String, String>, CommandError> {
    let read = |schema: &super::settings::Schema| {
        let text = read_regular_text(&schema.path, MAX_WRITTEN_BYTES);
        let text = text.map_err(|source| CommandError::Read { path: schema.path.clone(), source })?;
        Ok((schema.name.clone(), text))
    };
    settings.schemas.iter().map(read).collect()
}

/// Returns the built-in table of models, extended by the user's own prices, which have precedence.
pub fn models(settings: &Settings) -> Models {
    let mut models = Models::builtin().clone();
    for price in &settings.prices {
        let rates = Rates {
            input: price.input,
            output: price.output,
            cached: price.cached_input,
            is_audio_as_text: true,
            ..Rates::default()
        };
        let model = Model {
            id: price.pattern.clone(),
            context_tokens: price.context_tokens,
            prices: Prices::flat(rates),
            ..Model::default()
        };
        models.add(&price.pattern, model);
    }
    models
}
