//! Reads a kept output.

use std::ops::{ControlFlow, Range};

use rusqlite::{OptionalExtension as _, params};

use crate::compactions::CLIENT_OWNER_PREFIX;
use crate::engine::Reader;
use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::engine::outputs::has_expired;
use crate::error::StoreError;
use crate::outputs::Handle;

/// A kept output that belongs to the requesting owner. Reading it blocks.
#[derive(Debug)]
pub struct KeptOutput<'a> {
    reader: &'a Reader,
    handle: Handle,
    /// The format in which it was capped.
    pub format: String,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of lines. A last line without a line break counts.
    pub lines: u64,
}

/// A piece of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// The offset of the piece in bytes.
    pub first_byte: u64,
    /// Number of line breaks before the piece.
    pub first_line: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Reader {
    /// Returns the output with this handle (CX-5). Fails with [`StoreError::NoOutput`] if it does not exist or has
    /// another owner. Fails with [`StoreError::ExpiredOutput`] if its retention time has passed since its last use.
    pub fn output(&self, handle: &Handle, owner: &str) -> Result<KeptOutput<'_>, StoreError> {
        self.output_where("owner = ?2", handle, owner)
    }

    /// Returns a kept output of any gateway client. Use it only for callers that can read the store's file
    /// anyway.
    pub fn client_output(&self, handle: &Handle) -> Result<KeptOutput<'_>, StoreError> {
        self.output_where("owner LIKE ?2 || '%'", handle, CLIENT_OWNER_PREFIX)
    }

    /// Returns the error for a missing output: it is unknown, or it was removed to free space for others.
    fn missing_output_error(&self, is_owner: &str, handle: &Handle, owner: &str) -> StoreError {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM removed_outputs WHERE handle = ?1 AND {is_owner})");
        let removed = self.connection().query_row(&sql, params![handle.as_str(), owner], |row| row.get(0));
        let handle = handle.to_string();
        match removed {
            Ok(true) => StoreError::RemovedOutput { handle },
            Ok(false) => StoreError::NoOutput { handle },
            Err(error) => self.store_error(&error),
        }
    }

    fn output_where(
        &self,
        is_owner: &str,
        handle: &Handle,
        owner: &str,
    ) -> Result<KeptOutput<'_>, StoreError> {
        let row = self
            .connection()
            .query_row(
                &format!(
                    "SELECT format, bytes, lines, last_used, keep_days FROM outputs
                     WHERE handle = ?1 AND bytes IS NOT NULL AND {is_owner}"
                ),
                params![handle.as_str(), owner],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
            )
            .optional()
            .map_err(|error| self.store_error(&error))?;
        let Some((format, bytes, lines, last_used, keep_days)) = row else {
            return Err(self.missing_output_error(is_owner, handle, owner));
        };
        if has_expired(last_used, keep_days) {
            return Err(StoreError::ExpiredOutput { handle: handle.to_string() });
        }
        Ok(KeptOutput {
            reader: self,
            handle: handle.clone(),
            format,
            bytes: from_sql_integer(bytes),
            lines: from_sql_integer(lines),
        })
    }
}

impl KeptOutput<'_> {
    /// Passes pieces to `take`, beginning with the piece that contains this byte, until `take` breaks.
    pub fn pieces_from_byte(
        &self,
        byte: u64,
        take: impl FnMut(OutputPiece) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.pieces("first_byte", byte, take)
    }

    /// Passes pieces to `take`, beginning with the piece in which this line begins, until `take` breaks.
    /// Lines are counted from 0.
    pub fn pieces_from_line(
        &self,
        line: u64,
        take: impl FnMut(OutputPiece) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        // The line before it ends in the last piece that has fewer line breaks before it.
        self.pieces("first_line", line.saturating_sub(1), take)
    }

    /// Returns the bytes in this range. The result is shorter if the output ends first.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.pieces_from_byte(range.start, |piece| {
            let place =
                |byte: u64| usize::try_from(byte.saturating_sub(piece.first_byte)).unwrap_or(usize::MAX);
            let (begin, end) = (place(range.start), place(range.end).min(piece.bytes.len()));
            bytes.extend_from_slice(piece.bytes.get(begin..end).unwrap_or_default());
            if piece.first_byte + piece.bytes.len() as u64 >= range.end {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(bytes)
    }

    fn pieces(
        &self,
        column: &str,
        from: u64,
        mut take: impl FnMut(OutputPiece) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| self.reader.store_error(&error);
        let from = to_sql_integer(from);
        // If several pieces have the same number of line breaks before them, the first of these pieces is
        // correct.
        let sql = format!(
            "SELECT first_byte, first_line, bytes, content FROM output_pieces WHERE handle = ?1 AND ordinal >=
               coalesce((SELECT min(ordinal) FROM output_pieces WHERE handle = ?1 AND {column} =
                 (SELECT max({column}) FROM output_pieces WHERE handle = ?1 AND {column} <= ?2)), 0)
             ORDER BY ordinal"
        );
        let mut statement = self.reader.connection().prepare(&sql).map_err(failed)?;
        let mut rows = statement.query(params![self.handle.as_str(), from]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let read = || Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            let (first_byte, first_line, size, content): (i64, i64, i64, Vec<u8>) = read().map_err(failed)?;
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
            zstd_safe::decompress(&mut bytes, &content).map_err(|code| StoreError::Corrupt {
                path: self.reader.path().to_owned(),
                detail: zstd_safe::get_error_name(code).to_owned(),
            })?;
            let piece = OutputPiece {
                first_byte: from_sql_integer(first_byte),
                first_line: from_sql_integer(first_line),
                bytes,
            };
            if take(piece).is_break() {
                break;
            }
        }
        Ok(())
    }
}
