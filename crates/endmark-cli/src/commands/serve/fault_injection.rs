//! `--fault`: injects faults, and warns about them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use endmark_failure::CommandError;
use endmark_gateway::{FaultPlan, FaultSettings, FaultSide};

use crate::arguments::Serve;
use crate::context::Context;

/// Parses the options. A missing seed is chosen here, so that it can be reported and reused.
pub(super) fn parse_faults(arguments: &Serve) -> Result<FaultSettings, CommandError> {
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
    // Small enough for a user to type.
    let seed = arguments.fault_seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() % 100_000);
    Ok(FaultSettings { plan, side, seed: Some(seed) })
}

/// Warns about injected faults, because they must not reach production unnoticed.
pub(super) fn warn(context: &Context, faults: &FaultSettings) {
    if faults.plan.is_empty() {
        return;
    }
    let bears = match faults.side {
        FaultSide::Upstream => "Endmark",
        FaultSide::Client => "the client",
    };
    context.terminal.warn(&format!(
        "REHEARSAL: replies fail on purpose ({}), and {bears} must handle it. Never use this in production. To repeat the same faults: \
         --fault-seed {}",
        faults.plan,
        faults.seed.unwrap_or_default()
    ));
}
