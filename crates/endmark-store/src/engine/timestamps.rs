//! Formats timestamps for the tables.

/// Converts milliseconds since 1970 to a timestamp in UTC, as `strftime('%Y-%m-%d %H:%M:%f', …)` writes it.
///
/// Two obvious alternatives are slower: SQLite would parse the pattern again for each row, which costs a
/// tenth of the row's time, and the standard library's formatter needs 3,000 instructions.
pub fn utc(milliseconds: u64) -> String {
    let (seconds, millisecond) = (milliseconds / 1_000, milliseconds % 1_000);
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hours, minute) = (minutes / 60, minutes % 60);
    let (year, month, day) = date(hours / 24);
    let mut moment = String::with_capacity(24);
    if year > 9_999 {
        moment.push_str(&(year / 10_000).to_string());
    }
    let parts = [
        (1_000, year % 10_000, '-'),
        (10, month, '-'),
        (10, day, ' '),
        (10, hours % 24, ':'),
        (10, minute, ':'),
        (10, second, '.'),
        (100, millisecond, '\0'),
    ];
    for (mut place, number, after) in parts {
        while place > 0 {
            moment.extend(char::from_digit(u32::try_from(number / place % 10).unwrap_or(0), 10));
            place /= 10;
        }
        if after != '\0' {
            moment.push(after);
        }
    }
    moment
}

/// Converts a timestamp of [`utc`] to RFC 3339: `2026-11-27 08:45:58.194` becomes `2026-11-27T08:45:58.194Z`.
pub fn with_zone(utc: &str) -> String {
    format!("{}Z", utc.replacen(' ', "T", 1))
}

/// Converts a number of days since 1970-01-01 to year, month and day in the Gregorian calendar.
///
/// The calculation uses years that begin in March, so that the leap day is the last day of a year. All other
/// months have constant lengths, which repeat every five months (153 days). Four hundred years have 146,097
/// days.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    let days = days + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    (era * 400 + year + u64::from(is_next_year), if is_next_year { month - 9 } else { month + 3 }, day)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::utc;

    #[test]
    fn timestamps_match_the_format_of_sqlite() {
        let connection = Connection::open_in_memory().unwrap();
        let mut statement =
            connection.prepare("SELECT strftime('%Y-%m-%d %H:%M:%f', ?1 / 1000.0, 'unixepoch')").unwrap();
        let mut same = |milliseconds: i64| {
            let of_sqlite: String = statement.query_row([milliseconds], |row| row.get(0)).unwrap();
            assert_eq!(utc(milliseconds.unsigned_abs()), of_sqlite, "{milliseconds}");
        };
        // Test the first and last millisecond of each day in four centuries, and some times in between.
        for day in 0..146_097 {
            same(day * 86_400_000);
            same(day * 86_400_000 + 86_399_999);
            same(day * 86_400_123 + day * day % 86_400_000);
        }
    }
}
