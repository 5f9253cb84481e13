//! Windows and accounts, at their edges.

use super::{Account, Level, Period, Zone};
use crate::Moment;

fn at(text: &str) -> Moment {
    Moment::parse(text).unwrap()
}

#[test]
fn a_window_depends_on_the_time_and_the_zone_alone() {
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
        assert_eq!(Period::Day.window(at(moment), zone), window, "{moment} {zone}");
        assert_eq!(
            Period::Day.resets_at(at(moment), zone),
            Some(at(resets).unix_seconds()),
            "{moment} {zone}"
        );
    }
    // A clock that jumps back over midnight is in the window before, as it was.
    let (before, after) = (at("2026-11-24 23:59"), at("2026-11-25 00:01"));
    assert_ne!(Period::Day.window(before, utc), Period::Day.window(after, utc));
    assert_eq!(Period::Day.window(before, utc), "2026-11-24");
    assert_eq!(Period::Ever.resets_at(before, utc), None);
    for (moment, zone, window, resets) in [
        ("2026-11-01 00:00", "UTC", "2026-11", "2026-12-01 00:00"),
        ("2026-12-31 23:59", "UTC", "2026-12", "2027-01-01 00:00"),
        ("2028-02-29 23:30", "+01:00", "2028-03", "2028-03-31 23:00"),
    ] {
        let zone: Zone = zone.parse().unwrap();
        assert_eq!(Period::Month.window(at(moment), zone), window, "{moment} {zone}");
        let resets = Some(at(resets).unix_seconds());
        assert_eq!(Period::Month.resets_at(at(moment), zone), resets, "{moment} {zone}");
    }
    for text in ["", "2", "+2:00", "+02:60", "+15:00", "02:00", "Europe/Berlin", "+0200"] {
        assert!(text.parse::<Zone>().is_err(), "{text}");
    }
}

#[test]
fn holds_count_as_spent() {
    let account = |spent, held| Account { limit: 1_000, spent, held, is_closed: false };
    assert!(account(0, 0).admits(1_000) && !account(0, 0).admits(1_001));
    assert!(account(400, 600).admits(0) && !account(400, 600).admits(1));
    assert_eq!(account(900, 900).left(), 0);
    assert!(!Account { is_closed: true, ..account(0, 0) }.admits(0));
    for (used, level) in [
        (0, Level::Low),
        (799, Level::Low),
        (800, Level::High),
        (949, Level::High),
        (950, Level::NearlyUsedUp),
    ] {
        assert_eq!(account(used / 2, used - used / 2).level(), level, "{used}");
    }
}
