//! Copies a store from a SQLite file into a PostgreSQL database, or back.
//!
//! The database treats the file as an instance that has ended. Rows have keys and costs are absolute numbers,
//! so an interrupted copy can be repeated.

use endmark_context::budget::{ShareReport, pace};
use tokio_postgres::Client;

use crate::copy_result::{CopyError, CopyProgress, CopyResult, CopySums};
use crate::engine::copying::{CopyFile, ID_MARK, SOURCE_MARK};
use crate::engine::journal::rows::CallRows;
use crate::engine::journal::{DueReport, Instance};
use crate::error::StoreError;
use crate::leases::BudgetKey;
use crate::location::StoreLocation;
use crate::shared::address::PostgresAddress;
use crate::shared::work::{random_number, random_text};
use crate::shared::{copying, database, keys as shared_keys};

/// Copies a SQLite store into a PostgreSQL database, or back, and compares both afterwards.
///
/// `progress` is called after each transaction of at most 512 rows.
///
/// # Errors
/// [`CopyError`] if a process uses the source, the target holds other records, or a store fails.
pub async fn copy_store(
    from: &StoreLocation,
    to: &StoreLocation,
    progress: impl FnMut(CopyProgress),
) -> Result<CopyResult, CopyError> {
    match (from.postgres(), to.postgres()) {
        (None, Some(address)) => copy_into_database(from, address, progress).await,
        (Some(address), None) => copy_into_file(address, to, progress).await,
        _ => Err(CopyError::SameKind),
    }
}

async fn copy_into_database(
    from: &StoreLocation,
    address: &PostgresAddress,
    mut progress: impl FnMut(CopyProgress),
) -> Result<CopyResult, CopyError> {
    let failed = |error: tokio_postgres::Error| address.statement_error(&error);
    if !from.path().is_file() {
        return Err(StoreError::NoFile { path: from.path().to_owned() }.into());
    }
    let file = CopyFile::open(from.absolute().path())?;
    file.begin()?;
    let (sums, oldest) = file.sums()?;
    if sums == CopySums::default() {
        return Err(CopyError::EmptySource { source_name: from.to_string() });
    }
    let mut client = address.connect().await?;
    address.check_schema(database::create_tables(&client).await.map_err(failed)?)?;
    let known = file.mark(ID_MARK)?;
    let id = known.clone().unwrap_or_else(|| format!("copy-{}", random_text()));
    let (holds_records, is_known) = copying::query_contents(&client, &id).await.map_err(failed)?;
    if holds_records && !is_known {
        return Err(CopyError::OtherContents { target: address.to_string() });
    }
    if known.is_none() {
        // Commit first: the database must not know an id that the file could lose.
        file.set_mark(ID_MARK, &id)?;
        file.commit()?;
        file.begin()?;
    }
    // Only one process copies the file at a time, so one token is enough.
    let instance = Instance { token: id.clone(), next_token: id.clone(), id, ..Instance::default() };
    database::register(&mut client, &instance, true).await.map_err(failed)?;
    let mut after = (String::new(), 0);
    let mut copied = 0;
    while let Some((rows, last)) = file.rows(&after, pace::MAX_ROWS)? {
        database::exchange(&client, &instance, &DueReport::default(), &rows).await.map_err(failed)?;
        (copied, after) = (copied + rows.count as u64, last);
        progress(CopyProgress { rows: copied, total: sums.rows });
    }
    let mut after = None;
    loop {
        let budgets = file.budgets(after.as_ref(), pace::MAX_CHANGES)?;
        let Some((last, _)) = budgets.last() else { break };
        after = Some(last.clone());
        let report = |(key, spent): &(BudgetKey, u64)| {
            (key.clone(), ShareReport { spent: *spent, used: *spent, ..ShareReport::default() })
        };
        let due = DueReport { shares: budgets.iter().map(report).collect(), ..DueReport::default() };
        database::exchange(&client, &instance, &due, &CallRows::default()).await.map_err(failed)?;
    }
    let (keys, secrets) = file.keys()?;
    copying::add_keys(&mut client, &keys, &secrets).await.map_err(failed)?;
    database::deregister(&client, &instance).await.map_err(failed)?;
    let since = oldest.map_or_else(|| "-infinity".to_owned(), |oldest| format!("{oldest}+00"));
    let target = copying::query_file_sums(&client, &instance.id, &since).await.map_err(failed)?;
    let (_, keys, secrets) = shared_keys::query_keys(&mut client).await.map_err(failed)?;
    let differing_keys = file.differing_keys(&keys, &secrets)?;
    let omitted = file.omitted_records()?;
    file.commit()?;
    Ok(CopyResult { source: sums, target, differing_keys, omitted })
}

async fn copy_into_file(
    address: &PostgresAddress,
    to: &StoreLocation,
    mut progress: impl FnMut(CopyProgress),
) -> Result<CopyResult, CopyError> {
    let failed = |error: tokio_postgres::Error| address.statement_error(&error);
    let mut client = address.connect().await?;
    let nothing = || CopyError::EmptySource { source_name: address.to_string() };
    let schema = database::query_schema_version(&client).await.map_err(failed)?.ok_or_else(nothing)?;
    address.check_schema(schema)?;
    check_unused(&client, address).await?;
    let sums = copying::query_total_sums(&client).await.map_err(failed)?;
    if sums == CopySums::default() {
        return Err(nothing());
    }
    let id = copying::read_or_create_id(&client, random_number()).await.map_err(failed)?;
    let to = to.absolute();
    to.make_folder()?;
    let file = CopyFile::open(to.path())?;
    file.begin()?;
    match file.mark(SOURCE_MARK)? {
        Some(source) if source == id => {}
        None if file.is_empty()? => file.set_mark(SOURCE_MARK, &id)?,
        _ => return Err(CopyError::OtherContents { target: to.to_string() }),
    }
    let (_, keys, secrets) = shared_keys::query_keys(&mut client).await.map_err(failed)?;
    file.add_keys(&keys, &secrets)?;
    file.commit()?;
    let mut after = ("-infinity".to_owned(), String::new(), 0);
    let mut copied = 0;
    while let Some((rows, count, last)) =
        copying::query_next_rows(&client, &after, pace::MAX_ROWS).await.map_err(failed)?
    {
        file.begin()?;
        file.add_rows(&rows)?;
        file.commit()?;
        (copied, after) = (copied + count, last);
        progress(CopyProgress { rows: copied, total: sums.rows });
    }
    let mut after = <[String; 4]>::default();
    loop {
        let (budgets, last) = copying::budgets(&client, &after, pace::MAX_CHANGES).await.map_err(failed)?;
        let Some(last) = last else { break };
        file.begin()?;
        file.add_budgets(&budgets)?;
        file.commit()?;
        after = last;
    }
    check_unused(&client, address).await?;
    let (target, _) = file.sums()?;
    let differing_keys = file.differing_keys(&keys, &secrets)?;
    let omitted = copying::query_omitted_records(&client).await.map_err(failed)?;
    Ok(CopyResult { source: sums, target, differing_keys, omitted })
}

/// Fails if gateways use the database, or if one of them may have unreported costs.
async fn check_unused(client: &Client, address: &PostgresAddress) -> Result<(), CopyError> {
    let users =
        copying::count_live_instances(client).await.map_err(|error| address.statement_error(&error))?;
    match users {
        (0, None) => Ok(()),
        (0, Some(instance)) => Err(CopyError::Unreported { instance }),
        (instances, _) => Err(CopyError::DatabaseInUse { instances }),
    }
}
