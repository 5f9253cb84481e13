//! `endmark doctor`: finds what prevents the gateway from serving, and how to fix it.

mod machine;
mod readiness;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use endmark_config::{EffectiveConfig, Environment, Settings, Upstream, client_upstream};
use endmark_context::budget::{Scope, Unit};
use endmark_failure::{Check, CommandError};
use endmark_store::{DatabaseState, Reader, StoreError, inspect_database, runtime};
use http::Request;
use http_body_util::Full;

use crate::arguments::store::Doctor;
use crate::checks;
use crate::client::Client;
use crate::context::{Context, configuration_warnings};
use crate::serving::{keyless_warnings, load_configuration};
use crate::view::answer::Answer;

/// Time limit for the response of an upstream.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum difference between the clocks of the database and of this machine.
const MAX_CLOCK_DIFFERENCE_MS: u64 = 2_000;

/// Runs every check; a failed one does not stop the others.
pub(crate) fn run(context: &Context, arguments: &Doctor) -> Result<Answer, CommandError> {
    if arguments.hooks {
        let checks = runtime::block_on(endmark_agents::hooks::check_hooks(&context.environment))??;
        return checks::answer(&checks, context.terminal.output);
    }
    let effective = match load_doctor_configuration(context, arguments) {
        Ok(effective) => effective,
        Err(error) => {
            let check = Check::from_error("configuration", &error);
            return checks::answer(&[check], context.terminal.output);
        }
    };
    if arguments.serving {
        return checks::answer(&[readiness::check(&effective.settings)], context.terminal.output);
    }
    let mut checks = checks::check_configuration(&effective, &context.environment);
    checks.push(check_store(&effective));
    checks.extend(check_database(&effective)?);
    checks.extend(machine::checks(&effective));
    checks.push(check_listen(&effective));
    checks.extend(keyless_warnings(&effective.settings).into_iter().map(|message| {
        Check::failed("require_key", message, "A client's gateway key is never forwarded to an upstream.")
    }));
    checks.extend(runtime::block_on(check_upstreams(&effective.settings, &context.environment))?);
    let answer = checks::answer(&checks, context.terminal.output)?;
    Ok(answer.with_warnings(configuration_warnings(&effective)))
}

/// Loads the configuration to check. The upstream of the command line replaces the configured ones.
fn load_doctor_configuration(context: &Context, arguments: &Doctor) -> Result<EffectiveConfig, CommandError> {
    load_configuration(context, arguments.upstream.as_deref(), arguments.store.overrides())
}

/// Checks whether the store is usable. Does not create a missing store.
fn check_store(effective: &EffectiveConfig) -> Check {
    let location = &effective.settings.files.store;
    let (name, shown) = match location.postgres() {
        None => ("store", format!("`{location}`")),
        Some(_) => ("journal", format!("`{}`", location.path().display())),
    };
    if !location.path().exists() {
        if location.is_creatable() {
            return Check::passed(name, format!("{shown} does not exist yet; `endmark serve` creates it"));
        }
        return Check::failed(
            name,
            format!("the folder of {shown} does not exist"),
            format!("Create the folder, or name another file with the key `{name}`."),
        );
    }
    match Reader::open(location) {
        Err(error) => failed_store_check(&error),
        Ok(reader) => match reader.check() {
            Ok(faults) if faults.is_empty() => check_budget_sums(&reader, effective).unwrap_or_else(|| {
                Check::passed(name, format!("{shown} is intact, and its budgets and sums are consistent"))
            }),
            Ok(faults) => Check::failed(
                name,
                format!("{shown} is damaged: {}", faults.join("; ")),
                format!("Keep a copy of it, and set another file with `{name}`."),
            ),
            Err(error) => failed_store_check(&error),
        },
    }
}

/// Checks the database that instances share. Returns `None` for a local store.
fn check_database(effective: &EffectiveConfig) -> Result<Option<Check>, CommandError> {
    let location = &effective.settings.files.store;
    let state = match runtime::block_on(inspect_database(location))? {
        Ok(None) => return Ok(None),
        Ok(Some(state)) => state,
        Err(error) => return Ok(Some(Check::from_error("database", &CommandError::from_store(&error)))),
    };
    let DatabaseState { version, clock_ahead_ms, schema, may_create, live_instances, silent_instances } =
        state;
    let about = format!("`{location}` is PostgreSQL {version}; live instances: {live_instances}");
    Ok(Some(if schema.is_none() && !may_create {
        Check::failed(
            "database",
            format!("{about}; its tables are missing, and this role may not create them"),
            "Run this once as the owner of the database: `GRANT USAGE, CREATE ON SCHEMA public TO ROLE`.",
        )
    } else if clock_ahead_ms.unsigned_abs() > MAX_CLOCK_DIFFERENCE_MS {
        Check::failed(
            "database",
            format!("{about}; its clock and this machine's differ by {} ms", clock_ahead_ms.unsigned_abs()),
            "Synchronise both clocks with NTP: each machine resets daily budgets at midnight of its own clock.",
        )
    } else if let Some(silent) = silent_instances.first() {
        Check::failed(
            "database",
            format!(
                "{about}; silent ones: {}, and their unspent grants stay reserved",
                silent_instances.len()
            ),
            format!(
                "Restart them with their journals. If a journal is lost, run `endmark budget forfeit {silent}`."
            ),
        )
    } else {
        Check::passed("database", about)
    }))
}

/// Finds a budget whose counters differ from the sum of its entries.
///
/// Only a manual change of the tables can cause this.
fn check_budget_sums(reader: &Reader, effective: &EffectiveConfig) -> Option<Check> {
    let rows = match reader.budgets() {
        Ok(rows) => rows,
        Err(error) => return Some(failed_store_check(&error)),
    };
    let Some(row) = rows.into_iter().find(|row| (row.spent, row.held) != row.recomputed) else {
        return check_budget_charges(reader, effective).or_else(|| check_call_sums(reader));
    };
    let (spent, held) = row.recomputed;
    Some(Check::failed(
        "store.budgets",
        format!(
            "the budget of {} `{}` in {} records {} {} spent and {} held, but its entries sum to {spent} and {held}",
            row.scope, row.subject, row.window, row.spent, row.unit, row.held
        ),
        "Another program changed the table `budgets` or `budget_entries`: set the budget to the sum of its entries.",
    ))
}

/// Finds a budget that was charged differently from the ledger of its calls.
fn check_budget_charges(reader: &Reader, effective: &EffectiveConfig) -> Option<Check> {
    let budget = effective.settings.budget.to_gateway();
    let keys = match reader.keys() {
        Ok(keys) => keys,
        Err(error) => return Some(failed_store_check(&error)),
    };
    let rules = budget.rules.into_iter().chain(keys.into_iter().filter_map(|key| Some(key.budget?.rule())));
    // Dollar budgets do not include unpriced calls. If such calls are admitted, only token budgets can be compared.
    let compared = rules.filter(|rule| rule.unit == Unit::Tokens || !budget.admits_unpriced);
    let compared: BTreeSet<(Scope, Unit)> = compared.map(|rule| (rule.scope, rule.unit)).collect();
    compared.into_iter().find_map(|(scope, unit)| {
        let difference = match reader.budget_difference(scope, unit, &budget.zone) {
            Ok(difference) => difference?,
            Err(error) => return Some(failed_store_check(&error)),
        };
        Some(Check::failed(
            "store.budgets",
            format!(
                "the budget of {} `{}` in {}, in {}, differs from the calls in `usage`: {} calls were not charged to it, and {} calls \
                 were charged another number",
                scope.name(),
                difference.subject,
                difference.window,
                unit.name(),
                difference.uncharged_calls,
                difference.wrong_calls
            ),
            "Either the budget was not configured at the time of these calls, or the store of an earlier version failed, or \
             somebody changed the tables. `endmark usage` shows what they took.",
        ))
    })
}

/// Finds call sums that differ from the calls. Only a manual change of the tables can cause this.
fn check_call_sums(reader: &Reader) -> Option<Check> {
    match reader.wrong_sums() {
        Err(error) => Some(failed_store_check(&error)),
        Ok(None) => None,
        Ok(Some(day)) => Some(Check::failed(
            "store.sums",
            format!("the sums of {day} (UTC) differ from the calls of that day"),
            "Another program changed a table. To sum all calls again: DELETE FROM usage_sums; DELETE FROM cut_sums; \
             UPDATE usage SET is_summed = 0;",
        )),
    }
}

/// Returns a failed check for a store error. Its message already contains the hint.
fn failed_store_check(error: &StoreError) -> Check {
    Check { name: "store".to_owned(), is_ok: false, message: error.to_string(), hint: None }
}

fn check_listen(effective: &EffectiveConfig) -> Check {
    let address = effective.settings.gateway.listener.listen;
    match TcpListener::bind(address) {
        Err(error)
            if error.kind() == ErrorKind::AddrInUse
                && readiness::is_gateway_listening(&effective.settings) =>
        {
            Check::passed("listen", format!("`endmark serve` listens on {address}"))
        }
        Ok(_) if address.ip().is_loopback() => Check::passed("listen", format!("{address} is free")),
        Ok(_) => Check::passed("listen", format!("{address} is free; anyone who can reach it can use it")),
        Err(error) => Check::failed(
            "listen",
            format!("cannot listen on {address}: {error}"),
            "Stop the other program on this port, or set another `listen`.",
        ),
    }
}

async fn check_upstreams(settings: &Settings, environment: &Environment) -> Vec<Check> {
    let mut checks = Vec::new();
    for upstream in &settings.upstreams {
        // The configuration check has already reported an upstream that cannot be used.
        let Ok(server) = client_upstream(settings, upstream, environment) else { continue };
        checks.push(match Client::new(&server) {
            Ok(client) => check_upstream(&client, upstream).await,
            Err(error) => Check::failed(
                format!("upstreams.{}", upstream.name),
                error.to_string(),
                "Check the certificates of this machine; upstreams with `http://` need none.",
            ),
        });
    }
    checks
}

/// Checks whether a server responds. Without a key, the status 401 also counts as a response.
async fn check_upstream(client: &Client, upstream: &Upstream) -> Check {
    let name = format!("upstreams.{}", upstream.name);
    let Some(base_url) = &upstream.base_url else {
        return Check::failed(name, "it has no URL", "Set its `base_url`.");
    };
    let url = format!("{}/models", base_url.as_used_by(upstream.format));
    let request = match Request::get(&url).body(Full::<Bytes>::default()) {
        Ok(request) => request,
        Err(error) => return Check::failed(name, format!("{url}: {error}"), "Correct its `base_url`."),
    };
    match client.send(request, UPSTREAM_TIMEOUT).await {
        Ok(answer) if answer.status().as_u16() == 404 => Check::passed(
            name,
            format!(
                "{url} answers 404; if requests fail, check that `base_url` ends with the API version, as in /v1"
            ),
        ),
        Ok(answer) if answer.status().is_server_error() => Check::failed(
            name,
            format!("{url} answers {}", answer.status()),
            "The server is running but has an error: check its log.",
        ),
        Ok(answer) => Check::passed(name, format!("{url} answers {}", answer.status().as_u16())),
        Err(error) => Check::failed(
            name,
            format!("{url} cannot be reached: {error}"),
            "Check that the server is running and that `base_url` is correct.",
        ),
    }
}
