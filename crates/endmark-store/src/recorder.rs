//! The handle that writes records, for one request or one program.

use std::fmt;
use std::sync::Arc;

use crate::budgets::{Held, Hold};
use crate::calls::CallStarted;
use crate::engine::{Fault, budgets, capabilities, recoveries};
use crate::error::StoreError;
use crate::ledger::OpenCall;
use crate::records::{CutId, CutSettled, CutStarted};
use crate::refusals::RefusedRequest;
use crate::scrub::{Scrub, clean};
use crate::store::Store;

/// Writes records without secrets, from [`Store::recorder`]. Cloning it is cheap.
#[derive(Clone)]
pub struct Recorder {
    pub(crate) store: Store,
    pub(crate) secrets: Arc<dyn Scrub>,
}

impl Recorder {
    /// A text without secrets, as it would be stored.
    pub fn clean(&self, text: &str) -> String {
        self.secrets.scrub(text).into_owned()
    }

    /// Keeps a request that was refused before any call, in memory.
    pub fn note_refusal(&self, refused: RefusedRequest) {
        self.store.refusals.add(clean(refused, &*self.secrets));
    }

    /// Notes an upstream call that is about to be made. Once this returns, the call has its row whatever happens: when
    /// it is settled or dropped, or as interrupted at the next start. Waits only while more calls than there is room
    /// for are under way; never fails, since a reply is worth more than its row.
    pub async fn open_call(&self, started: CallStarted) -> OpenCall {
        let started = clean(started, &*self.secrets);
        self.store.ledger.open(started, Arc::clone(&self.secrets)).await
    }

    /// Holds a call that is about to be made in all its budgets (CX-7), or says which one does not admit it. Answers once
    /// it is covered by what is committed: in a budget that is much used at once, since a lease of it is. What is held is
    /// settled with the row of the call.
    ///
    /// If instances share the budgets, the hold needs a share of each. A session has no closing call then: no instance knows
    /// whether another one made it.
    pub async fn hold(&self, hold: Hold) -> Result<Held, StoreError> {
        let Some(shared) = &self.store.shared else { return self.hold_here(hold).await };
        let since = tokio::time::Instant::now();
        let hold = Hold { may_close: false, ..hold };
        if shared.admit().is_err() {
            shared.request(&hold.claims).await?;
            shared.admit()?;
        }
        let mut has_asked = false;
        loop {
            let outcome = self.hold_here(hold.clone()).await?;
            let Held::UsedUp(used_up) = &outcome else {
                shared.note_use(&hold.claims);
                return Ok(outcome);
            };
            if has_asked && !shared.may_fit(used_up, since).await {
                return Ok(outcome);
            }
            shared.request(&hold.claims).await?;
            has_asked = true;
        }
    }

    /// Holds a call in what this instance may spend.
    async fn hold_here(&self, hold: Hold) -> Result<Held, StoreError> {
        if let Some(held) = self.store.ledger.hold(&hold) {
            return Ok(held);
        }
        let (owner, leases) = (Arc::clone(&self.store.owner), Arc::clone(&self.store.leases));
        self.store.writer.write(move |session| budgets::hold(session, &owner, &leases, &hold)).await
    }

    /// Lets go of what a call holds that was never made; one that was to close its session (`closes`) leaves it open.
    pub async fn release(&self, request_id: &str, call: u32, closes: bool) -> Result<(), StoreError> {
        if self.store.ledger.release(request_id, call) {
            return Ok(());
        }
        let request_id = request_id.to_owned();
        self.store.writer.write(move |session| budgets::release(session, &request_id, call, closes)).await
    }

    /// Leaves a durable intent: a reply was cut, and its outcome is to follow. Answers once it is committed.
    pub async fn begin_cut(&self, cut: CutStarted) -> Result<CutId, StoreError> {
        let cut = clean(cut, &*self.secrets);
        let owner = Arc::clone(&self.store.owner);
        self.store.writer.write(move |connection| recoveries::begin(connection, &owner, &cut)).await
    }

    /// Writes the outcome, with its pieces, and removes the intent, in one transaction (PC-7). Answers the
    /// row's number once it is committed; [`StoreError::NoSuchCut`] if it was settled before.
    pub async fn settle_cut(&self, id: CutId, settled: CutSettled) -> Result<i64, StoreError> {
        let settled = clean(settled, &*self.secrets);
        let owner = Arc::clone(&self.store.owner);
        self.store.writer.write(move |connection| recoveries::settle(connection, &owner, id, &settled)).await
    }

    /// Has the outcome of a cut reply written as soon as the store works again: with the intent where there is one, or
    /// without. It is kept without its texts, and no more than a thousand at once: one beyond that is lost, and counted
    /// ([`Condition::cuts_lost`](crate::Condition::cuts_lost)), as is one that [`Store::close`](crate::Store::close) finds when the store still fails. The work is done
    /// by the answer, which is to be spawned.
    #[must_use = "nothing is tried before it is polled"]
    pub fn keep_cut(
        &self,
        intent: Option<CutId>,
        cut: CutStarted,
        settled: CutSettled,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (writer, late) = (Arc::clone(&self.store.writer), Arc::clone(&self.store.late));
        let owner = Arc::clone(&self.store.owner);
        // Before anything is polled, so that a close in between waits for it.
        let place = late.place();
        let (cut, mut settled) = (clean(cut, &*self.secrets), clean(settled, &*self.secrets));
        for piece in &mut settled.pieces {
            piece.text = None;
        }
        let kept = Arc::new((cut, settled));
        async move {
            let Some(_place) = place else { return };
            loop {
                let is_last = late.rest().await;
                // The writer finds out by itself whether the store works again.
                if writer.failure().is_some() && !is_last {
                    continue;
                }
                let work = Arc::clone(&kept);
                let owner = Arc::clone(&owner);
                let written = writer.write(move |connection| {
                    let settled = intent.map(|id| recoveries::settle(connection, &owner, id, &work.1));
                    match settled {
                        // Where the store was begun anew since, the intent is not in it.
                        None | Some(Err(Fault::NoSuchCut(_))) => {
                            recoveries::log_once(connection, &work.0, &work.1)
                        }
                        Some(settled) => settled,
                    }
                });
                match written.await {
                    Ok(_) => return,
                    Err(error) if is_last || error == StoreError::Closed => {
                        late.lose();
                        tracing::error!(request = kept.0.request_id, %error, "the record of a cut reply is lost");
                        return;
                    }
                    Err(_) => {}
                }
            }
        }
    }

    /// What was learned about prefill at this upstream with this model, if anything.
    pub async fn capability(&self, upstream: &str, model: &str) -> Result<Option<String>, StoreError> {
        let (upstream, model) = (upstream.to_owned(), self.clean(model));
        self.store.writer.write(move |connection| capabilities::prefill(connection, &upstream, &model)).await
    }

    /// Remembers what was learned about prefill, in place of what was known before.
    pub async fn remember_capability(
        &self,
        upstream: &str,
        model: &str,
        prefill: &str,
    ) -> Result<(), StoreError> {
        let (upstream, model, prefill) = (upstream.to_owned(), self.clean(model), prefill.to_owned());
        self.store
            .writer
            .write(move |connection| capabilities::remember(connection, &upstream, &model, &prefill))
            .await
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recorder").field("store", &self.store).finish_non_exhaustive()
    }
}
