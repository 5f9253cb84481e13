//! Recoveries as a table, the newest first.

use endmark_console::reports::NotAsked;
use endmark_store::{FinalStatus, LogRow};

use crate::terminal::{Paint, Painter};

const HEADINGS: [&str; 8] =
    ["ID", "TIME (UTC)", "OUTCOME", "CUT", "MODEL", "CALLS", "EXTRA TOKENS", "REQUEST"];

/// The rows under their headings; one sentence where there are none.
pub(crate) fn text(rows: &[LogRow], painter: Painter) -> String {
    if rows.is_empty() {
        return "No reply was cut yet.\n".to_owned();
    }
    let cells: Vec<[String; 8]> = rows.iter().map(cells).collect();
    let width = |column: usize| {
        let widest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        widest.max(HEADINGS[column].chars().count())
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = line(&HEADINGS.map(str::to_owned), &widths, |_, cell| painter.paint(Paint::Strong, &cell));
    for (row, cells) in rows.iter().zip(&cells) {
        let paint = match row.final_status {
            FinalStatus::Resolved => Paint::Good,
            FinalStatus::Exhausted => Paint::Bad,
        };
        text.push_str(&line(
            cells,
            &widths,
            |column, cell| {
                if column == 2 { painter.paint(paint, &cell) } else { cell }
            },
        ));
    }
    text
}

/// Below the table: of which rows nothing was asked, why, and what would change it; each reason once.
pub(super) fn reasons(rows: &[LogRow], reasons: &[Option<NotAsked>]) -> String {
    let mut told: Vec<(NotAsked, Vec<String>)> = Vec::new();
    for (row, reason) in rows.iter().zip(reasons) {
        let Some(reason) = reason else { continue };
        match told.iter_mut().find(|(known, _)| known == reason) {
            Some((_, ids)) => ids.push(row.id.to_string()),
            None => told.push((*reason, vec![row.id.to_string()])),
        }
    }
    let line = |(reason, ids): &(NotAsked, Vec<String>)| {
        format!(
            "\nNothing was asked for {}: {}.\nTo change that, {}.\n",
            ids.join(", "),
            reason.because,
            reason.remedy
        )
    };
    told.iter().map(line).collect()
}

fn cells(row: &LogRow) -> [String; 8] {
    [
        row.id.to_string(),
        row.timestamp.clone(),
        row.outcome.clone(),
        row.cut_kind.clone(),
        row.model.clone(),
        row.resume_attempts.to_string(),
        (row.extra_prompt_tokens + row.extra_output_tokens).to_string(),
        row.request_id.clone(),
    ]
}

/// One line, each cell but the last filled up to its column's width before it is painted.
fn line(cells: &[String; 8], widths: &[usize], paint: impl Fn(usize, String) -> String) -> String {
    let last = cells.len() - 1;
    let fill = |column: usize, cell: &String| {
        if column == last { cell.clone() } else { format!("{cell:<width$}", width = widths[column]) }
    };
    let painted: Vec<String> =
        cells.iter().enumerate().map(|(column, cell)| paint(column, fill(column, cell))).collect();
    format!("{}\n", painted.join("  ").trim_end())
}
