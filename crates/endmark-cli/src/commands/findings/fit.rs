//! `endmark findings fit`: estimates the size of a result before it is written, and compresses a draft that would not
//! fit. (AR-2)

use endmark_context::count::Family;
use endmark_envelope::{ErrorBody, FieldPath, Warning};
use endmark_failure::{CommandError, ExitStatus};
use endmark_findings::{
    Finding, FindingForm, FindingId, FittedResults, MeasuredReceipt, Receipt, RewriteRefusal,
    TOKENS_PER_FINDING, TOKENS_PER_RESULT, fit as fitted_results,
};
use serde::Serialize;
use serde_json::Value;

use super::pages::{ListIdentity, text_unless_paged};
use super::remark_warnings;
use super::sources::{self, Source};
use crate::arguments::findings::Fit;
use crate::context::Context;
use crate::view::answer::{Answer, Refusal, to_data};

/// The vocabulary of current OpenAI models. Other vocabularies differ by a few percent for code and English.
const TOKENIZER: Family = Family::O200k;

/// Answer data: the compressed result.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FitReport {
    receipt: MeasuredReceipt,
    /// The result in its canonical form. Null without a draft, or if the list of findings is split into pages;
    /// without `--json` the text is always complete.
    text: Option<String>,
    findings: Vec<FindingForm>,
}

/// Estimates a number of findings, or fits a draft.
pub(super) fn run(context: &Context, arguments: &Fit) -> Result<Answer, CommandError> {
    if let Some(findings) = arguments.findings {
        return estimate_answer(findings, arguments.budget_left);
    }
    let sources = sources::read_all(context, &arguments.files)?;
    let refusals =
        sources.iter().filter_map(|source| Some((source, RewriteRefusal::check(&source.transcript)?)));
    // A truncated result is reported first, whichever file has it.
    if let Some((source, refusal)) =
        refusals.min_by_key(|(_, refusal)| !matches!(refusal, RewriteRefusal::Truncated(_)))
    {
        return Ok(refusal_answer(source, refusal));
    }
    let cursor = arguments.cursor.as_deref();
    let list_identity = ListIdentity {
        command: "fit",
        files: &arguments.files,
        options: Some(&arguments.budget_left),
        cursor,
    };
    let pages = list_identity.into_pages(FieldPath::data().key("findings"), context)?;
    Ok(fit_sources(context, &sources, arguments.budget_left)?.with_pages(pages))
}

fn refusal_answer(source: &Source, refusal: RewriteRefusal) -> Answer {
    let hint = match refusal {
        RewriteRefusal::Truncated(_) => {
            "`endmark findings check` shows the received findings, `endmark findings plan` the work to repeat."
        }
        RewriteRefusal::Unread { .. } => {
            "`endmark findings check` shows their lines; write them in the form of `endmark findings protocol`, \
             before the end marker."
        }
    };
    let message = format!("{}: {refusal}", source.origin);
    Answer::no(Value::Null, refusal.code(), message, Some(hint.to_owned()))
}

fn estimate_answer(findings: u64, budget_left: u64) -> Result<Answer, CommandError> {
    let receipt = Receipt::estimate(findings, budget_left);
    let measured = receipt.with_measurement(None, TOKENIZER.name());
    let report = FitReport { receipt: measured, text: None, findings: Vec::new() };
    let (estimate, limit) = (receipt.estimated_tokens, receipt.limit_tokens);
    let data = to_data(&report)?;
    Ok(if measured.fits {
        Answer::yes(data, format!("fits: {estimate} tokens, limit {limit}\n"))
    } else {
        let message = format!("{estimate} tokens exceed the limit of {limit}");
        let hint = advice(receipt);
        let error =
            ErrorBody::new("does_not_fit", ExitStatus::Negative.code(), message.as_str()).with_hint(&hint);
        let answer = Answer::yes(data, format!("compress: {message}\n{hint}\n"));
        Answer { refusal: Some(Refusal { error, is_in_text: true }), ..answer }
    })
}

/// Advises what to do if an estimate exceeds the remaining budget.
fn advice(receipt: Receipt) -> String {
    let budget = receipt.budget_left;
    let compress = format!(
        "`endmark findings fit --budget-left {budget} DRAFT` compresses the result once it is drafted"
    );
    match receipt.limit_tokens.saturating_sub(TOKENS_PER_RESULT) / TOKENS_PER_FINDING {
        0 => format!(
            "{compress}; not even one finding fits uncompressed, so deliver the result before the context shrinks further."
        ),
        fitting => format!(
            "{compress}; {fitting} findings fit uncompressed: deliver the worst first, and the others in a second result."
        ),
    }
}

fn fit_sources(context: &Context, sources: &[Source], budget_left: u64) -> Result<Answer, CommandError> {
    let results = sources.iter().flat_map(|source| &source.transcript.results);
    let FittedResults { receipt, text, tokens, findings: all } =
        fitted_results(results, budget_left, |text| TOKENIZER.tokens(text));
    let measured = receipt.with_measurement(Some(tokens), TOKENIZER.name());
    let (remarks, omitted) = sources::remarks(sources);
    let (shown, left_out) = text_unless_paged(&text, context);
    let report = FitReport {
        receipt: measured,
        text: shown.map(str::to_owned),
        findings: all.iter().map(FindingForm::new).collect(),
    };
    let answer = Answer::yes(to_data(&report)?, text);
    let answer = if measured.fits {
        answer
    } else {
        let message = format!(
            "{tokens} tokens exceed the limit of {}, 40 % of the remaining budget",
            receipt.limit_tokens
        );
        answer.with_error(
            ErrorBody::new("does_not_fit", ExitStatus::Negative.code(), message)
                .with_hint("Deliver the worst findings first, and the others in a second result."),
        )
    };
    Ok(answer
        .with_warnings(remark_warnings(&remarks, omitted))
        .with_warnings(left_out)
        .with_warnings(compression_warning(receipt))
        .with_warnings(noncanonical_ids_warning(&all)))
}

/// Returns the warning that findings were joined or parts of them dropped.
fn compression_warning(Receipt { joined, dropped, .. }: Receipt) -> Option<Warning> {
    let parts = [
        (joined, "joined findings"),
        (dropped.titles, "dropped titles"),
        (dropped.evidence_lines, "dropped lines of evidence"),
        (dropped.flow_steps, "dropped steps of flows"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    (!parts.is_empty()).then(|| Warning::notice("COMPRESSED", format!("compressed to fit: {parts}")))
}

/// Warns if ids do not have the form `F001`. The text then puts them before the titles.
fn noncanonical_ids_warning(findings: &[Finding]) -> Option<Warning> {
    let is_other = |id: &&str| !id.is_empty() && FindingId::read(id).is_none();
    let others: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).filter(is_other).collect();
    let first = others.first()?;
    let message = format!(
        "{} ids do not have the form F001: the text puts them before the titles, as in `{first}: …`",
        others.len()
    );
    Some(Warning::notice("OTHER_IDS", message))
}
