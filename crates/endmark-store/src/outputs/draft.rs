//! Writes an output into the store.

use std::sync::Arc;

use super::{Handle, NewOutput};
use crate::engine::Session;
use crate::engine::outputs::{self, CompressedPiece};
use crate::error::StoreError;
use crate::store::Store;

/// Size of the pieces in which an output is compressed and read, in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// The fastest compression level. Outputs are mostly text, which even this level shrinks to a tenth.
const COMPRESSION_LEVEL: i32 = 1;

/// An output that is being written, piece by piece. It cannot be read before [`keep`](OutputDraft::keep) is called.
#[derive(Debug)]
pub struct OutputDraft {
    store: Store,
    handle: Handle,
    max_bytes: u64,
    buffered_bytes: Vec<u8>,
    ordinal: i64,
    /// Bytes written so far.
    bytes: i64,
    lines: i64,
}

impl Store {
    /// Begins to store an output (CX-5), and deletes expired outputs.
    pub async fn begin_output(&self, output: NewOutput) -> Result<OutputDraft, StoreError> {
        let (handle, max_bytes) = (output.handle.clone(), output.max_bytes);
        self.writer.write(move |session| outputs::insert_output(session, &output)).await?;
        let store = self.clone();
        Ok(OutputDraft {
            store,
            handle,
            max_bytes,
            buffered_bytes: Vec::new(),
            ordinal: 0,
            bytes: 0,
            lines: 0,
        })
    }

    /// Returns whether this store contains the output. If it does, the call counts as a use and restarts the
    /// retention time.
    pub async fn reuse_output(&self, handle: &Handle) -> Result<bool, StoreError> {
        let handle = handle.clone();
        let reuse = move |session: &Session| {
            let is_kept = outputs::is_available(session, handle.as_str())?;
            if is_kept {
                outputs::record_use(session, handle.as_str())?;
            }
            Ok(is_kept)
        };
        self.writer.write(reuse).await
    }

    /// Records that an output was read, which restarts its retention time.
    pub async fn touch_output(&self, handle: &Handle) -> Result<(), StoreError> {
        let handle = handle.clone();
        self.writer.write(move |session| outputs::record_use(session, handle.as_str())).await?;
        self.schedule_uploads();
        Ok(())
    }
}

impl OutputDraft {
    /// Adds the next bytes.
    pub async fn push(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        while self.buffered_bytes.len() + bytes.len() >= PIECE_BYTES {
            let (now, later) = bytes.split_at(PIECE_BYTES - self.buffered_bytes.len());
            self.buffered_bytes.extend_from_slice(now);
            bytes = later;
            self.flush_piece().await?;
        }
        self.buffered_bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Completes the output. It can be read from now on.
    pub async fn keep(mut self, format: &str) -> Result<(), StoreError> {
        let ends_line = self.buffered_bytes.last().is_none_or(|last| *last == b'\n');
        if !self.buffered_bytes.is_empty() {
            self.flush_piece().await?;
        }
        let (handle, format) = (self.handle.clone(), format.to_owned());
        let (bytes, lines) = (self.bytes, self.lines + i64::from(!ends_line));
        let finish =
            move |session: &Session| outputs::mark_complete(session, handle.as_str(), &format, bytes, lines);
        self.store.writer.write(finish).await?;
        self.store.schedule_uploads();
        Ok(())
    }

    /// Deletes the draft.
    pub async fn discard(self) -> Result<(), StoreError> {
        let handle = self.handle.clone();
        self.store.writer.write(move |session| outputs::delete_output(session, handle.as_str())).await
    }

    async fn flush_piece(&mut self) -> Result<(), StoreError> {
        let raw = std::mem::replace(&mut self.buffered_bytes, Vec::with_capacity(PIECE_BYTES));
        let mut content = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
        zstd_safe::compress(&mut content, &raw, COMPRESSION_LEVEL).map_err(|code| StoreError::Failed {
            path: self.store.location().path().to_owned(),
            detail: zstd_safe::get_error_name(code).to_owned(),
        })?;
        let size = i64::try_from(raw.len()).unwrap_or(i64::MAX);
        let lines = memchr::memchr_iter(b'\n', &raw).count();
        let piece = CompressedPiece {
            ordinal: self.ordinal,
            first_byte: self.bytes,
            first_line: self.lines,
            bytes: size,
            content,
        };
        self.ordinal += 1;
        self.bytes += size;
        self.lines += i64::try_from(lines).unwrap_or(i64::MAX);
        let (handle, piece, max_bytes) = (self.handle.clone(), Arc::new(piece), self.max_bytes);
        let append =
            move |session: &Session| outputs::append_piece(session, handle.as_str(), &piece, max_bytes);
        let written = self.store.writer.write(append).await;
        if let Err(StoreError::NoRoomForOutput { .. }) = &written {
            // Delete the incomplete output, because it counts towards the quota.
            let handle = self.handle.clone();
            self.store.writer.write(move |session| outputs::delete_output(session, handle.as_str())).await?;
        }
        written
    }
}
