//! The arguments of `endmark sim`.

use clap::Args;
use endmark_envelope::Limits;

pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark sim                                            4 gateways, 200 requests a second, one budget
  endmark sim --instances 15 --requests 10000 --budgets 10000 --hot-budget 10
  endmark sim --outage 20:30 --kill 40                   no database for 30 s; an instance is killed and stays away
  endmark sim --kill 20:5 --round-trip-ms 3 --json | jq .data.waits

Endmark decides about budget shares with the code of the gateway; the network, database locks and clients are simulated.
The simulation uses no network and no database. The same arguments give the same result.
Exit codes: 0 simulated; 2 a value cannot be simulated.";

#[derive(Debug, Args, Limits)]
pub(crate) struct Sim {
    /// Gateways that share the database
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) instances: u32,
    /// Requests per second, of all clients together
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) requests: u64,
    /// Simulated time
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Budgets, all with the same limit; each request uses one of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) budgets: u32,
    /// Percentage of the requests that use one particular budget; by default all budgets are used equally
    #[arg(long, value_name = "PERCENT")]
    pub(crate) hot_budget: Option<u64>,
    /// Percentage of the requests that reach one particular gateway; by default all gateways get equally many
    #[arg(long, value_name = "PERCENT")]
    pub(crate) hot_instance: Option<u64>,
    /// Limit of each budget; by default four fifths of the cost of all requests
    #[arg(long, value_name = "TOKENS")]
    pub(crate) limit: Option<u64>,
    /// Highest cost of a call, which is reserved while the call is in progress
    #[arg(long, value_name = "TOKENS", default_value_t = 4_000)]
    pub(crate) held: u64,
    /// Average cost of a call; costs vary by half of it
    #[arg(long, value_name = "TOKENS", default_value_t = 2_000)]
    pub(crate) cost: u64,
    /// Average duration of a call
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    #[limits(max_bytes = 16)]
    pub(crate) call_seconds: String,
    /// Stop the database in this second, for this long; can be repeated
    #[arg(long, value_name = "AT:SECONDS")]
    #[limits(max_bytes = 32, max_items = 100)]
    pub(crate) outage: Vec<String>,
    /// Kill a gateway in this second, and restart it with its journal after this long, or never; can be repeated
    #[arg(long, value_name = "AT[:SECONDS]")]
    #[limits(max_bytes = 32, max_items = 100)]
    pub(crate) kill: Vec<String>,
    /// Round trip time between a gateway and the database
    #[arg(long, value_name = "MS", default_value = "0.5")]
    #[limits(max_bytes = 16)]
    pub(crate) round_trip_ms: String,
    /// Time for the database to make a commit durable
    #[arg(long, value_name = "MS", default_value = "1.7")]
    #[limits(max_bytes = 16)]
    pub(crate) commit_ms: String,
    /// Seed of the random requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}
