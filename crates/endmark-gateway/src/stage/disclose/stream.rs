//! Writes the end of a stream to its client.

use endmark_recovery::Ending;
use endmark_wire::reply::Usage;
use endmark_wire::writer::{ChoiceEnd, StreamEnd, StreamError};
use serde_json::value::RawValue;

use crate::disclosure::{Disclosure, REPLY_CUT, REPLY_INCOMPLETE, with_cost};
use crate::exchange::Exchange;
use crate::recovered_items;
use crate::reply::{ClientGone, ClientStream};
use crate::stage::disclose::whole::INCOMPLETE_STATUS;
use crate::stage::mend::stream::{EarlyStop, MendedStream};
use crate::stage::settle::stream::RecordedStream;

/// Writes the end of a stream. If the stream needed no recovery, writes the upstream's own end.
///
/// # Errors
/// [`ClientGone`] if the client has disconnected.
pub(crate) async fn disclose_stream(
    exchange: &Exchange,
    settled: RecordedStream,
    client: &mut ClientStream,
) -> Result<(), ClientGone> {
    let RecordedStream { mended_stream: mut mended, is_end_lost: end_lost } = settled;
    let usage = mended.usage();
    let failed = mended.result.failure.as_ref();
    let broke = failed.map(|disclosure| (mended.break_message(exchange, disclosure), REPLY_CUT, disclosure));
    let incomplete = mended.result.incomplete.as_ref();
    let is_incomplete =
        || incomplete.map(|disclosure| (disclosure.error_message(), REPLY_INCOMPLETE, disclosure));
    let account = &mended.account;
    let error = broke.or_else(is_incomplete).map(|(message, kind, disclosure)| {
        (message, kind, disclosure.json().map(|disclosed| with_cost(&disclosed, exchange, account)))
    });
    let disclosed: Vec<Option<Box<RawValue>>> = mended
        .result
        .replaced_ends
        .iter()
        .map(|end| end.endmark.as_deref().map(|disclosed| with_cost(disclosed, exchange, account)))
        .collect();
    let ends: Vec<ChoiceEnd<'_>> = mended
        .result
        .replaced_ends
        .iter()
        .zip(&disclosed)
        .map(|(other, disclosed)| ChoiceEnd {
            choice: other.choice,
            end: other.end,
            endmark: disclosed.as_deref(),
            is_rewritten: other.rewritten,
        })
        .collect();
    let is_unchanged = ends.is_empty() && mended.observed.ending == Ending::Clean;
    let writer = mended.observed.writer.as_mut();
    let bytes = if let Some((message, kind, endmark)) = &error {
        writer.write_error(&StreamError {
            message,
            kind,
            // Repeating an incomplete stream costs as much as repeating any incomplete reply, so both have the same
            // status.
            status: if *kind == REPLY_INCOMPLETE { INCOMPLETE_STATUS.as_u16() } else { 502 },
            endmark: endmark.as_deref(),
            // With an error, the whole reply is incomplete, so no choice has ended.
            choices: if incomplete.is_some() { &[] } else { &ends },
        })
    } else {
        let mut bytes = writer.close(&StreamEnd { choices: &ends, usage, is_end_lost: end_lost });
        if is_unchanged {
            bytes.extend(std::mem::take(&mut mended.observed.residue));
        }
        bytes
    };
    recovered_items::store_items(exchange, writer.changed_items()).await;
    client.send(bytes).await
}

impl MendedStream {
    /// Returns the usage to report at the end, which is the sum of all calls. If the stream broke off before it
    /// reported usage, returns the usage counted so far.
    fn usage(&self) -> Option<Usage> {
        let broke_off = self.observed.ending != Ending::Clean;
        self.account.total().filter(|_| self.account.has_further_calls() || broke_off)
    }

    /// Returns the message for a client whose reply broke off.
    fn break_message(&self, exchange: &Exchange, disclosure: &Disclosure) -> String {
        match self.result.early_stop {
            Some(EarlyStop::Timeout) => {
                return format!(
                    "the reply of the upstream `{}` is cut: it was not over within {:?}; ask for less, or raise [limits] total_seconds",
                    exchange.upstream_name(),
                    exchange.gateway.settings.limits.total,
                );
            }
            Some(EarlyStop::Stopped) => {
                return format!(
                    "the reply of the upstream `{}` is cut: the gateway stopped before it was over; send the request again, to \
                     the gateway that follows",
                    exchange.upstream_name(),
                );
            }
            None => {}
        }
        if self.observed.ending == Ending::Clean {
            return format!(
                "the reply of the upstream `{}` is cut, and what it was about to do is not known ({}): raise its output \
                 limit, or send the request again",
                exchange.upstream_name(),
                disclosure.reason(),
            );
        }
        format!(
            "the reply of the upstream `{}` is cut: its stream ended {} ({}); send the request again",
            exchange.upstream_name(),
            self.observed.ending.name(),
            disclosure.reason(),
        )
    }
}
