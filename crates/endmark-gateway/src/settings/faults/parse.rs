//! Parses a fault plan.

use std::time::Duration;

use http::StatusCode;

use super::fault::{Fault, FaultKind, FaultPosition};

/// 100 %, in hundredths of a percent.
pub(crate) const FULL_SHARE: u32 = 10_000;

/// The default delay before each event of a slow reply.
const DEFAULT_DELAY: Duration = Duration::from_millis(200);

/// Error of an invalid fault plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The kind of fault is unknown.
    #[error(
        "`{0}` is no fault: there are cut, drop, reset, end, stall, error, malformed, no-done, slow and a status as 429 or 503, for example cut@20,drop@10%"
    )]
    Kind(String),
    /// A detail after an `@` is invalid.
    #[error(
        "`{given}` in the fault `{fault}` is not one of: 20 (events), 512b (bytes), 25% (of replies), 200ms or 2s, always"
    )]
    Detail {
        /// The invalid detail.
        given: String,
        /// The fault that contains the detail.
        fault: String,
    },
    /// The fault does not support a detail.
    #[error("`{given}` has no meaning in the fault `{fault}`: {why}")]
    Unsupported {
        /// The unsupported detail.
        given: String,
        /// The fault that contains the detail.
        fault: String,
        /// What the fault accepts.
        why: &'static str,
    },
    /// A detail is repeated.
    #[error("the fault `{0}` says the same twice: leave one of them out")]
    Repeated(String),
    /// The shares exceed 100 %.
    #[error(
        "the shares of the faults make more than 100%: they are of all replies, and one reply has one fault"
    )]
    TooManyPercent,
}

/// Parses a list of faults.
pub(super) fn parse_faults(text: &str) -> Result<Vec<Fault>, FaultError> {
    let faults: Vec<Fault> = text.split(',').map(|one| parse_fault(one.trim())).collect::<Result<_, _>>()?;
    let total_share: u32 = faults.iter().filter_map(|fault| fault.share).fold(0, u32::saturating_add);
    let has_rest = faults.iter().any(|fault| fault.share.is_none());
    if total_share > FULL_SHARE || (total_share == FULL_SHARE && has_rest) {
        return Err(FaultError::TooManyPercent);
    }
    Ok(faults)
}

/// A detail after an `@`.
enum FaultDetail {
    Place(FaultPosition),
    Share(u32),
    Time(Duration),
    Always,
}

fn parse_fault(written: &str) -> Result<Fault, FaultError> {
    let mut words = written.split('@').map(str::trim);
    let mut kind = parse_kind(words.next().unwrap_or_default())?;
    let (mut place, mut share, mut time, mut always) = (None, None, None, false);
    for word in words {
        let misplaced =
            |why| FaultError::Unsupported { given: word.to_owned(), fault: written.to_owned(), why };
        let detail = parse_detail(word)
            .ok_or_else(|| FaultError::Detail { given: word.to_owned(), fault: written.to_owned() })?;
        let is_repeated = match detail {
            FaultDetail::Place(_) if !kind.has_position() => {
                return Err(misplaced("only what breaks off or breaks a reply has a place"));
            }
            FaultDetail::Time(_) if !kind.has_time() => {
                return Err(misplaced("only slow, and a status for its Retry-After, have a time"));
            }
            FaultDetail::Place(given) => place.replace(given).is_some(),
            FaultDetail::Share(given) => share.replace(given).is_some(),
            FaultDetail::Time(given) => time.replace(given).is_some(),
            FaultDetail::Always => std::mem::replace(&mut always, true),
        };
        if is_repeated {
            return Err(FaultError::Repeated(written.to_owned()));
        }
    }
    match &mut kind {
        FaultKind::Slow(pause) => *pause = time.unwrap_or(*pause),
        FaultKind::Status(_, retry_after) => *retry_after = time,
        _ => {}
    }
    Ok(Fault {
        kind,
        position: place.unwrap_or(FaultPosition::Anywhere),
        share,
        always,
        source_text: written.to_owned(),
    })
}

fn parse_kind(word: &str) -> Result<FaultKind, FaultError> {
    let status = || {
        let status = StatusCode::from_bytes(word.as_bytes()).ok()?;
        (status.is_client_error() || status.is_server_error()).then_some(FaultKind::Status(status, None))
    };
    Ok(match word {
        "cut" => FaultKind::Cut,
        "drop" => FaultKind::Drop,
        "reset" => FaultKind::Reset,
        "end" => FaultKind::End,
        "stall" => FaultKind::Stall,
        "error" => FaultKind::Error,
        "malformed" => FaultKind::Malformed,
        "no-done" => FaultKind::NoDone,
        "slow" => FaultKind::Slow(DEFAULT_DELAY),
        _ => return status().ok_or_else(|| FaultError::Kind(word.to_owned())),
    })
}

fn parse_detail(word: &str) -> Option<FaultDetail> {
    let split = word.find(|character: char| !character.is_ascii_digit() && character != '.');
    let (number, unit) = word.split_at(split.unwrap_or(word.len()));
    match unit {
        "always" if number.is_empty() => Some(FaultDetail::Always),
        "" => number.parse().ok().map(|events| FaultDetail::Place(FaultPosition::Events(events))),
        "b" => number.parse().ok().map(|bytes| FaultDetail::Place(FaultPosition::Bytes(bytes))),
        "ms" => number.parse().ok().map(|time| FaultDetail::Time(Duration::from_millis(time))),
        "s" => number.parse().ok().map(|time| FaultDetail::Time(Duration::from_secs(time))),
        "%" => parse_share(number).map(FaultDetail::Share),
        _ => None,
    }
}

/// Parses a share to hundredths of a percent: `10`, `0.5` or `0.25`.
fn parse_share(number: &str) -> Option<u32> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let scale = match part.len() {
        1 => 10,
        2 => 1,
        _ => return None,
    };
    let share =
        whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(part.parse::<u32>().ok()? * scale)?;
    (1..=FULL_SHARE).contains(&share).then_some(share)
}

impl FaultKind {
    fn has_position(self) -> bool {
        match self {
            Self::Cut
            | Self::Drop
            | Self::Reset
            | Self::End
            | Self::Stall
            | Self::Error
            | Self::Malformed => true,
            Self::NoDone | Self::Slow(_) | Self::Status(..) => false,
        }
    }

    fn has_time(self) -> bool {
        matches!(self, Self::Slow(_) | Self::Status(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(text: &str) -> Fault {
        parse_faults(text).unwrap().remove(0)
    }

    #[test]
    fn every_fault_parameter_is_recognised_by_its_unit() {
        assert_eq!(parse_one("drop@512b@2.5%@always").position, FaultPosition::Bytes(512));
        assert_eq!(parse_one("drop@512b@2.5%@always").share, Some(250));
        assert!(parse_one("drop@512b@2.5%@always").always);
        assert_eq!(parse_one("cut@0").position, FaultPosition::Events(0));
        assert_eq!(parse_one("slow@2s").kind, FaultKind::Slow(Duration::from_secs(2)));
        let expected = FaultKind::Status(StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_millis(50)));
        assert_eq!(parse_one("429@50ms").kind, expected);
        assert_eq!(parse_one(" stall ").position, FaultPosition::Anywhere);
    }

    #[test]
    fn an_invalid_fault_is_refused_with_the_accepted_forms() {
        for (text, part) in [
            ("", "`` is no fault"),
            ("cut@20,", "`` is no fault"),
            ("explode", "cut@20,drop@10%"),
            ("200", "`200` is no fault"),
            ("cut@5m", "`5m` in the fault `cut@5m`"),
            ("cut@", "`` in the fault"),
            ("cut@-1", "`-1` in the fault"),
            ("cut@0%", "`0%` in the fault"),
            ("cut@101%", "`101%` in the fault"),
            ("cut@1.234%", "`1.234%` in the fault"),
            ("cut@99999999999999999999", "in the fault"),
            ("cut@2s", "only slow"),
            ("429@20", "has a place"),
            ("cut@1@2", "twice"),
            ("cut@60%,drop@41%", "more than 100%"),
            ("cut@100%,drop", "more than 100%"),
        ] {
            let error = parse_faults(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
