//! Simulates several gateways that share one database, on a virtual clock.
//!
//! The gateway's own code manages the shares of budgets: [`Pool`](super::Pool), [`Demands`](super::Demands)
//! and [`Tenure`](super::Tenure), with the delays of [`pace`](super::pace). Only the network, the database's
//! locks and the clients are simulated. Each call counts in one budget. The same plan always gives the same
//! result.

mod instance;
mod measures;
mod world;

pub use measures::SimReport;
pub use world::Simulation;

use std::str::FromStr;

/// Bytes that the row of a call needs in the database, including its indexes.
///
/// Measured with PostgreSQL 15 and rows of typical length (566 B). A test of the store repeats the
/// measurement.
pub const ROW_BYTES: u64 = 570;
/// Bytes in the write-ahead log for each row, measured in the same way.
pub const LOG_BYTES_PER_ROW: u64 = 770;

/// Maximum number of requests in a simulation.
pub const MAX_REQUESTS: u64 = 10_000_000;
/// Maximum number of instances.
pub const MAX_INSTANCES: u32 = 1_000;
/// Maximum product of the number of budgets and the number of instances.
pub const MAX_SHARES: u64 = 2_000_000;
/// Maximum simulated time in seconds (one day).
pub const MAX_SECONDS: u64 = 86_400;
/// Maximum product of the simulated seconds and the number of instances.
pub const MAX_INSTANCE_SECONDS: u64 = 200_000;

/// The parameters of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulationPlan {
    /// Number of gateways.
    pub instances: u32,
    /// Requests per second from all clients together.
    pub requests_per_second: u64,
    /// Simulated time in seconds. The simulation continues until the calls in progress have ended.
    pub seconds: u64,
    /// Number of budgets, all with the same limit.
    pub budgets: u32,
    /// Percentage of requests that count in the first budget. `None` distributes requests evenly.
    pub hot_budget_percent: Option<u64>,
    /// Percentage of requests that reach the first instance. `None` distributes requests evenly.
    pub hot_instance_percent: Option<u64>,
    /// The amount in tokens that each call holds while it is in progress.
    pub held: u64,
    /// Average cost of a call in tokens. Costs are between half and one and a half times the average.
    pub cost: u64,
    /// Average duration of a call in milliseconds. Durations vary in the same way.
    pub call_ms: u64,
    /// Limit of each budget in tokens. `None` means four fifths of the total cost of all calls.
    pub limit: Option<u64>,
    /// Periods in which the database does not answer.
    pub outages: Vec<Outage>,
    /// When instances are killed. The first entry kills the last instance, the second entry the one before
    /// it.
    pub kills: Vec<Kill>,
    /// Round-trip time between a gateway and the database, in microseconds.
    pub round_trip_us: u64,
    /// Time that the database needs for a durable commit, in microseconds.
    pub commit_us: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// A period in which the database does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When the outage begins, in seconds.
    pub at: u64,
    /// Its duration in seconds.
    pub seconds: u64,
}

/// An instance that is killed, and possibly restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill {
    /// When the instance is killed, in seconds.
    pub at: u64,
    /// Seconds until the instance is restarted with its journal. `None` if it never is.
    pub back_after: Option<u64>,
}

/// Error of parameters that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A number is outside its range.
    #[error("{what} must be from {least} to {most}, and is {found}")]
    OutOfRange {
        /// The name of the parameter.
        what: &'static str,
        /// The smallest allowed number.
        least: u64,
        /// The largest allowed number.
        most: u64,
        /// The given number.
        found: u64,
    },
    /// The time of an outage or a kill cannot be parsed.
    #[error("`{0}` is not a time of it: write seconds, as in `20:30` for the 30 seconds from second 20 on")]
    InvalidTime(String),
    /// There are more kills than instances.
    #[error("{kills} kills need as many instances, and there are {instances}")]
    TooManyKills {
        /// The number of kills.
        kills: usize,
        /// The number of instances.
        instances: u32,
    },
}

impl FromStr for Outage {
    type Err = PlanError;

    /// Parses `AT:SECONDS`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || PlanError::InvalidTime(text.to_owned());
        let (at, seconds) = text.split_once(':').ok_or_else(bad)?;
        Ok(Self { at: at.parse().map_err(|_| bad())?, seconds: seconds.parse().map_err(|_| bad())? })
    }
}

impl FromStr for Kill {
    type Err = PlanError;

    /// Parses `AT` or `AT:SECONDS`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || PlanError::InvalidTime(text.to_owned());
        let (at, back_after) = text.split_once(':').map_or((text, None), |(at, after)| (at, Some(after)));
        let back_after = back_after.map(str::parse).transpose().map_err(|_| bad())?;
        Ok(Self { at: at.parse().map_err(|_| bad())?, back_after })
    }
}

impl Default for SimulationPlan {
    fn default() -> Self {
        Self {
            instances: 4,
            requests_per_second: 200,
            seconds: 60,
            budgets: 1,
            hot_budget_percent: None,
            hot_instance_percent: None,
            held: 4_000,
            cost: 2_000,
            call_ms: 5_000,
            limit: None,
            outages: Vec::new(),
            kills: Vec::new(),
            round_trip_us: 500,
            // The duration of a disk flush that was measured for the design.
            commit_us: 1_700,
            seed: 1,
        }
    }
}

impl SimulationPlan {
    /// Returns the limit of each budget in tokens.
    pub fn limit(&self) -> u64 {
        let calls = self.requests_per_second.saturating_mul(self.seconds) / u64::from(self.budgets.max(1));
        self.limit.unwrap_or_else(|| calls.saturating_mul(self.cost) / 5 * 4)
    }

    /// Fails if the plan cannot be simulated or would run too long.
    fn check(&self) -> Result<(), PlanError> {
        let requests = self.requests_per_second.saturating_mul(self.seconds);
        let shares = u64::from(self.budgets).saturating_mul(u64::from(self.instances));
        let percents = [self.hot_budget_percent, self.hot_instance_percent].into_iter().flatten();
        let moments = self.outages.iter().flat_map(|outage| [outage.at, outage.seconds]);
        let moments =
            moments.chain(self.kills.iter().flat_map(|kill| [kill.at, kill.back_after.unwrap_or(0)]));
        let numbers = [
            ("the number of instances", 1, MAX_INSTANCES.into(), self.instances.into()),
            ("the requests a second", 1, MAX_REQUESTS, self.requests_per_second),
            ("the seconds", 1, MAX_SECONDS, self.seconds),
            ("requests a second × seconds", 1, MAX_REQUESTS, requests),
            (
                "instances × seconds",
                1,
                MAX_INSTANCE_SECONDS,
                u64::from(self.instances).saturating_mul(self.seconds),
            ),
            ("budgets × instances", 1, MAX_SHARES, shares),
            ("the tokens that a call holds", 1, 1 << 32, self.held),
            ("the tokens that a call costs", 1, 1 << 32, self.cost),
            ("the duration of a call in milliseconds", 1, 3_600_000, self.call_ms),
            ("the limit of a budget", 1, 1 << 60, self.limit()),
            ("the round trip in microseconds", 1, 1_000_000, self.round_trip_us),
            ("the time of a commit in microseconds", 0, 1_000_000, self.commit_us),
        ];
        let numbers = numbers.into_iter().chain(percents.map(|found| ("a percentage", 0, 100, found)));
        let mut numbers =
            numbers.chain(moments.map(|found| ("the seconds of an outage or a kill", 0, MAX_SECONDS, found)));
        if let Some((what, least, most, found)) =
            numbers.find(|(_, least, most, found)| found < least || found > most)
        {
            return Err(PlanError::OutOfRange { what, least, most, found });
        }
        if self.kills.len() > self.instances as usize {
            return Err(PlanError::TooManyKills { kills: self.kills.len(), instances: self.instances });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
