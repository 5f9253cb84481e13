//! Decompresses an upstream's response.

use http::{Response, header};

use super::headers::remove_replaced_body_headers;
use crate::body::AnyBody;
use crate::coding::{Codings, decode};

/// Decodes the body of a response if its coding is supported. The gateway requests uncompressed responses, but some
/// servers and proxies compress anyway. A body with an unsupported coding stays unchanged.
pub(crate) fn decode_response(answer: Response<AnyBody>) -> Response<AnyBody> {
    let codings = match Codings::from_headers(answer.headers()) {
        Ok(codings) if codings.is_empty() => return answer,
        Ok(codings) => codings,
        Err(unknown) => {
            tracing::warn!(%unknown, "an upstream compressed its answer in an unknown way");
            return answer;
        }
    };
    let (mut head, body) = answer.into_parts();
    head.headers.remove(header::CONTENT_ENCODING);
    remove_replaced_body_headers(&mut head.headers);
    Response::from_parts(head, decode(body, &codings))
}
