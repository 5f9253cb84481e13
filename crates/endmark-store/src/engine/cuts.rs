//! Reads the outcomes of cut replies, one by one or as daily sums.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::engine::reader::summary::{CutPeriod, CutSummary, REPLY_PURPOSES};
use crate::engine::sums::SumPeriod;
use crate::engine::{Reader, StatementError};
use crate::records::REASON_CLIENT_LIMIT;

/// Outcomes by the ranks that [`OUTCOME_RANKS`] assigns, from best to worst. A reply has the worst outcome of
/// its cut parts. The outcome `cut` has two ranks: 5 if the client's own limit caused every part that stayed
/// cut, otherwise 6.
const OUTCOMES_BY_RANK: [&str; 8] =
    ["resumed", "corrected", "restarted", "cancelled", "interrupted", "cut", "cut", "exhausted"];
const INTERRUPTED_RANK: usize = 4;
const AT_CLIENT_LIMIT_RANK: usize = 5;

/// The rank of a recovery's outcome, in SQL. The parameter is the reason that is stored for replies that
/// reached their client's own limit.
pub(crate) const OUTCOME_RANKS: &str =
    "CASE outcome WHEN 'resumed' THEN 0 WHEN 'corrected' THEN 1 WHEN 'restarted' THEN 2
  WHEN 'cancelled' THEN 3 WHEN 'interrupted' THEN 4 WHEN 'exhausted' THEN 7
  WHEN 'cut' THEN CASE reason WHEN ?1 THEN 5 ELSE 6 END ELSE 0 END";

/// Selects cut replies together with their outcome. The purposes and a condition are appended.
const CUT_REPLIES_SQL: &str = "
      FROM recoveries r WHERE r.request_id = u.request_id),
    coalesce(u.prompt_tokens,
      (SELECT prompt FROM usage_estimates t WHERE t.request_id = u.request_id AND t.call = u.call), 0)
    + coalesce(u.output_tokens,
      (SELECT output FROM usage_estimates t WHERE t.request_id = u.request_id AND t.call = u.call), 0),
    u.prompt_tokens IS NULL OR u.output_tokens IS NULL, u.started_at
  FROM usage u INDEXED BY ";

/// Grouped counts of cut replies.
#[derive(Default)]
pub(crate) struct CutCounts {
    summaries: HashMap<String, CutSummary>,
    periods: BTreeMap<(String, &'static str), u64>,
    key: String,
}

impl CutCounts {
    fn add(
        &mut self,
        [upstream, model, kind]: [&str; 3],
        outcome: &'static str,
        period: &str,
        [replies, resent_tokens, estimated, at_own_limit]: [u64; 4],
    ) {
        self.key.clear();
        for part in [upstream, model, kind, outcome] {
            self.key.push_str(part);
            self.key.push('\0');
        }
        if !self.summaries.contains_key(&self.key) {
            let [upstream, model, kind, outcome] = [upstream, model, kind, outcome].map(str::to_owned);
            let empty = CutSummary {
                upstream,
                model,
                kind,
                outcome,
                replies: 0,
                resent_tokens: 0,
                estimated: 0,
                at_own_limit: 0,
            };
            self.summaries.insert(self.key.clone(), empty);
        }
        if let Some(sum) = self.summaries.get_mut(&self.key) {
            sum.replies += replies;
            sum.resent_tokens += resent_tokens;
            sum.estimated += estimated;
            sum.at_own_limit += at_own_limit;
        }
        *self.periods.entry((period.to_owned(), outcome)).or_default() += replies;
    }

    /// Adds replies whose worst outcome has this rank, or `None` if their process ended before the outcome
    /// was known. The counts are the replies, the tokens that one continuation would resend, and the replies
    /// with estimated counts.
    pub(crate) fn add_ranked(
        &mut self,
        place: [&str; 3],
        rank: Option<usize>,
        period: &str,
        [replies, resent_tokens, estimated]: [u64; 3],
    ) {
        let rank = rank.unwrap_or(INTERRUPTED_RANK);
        let at_own_limit = if rank == AT_CLIENT_LIMIT_RANK { replies } else { 0 };
        let outcome = OUTCOMES_BY_RANK.get(rank).copied().unwrap_or("exhausted");
        self.add(place, outcome, period, [replies, resent_tokens, estimated, at_own_limit]);
    }

    /// Returns the replies ordered by frequency, and by period.
    pub(crate) fn into_summaries(self) -> (Vec<CutSummary>, Vec<CutPeriod>) {
        let mut summaries: Vec<CutSummary> = self.summaries.into_values().collect();
        let order = |cut: &CutSummary| {
            (
                Reverse(cut.replies),
                cut.upstream.clone(),
                cut.model.clone(),
                cut.kind.clone(),
                cut.outcome.clone(),
            )
        };
        summaries.sort_by_cached_key(order);
        let periods = self.periods.into_iter();
        let periods = periods.map(|((period, outcome), replies)| CutPeriod {
            period,
            outcome: outcome.to_owned(),
            replies,
        });
        (summaries, periods.collect())
    }

    /// Adds the sums of the days that are completely inside a span. Returns these days.
    fn add_daily_sums(
        &mut self,
        connection: &Connection,
        from: &str,
        until: &str,
    ) -> rusqlite::Result<BTreeSet<String>> {
        let mut days = BTreeSet::new();
        let mut statement = connection.prepare_cached(
            "SELECT upstream, model, cut_kind, outcome, replies, resent_tokens, estimated, at_own_limit, day FROM cut_sums
             WHERE day || ' 00:00:00' >= ?1 AND day || ' 24' <= ?2",
        )?;
        let mut rows = statement.query([from, until])?;
        while let Some(row) = rows.next()? {
            let (day, outcome) = (row.get_ref(8)?.as_str()?, row.get_ref(3)?.as_str()?);
            let outcome = OUTCOMES_BY_RANK.into_iter().find(|known| *known == outcome).unwrap_or("exhausted");
            let amount = |column| row.get::<_, i64>(column).map(from_sql_integer);
            self.add(read_group(row)?, outcome, day, [amount(4)?, amount(5)?, amount(6)?, amount(7)?]);
            if !days.contains(day) {
                days.insert(day.to_owned());
            }
        }
        Ok(days)
    }

    /// Adds the replies that match a condition, by hour.
    fn add_replies(
        &mut self,
        connection: &Connection,
        condition: &str,
        values: impl Params,
        is_wanted: impl Fn(&str) -> bool,
    ) -> rusqlite::Result<()> {
        let purposes = REPLY_PURPOSES.join("', '");
        let sql = format!(
            "SELECT u.upstream, u.model, coalesce(u.cut_kind, ''), (SELECT max({OUTCOME_RANKS}) {CUT_REPLIES_SQL} {condition}
               AND u.verdict = 'cut' AND u.purpose IN ('{purposes}')"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            let started_at = row.get_ref(6)?.as_str()?;
            if is_wanted(SumPeriod::Day.period_of(started_at)) {
                let rank = row.get::<_, Option<u8>>(3)?.map(usize::from);
                let counts = [1, from_sql_integer(row.get(4)?), u64::from(row.get::<_, bool>(5)?)];
                self.add_ranked(read_group(row)?, rank, SumPeriod::Hour.period_of(started_at), counts);
            }
        }
        Ok(())
    }
}

/// Returns the first three columns: upstream, model and kind.
fn read_group<'a>(row: &'a Row<'_>) -> rusqlite::Result<[&'a str; 3]> {
    Ok([row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?])
}

impl Reader {
    /// Returns the cut replies that began in a span: by frequency, and by period.
    pub(super) fn cut_replies(
        &self,
        from: &str,
        until: &str,
    ) -> rusqlite::Result<(Vec<CutSummary>, Vec<CutPeriod>)> {
        // Read everything in one transaction, because another process may sum a day in between.
        let moment = self.connection().unchecked_transaction()?;
        let cuts = query_cuts(self.connection(), from, until)?;
        moment.finish()?;
        Ok(cuts.into_summaries())
    }
}

fn query_cuts(connection: &Connection, from: &str, until: &str) -> rusqlite::Result<CutCounts> {
    let mut cuts = CutCounts::default();
    let days = cuts.add_daily_sums(connection, from, until)?;
    let mut gaps: Vec<(String, String)> = Vec::new();
    let mut since = from.to_owned();
    for day in &days {
        gaps.push((std::mem::replace(&mut since, format!("{day} 24")), format!("{day} ")));
    }
    gaps.push((since, until.to_owned()));
    for (since, until) in gaps.iter().filter(|(since, until)| since < until) {
        let condition = "usage_cut WHERE u.started_at >= ?2 AND u.started_at < ?3";
        cuts.add_replies(connection, condition, params![REASON_CLIENT_LIMIT, since, until], |_| true)?;
    }
    // These calls belong to summed days, but were written after the days were summed.
    let condition = "usage_unsummed WHERE u.is_summed = 0 AND u.started_at >= ?2 AND u.started_at < ?3";
    cuts.add_replies(connection, condition, params![REASON_CLIENT_LIMIT, from, until], |day| {
        days.contains(day)
    })?;
    Ok(cuts)
}

/// Sums the cut replies of one day. The day must have ended at least a day ago, and all its calls must be
/// summed. Returns whether there was such a day.
pub(crate) fn sum_one_day(connection: &Connection) -> Result<bool, StatementError> {
    sum_one_day_before(connection, "date('now', '-1 day')")
}

fn sum_one_day_before(connection: &Connection, end: &str) -> Result<bool, StatementError> {
    let first = format!(
        "SELECT substr(min(started_at), 1, 10) FROM usage WHERE verdict = 'cut' AND purpose IN ('{}')",
        REPLY_PURPOSES.join("', '")
    );
    let sql = format!(
        "WITH RECURSIVE days(day) AS (
           {first} UNION ALL SELECT ({first} AND started_at > day || ' 24') FROM days WHERE day IS NOT NULL)
         SELECT day FROM days WHERE day < {end} AND day NOT IN (SELECT day FROM cut_sums)
           AND NOT EXISTS (SELECT 1 FROM usage WHERE is_summed = 0 AND started_at >= day AND started_at < day || ' 24')
         LIMIT 1"
    );
    let day: Option<String> = connection.prepare_cached(&sql)?.query_row([], |row| row.get(0)).optional()?;
    let Some(day) = day else { return Ok(false) };
    let cuts = query_cuts(connection, &day, &format!("{day} 24"))?;
    for cut in cuts.summaries.values() {
        connection
            .prepare_cached(
                "INSERT INTO cut_sums (day, upstream, model, cut_kind, outcome, replies, resent_tokens, estimated, at_own_limit)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                day,
                cut.upstream,
                cut.model,
                cut.kind,
                cut.outcome,
                to_sql_integer(cut.replies),
                to_sql_integer(cut.resent_tokens),
                to_sql_integer(cut.estimated),
                to_sql_integer(cut.at_own_limit)
            ])?;
    }
    Ok(true)
}

/// Whether the sums of a day differ from its summed calls.
pub(super) fn are_sums_wrong(connection: &Connection, day: &str) -> rusqlite::Result<bool> {
    let (mut written, mut read) = (CutCounts::default(), CutCounts::default());
    let until = format!("{day} 24");
    if written.add_daily_sums(connection, day, &until)?.is_empty() {
        return Ok(false);
    }
    let condition = "usage_by_time WHERE u.is_summed = 1 AND u.started_at >= ?2 AND u.started_at < ?3";
    read.add_replies(connection, condition, params![REASON_CLIENT_LIMIT, day, until], |_| true)?;
    Ok(written.summaries != read.summaries)
}

/// Deletes the sums of a day, because a call was added to it.
pub(super) fn delete_day(connection: &Connection, day: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM cut_sums WHERE day = ?1")?.execute([day]).map(|_| ())
}

#[cfg(test)]
mod tests;
