//! Tables with a finding in each row.

use std::collections::HashMap;

use crate::transcript::letters;
use crate::{Field, FindingId, FindingState, ReadFinding};

use super::heads::{self, Head};
use super::names::{Key, folded};

/// A table that has begun: what its columns are about.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Option<Key>>,
}

/// A row of it.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) id: Option<FindingId>,
    pub(super) title: String,
    pub(super) values: Vec<(Key, String)>,
}

/// A table of findings has at least so many columns that are known.
const LEAST_KNOWN: usize = 3;

impl Table {
    /// The table of findings that a line is the head of.
    pub(super) fn of(text: &str) -> Option<Self> {
        let cells = cells(text, LEAST_KNOWN)?;
        let columns: Vec<Option<Key>> = cells.iter().map(|(cell, _)| column(cell)).collect();
        let has = |wanted: Key| columns.contains(&Some(wanted));
        let known = columns.iter().flatten().count();
        let is_of_findings =
            has(Key::Of(Field::Severity)) || has(Key::Of(Field::Source)) || has(Key::Of(Field::Sink));
        let is_list = has(Key::Id) || has(Key::Title) || has(Key::Of(Field::Location));
        (known >= LEAST_KNOWN && is_of_findings && is_list).then_some(Self { columns })
    }

    /// The row that a line is; a cell that the text stops in is not there. None behind the table.
    pub(super) fn row(&self, text: &str, is_settled: bool) -> Option<Row> {
        let mut row = Row::default();
        let mut cells = cells(text, LEAST_KNOWN)?;
        cells.retain(|(_, is_closed)| *is_closed || is_settled);
        // Code with a `|` that nobody has escaped: the last column has all of it.
        let (most, found) = (self.columns.len(), cells.len());
        if let Some((last, more)) = cells.get_mut(most - 1..).and_then(<[_]>::split_first_mut)
            && found > most
        {
            for (cell, _) in more {
                last.0.push('|');
                last.0.push_str(cell);
            }
        }
        for ((cell, _), column) in cells.iter().zip(&self.columns) {
            let cell = cell.trim();
            match column {
                Some(Key::Id) => (row.id, row.title) = self.id_and_title(cell),
                // A column of this name may have the ids as well.
                Some(Key::Title)
                    if row.id.is_none()
                        && FindingId::read(cell.trim_matches(['[', ']', '*', '`'])).is_some() =>
                {
                    row.id = FindingId::read(cell.trim_matches(['[', ']', '*', '`']));
                }
                Some(Key::Title) => cell.trim_matches(['*', '_']).clone_into(&mut row.title),
                Some(key) if !cell.is_empty() => {
                    row.values.push((*key, in_lines(cell, *key)));
                }
                _ => {}
            }
        }
        Some(row)
    }

    /// What a cell of ids says, and the title that stands in it too where there is no column of titles: `F001 Log injection`.
    fn id_and_title(&self, cell: &str) -> (Option<FindingId>, String) {
        let has_titles = self.columns.contains(&Some(Key::Title));
        if let Some(Head { id: Some(id), title, .. }) = heads::loose_head(cell)
            && !has_titles
            && !title.is_empty()
        {
            return (Some(id), title.into_owned());
        }
        let name = cell.trim_matches(|sign| "[]*`_ ".contains(sign));
        // A row that is counted is the finding of that number.
        let counted = name.parse().ok().map(FindingId::numbered);
        (counted.or_else(|| FindingId::named(name)), String::new())
    }
}

/// A cell with its lines, which are lines of code in evidence and places of their own in a location.
fn in_lines(cell: &str, key: Key) -> String {
    let ends = ["<br>", "<br/>", "<br />"];
    let lines = ends.iter().fold(cell.to_owned(), |cell, end| cell.replace(end, "\n"));
    if key == Key::Of(Field::Evidence) {
        return lines;
    }
    let lines =
        lines.lines().map(|line| line.trim().trim_end_matches([',', ';'])).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(if key == Key::Of(Field::Location) { ", " } else { " " })
}

/// What a cell says in a row that has the name of a field and its value.
pub(super) fn value_of_row(cell: &str, key: Key) -> String {
    in_lines(&cell.replace("\\|", "|"), key)
}

/// What the columns are about of a table with what a result says of itself, which a line is the head of.
pub(super) fn header_columns(text: &str) -> Option<Vec<Option<Key>>> {
    let columns: Vec<Option<Key>> = cells(text, 2)?.iter().map(|(cell, _)| column(cell)).collect();
    let is_all = columns.iter().flatten().all(|key| key.is_of_header());
    (is_all && columns.iter().flatten().count() >= 2).then_some(columns)
}

/// What is said below it.
pub(super) fn header_row(text: &str, columns: &[Option<Key>]) -> Option<Vec<(Key, String)>> {
    let said = cells(text, 2)?.into_iter().zip(columns).filter_map(|((cell, _), key)| Some(((*key)?, cell)));
    Some(said.map(|(key, cell)| (key, cell.trim().to_owned())).collect())
}

/// Whether a line is the one between the head of a table and its rows.
pub(super) fn is_rule(text: &str) -> bool {
    text.contains('-') && text.chars().all(|sign| "|-: \t".contains(sign))
}

fn column(name: &str) -> Option<Key> {
    let name = name.trim_matches(|sign: char| sign.is_whitespace() || "*_`:".contains(sign));
    match folded(name).as_ref() {
        "" if name == "#" => Some(Key::Id),
        "no" | "nr" => Some(Key::Id),
        "description" | "summary" | "what" | "finding" => Some(Key::Title),
        _ => Key::named(name),
    }
}

/// The cells of a row, each with whether a `|` closes it; none if the line is no row of at least so many.
fn cells(text: &str, least: usize) -> Option<Vec<(String, bool)>> {
    let inner = text.trim().strip_prefix('|')?;
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut signs = inner.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next() {
                Some('|') => cell.push('|'),
                Some(other) => cell.extend(['\\', other]),
                None => cell.push('\\'),
            },
            '|' => cells.push((std::mem::take(&mut cell), true)),
            sign => cell.push(sign),
        }
    }
    if !cell.trim().is_empty() {
        cells.push((cell, false));
    }
    (cells.len() >= least).then_some(cells)
}

/// The findings without the rows of a table that are told elsewhere, in their order in the text: a row that says little is an
/// overview of what has its id, or, one for one, its title; one that says enough gives way to what says as much.
pub(super) fn told_once(findings: Vec<ReadFinding>, of_table: &[bool]) -> Vec<ReadFinding> {
    let mut told: HashMap<FindingId, bool> = HashMap::new();
    let mut titles: HashMap<String, usize> = HashMap::new();
    for (read, _) in findings.iter().zip(of_table).filter(|(_, of_table)| !**of_table) {
        let is_enough = read.state != FindingState::NeedsReaudit;
        *told.entry(read.finding.id.clone()).or_default() |= is_enough;
        *titles.entry(letters(&read.finding.title)).or_default() += 1;
    }
    let mut is_told = |read: &ReadFinding| {
        let by_id = told.get(&read.finding.id);
        if read.state != FindingState::NeedsReaudit {
            return by_id.is_some_and(|is_enough| *is_enough);
        }
        let title = letters(&read.finding.title);
        let of_title = titles.get_mut(&title).filter(|count| !title.is_empty() && **count > 0);
        let by_title = of_title.map(|count| *count -= 1).is_some();
        by_id.is_some() || by_title
    };
    let kept = findings.into_iter().zip(of_table).filter(|(read, of_table)| !**of_table || !is_told(read));
    kept.map(|(read, _)| read).collect()
}
