//! The built command, from outside: what it is given, what it answers, how it ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod agent_run;
mod agent_run_killed;
mod agent_run_many;
mod agent_run_resumed;
mod agent_run_through;
mod at_a_terminal;
mod budget;
mod canary;
mod cap;
mod clouds;
mod compact;
mod config;
mod count;
mod degraded;
mod demo;
mod detect;
mod drain;
mod exec;
mod faults;
mod findings;
mod formats;
mod gemini;
mod guard;
mod hook;
mod keys;
mod killed;
mod load;
mod log;
mod logging;
mod many_calls;
mod mcp;
mod output;
mod read;
mod reload;
mod report;
mod resume;
mod run;
mod serve;
mod setup;
mod stitch;
mod store_place;
mod store_removed;
mod tls;
mod usage;
