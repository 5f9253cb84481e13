//! Moments and days, for prices and budgets. The caller provides the clock.

/// A moment in UTC, with a resolution of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    year: u16,
    month: u8,
    of_month: u8,
}

const SECONDS_PER_DAY: u64 = 86_400;

impl Moment {
    /// Returns the moment that is this many seconds after 1970-01-01 00:00 UTC.
    pub fn from_unix_seconds(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Parses `YYYY-MM-DD HH:MM`, with any text after it, such as the UTC times in the store.
    ///
    /// Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let day = Day::parse(text.get(..10)?)?;
        let hour: u64 = text.get(11..13)?.parse().ok().filter(|hour| *hour < 24)?;
        let minute: u64 = text.get(14..16)?.parse().ok().filter(|minute| *minute < 60)?;
        Some(Self(day.days_since_1970()? * SECONDS_PER_DAY + hour * 3_600 + minute * 60))
    }

    /// Returns the number of seconds since 1970-01-01 00:00 UTC.
    pub fn unix_seconds(self) -> u64 {
        self.0
    }

    /// Returns the UTC day that contains the moment.
    pub fn day(self) -> Day {
        Day::from_days_since_1970(self.0 / SECONDS_PER_DAY)
    }

    /// Returns the number of minutes since midnight, UTC.
    pub fn minute_of_day(self) -> u16 {
        u16::try_from(self.0 % SECONDS_PER_DAY / 60).unwrap_or_default()
    }
}

impl Day {
    /// Parses `YYYY-MM-DD`. Returns `None` for any other text, and for a day that does not exist.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let year = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
        let month = parts.next().filter(|month| month.len() == 2)?.parse().ok()?;
        let day = parts.next().filter(|day| day.len() == 2)?.parse().ok()?;
        let parsed = Self { year, month, of_month: day };
        // `from_days_since_1970` would silently normalise an invalid date, so check that the date
        // round-trips.
        let is_there =
            parts.next().is_none() && Self::from_days_since_1970(parsed.days_since_1970()?) == parsed;
        is_there.then_some(parsed)
    }

    /// Returns the year, the month and the day of the month.
    pub(crate) fn parts(self) -> (u16, u8, u8) {
        (self.year, self.month, self.of_month)
    }

    /// Returns the day this many days after 1970-01-01. In the calculation, years begin in March, so that a
    /// leap day is the last day of its year.
    fn from_days_since_1970(days: u64) -> Self {
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let narrow = |value: u64| u8::try_from(value).unwrap_or(u8::MAX);
        let civil_year = era * 400 + year + u64::from(month >= 10);
        Self {
            year: u16::try_from(civil_year).unwrap_or(u16::MAX),
            month: narrow(if month >= 10 { month - 9 } else { month + 3 }),
            of_month: narrow(day - (153 * month + 2) / 5 + 1),
        }
    }

    /// Returns the number of days since 1970-01-01. Returns `None` for an invalid month or day, and before
    /// 1970.
    fn days_since_1970(self) -> Option<u64> {
        let (month, day) = (u64::from(self.month), u64::from(self.of_month));
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let year = u64::from(self.year).checked_sub(u64::from(month <= 2))?;
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let (era, year) = (year / 400, year % 400);
        (era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year).checked_sub(719_468)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_two_centuries_round_trips() {
        for days in 0..73_000 {
            let day = Day::from_days_since_1970(days);
            assert_eq!(day.days_since_1970(), Some(days));
            let text = format!("{:04}-{:02}-{:02}", day.year, day.month, day.of_month);
            assert_eq!(Day::parse(&text), Some(day), "{text}");
        }
    }

    #[test]
    fn an_invalid_day_or_time_is_refused() {
        for text in ["", "2026-13-01", "2026-02-30", "2026-1-1", "26-01-01", "2026-01-01-01", "1969-12-31"] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
        for text in ["2026-11-24", "2026-11-24 24:00", "2026-11-24 12:60", "2026-11-2412:60:00"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        let moment = Moment::parse("2026-11-24 01:30:12.345").unwrap();
        assert_eq!((moment.day(), moment.minute_of_day()), (Day::parse("2026-11-24").unwrap(), 90));
    }
}
