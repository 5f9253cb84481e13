//! Edge cases of windows and accounts.

use proptest::prelude::*;

use super::{Account, Level, Period, Unit, Zone, oldest_kept_window, rate_retry_seconds};
use crate::Moment;

fn parse_moment(text: &str) -> Moment {
    Moment::parse(text).unwrap()
}

#[test]
fn a_window_depends_only_on_the_time_and_the_zone() {
    let utc = Zone::default();
    for (moment, zone, window, resets) in [
        ("2026-11-24 00:00", "UTC", "2026-11-24", "2026-11-25 00:00"),
        ("2026-11-24 23:59", "UTC", "2026-11-24", "2026-11-25 00:00"),
        ("2026-11-24 22:00", "+02:00", "2026-11-25", "2026-11-25 22:00"),
        ("2026-11-24 21:59", "+02:00", "2026-11-24", "2026-11-24 22:00"),
        ("2026-11-24 04:59", "-05:00", "2026-11-23", "2026-11-24 05:00"),
        ("2028-02-28 23:00", "+01:00", "2028-02-29", "2028-02-29 23:00"),
    ] {
        let zone: Zone = zone.parse().unwrap();
        assert_eq!(Period::Day.window(parse_moment(moment), &zone), window, "{moment} {zone}");
        assert_eq!(
            Period::Day.reset_seconds(parse_moment(moment), &zone),
            Some(parse_moment(resets).unix_seconds()),
            "{moment} {zone}"
        );
    }
    // A clock that is set back over midnight returns to the previous window.
    let (before, after) = (parse_moment("2026-11-24 23:59"), parse_moment("2026-11-25 00:01"));
    assert_ne!(Period::Day.window(before, &utc), Period::Day.window(after, &utc));
    assert_eq!(Period::Day.window(before, &utc), "2026-11-24");
    assert_eq!(Period::Ever.reset_seconds(before, &utc), None);
    for (moment, zone, window, resets) in [
        ("2026-11-01 00:00", "UTC", "2026-11", "2026-12-01 00:00"),
        ("2026-12-31 23:59", "UTC", "2026-12", "2027-01-01 00:00"),
        ("2028-02-29 23:30", "+01:00", "2028-03", "2028-03-31 23:00"),
    ] {
        let zone: Zone = zone.parse().unwrap();
        assert_eq!(Period::Month.window(parse_moment(moment), &zone), window, "{moment} {zone}");
        let resets = Some(parse_moment(resets).unix_seconds());
        assert_eq!(Period::Month.reset_seconds(parse_moment(moment), &zone), resets, "{moment} {zone}");
    }
    for text in ["", "2", "+2:00", "+02:60", "+15:00", "02:00", "Europe/Atlantis", "+0200", "Etc/Unknown"] {
        assert!(text.parse::<Zone>().is_err(), "{text}");
    }
}

#[test]
fn a_day_follows_the_clock_changes_of_its_zone() {
    for (moment, zone, period, window, resets) in [
        // The clocks go forward at 02:00 or back at 03:00, so these days have 23 and 25 hours.
        ("2026-03-28 23:00", "Europe/Berlin", Period::Day, "2026-03-29", "2026-03-29 22:00"),
        ("2026-10-24 22:00", "Europe/Berlin", Period::Day, "2026-10-25", "2026-10-25 23:00"),
        ("2026-10-31 22:59", "Europe/Berlin", Period::Month, "2026-10", "2026-10-31 23:00"),
        ("2026-11-24 04:59", "America/New_York", Period::Day, "2026-11-23", "2026-11-24 05:00"),
        ("2026-07-24 03:59", "America/New_York", Period::Day, "2026-07-23", "2026-07-24 04:00"),
        ("2026-11-24 18:29", "Asia/Kolkata", Period::Day, "2026-11-24", "2026-11-24 18:30"),
        // The clocks went forward from midnight to 01:00.
        ("2026-04-23 21:59", "Africa/Cairo", Period::Day, "2026-04-23", "2026-04-23 22:00"),
        // Samoa skipped 30 December.
        ("2011-12-30 09:59", "Pacific/Apia", Period::Day, "2011-12-29", "2011-12-30 10:00"),
        ("2011-12-30 10:00", "Pacific/Apia", Period::Day, "2011-12-31", "2011-12-31 10:00"),
    ] {
        let zone: Zone = zone.parse().unwrap();
        assert_eq!(period.window(parse_moment(moment), &zone), window, "{moment} {zone}");
        let resets_at = period.reset_seconds(parse_moment(moment), &zone);
        assert_eq!(resets_at, Some(parse_moment(resets).unix_seconds()), "{moment} {zone}");
        // A new window begins at the reset.
        let next = Moment::from_unix_seconds(resets_at.unwrap());
        assert_ne!(period.window(next, &zone), window, "{moment} {zone}");
        let last = Moment::from_unix_seconds(resets_at.unwrap() - 1);
        assert_eq!(period.window(last, &zone), window, "{moment} {zone}");
    }
}

#[test]
fn holds_count_as_spent() {
    let account = |spent, held| Account { limit: 1_000, spent, held, ..Account::default() };
    assert!(account(0, 0).admits(1_000) && !account(0, 0).admits(1_001));
    assert!(account(400, 600).admits(0) && !account(400, 600).admits(1));
    assert_eq!(account(900, 900).remaining(), 0);
    assert!(!Account { is_closed: true, ..account(0, 0) }.admits(0));
    for (used, level) in [
        (0, Level::Low),
        (799, Level::Low),
        (800, Level::High),
        (949, Level::High),
        (950, Level::NearlyUsedUp),
    ] {
        assert_eq!(account(used, 0).level(), level, "{used}");
        assert_eq!(account(used, 1_000 - used).level(), level, "{used}: what is held warns of nothing");
    }
}

proptest! {
    #[test]
    fn a_minute_ends_at_the_retry_time_of_a_refused_request(seconds in 0_u64..8_000_000_000, later in 0_u64..200_000) {
        let at = Moment::from_unix_seconds;
        let window = |seconds| Period::Minute.window(at(seconds), &Zone::default());
        let next = seconds + rate_retry_seconds(Unit::Requests, at(seconds));
        prop_assert_eq!(window(seconds), window(next - 1));
        prop_assert!(window(seconds) < window(next));
        prop_assert_eq!(Period::Minute.reset_seconds(at(seconds), &Zone::default()), Some(next));
        prop_assert_eq!(Period::from_window(&window(seconds)), Period::Minute);
        // Window names sort in the order of time, so old windows can be found by name.
        prop_assert!(window(seconds) <= window(seconds + later));
        prop_assert!(oldest_kept_window(&window(seconds + 600)).unwrap() <= window(seconds));
        prop_assert!(oldest_kept_window(&window(seconds + 660)).unwrap() > window(seconds));
    }
}
