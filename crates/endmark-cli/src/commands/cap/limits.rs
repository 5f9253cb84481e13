//! The requested limits, from the arguments, a batch line or the configuration.

use endmark_config::Settings;
use endmark_context::cap::{FORMATS, Keep, Limits, RequestedFormat};
use endmark_failure::CommandError;
use endmark_store::CapRequest;

use crate::arguments::cap::{Cap, KeepChoice};

/// Returns the limits of the arguments, with the configuration as the default.
pub(super) fn from_arguments(arguments: &Cap, settings: &Settings) -> Result<CapRequest, CommandError> {
    let CapRequest { limits, .. } =
        settings.cap_request(arguments.most.limit()?, arguments.max_items, u64::MAX)?;
    let keep = match arguments.keep {
        KeepChoice::Both => Keep::Both,
        KeepChoice::Head => Keep::Head,
        KeepChoice::Tail => Keep::Tail,
    };
    let format = RequestedFormat::from_name(&arguments.format).unwrap_or_default();
    Ok(CapRequest { format, limits: Limits { keep, ..limits } })
}

/// Returns the format with this name.
pub(super) fn parse_format(name: &str) -> Result<RequestedFormat, String> {
    RequestedFormat::from_name(name)
        .ok_or_else(|| format!("unknown format `{name}`: use {}", FORMATS.join(", ")))
}

/// Parses the name of the part to keep.
pub(super) fn parse_keep(name: &str) -> Result<Keep, String> {
    match name {
        "both" => Ok(Keep::Both),
        "head" => Ok(Keep::Head),
        "tail" => Ok(Keep::Tail),
        _ => Err(format!("unknown `keep`: `{name}`: use both, head or tail")),
    }
}

pub(super) fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
