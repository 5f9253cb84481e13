//! `--fault`: what is to go wrong on purpose, and the warning that it does.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use endmark_failure::CommandError;
use endmark_gateway::{FaultPlan, FaultSettings, FaultSide};

use crate::arguments::Serve;
use crate::context::Context;

/// Reads the flags. A seed that was not given is chosen here, so that it can be said and given again.
pub(super) fn faults(arguments: &Serve) -> Result<FaultSettings, CommandError> {
    let Some(faults) = &arguments.fault else { return Ok(FaultSettings::default()) };
    let invalid = |error: String| {
        CommandError::input("invalid_fault", error, "docs/faults.md explains every fault, with examples.")
    };
    let plan: FaultPlan =
        faults.parse().map_err(|error: endmark_gateway::FaultError| invalid(error.to_string()))?;
    let side: FaultSide = arguments
        .fault_side
        .parse()
        .map_err(|error: endmark_gateway::UnknownFaultSide| invalid(error.to_string()))?;
    // Small enough to be typed.
    let seed = arguments.fault_seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() % 100_000);
    Ok(FaultSettings { plan, side, seed: Some(seed) })
}

/// Nobody is to run this in production unawares.
pub(super) fn warn(context: &Context, faults: &FaultSettings) {
    if faults.plan.is_empty() {
        return;
    }
    let bears = match faults.side {
        FaultSide::Upstream => "Endmark",
        FaultSide::Client => "the client",
    };
    context.terminal.warn(&format!(
        "REHEARSAL: replies go wrong on purpose ({}), and {bears} has to bear it; never in production. The same again: \
         --fault-seed {}",
        faults.plan,
        faults.seed.unwrap_or_default()
    ));
}
