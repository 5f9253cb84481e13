//! The style sheet, the script and the logo, which are embedded in the binary.

use std::io::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue, Response};

use crate::answer::{ConsoleBody, ConsoleError, document_response};

/// A static file that the pages use.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    compressed: OnceLock<Bytes>,
}

macro_rules! asset {
    ($name:literal, $kind:literal) => {
        Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../../assets/", $name)),
            compressed: OnceLock::new(),
        }
    };
}

static ASSETS: [Asset; 3] = [
    asset!("page.css", "text/css; charset=utf-8"),
    asset!("page.js", "text/javascript; charset=utf-8"),
    asset!("mark.svg", "image/svg+xml"),
];

/// Answers a request for one of the static files.
pub(super) fn respond(headers: &HeaderMap, name: &str) -> Result<Response<ConsoleBody>, ConsoleError> {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    let asset = asset.ok_or_else(|| ConsoleError::NotFound(format!("the file {name} does not exist")))?;
    let takes_gzip = headers
        .get(ACCEPT_ENCODING)
        .and_then(|accepted| accepted.to_str().ok())
        .is_some_and(|accepted| accepted.split(',').any(|coding| coding.trim() == "gzip"));
    let compressed = if takes_gzip { asset.compressed_bytes() } else { None };
    let mut response = match &compressed {
        Some(compressed) => document_response(asset.kind, compressed.clone()),
        None => document_response(asset.kind, asset.bytes),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=300"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if compressed.is_some() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

impl Asset {
    fn compressed_bytes(&self) -> Option<Bytes> {
        if let Some(compressed) = self.compressed.get() {
            return Some(compressed.clone());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(self.bytes).ok()?;
        let compressed = Bytes::from(encoder.finish().ok()?);
        Some(self.compressed.get_or_init(|| compressed).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::ASSETS;

    #[test]
    fn all_assets_stay_small() {
        let plain: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        let compressed: usize = ASSETS.iter().map(|asset| asset.compressed_bytes().unwrap().len()).sum();
        assert!(plain < 60_000 && compressed < 20_000, "{plain} bytes, {compressed} compressed");
    }
}
