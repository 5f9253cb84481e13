//! Whole numbers as people write them. (AR-1, AR-3)

/// What sets thousands apart; a full stop may as well begin a fraction, and a space another number.
const BETWEEN_THOUSANDS: [char; 7] = [',', '\'', '’', '_', '\u{a0}', '\u{2009}', '\u{202f}'];

/// The number that a text begins with, and what stands behind it: `1,200`, `1'200` and `1_200` are one number each.
pub(super) fn number(text: &str) -> Option<(u32, &str)> {
    let (first, mut rest) = digits(text);
    let mut number = first.to_owned();
    let between = rest.chars().next().filter(|sign| BETWEEN_THOUSANDS.contains(sign));
    if let Some(between) = between.filter(|_| (1..=3).contains(&first.len()) && !first.starts_with('0')) {
        while let Some((three, behind)) =
            rest.strip_prefix(between).map(digits).filter(|(three, _)| three.len() == 3)
        {
            number.push_str(three);
            rest = behind;
        }
    }
    Some((number.parse().ok()?, rest))
}

/// The number that a text says, with words behind it or a total; none where it may be another one: `1.000`, `1 000`, `2k`.
pub(super) fn number_alone(text: &str) -> Option<u32> {
    let (number, rest) = number(text)?;
    let is_ordinal = ["st", "nd", "rd", "th"].iter().any(|end| rest.eq_ignore_ascii_case(end));
    let is_between = |sign: char| sign.is_whitespace() || sign == '.' || BETWEEN_THOUSANDS.contains(&sign);
    let goes_on = rest.starts_with(char::is_alphanumeric)
        || rest.trim_start_matches(is_between).starts_with(|sign: char| sign.is_ascii_digit());
    (is_ordinal || !goes_on).then_some(number)
}

/// The digits that a text begins with, and what stands behind them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::number_alone;

    #[test]
    fn thousands_are_read_and_what_may_be_another_number_is_not() {
        for (text, number) in [
            ("12", Some(12)),
            ("10/40", Some(10)),
            ("10 of 40", Some(10)),
            ("10 (40)", Some(10)),
            ("10th", Some(10)),
            ("10.", Some(10)),
            ("1,000", Some(1_000)),
            ("1'234'567", Some(1_234_567)),
            ("1_200 so far", Some(1_200)),
            ("1\u{202f}200", Some(1_200)),
            ("1,00", None),
            ("1,0000", None),
            ("1,000.5", None),
            ("1.000", None),
            ("1 000", None),
            ("0,123", None),
            ("2k", None),
            ("1e3", None),
            ("ten", None),
            ("4294967296", None),
        ] {
            assert_eq!(number_alone(text), number, "{text}");
        }
    }
}
