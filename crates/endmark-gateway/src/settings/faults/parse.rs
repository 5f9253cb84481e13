//! Parses a fault plan.

use std::time::Duration;

use http::StatusCode;

use super::fault::{Fault, Kind, Place};

/// 100 %, in hundredths of a percent.
pub(crate) const ALL: u32 = 10_000;

/// The default delay before each event of a slow reply.
const DEFAULT_DELAY: Duration = Duration::from_millis(200);

/// Why a fault plan is invalid.
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
        /// The fault that it belongs to.
        fault: String,
    },
    /// The fault does not support a detail.
    #[error("`{given}` has no meaning in the fault `{fault}`: {why}")]
    Misplaced {
        /// The detail.
        given: String,
        /// The fault that it belongs to.
        fault: String,
        /// What the fault accepts.
        why: &'static str,
    },
    /// A detail is repeated.
    #[error("the fault `{0}` says the same twice: leave one of them out")]
    Twice(String),
    /// The shares exceed 100 %.
    #[error(
        "the shares of the faults make more than 100%: they are of all replies, and one reply has one fault"
    )]
    TooManyPercent,
}

/// Parses a list of faults.
pub(super) fn faults(text: &str) -> Result<Vec<Fault>, FaultError> {
    let faults: Vec<Fault> = text.split(',').map(|one| parse_fault(one.trim())).collect::<Result<_, _>>()?;
    let given: u32 = faults.iter().filter_map(|fault| fault.share).fold(0, u32::saturating_add);
    let has_rest = faults.iter().any(|fault| fault.share.is_none());
    if given > ALL || (given == ALL && has_rest) {
        return Err(FaultError::TooManyPercent);
    }
    Ok(faults)
}

/// A detail after an `@`.
enum Detail {
    Place(Place),
    Share(u32),
    Time(Duration),
    Always,
}

fn parse_fault(written: &str) -> Result<Fault, FaultError> {
    let mut words = written.split('@').map(str::trim);
    let mut kind = kind(words.next().unwrap_or_default())?;
    let (mut place, mut share, mut time, mut always) = (None, None, None, false);
    for word in words {
        let misplaced =
            |why| FaultError::Misplaced { given: word.to_owned(), fault: written.to_owned(), why };
        let detail = detail(word)
            .ok_or_else(|| FaultError::Detail { given: word.to_owned(), fault: written.to_owned() })?;
        let again = match detail {
            Detail::Place(_) if !kind.has_place() => {
                return Err(misplaced("only what breaks off or breaks a reply has a place"));
            }
            Detail::Time(_) if !kind.has_time() => {
                return Err(misplaced("only slow, and a status for its Retry-After, have a time"));
            }
            Detail::Place(given) => place.replace(given).is_some(),
            Detail::Share(given) => share.replace(given).is_some(),
            Detail::Time(given) => time.replace(given).is_some(),
            Detail::Always => std::mem::replace(&mut always, true),
        };
        if again {
            return Err(FaultError::Twice(written.to_owned()));
        }
    }
    match &mut kind {
        Kind::Slow(pause) => *pause = time.unwrap_or(*pause),
        Kind::Status(_, retry_after) => *retry_after = time,
        _ => {}
    }
    Ok(Fault { kind, place: place.unwrap_or(Place::Anywhere), share, always, written: written.to_owned() })
}

fn kind(word: &str) -> Result<Kind, FaultError> {
    let status = || {
        let status = StatusCode::from_bytes(word.as_bytes()).ok()?;
        (status.is_client_error() || status.is_server_error()).then_some(Kind::Status(status, None))
    };
    Ok(match word {
        "cut" => Kind::Cut,
        "drop" => Kind::Drop,
        "reset" => Kind::Reset,
        "end" => Kind::End,
        "stall" => Kind::Stall,
        "error" => Kind::Error,
        "malformed" => Kind::Malformed,
        "no-done" => Kind::NoDone,
        "slow" => Kind::Slow(DEFAULT_DELAY),
        _ => return status().ok_or_else(|| FaultError::Kind(word.to_owned())),
    })
}

fn detail(word: &str) -> Option<Detail> {
    let split = word.find(|character: char| !character.is_ascii_digit() && character != '.');
    let (number, unit) = word.split_at(split.unwrap_or(word.len()));
    match unit {
        "always" if number.is_empty() => Some(Detail::Always),
        "" => number.parse().ok().map(|events| Detail::Place(Place::Events(events))),
        "b" => number.parse().ok().map(|bytes| Detail::Place(Place::Bytes(bytes))),
        "ms" => number.parse().ok().map(|time| Detail::Time(Duration::from_millis(time))),
        "s" => number.parse().ok().map(|time| Detail::Time(Duration::from_secs(time))),
        "%" => share(number).map(Detail::Share),
        _ => None,
    }
}

/// Parses a share to hundredths of a percent: `10`, `0.5` or `0.25`.
fn share(number: &str) -> Option<u32> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let scale = match part.len() {
        1 => 10,
        2 => 1,
        _ => return None,
    };
    let share =
        whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(part.parse::<u32>().ok()? * scale)?;
    (1..=ALL).contains(&share).then_some(share)
}

impl Kind {
    fn has_place(self) -> bool {
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

    fn one(text: &str) -> Fault {
        faults(text).unwrap().remove(0)
    }

    #[test]
    fn every_fault_parameter_is_recognised_by_its_unit() {
        assert_eq!(one("drop@512b@2.5%@always").place, Place::Bytes(512));
        assert_eq!(one("drop@512b@2.5%@always").share, Some(250));
        assert!(one("drop@512b@2.5%@always").always);
        assert_eq!(one("cut@0").place, Place::Events(0));
        assert_eq!(one("slow@2s").kind, Kind::Slow(Duration::from_secs(2)));
        let expected = Kind::Status(StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_millis(50)));
        assert_eq!(one("429@50ms").kind, expected);
        assert_eq!(one(" stall ").place, Place::Anywhere);
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
            let error = faults(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
