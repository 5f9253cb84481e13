//! Serves `/endmark/api/outputs/HANDLE?page=N`: the pages of a stored output, for the client that owns it
//! (CX-5).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use endmark_store::{Handle, KeptOutput, OutputPage, StoreError};
use http::request::Parts;
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use crate::body::{AnyBody, full};
use crate::budget::KeyLimits;
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::keys::key_refusal::KeyRefusal;
use crate::refusals::Refusal;
use crate::shaping::owner;
use crate::upstream::Credential;

/// Maximum size of a page in bytes.
const PAGE_BYTES: usize = 200_000;

/// Responds with a page of a stored output. A client that does not own the output gets the same error as for
/// an unknown handle.
pub(super) async fn respond(
    gateway: &Gateway,
    head: &Parts,
    handle: &str,
) -> Result<Response<AnyBody>, Refusal> {
    let unknown = || Refusal::NotFound(format!("no output of yours has the handle `{handle}`"));
    let handle = Handle::parse(handle).ok_or_else(unknown)?;
    let number = parse_page_number(head.uri.query())?;
    let key = head.extensions.get::<Arc<OwnKey>>();
    if key.is_none() && gateway.settings.listener.require_key {
        return Err(KeyRefusal::Missing.into());
    }
    let own_key = key.map(|key| key.identity());
    let budget_applies = gateway.budgets.apply_to(KeyLimits::default());
    let credential = Credential::from_request(own_key, &head.headers, &head.uri, budget_applies)?;
    let owner = owner(credential.as_ref().map(Credential::id));
    let wanted_handle = handle.clone();
    let read = move |reader: &endmark_store::Reader| {
        let output = reader.output(&wanted_handle, &owner)?;
        page_json(&output, &wanted_handle, number)
    };
    let read = gateway.store.read_output(&handle, read).await;
    match read {
        Ok(Some(part)) => {
            let mut response = Response::new(full(format!("{part}\n")));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            Ok(response)
        }
        Ok(None) => Err(Refusal::NotFound(format!("the output has no page {number}: they count from 1"))),
        Err(StoreError::NoOutput { .. }) => Err(unknown()),
        Err(error @ (StoreError::ExpiredOutput { .. } | StoreError::RemovedOutput { .. })) => {
            Err(Refusal::NotFound(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

fn parse_page_number(query: Option<&str>) -> Result<u64, Refusal> {
    let mut number = 1;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let value = pair.strip_prefix("page=").ok_or_else(|| {
            Refusal::BadRequest(format!(
                "`{pair}` is not known here: `page` is, and `endmark read` reads other parts"
            ))
        })?;
        number = value
            .parse()
            .map_err(|_| Refusal::BadRequest(format!("the page is `{value}`: use a whole number")))?;
    }
    Ok(number)
}

/// Returns a page of an output, or `None` if the page does not exist.
fn page_json(output: &KeptOutput<'_>, handle: &Handle, page: u64) -> Result<Option<Value>, StoreError> {
    let pages = output.pages(PAGE_BYTES);
    let Some(OutputPage { bytes, first_byte: from }) = output.page(page, PAGE_BYTES)? else {
        return Ok(None);
    };
    let to = from + bytes.len() as u64;
    let text = str::from_utf8(&bytes).ok();
    let mut part = json!({
        "handle": handle.as_str(), "format": output.format, "text": text,
        "page": page, "pages": pages, "bytes": [from, to],
        "of_bytes": output.bytes, "of_lines": output.lines,
    });
    if text.is_none() {
        part["base64"] = STANDARD.encode(&bytes).into();
    }
    Ok(Some(part))
}
