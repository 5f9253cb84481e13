//! Caps tables (JSON Lines and CSV) row by row, in bounded memory.

pub(super) mod csv;

use std::borrow::Cow;
use std::sync::Arc;

use endmark_envelope::{FieldPath, Size};

use super::CapError;
use super::json::{JsonTape, ShortenedValue, Shortener};
use super::limits::Limits;
use super::lines::{InvalidUtf8, Lines};
use super::marker::{self, OmissionValue, OmittedAmount};
use super::rows::{CandidateRow, RowFacts, RowSelector, SelectionLimits};

/// Maximum size of a row in bytes. A longer row is counted, but omitted.
const MAX_ROW_BYTES: usize = 8 << 20;
/// A row may use at most the limit divided by this number.
const MAX_ROW_LIMIT_DIVISOR: usize = 8;

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableFormat {
    JsonLines,
    /// CSV, with this delimiter between the fields.
    Csv(char),
}

/// A table that arrives in chunks.
#[derive(Debug)]
pub(super) struct TableCapper {
    lines: Lines,
    /// Whether the next input is the rest of a row that is too long, which is skipped.
    is_skipping: bool,
    processor: RowProcessor,
}

#[derive(Debug)]
struct RowProcessor {
    kind: TableFormat,
    limits: Limits,
    path: FieldPath,
    /// The complete input so far. `None` once it cannot fit into the limit.
    whole: Option<String>,
    whole_size: usize,
    /// A CSV record that continues on the next line.
    record: String,
    /// The first CSV record. The column names are parsed from it.
    header: Option<String>,
    names: Vec<String>,
    rows: RowSelector<Arc<KeptRow>>,
    tape: JsonTape,
    /// The marker of an earlier capping, at the end of JSON Lines.
    before: Option<OmissionValue>,
    capped_before: OmittedAmount,
    /// Total size of all rows so far.
    total: OmittedAmount,
    bytes: u64,
}

/// A candidate row.
#[derive(Debug)]
struct KeptRow {
    text: String,
    cuts: Vec<ShortenedValue>,
    /// Total size of the rows before this one.
    before: OmittedAmount,
    weight: OmittedAmount,
}

/// A capped table with its cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShortenedTable {
    pub(super) text: String,
    pub(super) cuts: Vec<ShortenedValue>,
}

impl TableCapper {
    pub(super) fn new(kind: TableFormat, limits: &Limits, path: &FieldPath, foreign: InvalidUtf8) -> Self {
        let read = RowProcessor {
            kind,
            limits: limits.clone(),
            path: path.clone(),
            whole: Some(String::new()),
            whole_size: 0,
            record: String::new(),
            header: None,
            names: Vec::new(),
            rows: RowSelector::new(limits.max_items, limits.max_buffered()),
            tape: JsonTape::default(),
            before: None,
            capped_before: OmittedAmount::default(),
            total: OmittedAmount::default(),
            bytes: 0,
        };
        Self { lines: Lines::new(usize::MAX, foreign), is_skipping: false, processor: read }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), CapError> {
        let (read, is_skipping) = (&mut self.processor, &mut self.is_skipping);
        self.lines.push(bytes, |line| read.push_line(line, std::mem::take(is_skipping)))?;
        if self.lines.pending_bytes() > MAX_ROW_BYTES {
            self.processor.push_oversized_row(self.lines.pending_bytes() as u64, !self.is_skipping);
            let chars = self.lines.discard_incomplete_line();
            self.processor.total.chars += chars;
            self.is_skipping = true;
        }
        Ok(())
    }

    /// Returns the capped table, and the number of invalid sequences that were replaced.
    pub(super) fn finish(mut self) -> Result<(ShortenedTable, u64), CapError> {
        let (read, is_skipping) = (&mut self.processor, &mut self.is_skipping);
        self.lines.finish(|line| read.push_line(line, std::mem::take(is_skipping)))?;
        let record = std::mem::take(&mut self.processor.record);
        if !record.is_empty() {
            self.processor.push_row(&record);
        }
        Ok((self.processor.finish(), self.lines.replaced_bytes))
    }
}

impl RowProcessor {
    fn push_line(&mut self, line: &str, is_rest: bool) {
        self.bytes += line.len() as u64;
        if is_rest {
            self.total.chars += line.chars().count() as u64;
            return;
        }
        if let Some(whole) = &mut self.whole {
            self.whole_size += self.limits.size(line);
            whole.push_str(line);
            if self.whole_size > self.limits.max_buffered() {
                self.whole = None;
            }
        }
        if matches!(self.kind, TableFormat::JsonLines) {
            return self.push_row(line);
        }
        self.record.push_str(line);
        if !csv::is_open(&self.record) || self.record.len() > MAX_ROW_BYTES {
            let record = std::mem::take(&mut self.record);
            self.push_row(&record);
            // Keep the allocation of the buffer.
            self.record = record;
            self.record.clear();
        }
    }

    /// Counts a row that is too long to be read completely.
    fn push_oversized_row(&mut self, bytes: u64, is_new: bool) {
        self.bytes += bytes;
        self.whole = None;
        self.total.lines += u64::from(is_new);
    }

    fn push_row(&mut self, row: &str) {
        if row.trim().is_empty() {
            self.total.chars += row.chars().count() as u64;
            return;
        }
        if self.is_marker(row) {
            return;
        }
        let weight = OmittedAmount { lines: 1, chars: row.chars().count() as u64 };
        if let TableFormat::Csv(delimiter) = self.kind
            && self.header.is_none()
        {
            self.names = csv::fields(row, delimiter).map(csv::decode_field).collect();
            self.header = Some(row.to_owned());
            return;
        }
        let mut kept = KeptRow { text: String::new(), cuts: Vec::new(), before: self.total, weight };
        self.total = self.total.plus(weight);
        let size = self.limits.size(row) + 1;
        let most = (self.limits.max_buffered() / MAX_ROW_LIMIT_DIVISOR).max(1);
        let mut facts = RowFacts::default();
        let is_json = self.kind == TableFormat::JsonLines && self.tape.read(row, usize::MAX).is_some();
        match self.kind {
            TableFormat::JsonLines if is_json => facts.collect_json(row, self.tape.nodes(), 0, Some(0)),
            TableFormat::JsonLines => facts.collect_unparsed(row),
            TableFormat::Csv(delimiter) => {
                facts.collect_record(row, csv::fields(row, delimiter), &self.names);
            }
        }
        // A row that cannot be shortened is kept whole or dropped.
        let whole_at_most = |most: usize| if size <= most { row.to_owned() } else { String::new() };
        if size <= most {
            row.clone_into(&mut kept.text);
        } else if is_json {
            let mut shortener = Shortener::new(row, self.tape.nodes(), &self.limits);
            let path = self.path.clone().index(usize::try_from(kept.before.lines).unwrap_or(usize::MAX));
            let smaller = shortener.render_value(0, most - 1, &path, 0);
            kept.text = smaller.unwrap_or_else(|| whole_at_most(self.limits.max_buffered() / 2));
            kept.cuts = shortener.cuts;
        } else if let TableFormat::Csv(delimiter) = self.kind {
            let path = self.path.clone().index(usize::try_from(kept.before.lines).unwrap_or(usize::MAX));
            if let Some(smaller) = csv::shorten_record(row, delimiter, most - 1, &self.limits) {
                let (returned, original) = (Size::of(&smaller), Size::of(row));
                kept.cuts.push(ShortenedValue { path, returned, original, items: None });
                kept.text = smaller;
            } else {
                kept.text = whole_at_most(self.limits.max_buffered() / 2);
            }
        } else {
            kept.text = whole_at_most(self.limits.max_buffered() / 2);
        }
        if !kept.text.is_empty() && !kept.text.ends_with('\n') {
            kept.text.push('\n');
        }
        // A row that cannot be shown gets a size that never fits.
        let size = if kept.text.is_empty() { usize::MAX / 4 } else { self.limits.size(&kept.text) };
        self.rows.push(Arc::new(kept), size, &facts);
    }

    /// Whether the row is a marker of an earlier capping. If so, counts the rows that it replaced.
    fn is_marker(&mut self, row: &str) -> bool {
        match self.kind {
            TableFormat::JsonLines => {
                let Some(before) = OmissionValue::read(row) else { return false };
                self.before = Some(before);
            }
            TableFormat::Csv(delimiter) => {
                let first = csv::fields(row, delimiter).next().map(csv::decode_field);
                let Some(left_out) = first.as_deref().and_then(marker::parse_line) else { return false };
                if self.rows.count() == 0 && self.capped_before == OmittedAmount::default() {
                    self.capped_before = left_out;
                } else {
                    self.total = self.total.plus(left_out);
                }
            }
        }
        true
    }

    fn finish(self) -> ShortenedTable {
        let rows = self.total.lines;
        let whole = self.whole.as_deref().filter(|whole| self.limits.fits(whole));
        let unchanged = |whole: &str| ShortenedTable { text: whole.to_owned(), cuts: Vec::new() };
        if let Some(whole) = whole
            && self.rows.count() <= self.limits.max_items as u64
        {
            return unchanged(whole);
        }
        let shortened = self.limits.render_within(
            |most| self.render_within(most.min(self.whole_size.max(most))),
            |shortened| &shortened.text,
        );
        // Keep the original if the capped table would not be shorter.
        match whole {
            Some(whole) if shortened.text.len() >= whole.len() || rows == 0 => unchanged(whole),
            _ => shortened,
        }
    }

    fn render_within(&self, most: usize) -> ShortenedTable {
        // The result must not be longer than the input either.
        let most = if self.whole.is_some() { most.min(self.whole_size) } else { most };
        let header = self.header_within(most / 4);
        let widest = self.total.plus(self.capped_before);
        let marker = self.marker(widest, widest.lines + self.omitted_before(), "");
        let (first, gap) = match self.kind {
            TableFormat::JsonLines => (marker.len(), 0),
            TableFormat::Csv(_) => (marker.len() + self.limits.read_hint().len(), marker.len()),
        };
        let room = most.saturating_sub(self.limits.size(&header) + first + 2);
        let choice = SelectionLimits { room, max_rows: self.limits.max_items, keep: self.limits.keep, gap };
        let rows = self.rows.select(choice);
        let text = match self.kind {
            TableFormat::JsonLines => {
                let mut text: String = rows.iter().map(|row| row.value.text.as_str()).collect();
                let left_out = self.total.lines - rows.len() as u64 + self.omitted_before();
                text.push_str(&self.marker(OmittedAmount::default(), left_out, ""));
                text
            }
            TableFormat::Csv(delimiter) => {
                let text = self.render_csv(&header, &rows);
                // The marker's record has empty fields, which also need room. With many columns, use a record
                // with a single field.
                let is_over = rows.is_empty() && self.limits.size(&text) > most;
                if is_over {
                    csv::record_with_first_field(&marker::text_marker(widest), delimiter, 1) + "\n"
                } else {
                    text
                }
            }
        };
        let mut cuts: Vec<ShortenedValue> =
            rows.iter().flat_map(|row| row.value.cuts.iter().cloned()).collect();
        let returned = rows.iter().map(|row| Size::of(&row.value.text)).fold(Size::default(), add_sizes);
        let of = self.total.lines + self.omitted_before() + self.capped_before.lines;
        let original = Size { bytes: self.bytes, chars: self.total.chars + header.chars().count() as u64 };
        let items = Some((of - rows.len() as u64, of)).filter(|(left_out, _)| *left_out > 0);
        cuts.insert(0, ShortenedValue { path: self.path.clone(), returned, original, items });
        ShortenedTable { text, cuts }
    }

    /// Returns the header. If it exceeds `most`, its longest names are cut. Returns an empty header if there
    /// is no room.
    fn header_within(&self, most: usize) -> Cow<'_, str> {
        match (self.header.as_deref(), self.kind) {
            (Some(header), TableFormat::Csv(delimiter)) if self.limits.size(header) > most => {
                csv::shorten_record(header, delimiter, most, &self.limits).unwrap_or_default().into()
            }
            (header, _) => header.unwrap_or_default().into(),
        }
    }

    /// Returns the number of items that an earlier capping omitted.
    fn omitted_before(&self) -> u64 {
        self.before.as_ref().map_or(0, |before| before.items)
    }

    /// Returns the line that replaces omitted rows.
    fn marker(&self, left_out: OmittedAmount, rows: u64, behind: &str) -> String {
        match self.kind {
            TableFormat::JsonLines => {
                let handle = self.before.as_ref().and_then(|before| before.handle.clone());
                let of = self.total.lines + self.omitted_before();
                let handle = handle.or_else(|| self.limits.marker_handle().map(str::to_owned));
                OmissionValue { items: rows, of, handle }.item() + "\n"
            }
            TableFormat::Csv(delimiter) => {
                let text = marker::text_marker(left_out) + behind;
                csv::record_with_first_field(&text, delimiter, self.names.len()) + "\n"
            }
        }
    }

    /// Returns the capped CSV: the header, the first marker, and the rows with a marker at each gap.
    fn render_csv(&self, header: &str, rows: &[CandidateRow<Arc<KeptRow>>]) -> String {
        let (mut body, mut left_out, mut after) =
            (String::new(), self.capped_before, OmittedAmount::default());
        let mut gap = |body: &mut String, before: OmittedAmount, after: OmittedAmount| {
            let gap = OmittedAmount { lines: before.lines - after.lines, chars: before.chars - after.chars };
            left_out = left_out.plus(gap);
            if gap.lines > 0 && !body.is_empty() {
                body.push_str(&self.marker(gap, 0, ""));
            }
        };
        for CandidateRow { value: row, .. } in rows {
            gap(&mut body, row.before, after);
            body.push_str(&row.text);
            after = row.before.plus(row.weight);
        }
        gap(&mut body, self.total, after);
        let behind = self.limits.read_hint();
        let line_end = if header.is_empty() || header.ends_with('\n') { "" } else { "\n" };
        format!("{header}{line_end}{}{body}", self.marker(left_out, 0, &behind))
    }
}

fn add_sizes(one: Size, other: Size) -> Size {
    Size { bytes: one.bytes + other.bytes, chars: one.chars + other.chars }
}
