//! Recovers a reply that is not a stream, part by part.

use endmark_recovery::Ending;

use super::choice::{SettledChoice, add_part, prepare_part};
use crate::disclosure::Disclosure;
use crate::recovery::{Allowance, TokenAccount, mend};
use crate::refusals::Refusal;
use crate::reply::Flow;
use crate::stage::observe::whole::ObservedReply;

/// A reply that is not a stream, after recovery.
pub(crate) struct MendedWhole {
    pub(crate) observed: Box<ObservedReply>,
    /// The content of each choice for the client.
    pub(crate) choices: Vec<SettledChoice>,
    pub(crate) account: TokenAccount,
    pub(crate) disclosure: Disclosure,
}

/// Judges each part of a reply, and recovers it if necessary.
///
/// # Errors
/// [`Refusal`] if the client has disconnected.
pub(crate) async fn mend_reply(mut observed: Box<ObservedReply>) -> Result<MendedWhole, Refusal> {
    let gone = |_| Refusal::BadRequest("the client went away".to_owned());
    let ObservedReply { exchange, response, parts, spent, .. } = &mut *observed;
    let (exchange, reply) = (&*exchange, response.reply());
    let counted = reply.usage.as_ref().map(|usage| usage.completion);
    let mut account =
        TokenAccount::new(Allowance::new(&exchange.case(), exchange.elapsed(), counted, &reply.choices));
    account.note_first_call(spent.as_ref(), Ending::Clean);
    let mut disclosure = Disclosure::new(exchange);
    let mut choices = Vec::new();
    for (choice, parts) in reply.choices.iter().zip(parts) {
        let mut settled = SettledChoice::default();
        for suspect in &mut parts.remaining {
            prepare_part(suspect, &settled);
            let mended =
                mend(&exchange.case(), suspect, &mut account, &mut Flow::Waiting).await.map_err(gone)?;
            add_part(exchange, choice, suspect, mended, &mut account, &mut disclosure, &mut settled)
                .await
                .map_err(gone)?;
        }
        if let Some(word) = choice.unknown_finish_reason() {
            disclosure.note_unknown_end(word);
        }
        choices.push(settled);
    }
    Ok(MendedWhole { observed, choices, account, disclosure })
}
