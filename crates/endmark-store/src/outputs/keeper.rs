//! Stores full outputs for the local user (CX-5).

use endmark_context::cap::CappedValue;
use endmark_envelope::Warning;
use endmark_failure::CommandError;
use tokio::runtime::Runtime;

use super::{Handle, NewOutput, OutputDraft};
use crate::compactions::LOCAL_USER;
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::runtime;
use crate::store::Store;

/// Maximum size of an output that is buffered in memory. Most outputs are smaller, and many of them need not
/// be stored.
const MAX_IN_MEMORY_BYTES: usize = 1 << 20;

/// Stores outputs. The store is opened only when there is something to store.
pub struct OutputKeeper {
    location: StoreLocation,
    keep_days: u32,
    max_bytes: u64,
    open_store: Option<(Runtime, Store)>,
}

/// An output that is being stored.
pub(super) struct KeptDraft<'a> {
    keeper: &'a mut OutputKeeper,
    handle: Handle,
    state: DraftState,
}

enum DraftState {
    Buffered(Vec<u8>),
    InStore(OutputDraft),
    /// The output cannot be stored, for this reason.
    Failed(String),
}

impl OutputKeeper {
    /// Creates a keeper. Outputs are kept for `keep_days` days after their last use, and may have `max_bytes`
    /// bytes in total. 0 means no limit.
    pub fn new(location: StoreLocation, keep_days: u32, max_bytes: u64) -> Self {
        Self { location, keep_days, max_bytes, open_store: None }
    }

    /// Starts to store an output under a new handle.
    pub(super) fn begin(&mut self) -> Result<KeptDraft<'_>, CommandError> {
        let handle = Handle::random().map_err(|error| CommandError::Upstream {
            message: format!("the system provides no random bytes: {error}"),
            hint: None,
        })?;
        Ok(KeptDraft { keeper: self, handle, state: DraftState::Buffered(Vec::new()) })
    }

    /// Stores a complete value, however much of it is shown. The inner error is the reason why the value
    /// could not be stored.
    pub fn keep(&mut self, value: &[u8], format: &str) -> Result<Result<String, String>, CommandError> {
        let mut keeping = self.begin()?;
        keeping.push(value);
        let handle = keeping.handle().to_owned();
        Ok(keeping.keep(format).map(|()| handle))
    }

    fn open_store(&mut self) -> Result<&(Runtime, Store), String> {
        if self.open_store.is_none() {
            let store = Store::open(&self.location).map_err(|error| error.to_string())?;
            self.open_store = Some((runtime::new().map_err(|error| error.to_string())?, store));
        }
        self.open_store.as_ref().ok_or_else(|| "the store is closed".to_owned())
    }

    /// Waits until every stored output is committed.
    pub fn close(self) {
        if let Some((runtime, store)) = self.open_store {
            runtime.block_on(store.close());
        }
    }
}

impl KeptDraft<'_> {
    pub(super) fn handle(&self) -> &str {
        self.handle.as_str()
    }

    /// Adds the next bytes. An error is not reported here, because the output is shown even if it cannot be
    /// stored.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            DraftState::Failed(_) => return,
            DraftState::Buffered(held) => {
                held.extend_from_slice(bytes);
                if held.len() <= MAX_IN_MEMORY_BYTES {
                    return;
                }
            }
            DraftState::InStore(_) => {}
        }
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let state = std::mem::replace(&mut self.state, DraftState::Failed(String::new()));
        let new = NewOutput {
            handle: self.handle.clone(),
            owner: LOCAL_USER.to_owned(),
            keep_days: self.keeper.keep_days,
            max_bytes: self.keeper.max_bytes,
        };
        let written = self.keeper.open_store().and_then(|(runtime, store)| {
            let written = write_draft(state, store, new, bytes);
            runtime.block_on(written).map_err(|error| error.to_string())
        });
        self.state = written.map_or_else(DraftState::Failed, DraftState::InStore);
    }

    /// Stores the output if the shown text is truncated. Otherwise discards it. The shown text contains the
    /// handle only if the output was stored.
    pub(super) fn settle(mut self, capped: CappedValue) -> (CappedValue, Option<Handle>) {
        let handle = self.handle.clone();
        if !capped.is_cut {
            if let (DraftState::InStore(draft), Some((runtime, _))) = (self.state, &self.keeper.open_store) {
                // If this fails, the incomplete draft is deleted a day later.
                let _ = runtime.block_on(draft.discard());
            }
            return (capped, None);
        }
        match self.keep(capped.format.name()) {
            Ok(()) => (capped, Some(handle)),
            Err(error) => {
                let mut capped = capped.without_handle(handle.as_str());
                let message = format!("the full output is not kept: {error}");
                capped.warnings.push(Warning::notice("NOT_KEPT", message));
                (capped, None)
            }
        }
    }

    /// Stores the output, however much of it is shown.
    pub(super) fn keep(&mut self, format: &str) -> Result<(), String> {
        if matches!(self.state, DraftState::Buffered(_)) {
            self.write(&[]);
        }
        match (std::mem::replace(&mut self.state, DraftState::Failed(String::new())), &self.keeper.open_store)
        {
            (DraftState::InStore(draft), Some((runtime, _))) => {
                runtime.block_on(draft.keep(format)).map_err(|error| error.to_string())
            }
            (DraftState::Failed(error), _) => Err(error),
            (DraftState::Buffered(_) | DraftState::InStore(_), _) => Err("the store is closed".to_owned()),
        }
    }
}

/// Returns a draft that contains the buffered bytes followed by these bytes.
async fn write_draft(
    state: DraftState,
    store: &Store,
    new: NewOutput,
    bytes: &[u8],
) -> Result<OutputDraft, StoreError> {
    match state {
        DraftState::InStore(mut draft) => {
            draft.push(bytes).await?;
            Ok(draft)
        }
        DraftState::Buffered(held) => {
            let mut draft = store.begin_output(new).await?;
            draft.push(&held).await?;
            Ok(draft)
        }
        DraftState::Failed(detail) => {
            Err(StoreError::Failed { path: store.location().path().to_owned(), detail })
        }
    }
}
