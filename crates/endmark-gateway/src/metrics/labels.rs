//! Metric labels, each with few values.

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) upstream: String,
    pub(super) format: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CallLabels {
    pub(super) upstream: String,
    pub(super) purpose: &'static str,
    pub(super) status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CutLabels {
    pub(super) upstream: String,
    pub(super) kind: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TokenLabels {
    pub(super) upstream: String,
    pub(super) purpose: &'static str,
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ModeLabels {
    pub(super) upstream: String,
    pub(super) mode: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BudgetLabels {
    pub(super) budget: &'static str,
    pub(super) percent: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct UpstreamLabels {
    pub(super) upstream: String,
}

impl UpstreamLabels {
    pub(super) fn new(upstream: &str) -> Self {
        Self { upstream: upstream.to_owned() }
    }
}

/// Returns a label for a status: the status itself if it has a specific meaning, otherwise its class.
pub(super) fn status(status: Option<StatusCode>) -> &'static str {
    match status.map(|status| status.as_u16()) {
        None => "none",
        Some(200) => "200",
        Some(400) => "400",
        Some(401) => "401",
        Some(403) => "403",
        Some(404) => "404",
        Some(408) => "408",
        Some(413) => "413",
        Some(429) => "429",
        Some(500) => "500",
        Some(502) => "502",
        Some(503) => "503",
        Some(504) => "504",
        Some(529) => "529",
        Some(200..300) => "2xx",
        Some(300..400) => "3xx",
        Some(400..500) => "4xx",
        Some(_) => "5xx",
    }
}
