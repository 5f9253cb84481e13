//! The meter, with invented calls.

use super::{AfterCall, BeforeCall, Meter, NotAdmitted};
use crate::budget::{Level, Unit};
use crate::{Model, Models, Moment, Prices, Rates, Tokens};

fn moment() -> Moment {
    Moment::parse("2026-11-24 12:00").unwrap()
}

/// Returns models with a price of a thousandth of a dollar per token.
fn models() -> Models {
    let mut models = Models::builtin().clone();
    let rate = Some(1_000_000_000_000);
    let rates = Rates { input: rate, output: rate, ..Rates::default() };
    models.add("dear", Model { prices: Prices::flat(rates), ..Model::default() });
    models
}

fn call(model: &str, prompt_tokens: u64, max_output_tokens: u64) -> BeforeCall<'_> {
    BeforeCall { model, prompt_tokens, max_output_tokens }
}

fn usage_report(prompt: u64, completion: u64) -> AfterCall {
    AfterCall::Reported(Tokens { prompt, completion, ..Tokens::default() })
}

#[test]
fn concurrent_calls_stay_within_the_budget_and_the_last_one_closes_it() {
    let models = models();
    let mut meter = Meter::new(&models).with_tokens(10_000);
    let first = meter.admit_call(&call("m", 1_000, 4_000), moment()).unwrap();
    let second = meter.admit_call(&call("m", 1_000, 2_000), moment()).unwrap();
    assert_eq!((first.warning, second.warning), (None, None));
    // Nothing is spent yet, and the calls in progress may cost less than they hold, so the session is not
    // closed.
    let refused = meter.admit_call(&call("m", 1_000, 4_000), moment());
    assert!(
        matches!(&refused, Err(NotAdmitted::Held { unit: Unit::Tokens, account }) if account.held == 8_000)
    );
    assert_eq!(meter.settle_call(first, &usage_report(900, 100), moment()).tokens, 1_000);
    let closing = meter.admit_call(&call("m", 1_000, 8_001), moment()).unwrap();
    assert!(closing.is_closing);
    assert_eq!((closing.max_output_tokens, closing.warning), (1_024, None));
    let refused = meter.admit_call(&call("m", 1, 1), moment());
    assert!(
        matches!(&refused, Err(NotAdmitted::UsedUp { unit: Unit::Tokens, account }) if account.held == 5_024)
    );
    assert_eq!(meter.settle_call(second, &AfterCall::NoAnswer, moment()).tokens, 0);
    // A call that exceeds the whole budget does not close the session.
    let mut other = Meter::new(&models).with_tokens(10_000);
    let refused = other.admit_call(&call("m", 1_000, 9_001), moment());
    assert!(matches!(refused, Err(NotAdmitted::TooLarge { needed: 10_001, .. })), "{refused:?}");
    assert!(!other.admit_call(&call("m", 1_000, 9_000), moment()).unwrap().is_closing);
    let cost = meter.settle_call(closing, &AfterCall::Unreported { output_tokens: 100 }, moment());
    assert_eq!((cost.tokens, cost.is_estimated), (1_100, true));
    assert_eq!((meter.held_tokens(), meter.remaining_tokens()), (0, Some(7_900)));
    assert!(meter.admit_call(&call("m", 1, 1), moment()).is_err(), "it is closed, whatever is left");
    let usage = meter.usage();
    assert_eq!((usage.calls, usage.estimated_calls, usage.unpriced_calls), (2, 1, 2));
    assert_eq!((usage.tokens.prompt, usage.tokens.completion), (1_900, 200));
}

#[test]
fn a_continuation_does_not_use_the_closing_call() {
    let models = models();
    let mut meter = Meter::new(&models).with_tokens(1_000);
    let first = meter.admit_continuation(&call("m", 700, 200), moment()).unwrap();
    meter.settle_call(first, &usage_report(700, 200), moment());
    let refused = meter.admit_continuation(&call("m", 100, 100), moment());
    assert!(matches!(refused, Err(NotAdmitted::UsedUp { unit: Unit::Tokens, .. })), "{refused:?}");
    assert!(meter.admit_call(&call("m", 100, 100), moment()).unwrap().is_closing);
}

#[test]
fn dollars_are_held_and_an_unpriced_model_is_not_admitted() {
    let models = models();
    let mut meter = Meter::new(&models).with_nano_usd(1_000_000_000);
    assert_eq!(
        meter.admit_call(&call("of-nobody", 1, 1), moment()),
        Err(NotAdmitted::NoPrice("of-nobody".to_owned()))
    );
    let admitted = meter.admit_call(&call("dear", 500, 400), moment()).unwrap();
    assert_eq!(admitted.warning, None, "what is held is not spent");
    let cost = meter.settle_call(admitted, &usage_report(500, 100), moment());
    assert_eq!((cost.tokens, cost.nano_usd), (600, Some(600_000_000)));
    // A hold is not a limit: the call is charged its actual usage.
    let admitted = meter.admit_call(&call("dear", 100, 100), moment()).unwrap();
    let cost = meter.settle_call(admitted, &AfterCall::Unreported { output_tokens: 120 }, moment());
    assert_eq!((cost.nano_usd, meter.usage().nano_usd), (Some(220_000_000), 820_000_000));
    let admitted = meter.admit_call(&call("dear", 1, 1), moment()).unwrap();
    assert_eq!(admitted.warning, Some(Level::High), "spent");
    assert_eq!(meter.admit_call(&call("dear", 1, 1), moment()).unwrap().warning, None, "once");
}

#[test]
fn a_zero_budget_means_unlimited() {
    let models = models();
    let mut meter = Meter::new(&models).with_tokens(0).with_nano_usd(0);
    let admitted = meter.admit_call(&call("of-nobody", u64::MAX, u64::MAX), moment()).unwrap();
    assert!(!admitted.is_closing);
    assert_eq!((meter.remaining_tokens(), meter.held_tokens()), (None, u64::MAX));
    assert_eq!(meter.settle_call(admitted, &usage_report(1, 1), moment()).nano_usd, None);
}
