//! OpenTelemetry traces, if the standard environment variables request them.
//!
//! This module reads only the variables that request traces, even in builds without the feature `otel`.
//! OpenTelemetry's own library reads all others.

use endmark_config::Environment;
use endmark_failure::CommandError;

#[cfg(feature = "otel")]
mod export;

#[cfg(feature = "otel")]
pub(crate) use export::Traces;

const DISABLED_VARIABLE: &str = "OTEL_SDK_DISABLED";
const EXPORTER_VARIABLE: &str = "OTEL_TRACES_EXPORTER";
/// The first variable that is set applies.
const ENDPOINT_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOL_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// The only supported protocol; all collectors understand it.
const PROTOCOL: &str = "http/protobuf";
/// The default address of a collector on the same machine.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

/// Returns the endpoint for traces, or `None` if no traces are requested.
fn requested_endpoint(environment: &Environment) -> Result<Option<String>, CommandError> {
    let first =
        |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, environment.get(name)?)));
    let endpoint = first(ENDPOINT_VARIABLES).map(|(_, endpoint)| endpoint.to_owned());
    if environment.get(DISABLED_VARIABLE).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let endpoint = match environment.get(EXPORTER_VARIABLE) {
        Some("none") => return Ok(None),
        Some("otlp") => Some(endpoint.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned())),
        Some(other) => return Err(unknown_value(EXPORTER_VARIABLE, other, "otlp` or `none")),
        None => endpoint,
    };
    if let Some((name, other)) =
        first(PROTOCOL_VARIABLES).filter(|(_, protocol)| *protocol != PROTOCOL && endpoint.is_some())
    {
        return Err(unknown_value(name, other, PROTOCOL));
    }
    Ok(endpoint)
}

fn unknown_value(name: &str, value: &str, known: &str) -> CommandError {
    let message = format!("{name} is `{value}`, but Endmark supports only `{known}`");
    CommandError::input(
        "unknown_telemetry",
        message,
        "Set it to the supported value, or disable traces with OTEL_SDK_DISABLED=true.",
    )
}

/// Replaces the exporter in a build without OpenTelemetry.
#[cfg(not(feature = "otel"))]
pub(crate) enum Traces {}

/// Returns a warning if traces are requested but this build has none.
#[cfg(not(feature = "otel"))]
pub(crate) fn warning(environment: &Environment) -> Result<Option<String>, CommandError> {
    Ok(requested_endpoint(environment)?.map(|endpoint| {
        format!(
            "traces are requested for {endpoint}, but this build of Endmark does not support them: build it with `--features otel`, \
             or set OTEL_SDK_DISABLED=true"
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(variables: &[(&str, &str)]) -> Result<Option<String>, CommandError> {
        requested_endpoint(&Environment::new(
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())),
        ))
    }

    #[test]
    fn traces_go_only_to_the_configured_endpoint() {
        let (all, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        for (variables, expected) in [
            (&[][..], None),
            (&[(all, "http://a")], Some("http://a")),
            (&[(all, "http://a"), (traces, "http://b")], Some("http://b")),
            (&[(EXPORTER_VARIABLE, "otlp")], Some(DEFAULT_ENDPOINT)),
            (&[(EXPORTER_VARIABLE, "none"), (all, "http://a")], None),
            (&[(DISABLED_VARIABLE, "TRUE"), (all, "http://a")], None),
            (&[(all, "")], None),
            (&[(all, "http://a"), (PROTOCOL_VARIABLES[1], PROTOCOL)], Some("http://a")),
            (&[(PROTOCOL_VARIABLES[1], "grpc")], None),
        ] {
            assert_eq!(endpoint(variables).unwrap().as_deref(), expected, "{variables:?}");
        }
    }

    #[test]
    fn an_unknown_protocol_is_refused_with_the_known_ones() {
        let at = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a");
        for (variables, words) in [
            (&[(EXPORTER_VARIABLE, "zipkin")][..], "only `otlp` or `none`"),
            (&[at, (PROTOCOL_VARIABLES[1], "grpc")], "only `http/protobuf`"),
            (
                &[at, (PROTOCOL_VARIABLES[0], "http/json"), (PROTOCOL_VARIABLES[1], PROTOCOL)],
                "only `http/protobuf`",
            ),
        ] {
            let error = endpoint(variables).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
