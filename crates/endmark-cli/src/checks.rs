//! Checks of the setup, each with a hint if it fails.

use endmark_config::{ConfigError, EffectiveConfig, Environment, SecretSource, client_upstream};
use endmark_failure::{Check, CommandError};
use endmark_process::{MAX_WRITTEN_BYTES, read_regular_text};
use endmark_recovery::check_prompt_template;
use serde::Serialize;
use serde_json::Value;

use crate::console::{admin_key, with_console};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::{Paint, Painter};

/// Checks the values that a readable configuration refers to: keys, schemas and texts.
pub(crate) fn check_configuration(effective: &EffectiveConfig, environment: &Environment) -> Vec<Check> {
    let settings = &effective.settings;
    let read = match &effective.file {
        Some(path) => format!("read from `{}`", path.display()),
        None => "no file found; all settings have their defaults".to_owned(),
    };
    let mut checks = vec![Check::passed("configuration", read)];
    for upstream in &settings.upstreams {
        let fallback =
            settings.upstreams.iter().find(|other| Some(&other.name) == upstream.fallback.as_ref());
        if let Some(fallback) = fallback {
            let name = format!("upstreams.{}.fallback", upstream.name);
            let key_source = match &fallback.api_key {
                Some(_) => "with its own key",
                None => "without a key: it does not receive the client's credentials",
            };
            checks.push(Check::passed(name, format!("the fallback is `{}`, {key_source}", fallback.name)));
        }
        if let Some(source) = &upstream.api_key {
            let name = format!("upstreams.{}.api_key", upstream.name);
            let what = format!("the key of the upstream `{}`", upstream.name);
            checks.extend(match (source.read(environment, &what), source) {
                (Err(error), _) => Some(Check::from_error(name, &error)),
                (Ok(_), SecretSource::Value(_)) => None,
                (Ok(_), SecretSource::Environment(variable)) => {
                    Some(Check::passed(name, format!("the environment variable `{variable}` is set")))
                }
                (Ok(_), SecretSource::File(path)) => {
                    Some(Check::passed(name, format!("`{}` contains it", path.display())))
                }
            });
        }
        match client_upstream(settings, upstream, environment) {
            Err(error) => checks.push(Check::from_error(format!("upstreams.{}", upstream.name), &error)),
            Ok(reached) => checks.extend(reached.proxy.map(|proxy| {
                Check::passed(
                    format!("upstreams.{}.proxy", upstream.name),
                    format!("requests go through the proxy {proxy}"),
                )
            })),
        }
    }
    for schema in &settings.schemas {
        let name = format!("schemas.{}", schema.name);
        let path = schema.path.display();
        let text = read_regular_text(&schema.path, MAX_WRITTEN_BYTES).map_err(|error| error.to_string());
        let parsed =
            text.and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()));
        checks.push(match parsed {
            Ok(_) => Check::passed(name, format!("`{path}` is JSON")),
            Err(error) => Check::failed(
                name,
                format!("`{path}` cannot be used: {error}"),
                "Name a file that contains a JSON Schema.",
            ),
        });
    }
    if let Some(template) = &settings.gateway.resume.prompt {
        checks.push(match check_prompt_template(template) {
            Ok(()) => Check::passed("resume.prompt", "the text is valid"),
            Err(error) => Check::failed(
                "resume.prompt",
                error.to_string(),
                "Omit `resume.prompt` to use the built-in text.",
            ),
        });
    }
    checks.extend(admin_key(settings, environment).err().map(|error| Check::from_error("admin_key", &error)));
    // Some errors appear only when the gateway starts. It stops at the first one, which may already be listed above.
    if let Err(error) = with_console(settings, environment) {
        let found = Check::from_error("gateway", &error);
        if !checks.iter().any(|check| check.message.contains(&found.message)) {
            checks.push(found);
        }
    }
    checks
}

/// Returns only the failed checks of secrets and texts. The configuration has other errors, which would make
/// all remaining checks fail.
pub(crate) fn further_errors(effective: &EffectiveConfig, environment: &Environment) -> Vec<ConfigError> {
    let mut checks = check_configuration(effective, environment);
    checks.retain(|check| !check.is_ok && is_secret_or_text_check(&check.name));
    let unusable = |Check { name, message, hint, .. }| ConfigError::UnusableSetting { name, message, hint };
    checks.into_iter().map(unusable).collect()
}

/// Whether a check only reads a secret or a text that the configuration refers to.
fn is_secret_or_text_check(check: &str) -> bool {
    check == "admin_key"
        || check == "resume.prompt"
        || check.starts_with("schemas.")
        || check.ends_with(".api_key")
}

/// Answer data: all checks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChecksReport<'a> {
    checks: &'a [Check],
}

/// Returns the checks as an answer, which is positive if all passed.
pub(crate) fn answer(checks: &[Check], painter: Painter) -> Result<Answer, CommandError> {
    let data = to_data(&ChecksReport { checks })?;
    let mut text = String::new();
    for check in checks {
        let word =
            if check.is_ok { painter.paint(Paint::Good, "ok  ") } else { painter.paint(Paint::Bad, "FAIL") };
        let name = painter.paint(Paint::Strong, &check.name);
        text.extend([word.as_str(), "  ", &name, ": ", &check.message, "\n"]);
        if let Some(hint) = &check.hint {
            text.extend(["      hint: ", hint, "\n"]);
        }
    }
    Ok(match checks.iter().filter(|check| !check.is_ok).count() {
        0 => Answer::yes(data, text),
        1 => Answer::no_in_text(data, text, "check_failed", "a check failed"),
        failed => Answer::no_in_text(data, text, "check_failed", format!("{failed} checks failed")),
    })
}
