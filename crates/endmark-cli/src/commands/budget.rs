//! `endmark budget`: shows the state of budgets, or raises one for a session. (CX-7)

use endmark_config::EffectiveConfig;
use endmark_console::reports::budgets::{BudgetEntry, BudgetsReport};
use endmark_context::budget::{Scope, Unit};
use endmark_context::rate_from_dollars;
use endmark_failure::CommandError;
use endmark_store::{
    BudgetRow, Key, KeyBook, MAX_BUDGET_RAISE, RaiseOutcome, Reader, SharedBudgets, Store, StoreError,
    StoreLocation, forfeit_instance, runtime,
};

use crate::arguments::budget::{Budget, BudgetCommand, Raise};
use crate::context::{Context, configuration_warnings, single_gateway_warning};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::Paint;
use crate::view::table::{Cell, Column, Layout};

/// How many characters of a hash are shown. `endmark budget raise` accepts any unique prefix.
const SHOWN_HASH_CHARS: usize = 16;

/// From this percentage on, a budget is highlighted, as in the metric of budget warnings.
const NEAR_LIMIT_PERCENT: u128 = 80;

/// Shows budgets, or raises one.
pub(crate) fn run(context: &Context, arguments: &Budget) -> Result<Answer, CommandError> {
    let effective = context.load_configuration(arguments.store.overrides())?;
    match &arguments.command {
        Some(BudgetCommand::Raise(raise)) => raise_budget(&effective, raise)?,
        Some(BudgetCommand::Forfeit(forfeit)) => return forfeit_share(&effective, &forfeit.instance),
        None => {}
    }
    let location = &effective.settings.files.store;
    let is_shared = location.postgres().is_some();
    let of_all = is_shared.then(|| runtime::block_on(load_from_database(location))).transpose()?;
    let mut warnings = configuration_warnings(&effective);
    let (rows, keys) = match of_all {
        Some(Ok(found)) => found,
        // Without the database, show the data of this gateway only.
        other => {
            let alone = |error| {
                single_gateway_warning(&format!("this is from the journal of this gateway alone: {error}"))
            };
            warnings.extend(other.and_then(Result::err).map(alone));
            load_from_file(location).map_err(|error| CommandError::from_store(&error))?
        }
    };
    let rules = effective.settings.budget.to_gateway().rules;
    let report =
        BudgetsReport { rows: rows.iter().map(|row| BudgetEntry::new(row, &rules, &keys)).collect() };
    let text = render_text(&report.rows, context.terminal.table_layout());
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(warnings))
}

/// Loads the budgets and keys of all gateways from the database.
async fn load_from_database(location: &StoreLocation) -> Result<(Vec<BudgetRow>, Vec<Key>), StoreError> {
    // Opening the key book creates missing tables.
    let keys = KeyBook::open(location).await?.all_keys().await?;
    Ok((SharedBudgets::open(location).await?.all_budgets().await?, keys))
}

/// Loads the budgets and keys from the store's file.
fn load_from_file(location: &StoreLocation) -> Result<(Vec<BudgetRow>, Vec<Key>), StoreError> {
    let reader = Reader::open(location)?;
    Ok((reader.budgets()?, reader.keys()?))
}

/// Releases the unspent grants of a silent instance.
fn forfeit_share(effective: &EffectiveConfig, instance: &str) -> Result<Answer, CommandError> {
    let location = &effective.settings.files.store;
    let is_done = runtime::block_on(forfeit_instance(location, instance))?;
    if !is_done.map_err(|error| CommandError::from_store(&error))? {
        return Err(CommandError::input(
            "unknown_instance",
            format!("there is no silent instance `{instance}`"),
            "An instance is silent one minute after its last report. `endmark doctor` lists silent instances with unspent grants.",
        ));
    }
    let text = format!("The unspent grants of {instance} are released.\n");
    Ok(Answer::yes(to_data(&BudgetsReport { rows: Vec::new() })?, text)
        .with_warnings(configuration_warnings(effective)))
}

/// Adds to a session's budget.
fn raise_budget(effective: &EffectiveConfig, raise: &Raise) -> Result<(), CommandError> {
    let number = raise.by.strip_prefix('+').unwrap_or(&raise.by).replace(['_', ','], "");
    let amount = if raise.usd {
        number.parse().ok().and_then(|dollars| rate_from_dollars(dollars).ok())
    } else {
        number.parse().ok()
    };
    let amount = amount.filter(|amount| *amount > 0).ok_or_else(|| {
        CommandError::input(
            "bad_amount",
            format!("`{}` is not a valid amount", raise.by),
            "Write tokens, as in `+50000`, or dollars, as in `+2.50 --usd`.",
        )
    })?;
    let unit = if raise.usd { Unit::NanoUsd } else { Unit::Tokens };
    let too_much = |most| {
        CommandError::input(
            "bad_amount",
            format!("`{}` is more than can be added", raise.by),
            format!("Add at most {}.", unit.format(most)),
        )
    };
    // This check needs no store.
    if amount > MAX_BUDGET_RAISE {
        return Err(too_much(MAX_BUDGET_RAISE));
    }
    let failed = |error| CommandError::from_store(&error);
    let (location, typed) = (&effective.settings.files.store, &raise.session);
    let raised = runtime::block_on(async {
        if location.postgres().is_some() {
            let mut budgets = SharedBudgets::open(location).await.map_err(failed)?;
            let session = find_session(typed, budgets.sessions(typed, unit).await.map_err(failed)?, unit)?;
            return budgets.raise(&session, unit, amount).await.map_err(failed);
        }
        let session = find_session(typed, find_sessions(location, typed, unit).map_err(failed)?, unit)?;
        let store = Store::open(location).map_err(failed)?;
        let raised = store.raise_budget(&session, unit, amount).await.map_err(failed);
        store.close().await;
        raised
    })??;
    match raised {
        RaiseOutcome::Raised(_) => Ok(()),
        RaiseOutcome::TooLarge(most) => Err(too_much(most)),
        RaiseOutcome::NoBudget => Err(unknown_session(&raise.session, unit)),
    }
}

fn unknown_session(typed: &str, unit: Unit) -> CommandError {
    CommandError::input(
        "unknown_session",
        format!("the session `{typed}` has no recorded budget in {}", unit.name()),
        "`endmark budget` lists the sessions that have used theirs.",
    )
}

/// Returns the sessions in the store with this prefix.
fn find_sessions(location: &StoreLocation, prefix: &str, unit: Unit) -> Result<Vec<String>, StoreError> {
    let rows = Reader::open(location)?.budgets()?;
    let of_sessions = |row: &BudgetRow| row.scope == Scope::Session.name() && row.unit == unit.name();
    let subjects = rows.into_iter().filter(of_sessions).map(|row| row.subject);
    Ok(subjects.filter(|subject| subject.starts_with(prefix)).collect())
}

/// Returns the session with this name, or the only one with this prefix.
fn find_session(typed: &str, mut found: Vec<String>, unit: Unit) -> Result<String, CommandError> {
    found.sort_unstable();
    found.dedup();
    if typed.is_empty() {
        found.clear();
    }
    match found.as_slice() {
        [] => Err(unknown_session(typed, unit)),
        // The matches are sorted, so an exact match comes first.
        [first, others @ ..] if first == typed || others.is_empty() => Ok(first.clone()),
        _ => Err(CommandError::input(
            "ambiguous_session",
            format!("{} sessions begin with `{typed}`", found.len()),
            "Write more characters of the hash in `endmark budget`.",
        )),
    }
}

/// Returns the budgets as a readable table.
fn render_text(rows: &[BudgetEntry], layout: Layout) -> String {
    if rows.is_empty() {
        return "No budget has counted a call yet. Set a budget under [budget], as in `session_tokens = 850_000`.\n".to_owned();
    }
    let columns = [
        Column::text("BUDGET OF"),
        Column::fixed("WINDOW"),
        Column::number("SPENT"),
        Column::number("UNDER WAY"),
        Column::number("LIMIT"),
        Column::number("USED"),
    ];
    layout.lines(columns, rows.iter().map(cells)).join("\n") + "\n"
}

fn cells(row: &BudgetEntry) -> [Cell; 6] {
    let unit = Unit::from_name(&row.unit);
    let subject: String = row.subject.chars().take(SHOWN_HASH_CHARS).collect();
    let owner = match (row.scope.as_str(), subject.as_str()) {
        (scope, "") => format!("{scope} requests"),
        (scope, subject) => format!("{scope} {subject}"),
    };
    let limit = row.limit.map(|limit| limit.saturating_add(row.extra));
    let percent = limit
        .filter(|limit| *limit > 0)
        .map(|limit| u128::from(row.spent.saturating_add(row.held)).saturating_mul(100) / u128::from(limit));
    let used = match percent {
        _ if row.closed => Cell::painted("used up", Paint::Bad),
        None => "-".into(),
        Some(percent) if percent >= NEAR_LIMIT_PERCENT => Cell::painted(format!("{percent} %"), Paint::Doubt),
        Some(percent) => format!("{percent} %").into(),
    };
    [
        owner.into(),
        row.window.as_str().into(),
        unit.format(row.spent).into(),
        unit.format(row.held).into(),
        limit.map_or_else(|| "not configured now".to_owned(), |limit| unit.format(limit)).into(),
        used,
    ]
}
