//! Writes the records of one request or one program.

use std::fmt;
use std::sync::Arc;

use endmark_context::budget::Scope;

use crate::budgets::{Claim, Hold, HoldOutcome, RefusingBudget};
use crate::calls::CallStarted;
use crate::engine::{StatementError, budgets, capabilities, recoveries};
use crate::error::StoreError;
use crate::ledger::OpenCall;
use crate::records::{CutId, CutSettled, CutStarted};
use crate::refusals::RefusedRequest;
use crate::scrub::{Scrub, remove_secrets};
use crate::shared::{Shared, closings};
use crate::store::Store;

/// Writes records without secrets, from [`Store::recorder`]. Cloning it is cheap.
#[derive(Clone)]
pub struct Recorder {
    pub(crate) store: Store,
    pub(crate) secrets: Arc<dyn Scrub>,
}

impl Recorder {
    /// Returns the text without secrets, as it would be stored.
    pub fn clean(&self, text: &str) -> String {
        self.secrets.scrub(text).into_owned()
    }

    /// Keeps a request that was refused before any upstream call. It is kept only in memory.
    pub fn note_refusal(&self, refused: RefusedRequest) {
        self.store.refusals.add(remove_secrets(refused, &*self.secrets));
    }

    /// Records an upstream call that is about to start. Once this returns, the call certainly gets a row:
    /// when it is settled or dropped, or as interrupted at the next start. This waits only while all slots
    /// are in use. It never fails, because a reply is more important than its row.
    pub async fn open_call(&self, started: CallStarted) -> OpenCall {
        let started = remove_secrets(started, &*self.secrets);
        self.store.ledger.open(started, Arc::clone(&self.secrets)).await
    }

    /// Holds a call in all its budgets before it starts (CX-7), or returns the budget that does not admit it.
    /// Committed data covers the hold when this returns. In a busy budget that is a committed lease. The row
    /// of the call settles the hold.
    ///
    /// If instances share the budgets, the hold needs a share of each budget. Only one instance makes the closing
    /// call of a session.
    pub async fn hold(&self, hold: Hold) -> Result<HoldOutcome, StoreError> {
        let Some(shared) = &self.store.shared else { return self.hold_here(&hold).await };
        let since = tokio::time::Instant::now();
        let may_close = hold.may_close;
        let hold = Hold { may_close: false, ..hold };
        if shared.check_tenure().is_err() {
            shared.request_shares(&hold.claims).await?;
            shared.check_tenure()?;
        }
        // No hold fits without a share, so request one before asking the writer.
        let mut has_asked =
            shared.lacks_share(&hold.claims) && shared.request_shares(&hold.claims).await.is_ok();
        loop {
            let outcome = self.hold_here(&hold).await?;
            let HoldOutcome::Exhausted(used_up) = &outcome else {
                shared.note_use(&hold.claims);
                return Ok(outcome);
            };
            if !has_asked {
                shared.request_shares(&hold.claims).await?;
                has_asked = true;
            } else if !shared.wait_for_share(&hold.claims, used_up, since).await? {
                let RefusingBudget { claim, account } = used_up;
                let is_ending = claim.scope == Scope::Session && account.is_closing_call(claim.amount);
                return if may_close && is_ending {
                    self.hold_as_closing_call(shared, hold, outcome).await
                } else {
                    Ok(outcome)
                };
            }
        }
    }

    /// Holds a call as the closing call of its session, unless another instance already made one. In that
    /// case it returns `refused`. If the process stops between the steps, the session has no closing call,
    /// but never two.
    async fn hold_as_closing_call(
        &self,
        shared: &Shared,
        hold: Hold,
        refused: HoldOutcome,
    ) -> Result<HoldOutcome, StoreError> {
        let as_closing =
            hold.claims.iter().map(|claim| Claim { amount: claim.closing_amount, ..claim.clone() });
        let (of_session, others): (Vec<Claim>, Vec<Claim>) =
            as_closing.partition(|claim| claim.scope == Scope::Session);
        let Some(session) = of_session.first().map(|claim| claim.subject.clone()) else { return Ok(refused) };
        if !others.is_empty() {
            shared.request_shares(&others).await?;
        }
        let (request_id, call) = (hold.request_id.clone(), hold.call);
        let outcome = self.hold_here(&Hold { may_close: true, ..hold }).await?;
        if outcome != HoldOutcome::Closing {
            return Ok(outcome);
        }
        let closed =
            shared.look_up(async |client| closings::close_session(client, &session, &request_id).await).await;
        if closed != Ok(true) {
            // If the database did not answer, the next report to it shows whether the session is closed.
            self.release_here(&request_id, call, closed.is_err()).await?;
            return closed.map(|_| refused);
        }
        // An earlier report may have reopened the session in this journal. If the database fails now, the
        // next report closes it again.
        let _ = shared.request_shares(&of_session).await;
        Ok(outcome)
    }

    /// Holds a call within the amount that this instance may spend.
    async fn hold_here(&self, hold: &Hold) -> Result<HoldOutcome, StoreError> {
        if let Some(held) = self.store.ledger.hold(hold) {
            return Ok(held);
        }
        let hold = hold.clone();
        let (owner, leases) = (Arc::clone(&self.store.owner), Arc::clone(&self.store.leases));
        self.store.writer.write(move |session| budgets::hold(session, &owner, &leases, &hold)).await
    }

    /// Releases the holds of a call that did not start. `closes`: the call was to be the closing call of its
    /// session, which stays open.
    pub async fn release(&self, request_id: &str, call: u32, closes: bool) -> Result<(), StoreError> {
        self.release_here(request_id, call, closes).await?;
        match &self.store.shared {
            Some(shared) if closes => {
                shared.look_up(async |client| closings::reopen_session(client, request_id).await).await
            }
            _ => Ok(()),
        }
    }

    async fn release_here(&self, request_id: &str, call: u32, closes: bool) -> Result<(), StoreError> {
        if self.store.ledger.release(request_id, call) {
            return Ok(());
        }
        let request_id = request_id.to_owned();
        self.store.writer.write(move |session| budgets::release(session, &request_id, call, closes)).await
    }

    /// Writes a durable intent: the reply was cut, and its outcome will follow. Returns after the commit.
    pub async fn begin_cut(&self, cut: CutStarted) -> Result<CutId, StoreError> {
        let cut = remove_secrets(cut, &*self.secrets);
        let owner = Arc::clone(&self.store.owner);
        self.store.writer.write(move |connection| recoveries::insert_intent(connection, &owner, &cut)).await
    }

    /// Writes the outcome with its pieces and removes the intent, in one transaction (PC-7). Returns the row's number
    /// after the commit. Fails with [`StoreError::NoSuchCut`] if the cut was already settled.
    pub async fn settle_cut(&self, id: CutId, settled: CutSettled) -> Result<i64, StoreError> {
        let settled = remove_secrets(settled, &*self.secrets);
        let owner = Arc::clone(&self.store.owner);
        self.store.writer.write(move |connection| recoveries::settle(connection, &owner, id, &settled)).await
    }

    /// Writes the outcome of a cut reply as soon as the store works again, with or without an intent. Spawn
    /// the returned future. The record is kept without its texts. At most 1,024 records are kept. Further
    /// records are lost, and so are those that [`Store::close`](crate::Store::close) cannot write.
    /// [`StoreCondition::cuts_lost`](crate::StoreCondition::cuts_lost) counts the lost records.
    #[must_use = "nothing is tried before it is polled"]
    pub fn keep_cut_record(
        &self,
        intent: Option<CutId>,
        cut: CutStarted,
        settled: CutSettled,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (writer, late) = (Arc::clone(&self.store.writer), Arc::clone(&self.store.late_records));
        let owner = Arc::clone(&self.store.owner);
        // Acquire the permit before the future is polled, so that a `close` in between waits for the record.
        let place = late.acquire_permit();
        let (cut, mut settled) =
            (remove_secrets(cut, &*self.secrets), remove_secrets(settled, &*self.secrets));
        for piece in &mut settled.pieces {
            piece.text = None;
        }
        let kept = Arc::new((cut, settled));
        async move {
            let Some(_place) = place else { return };
            loop {
                let is_last = late.wait_to_retry().await;
                // Only the writer detects that the store works again, so wait for it.
                if writer.failure().is_some() && !is_last {
                    continue;
                }
                let work = Arc::clone(&kept);
                let owner = Arc::clone(&owner);
                let written = writer.write(move |connection| {
                    let settled = intent.map(|id| recoveries::settle(connection, &owner, id, &work.1));
                    match settled {
                        // A recreated store does not contain the intent.
                        None | Some(Err(StatementError::NoSuchCut(_))) => {
                            recoveries::log_once(connection, &work.0, &work.1)
                        }
                        Some(settled) => settled,
                    }
                });
                match written.await {
                    Ok(_) => return,
                    Err(error) if is_last || error == StoreError::Closed => {
                        late.count_lost();
                        tracing::error!(request = kept.0.request_id, %error, "the record of a cut reply is lost");
                        return;
                    }
                    Err(_) => {}
                }
            }
        }
    }

    /// Returns the stored prefill capability of this upstream with this model, if any.
    pub async fn capability(&self, upstream: &str, model: &str) -> Result<Option<String>, StoreError> {
        let (upstream, model) = (upstream.to_owned(), self.clean(model));
        self.store
            .writer
            .write(move |connection| capabilities::query_prefill(connection, &upstream, &model))
            .await
    }

    /// Stores the prefill capability, and replaces an earlier one.
    pub async fn remember_capability(
        &self,
        upstream: &str,
        model: &str,
        prefill: &str,
    ) -> Result<(), StoreError> {
        let (upstream, model, prefill) = (upstream.to_owned(), self.clean(model), prefill.to_owned());
        self.store
            .writer
            .write(move |connection| capabilities::store_prefill(connection, &upstream, &model, &prefill))
            .await
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recorder").field("store", &self.store).finish_non_exhaustive()
    }
}
