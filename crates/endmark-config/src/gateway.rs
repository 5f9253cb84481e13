//! From the configuration to what the gateway is told: the one place where the two meet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use endmark_context::{Model, Models, Prices, Rates};
use endmark_failure::CommandError;
use endmark_gateway as gateway;
use endmark_process::{MAX_WRITTEN_BYTES, read_regular_text};

use super::environment::Environment;
use super::network::reached;
use super::settings::{Limits, Settings, Upstream};

/// The gateway's settings, with the keys and schemas that the configuration only refers to.
pub fn for_gateway(
    settings: &Settings,
    environment: &Environment,
) -> Result<gateway::Settings, CommandError> {
    let mut upstreams = Vec::with_capacity(settings.upstreams.len());
    for upstream in &settings.upstreams {
        upstreams.push(self::upstream(settings, upstream, environment)?);
    }
    Ok(gateway::Settings {
        listen: settings.listen,
        tls: tls(settings),
        allowed_hosts: settings.allowed_hosts.clone(),
        allowed_origins: settings.allowed_origins.clone(),
        require_key: settings.require_key,
        metrics_access: settings.metrics.access,
        sole_key: None,
        upstreams,
        resume: gateway::ResumeSettings {
            mode: settings.resume.mode,
            max_attempts: small(settings.resume.max_attempts),
            continuation_tokens: settings.resume.continuation_tokens,
            treat_limit_as_cap: settings.resume.treat_limit_as_cap,
            max_extra_tokens: settings.resume.max_extra_tokens,
            client_limit_factor: settings.resume.client_limit_factor,
            max_time: Duration::from_secs(settings.resume.max_seconds),
            on_ambiguous: settings.resume.on_ambiguous,
            restart: settings.resume.restart,
            prompt: settings.resume.prompt.clone(),
            strategies: settings.resume.strategies.clone(),
        },
        correct: gateway::CorrectSettings {
            max_attempts: small(settings.correct.max_attempts),
            may_change: settings.correct.may_change,
        },
        hold_tool_calls: settings.tools.hold,
        restart_tool_calls: settings.tools.restart,
        on_missing_calls: settings.tools.on_missing,
        disclose_always: settings.disclose.always,
        incomplete: settings.disclose.incomplete,
        keep_text: settings.store_policy.keep_text,
        keep_days: small(settings.store_policy.keep_days),
        outputs_max_bytes: settings.store_policy.outputs_max_bytes,
        cap: gateway::CapSettings {
            enabled: settings.cap.enabled,
            max_chars: length(settings.cap.max_chars),
            max_items: length(settings.cap.max_items),
            tool: settings.cap.tool,
        },
        compact: gateway::CompactSettings {
            window: gateway::WindowSettings {
                enabled: settings.compact.window.enabled,
                trigger_tokens: settings.compact.window.trigger_tokens,
                budget_tokens: settings.compact.window.budget_tokens,
                keep_turns: length(settings.compact.window.keep_events),
            },
            emergency: gateway::EmergencySettings {
                enabled: settings.compact.emergency.enabled,
                trigger_tokens: settings.compact.emergency.trigger_tokens,
                keep_turns: length(settings.compact.emergency.keep_messages),
            },
        },
        models: Some(Arc::new(models(settings))),
        budget: settings.budget.for_gateway(),
        schemas: schemas(settings)?,
        retry: gateway::RetrySettings {
            max_retries: small(settings.retry.max_retries),
            max_wait: Duration::from_secs(settings.retry.max_wait_seconds),
            budget_percent: small(settings.retry.budget_percent),
            budget_per_second: small(settings.retry.budget_per_second),
            cooldown: Duration::from_secs(settings.retry.cooldown_seconds),
        },
        limits: limits(&settings.limits),
        // What goes wrong on purpose is said on the command line, and never in a file.
        faults: gateway::FaultSettings::default(),
        // Whoever serves them passes them in.
        pages: None,
    })
}

fn upstream(
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
        ..reached(settings, upstream, environment)?
    })
}

fn tls(settings: &Settings) -> Option<gateway::TlsFiles> {
    let (certificate, key) = settings.tls.certificate.clone().zip(settings.tls.key.clone())?;
    Some(gateway::TlsFiles { certificate, key })
}

fn schemas(settings: &Settings) -> Result<BTreeMap<String, String>, CommandError> {
    let read = |schema: &super::settings::Schema| {
        let text = read_regular_text(&schema.path, MAX_WRITTEN_BYTES);
        let text = text.map_err(|source| CommandError::Read { path: schema.path.clone(), source })?;
        Ok((schema.name.clone(), text))
    };
    settings.schemas.iter().map(read).collect()
}

fn limits(limits: &Limits) -> gateway::Limits {
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    gateway::Limits {
        header_bytes: bytes(limits.header_bytes),
        body_bytes: bytes(limits.body_bytes),
        reply_bytes: bytes(limits.reply_bytes),
        connections: bytes(limits.connections),
        header_fields: bytes(limits.header_fields),
        upload_bytes: limits.upload_bytes,
        stream_bytes: bytes(limits.stream_bytes),
        held_bytes: bytes(limits.held_bytes),
        requests: bytes(limits.requests),
        queue: bytes(limits.queue),
        queue_wait: Duration::from_secs(limits.queue_seconds),
        body: Duration::from_secs(limits.body_seconds),
        keep_alive: Duration::from_secs(limits.keep_alive_seconds),
        unread: Duration::from_secs(limits.unread_seconds),
        header: Duration::from_secs(limits.header_seconds),
        first_byte: Duration::from_secs(limits.first_byte_seconds),
        first_token: Duration::from_secs(limits.first_token_seconds),
        idle: Duration::from_secs(limits.idle_seconds),
        total: Duration::from_secs(limits.total_seconds),
        heartbeat: Duration::from_secs(limits.heartbeat_seconds),
        reconnect: Duration::from_secs(limits.reconnect_seconds),
        drain: Duration::from_secs(limits.drain_seconds),
    }
}

/// The table of models with the user's own, of which the later ones count more.
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

/// A count of what is in memory.
fn length(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A count that is small in any sensible configuration.
fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
