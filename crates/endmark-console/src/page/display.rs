//! Formats values for people: money, tokens, durations, times and names. All functions except `unix_now` are
//! pure.

use std::time::{SystemTime, UNIX_EPOCH};

use endmark_context::{Moment, dollars};
use maud::{Markup, html};

use crate::reports::usage::Total;

const NANO_USD_PER_DOLLAR: u64 = 1_000_000_000;
const DAY_SECONDS: u64 = 86_400;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Maximum number of characters of a name that are shown. The complete name is in `title`.
const MAX_NAME_CHARS: usize = 60;

/// Returns the seconds since 1970.
pub(super) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Formats an integer with commas between thousands.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of tokens with about three digits: `812`, `133k`, `3.1M`.
pub(super) fn tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..9_950 => with_tenths(number, 1_000, "k"),
        9_950..999_500 => format!("{}k", (number + 500) / 1_000),
        999_500..99_500_000 => with_tenths(number, 1_000_000, "M"),
        _ => format!("{}M", number.saturating_add(500_000) / 1_000_000),
    }
}

fn with_tenths(number: u64, unit: u64, name: &str) -> String {
    let tenths = (number + unit / 20) / (unit / 10);
    if tenths.is_multiple_of(10) {
        format!("{}{name}", tenths / 10)
    } else {
        format!("{}.{}{name}", tenths / 10, tenths % 10)
    }
}

/// Formats a number of bytes: `252 bytes`, `61 kB`, `1.9 MB`.
pub(super) fn bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} bytes"),
        1_000..999_500 => format!("{} kB", (number + 500) / 1_000),
        _ => with_tenths(number, 1_000_000, " MB"),
    }
}

/// Formats dollars: with two decimal places from $1, and with up to four below. Smaller amounts have two
/// significant digits.
pub(super) fn money(nano_usd: u64) -> String {
    let places = |unit: u64| (nano_usd + unit / 2) / unit;
    match nano_usd {
        0 => "$0".to_owned(),
        1..100_000 => {
            // Two significant digits: $0.000038.
            let unit = 10_u64.pow(nano_usd.ilog10().saturating_sub(1));
            format!("$0.{}", format!("{:09}", places(unit) * unit).trim_end_matches('0'))
        }
        100_000..995_000_000 => {
            let text = format!("{:04}", places(NANO_USD_PER_DOLLAR / 10_000));
            let short = text.trim_end_matches('0');
            // At least two significant digits: $0.0090 instead of $0.009.
            let least = text.len() - text.trim_start_matches('0').len() + 2;
            let shown = text.get(..short.len().max(least).min(4)).unwrap_or(&text);
            format!("$0.{shown}")
        }
        _ => {
            let cents = places(NANO_USD_PER_DOLLAR / 100);
            format!("${}.{:02}", count(cents / 100), cents % 100)
        }
    }
}

/// Formats the cost of calls, with all digits in `title`. Calls without a price are not shown as $0.
pub(super) fn cost(total: &Total) -> Markup {
    let exact = format!("${}", dollars(total.nano_usd));
    html! {
        @if total.unpriced_calls > 0 && total.nano_usd == 0 { "no price" }
        @else if total.unpriced_calls > 0 {
            span title={ (exact) ", and " (calls(total.unpriced_calls)) " without a price" } { "≥ " (money(total.nano_usd)) }
        } @else { span title=(exact) { (money(total.nano_usd)) } }
    }
}

/// Formats a number of calls.
pub(super) fn calls(number: u64) -> String {
    count_with_noun(number, "call", "calls")
}

/// Formats a number with the singular or the plural of a noun.
pub(super) fn count_with_noun(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

/// Formats a duration in milliseconds: `2 ms`, `0.18 s`, `4.1 s`, `1 min 12 s`, `2 h 8 min`.
pub(super) fn duration(milliseconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let whole = (milliseconds / 1_000.0).round() as u64;
    if milliseconds < 100.0 {
        format!("{milliseconds:.0} ms")
    } else if milliseconds < 1_000.0 {
        format!("{:.2} s", milliseconds / 1_000.0)
    } else if whole < 60 {
        format!("{:.1} s", milliseconds / 1_000.0)
    } else {
        seconds(whole)
    }
}

/// Formats a number of seconds: `45 s`, `1 min 12 s`, `7 h 18 min`, `3 days`.
pub(super) fn seconds(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..600 if !seconds.is_multiple_of(60) => format!("{minutes} min {} s", seconds % 60),
        60..3_600 => format!("{minutes} min"),
        3_600..172_800 if !minutes.is_multiple_of(60) => format!("{hours} h {} min", minutes % 60),
        3_600..172_800 => format!("{hours} h"),
        _ => format!("{} days", seconds / DAY_SECONDS),
    }
}

/// Converts a time in the store's format to seconds since 1970.
pub(super) fn parse_seconds(at: &str) -> Option<u64> {
    let minute = Moment::parse(at)?.unix_seconds();
    Some(minute + at.get(17..19).and_then(|seconds| seconds.parse::<u64>().ok()).unwrap_or(0))
}

/// Shows how long ago a time in the store's format (UTC) was. The full time is in `title`.
pub(super) fn time_ago(now: u64, at: &str) -> Markup {
    let Some(then) = parse_seconds(at) else { return html! { bdi { (at) } } };
    let machine = format!("{}Z", at.replacen(' ', "T", 1));
    html! { time datetime=(machine) title={ (full_time(then)) } { (age(now, then)) } }
}

/// Formats how long ago a time was. A time before today is formatted as a date.
fn age(now: u64, then: u64) -> String {
    match now.saturating_sub(then) {
        0..2 => "now".to_owned(),
        passed @ 2..60 => format!("{passed} s ago"),
        passed @ 60..3_600 => format!("{} min ago", passed / 60),
        passed @ 3_600..DAY_SECONDS => format!("{} h ago", passed / 3_600),
        _ if now / DAY_SECONDS == then / DAY_SECONDS + 1 => "yesterday".to_owned(),
        _ => date(then),
    }
}

/// Formats the date of a time: `26 Nov`.
pub(super) fn date(seconds: u64) -> String {
    let date = Moment::from_unix_seconds(seconds).day().to_string();
    let mut parts = date.split('-').skip(1).filter_map(|part| part.parse::<usize>().ok());
    let month = parts.next().and_then(|month| MONTHS.get(month.wrapping_sub(1))).unwrap_or(&"");
    format!("{} {month}", parts.next().unwrap_or_default())
}

/// Formats a complete time: `26 Nov 2026, 16:40:14 UTC`.
pub(super) fn full_time(seconds: u64) -> String {
    let iso_date = Moment::from_unix_seconds(seconds).day().to_string();
    format!(
        "{} {}, {}:{:02} UTC",
        date(seconds),
        iso_date.get(..4).unwrap_or_default(),
        time_of_day(seconds),
        seconds % 60
    )
}

/// Formats the time of day: `16:40`.
pub(super) fn time_of_day(seconds: u64) -> String {
    format!("{:02}:{:02}", seconds % DAY_SECONDS / 3_600, seconds % 3_600 / 60)
}

/// Returns the day of the week and the day of the month: `Fri`, `20`.
pub(super) fn weekday(date: &str) -> (String, String) {
    let Some(moment) = Moment::parse(&format!("{date} 00:00")) else {
        return (date.to_owned(), String::new());
    };
    // 1970-01-01 was a Thursday.
    let of_week = usize::try_from((moment.unix_seconds() / DAY_SECONDS + 4) % 7).unwrap_or_default();
    let of_month = date.get(8..).unwrap_or_default().trim_start_matches('0');
    (WEEKDAYS.get(of_week).copied().unwrap_or_default().to_owned(), of_month.to_owned())
}

/// Returns a share in percent. Returns 0 if the total is 0.
#[expect(clippy::cast_precision_loss, reason = "a share is rounded to a tenth of a percent")]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// Formats a share in percent, with one decimal place below 10 % and near 100 %.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0".to_owned();
    }
    let share = share(part, whole);
    let is_even = (share - share.round()).abs() < 0.05;
    if is_even || (10.0..90.0).contains(&share) { format!("{share:.0}") } else { format!("{share:.1}") }
}

/// Shows an untrusted name. It may wrap after `/`, `:` and `_`, and a very long name is shortened.
pub(super) fn name(name: &str) -> Markup {
    let is_long = name.chars().count() > MAX_NAME_CHARS;
    let shown: String =
        name.chars().take(if is_long { MAX_NAME_CHARS - 1 } else { MAX_NAME_CHARS }).collect();
    html! {
        bdi title=[is_long.then_some(name)] {
            @for part in shown.split_inclusive(['/', ':', '_']) { (part) @if part.ends_with(['/', ':', '_']) { wbr; } }
            @if is_long { "…" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_the_significant_places() {
        for (nano, expected) in [
            (0, "$0"),
            (1, "$0.000000001"),
            (38_449, "$0.000038"),
            (99_999, "$0.0001"),
            (3_800_000, "$0.0038"),
            (21_400_000, "$0.0214"),
            (61_000_000, "$0.061"),
            (9_000_000, "$0.0090"),
            (500_000_000, "$0.50"),
            (999_999_999, "$1.00"),
            (214_604_173_206, "$214.60"),
            (1_234_567_890_000_000, "$1,234,567.89"),
        ] {
            assert_eq!(money(nano), expected);
        }
    }

    #[test]
    fn numbers_are_short_and_rounded_before_the_unit_is_chosen() {
        let shown =
            [0, 999, 1_000, 9_949, 9_950, 133_400, 999_499, 999_500, 3_140_000, 99_600_000].map(tokens);
        assert_eq!(shown, ["0", "999", "1k", "9.9k", "10k", "133k", "999k", "1M", "3.1M", "100M"]);
        assert_eq!([0, 7, 1_000, 1_234_567].map(count), ["0", "7", "1,000", "1,234,567"]);
        assert_eq!(
            [(0, 0), (31, 1_000), (97, 100), (1, 3), (971, 1_000)].map(|(a, b)| percent(a, b)),
            ["0", "3.1", "97", "33", "97.1"]
        );
    }

    #[test]
    fn durations_and_timestamps_are_readable() {
        let shown = [1.0, 180.0, 4_100.0, 72_000.0, 4_320_000.0].map(duration);
        assert_eq!(shown, ["1 ms", "0.18 s", "4.1 s", "1 min 12 s", "1 h 12 min"]);
        let now = parse_seconds("2026-11-26 16:42:02").unwrap();
        for (at, expected) in [
            ("2026-11-26 16:41:50.123", "12 s ago"),
            ("2026-11-26 16:40:14", "1 min ago"),
            ("2026-11-26 13:00:00", "3 h ago"),
            ("2026-11-25 16:00:00", "yesterday"),
            ("2026-11-20 16:00:00", "20 Nov"),
        ] {
            assert_eq!(age(now, parse_seconds(at).unwrap()), expected);
        }
        assert_eq!(weekday("2026-11-20"), ("Fri".to_owned(), "20".to_owned()));
        assert_eq!(full_time(now), "26 Nov 2026, 16:42:02 UTC");
    }

    #[test]
    fn an_untrusted_name_is_escaped_and_can_wrap() {
        assert_eq!(name("a/b").into_string(), "<bdi>a/<wbr>b</bdi>");
        let hostile = name(&format!("<script>{}\"", "x".repeat(80))).into_string();
        assert!(!hostile.contains("<script>") && hostile.contains("…"), "{hostile}");
    }
}
