//! Windows of the calendar: a pure function of the time and the zone, so that a late reset cannot drift, and a clock that
//! jumps back over midnight comes back to the window that it left.

use std::fmt;
use std::str::FromStr;

use crate::moment::{Day, Moment};

const SECONDS_PER_MINUTE: i64 = 60;
const SECONDS_PER_DAY: u64 = 86_400;
/// No zone is further from UTC.
const FURTHEST_MINUTES: i64 = 14 * 60;

/// How often a budget begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Period {
    /// Never.
    Ever,
    /// At midnight.
    Day,
    /// At midnight, on the first day of a month.
    Month,
}

/// A distance from UTC.
///
/// ```
/// use endmark_context::budget::Zone;
/// assert_eq!("UTC".parse::<Zone>().unwrap(), Zone::default());
/// assert_eq!("+05:30".parse::<Zone>().unwrap().to_string(), "+05:30");
/// assert!("Europe/Berlin".parse::<Zone>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zone {
    minutes_east: i64,
}

/// Text that is no zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no zone: write `UTC`, or hours and minutes east of it, like `+02:00`")]
pub struct ZoneError(String);

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if matches!(text, "UTC" | "utc" | "Z") {
            return Ok(Self::default());
        }
        let parsed = || {
            let (sign, rest) = match text.split_at_checked(1)? {
                ("+", rest) => (1, rest),
                ("-", rest) => (-1, rest),
                _ => return None,
            };
            let (hours, minutes) = rest.split_once(':')?;
            let is_written_out =
                |digits: &str| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
            if !is_written_out(hours) || !is_written_out(minutes) {
                return None;
            }
            let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
            let east = hours * 60 + minutes;
            (minutes < 60 && east <= FURTHEST_MINUTES).then_some(Self { minutes_east: sign * east })
        };
        parsed().ok_or_else(|| ZoneError(text.to_owned()))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.minutes_east == 0 {
            return formatter.write_str("UTC");
        }
        let sign = if self.minutes_east < 0 { '-' } else { '+' };
        let distance = self.minutes_east.abs();
        write!(formatter, "{sign}{:02}:{:02}", distance / 60, distance % 60)
    }
}

impl Period {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ever, Self::Day, Self::Month];

    /// The literal in the table and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ever => "ever",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The period that has windows of this name.
    ///
    /// ```
    /// use endmark_context::budget::Period;
    /// assert_eq!(["ever", "2026-11-24", "2026-11"].map(Period::of_window), [Period::Ever, Period::Day, Period::Month]);
    /// ```
    pub fn of_window(window: &str) -> Self {
        match window.split('-').count() {
            1 => Self::Ever,
            2 => Self::Month,
            _ => Self::Day,
        }
    }

    /// The name of the window that a moment is in: `ever`, the day there as `YYYY-MM-DD`, or the month as `YYYY-MM`.
    ///
    /// ```
    /// use endmark_context::Moment;
    /// use endmark_context::budget::{Period, Zone};
    /// let late = Moment::parse("2026-11-24 23:30").unwrap();
    /// assert_eq!(Period::Day.window(late, Zone::default()), "2026-11-24");
    /// assert_eq!(Period::Day.window(late, "+01:00".parse().unwrap()), "2026-11-25");
    /// assert_eq!(Period::Ever.window(late, Zone::default()), "ever");
    /// ```
    pub fn window(self, at: Moment, zone: Zone) -> String {
        match self {
            Self::Ever => "ever".to_owned(),
            Self::Day => local(at, zone).day().to_string(),
            Self::Month => {
                let (year, month, _) = local(at, zone).day().parts();
                format!("{year:04}-{month:02}")
            }
        }
    }

    /// The first moment after the window that a moment is in, in seconds since 1970; none where it has no end.
    pub fn resets_at(self, at: Moment, zone: Zone) -> Option<u64> {
        let today = local(at, zone).unix_seconds() / SECONDS_PER_DAY;
        let first_day_after = match self {
            Self::Ever => return None,
            Self::Day => today + 1,
            Self::Month => {
                let is_later =
                    |day: &u64| Moment::from_unix_seconds(day * SECONDS_PER_DAY).day().parts().2 == 1;
                (today + 1..today + 32).find(is_later)?
            }
        };
        (first_day_after * SECONDS_PER_DAY).checked_add_signed(-zone.minutes_east * SECONDS_PER_MINUTE)
    }
}

/// The moment whose date and time in UTC are those on a clock there.
fn local(at: Moment, zone: Zone) -> Moment {
    let seconds = at.unix_seconds().saturating_add_signed(zone.minutes_east * SECONDS_PER_MINUTE);
    Moment::from_unix_seconds(seconds)
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, of_month) = self.parts();
        write!(formatter, "{year:04}-{month:02}-{of_month:02}")
    }
}
