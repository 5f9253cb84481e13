use super::*;
use crate::Models;

/// The cost of calls in dollars. The expected values were worked out by hand, and can be checked against the
/// providers' pages.
///
/// Some dates select prices that change: DeepSeek's prices depend on the hour, and Gemini's change on a
/// certain day.
#[test]
fn prices_match_the_worked_examples() {
    let none = Tokens::default();
    let hundred = Tokens { prompt: 100_000, completion: 10_000, ..none };
    let long = Tokens { prompt: 300_000, completion: 10_000, ..none };
    let cached = Tokens { prompt: 100_000, cached: 80_000, completion: 10_000, ..none };
    let day = "2026-11-24 12:00";
    for (model, tier, at, tokens, dollars) in [
        // 0.1 M × $0.30 + 0.01 M × $2.50
        ("gemini-2.5-flash", None, day, hundred, "0.055000000"),
        // 20,000 × $0.30 + 80,000 × $0.03 + 10,000 × $2.50
        ("gemini-2.5-flash", None, day, cached, "0.033400000"),
        // Batch halves input and output, but not cache reads: 20,000 × $0.15 + 80,000 × $0.03 + 10,000 × $1.25
        ("gemini-2.5-flash", Some("batch"), day, cached, "0.017900000"),
        // Audio: 1,000 × $1.00 + 99,000 × $0.30 + 10,000 × $2.50
        ("gemini-2.5-flash", None, day, Tokens { prompt_audio: 1_000, ..hundred }, "0.055700000"),
        ("gemini-2.5-pro", None, day, hundred, "0.225000000"),
        // Above 200,000 prompt tokens, the higher rate applies to all tokens: 0.3 M × $2.50 + 0.01 M × $15
        ("gemini-2.5-pro", None, day, long, "0.900000000"),
        // Exactly 200,000 is not above 200,000.
        ("gemini-2.5-pro", None, day, Tokens { prompt: 200_000, ..none }, "0.250000000"),
        // Twice the price from 2026-12-01 on.
        ("gemini-4-argon", None, "2026-11-30 23:59", hundred, "0.300000000"),
        ("gemini-4-argon", None, "2026-12-01 00:00", hundred, "0.600000000"),
        ("gpt-4o", None, day, cached, "0.250000000"),
        ("gpt-5", None, day, hundred, "0.225000000"),
        ("gpt-5", Some("flex"), day, hundred, "0.112500000"),
        ("gpt-6.1-sol", None, day, cached, "0.148000000"),
        // Above 272,000: 0.3 M × $4 + 0.01 M × $15
        ("gpt-6.1-sol", None, day, long, "1.350000000"),
        // Cache writes: 50,000 × $2.50 + 50,000 × $2 + 10,000 × $10
        ("gpt-6.1-sol", None, day, Tokens { cache_write: 50_000, ..hundred }, "0.325000000"),
        ("claude-sonnet-5", None, day, cached, "0.156000000"),
        // 90,000 × $2 + 10,000 × $4 (cached for an hour) + 10,000 × $10
        ("claude-sonnet-5", None, day, Tokens { cache_write_1h: 10_000, ..hundred }, "0.320000000"),
        ("claude-opus-5-5", None, day, cached, "0.296000000"),
        ("claude-haiku-5-5", None, day, hundred, "0.015000000"),
        // Five times the price above 100,000: 0.3 M × $0.50 + 0.01 M × $2.50
        ("claude-haiku-5-5", None, day, long, "0.175000000"),
        ("deepseek-flash", None, day, cached, "0.009240000"),
        // Twice the price at peak hours.
        ("deepseek-flash", None, "2026-11-24 01:00", cached, "0.018480000"),
        ("deepseek-flash", None, "2026-11-24 04:00", cached, "0.009240000"),
        ("deepseek-chat", None, day, none, "0.000000000"),
        ("deepseek-v4-pro", None, day, hundred, "0.085800000"),
        // Reasoning is billed as output.
        ("gpt-5", None, day, Tokens { reasoning: 9_000, ..hundred }, "0.225000000"),
    ] {
        let found = Models::builtin().find(model).unwrap_or_else(|| panic!("{model} is not in the table"));
        let cost = found.prices.cost(&tokens, Moment::parse(at).unwrap(), tier).unwrap();
        assert_eq!(super::dollars(cost.nano_usd), dollars, "{model} {tier:?} {at} {tokens:?}");
        assert!(!cost.is_unknown_tier, "{model} {tier:?}");
    }
}

#[test]
fn us_only_inference_costs_ten_percent_more() {
    let model = crate::Models::builtin().find("claude-opus-4-6").unwrap();
    let at = crate::Moment::parse("2026-11-24 12:00").unwrap();
    let tokens = Tokens { prompt: 1_000, completion: 100, web_searches: 1, ..Tokens::default() };
    let cost = |tier| model.prices.cost(&tokens, at, tier).map(|cost| (cost.nano_usd, cost.is_unknown_tier));
    // 1,000 at $5 and 100 at $25 per million. A search costs one cent, whatever the tier is.
    assert_eq!(cost(None), Some((17_500_000, false)));
    assert_eq!(cost(Some("us")), Some((18_250_000, false)));
    assert_eq!(cost(Some("batch+us")).map(|(cost, _)| cost), Some(10_000_000 + 3_750_000 * 11 / 10));
    assert_eq!(cost(Some("eu")), Some((17_500_000, true)));
    // The advisor's tokens are billed at the rates of another model.
    assert_eq!(cost(Some("us+advisor")), None);
}

#[test]
fn a_tier_without_a_price_costs_the_standard_price() {
    let prices = &Models::builtin().find("claude-sonnet-5").unwrap().prices;
    let tokens = Tokens { prompt: 1_000_000, ..Tokens::default() };
    let at = Moment::parse("2026-11-24 12:00").unwrap();
    let cost = |tier| prices.cost(&tokens, at, tier).unwrap();
    assert_eq!(cost(Some("galactic")), Cost { nano_usd: 2_000_000_000, is_unknown_tier: true });
    for tier in [None, Some(""), Some("default"), Some("standard"), Some("auto")] {
        assert_eq!(cost(tier), Cost { nano_usd: 2_000_000_000, is_unknown_tier: false });
    }
}

#[test]
fn audio_without_a_rate_is_priced_only_if_it_costs_as_much_as_text() {
    let at = Moment::parse("2026-11-24 12:00").unwrap();
    let text = Tokens { prompt: 1_000, completion: 100, ..Tokens::default() };
    let cost = |model: &str, tokens| Models::builtin().find(model).unwrap().prices.cost(&tokens, at, None);
    for audio in [
        Tokens { prompt_audio: 1, ..text },
        Tokens { cached: 1, cached_audio: 1, ..text },
        Tokens { completion_audio: 1, ..text },
    ] {
        assert_eq!(cost("gpt-4o-audio-preview", audio), None, "{audio:?}");
        assert!(cost("gemini-2.5-pro", audio).is_some(), "{audio:?}");
        assert!(cost("gpt-4o-realtime-preview", audio).is_some(), "{audio:?}");
    }
    assert!(cost("gpt-4o-audio-preview", text).is_some());
}

#[test]
fn tokens_of_an_unpriced_kind_have_no_cost() {
    let prices = Prices::flat(Rates { input: Some(1), ..Rates::default() });
    let at = Moment::from_unix_seconds(0);
    assert_eq!(prices.cost(&Tokens { completion: 1, ..Tokens::default() }, at, None), None);
    assert_eq!(Prices::default().cost(&Tokens::default(), at, None), None);
}

#[test]
fn a_sum_is_rounded_once() {
    // Each token costs about a third of a nano-dollar, so three of them cost one.
    let prices = Prices::flat(Rates { input: Some(333_333), output: Some(333_334), ..Rates::default() });
    let at = Moment::from_unix_seconds(0);
    let cost = |prompt, completion| {
        prices.cost(&Tokens { prompt, completion, ..Tokens::default() }, at, None).unwrap().nano_usd
    };
    assert_eq!([cost(1, 0), cost(0, 1), cost(1, 1), cost(2, 1)], [0, 0, 1, 1]);
}

#[test]
fn extreme_counts_do_not_overflow() {
    let most = Tokens {
        prompt: u64::MAX,
        cached: u64::MAX,
        completion: u64::MAX,
        web_searches: u64::MAX,
        ..Tokens::default()
    };
    let dear = Rates {
        input: Some(u64::MAX),
        output: Some(u64::MAX),
        web_search: Some(u64::MAX / 1_000_000),
        ..Rates::default()
    };
    let cost = Prices::flat(dear).cost(&most, Moment::from_unix_seconds(u64::MAX), None);
    assert!(cost.is_some());
}

#[test]
fn a_negative_price_is_refused() {
    for dollars in [-0.1, f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 2e6] {
        assert!(rate_from_dollars(dollars).is_err(), "{dollars}");
    }
    assert_eq!(rate_from_dollars(0.3), Ok(300_000_000));
    assert_eq!(rate_from_dollars(0.0), Ok(0));
}
