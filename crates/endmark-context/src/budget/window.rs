//! Calendar windows of budgets, computed only from the time and the zone.
//!
//! Therefore a late reset cannot shift later windows, and a clock that is set back over midnight returns to
//! the previous window.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use crate::moment::{Day, Moment};

const SECONDS_PER_MINUTE: i32 = 60;
/// The largest supported offset from UTC, in minutes.
const MAX_OFFSET_MINUTES: i32 = 14 * 60;

/// How often a budget is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Period {
    /// Never: the budget has one endless window.
    Ever,
    /// Every calendar minute, in UTC.
    Minute,
    /// Every day at midnight, local time.
    Day,
    /// On the first day of each month at midnight, local time.
    Month,
}

/// A time zone, by its name in the time zone database or as a fixed offset from UTC.
///
/// The program contains the database, so windows do not depend on files of the machine.
///
/// ```
/// use endmark_context::budget::Zone;
/// assert_eq!("UTC".parse::<Zone>().unwrap(), Zone::default());
/// assert_eq!("+05:30".parse::<Zone>().unwrap().to_string(), "+05:30");
/// assert_eq!("europe/berlin".parse::<Zone>().unwrap().to_string(), "Europe/Berlin");
/// assert!("Europe/Atlantis".parse::<Zone>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// Error of a text that is not a time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a time zone: write `UTC`, an offset such as `+02:00`, or a name such as `Europe/Berlin`"
)]
pub struct ZoneError(String);

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if matches!(text, "UTC" | "utc" | "Z") {
            return Ok(Self::default());
        }
        let fixed =
            || parse_offset(text).and_then(|minutes| Offset::from_seconds(minutes * SECONDS_PER_MINUTE).ok());
        let named = || TimeZoneDatabase::bundled().get(text).ok().filter(|zone| !zone.is_unknown());
        let zone = fixed().map(TimeZone::fixed).or_else(named);
        zone.map(Self).ok_or_else(|| ZoneError(text.to_owned()))
    }
}

/// Parses a fixed offset, `+HH:MM` or `-HH:MM`, into minutes.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let is_written_out = |digits: &str| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_written_out(hours) || !is_written_out(minutes) {
        return None;
    }
    let (hours, minutes) = (hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?);
    let east = hours * 60 + minutes;
    (minutes < 60 && east <= MAX_OFFSET_MINUTES).then_some(sign * east)
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.iana_name(), self.0.to_fixed_offset()) {
            (Some(name), _) => formatter.write_str(name),
            (None, Ok(offset)) if offset != Offset::UTC => {
                let minutes = offset.seconds() / SECONDS_PER_MINUTE;
                let sign = if minutes < 0 { '-' } else { '+' };
                write!(formatter, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
            (None, _) => formatter.write_str("UTC"),
        }
    }
}

impl Period {
    /// All periods.
    pub const ALL: [Self; 4] = [Self::Ever, Self::Minute, Self::Day, Self::Month];

    /// Returns the period's name in the database table and in responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ever => "ever",
            Self::Minute => "minute",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns the period that a window name belongs to.
    ///
    /// ```
    /// use endmark_context::budget::Period;
    /// assert_eq!(["ever", "2026-11-24", "2026-11"].map(Period::from_window), [Period::Ever, Period::Day, Period::Month]);
    /// assert_eq!(Period::from_window("2026-11-24T18:43"), Period::Minute);
    /// ```
    pub fn from_window(window: &str) -> Self {
        match window.split('-').count() {
            1 => Self::Ever,
            2 => Self::Month,
            _ if window.contains('T') => Self::Minute,
            _ => Self::Day,
        }
    }

    /// Returns the name of the window that contains `at`: `ever`, the minute in UTC as `YYYY-MM-DDTHH:MM`,
    /// the local day as `YYYY-MM-DD`, or the local month as `YYYY-MM`.
    ///
    /// ```
    /// use endmark_context::Moment;
    /// use endmark_context::budget::{Period, Zone};
    /// let late = Moment::parse("2026-11-24 23:30").unwrap();
    /// assert_eq!(Period::Day.window(late, &Zone::default()), "2026-11-24");
    /// assert_eq!(Period::Day.window(late, &"+01:00".parse().unwrap()), "2026-11-25");
    /// assert_eq!(Period::Ever.window(late, &Zone::default()), "ever");
    /// ```
    pub fn window(self, at: Moment, zone: &Zone) -> String {
        let today = || local_day(at, zone);
        let minute = at.minute_of_day();
        match self {
            Self::Ever => "ever".to_owned(),
            Self::Minute => format!("{}T{:02}:{:02}", at.day(), minute / 60, minute % 60),
            Self::Day => format!("{:04}-{:02}-{:02}", today().year(), today().month(), today().day()),
            Self::Month => format!("{:04}-{:02}", today().year(), today().month()),
        }
    }

    /// Returns when the window that contains `at` ends, in seconds since 1970.
    ///
    /// Returns `None` if the window never ends. If midnight is skipped because the clocks go forward, the day
    /// begins with its first existing moment.
    pub fn reset_seconds(self, at: Moment, zone: &Zone) -> Option<u64> {
        let today = || local_day(at, zone);
        let last_day = match self {
            Self::Ever => return None,
            Self::Minute => return Some(at.unix_seconds() / 60 * 60 + 60),
            Self::Day => today(),
            Self::Month => today().last_of_month(),
        };
        let midnight = last_day.tomorrow().ok()?.at(0, 0, 0, 0);
        u64::try_from(zone.0.to_timestamp(midnight).ok()?.as_second()).ok()
    }
}

/// Returns the local day of a moment.
fn local_day(at: Moment, zone: &Zone) -> Date {
    let second = i64::try_from(at.unix_seconds()).ok().and_then(|second| Timestamp::from_second(second).ok());
    zone.0.to_datetime(second.unwrap_or(Timestamp::MAX)).date()
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, of_month) = self.parts();
        write!(formatter, "{year:04}-{month:02}-{of_month:02}")
    }
}
