//! Recoveries as a table, the newest first.

use endmark_console::reports::NotAsked;
use endmark_store::{FinalStatus, RecoveryRow};

use crate::view::paint::Paint;
use crate::view::table::{Cell, Column, Layout};

const COLUMNS: [Column<'static>; 8] = [
    Column::fixed("ID"),
    Column::fixed("TIME (UTC)"),
    Column::text("OUTCOME"),
    Column::text("CUT"),
    Column::text("MODEL"),
    Column::number("CALLS"),
    Column::number("TOKENS"),
    Column::text("REQUEST"),
];

/// The columns if rows of other gateways are listed: with the machine of each row.
const FLEET_COLUMNS: [Column<'static>; 9] = {
    let [id, time, outcome, cut, model, calls, tokens, request] = COLUMNS;
    [id, time, outcome, cut, model, calls, tokens, Column::text("MACHINE"), request]
};

/// Returns the table of rows with headings, or one sentence if there are no rows.
pub(crate) fn render_text(rows: &[RecoveryRow], layout: Layout) -> String {
    if rows.is_empty() {
        return "No reply was cut yet.\n".to_owned();
    }
    let lines = if rows.iter().all(|row| row.other_gateway.is_none()) {
        layout.lines(COLUMNS, rows.iter().map(cells))
    } else {
        layout.lines(FLEET_COLUMNS, rows.iter().map(fleet_cells))
    };
    lines.join("\n") + "\n"
}

/// Returns the notes below the table: which replies were not continued, why, and how to change that.
///
/// Each reason appears once.
pub(crate) fn describe_reasons(rows: &[RecoveryRow]) -> String {
    let mut explained: Vec<(NotAsked, Vec<String>)> = Vec::new();
    for row in rows {
        let Some(reason) = NotAsked::from_row(row) else { continue };
        let id = row.other_gateway.as_ref().map_or_else(|| row.id.to_string(), |_| row.request_id.clone());
        match explained.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, ids)) => ids.push(id),
            None => explained.push((reason, vec![id])),
        }
    }
    let line = |(reason, ids): &(NotAsked, Vec<String>)| {
        format!(
            "\nNo continuation was requested for {}: {}.\nTo change that, {}.\n",
            ids.join(", "),
            reason.because,
            reason.remedy
        )
    };
    explained.iter().map(line).collect()
}

fn fleet_cells(row: &RecoveryRow) -> [Cell; 9] {
    let [id, time, outcome, cut, model, calls, tokens, request] = cells(row);
    let (id, machine) = match &row.other_gateway {
        Some(other) => ("-".into(), other.machine.as_str()),
        None => (id, "this one"),
    };
    [id, time, outcome, cut, model, calls, tokens, machine.into(), request]
}

fn cells(row: &RecoveryRow) -> [Cell; 8] {
    let paint = match row.final_status {
        FinalStatus::Resolved => Paint::Good,
        FinalStatus::Exhausted => Paint::Bad,
    };
    [
        row.id.to_string().into(),
        row.timestamp.as_str().into(),
        Cell::painted(row.outcome.as_str(), paint),
        row.cut_kind.as_str().into(),
        row.model.as_str().into(),
        row.resume_attempts.to_string().into(),
        (row.extra_prompt_tokens + row.extra_output_tokens).to_string().into(),
        row.request_id.as_str().into(),
    ]
}
