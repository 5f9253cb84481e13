//! A program that sets its own budget for model calls: `cargo run -p endmark --features context --example
//! metered`.
//!
//! `ask` represents any client. The meter itself makes no calls and reads no clock. The program asks the
//! meter before each call, and reports the outcome afterwards.
#![expect(clippy::print_stdout, reason = "it is an example, and prints what it does")]

use std::time::{SystemTime, UNIX_EPOCH};

use endmark::context::{AfterCall, BeforeCall, Meter, Models, Moment, NotAdmitted, Tokens, count, dollars};

const MODEL: &str = "gpt-5";

/// Represents a provider, which replies and reports the usage of the call.
fn ask(prompt: &str, max_output_tokens: u64) -> (String, Tokens) {
    let reply = format!("{} words were looked at.", prompt.split_whitespace().count());
    let completion = count::text(&reply, MODEL).tokens.min(max_output_tokens);
    (reply, Tokens { prompt: count::text(prompt, MODEL).tokens, completion, ..Tokens::default() })
}

fn now() -> Moment {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment::from_unix_seconds(since_epoch.as_secs())
}

/// Makes calls until the budget is used up. Returns the number of calls.
fn work(meter: &mut Meter<'_>) -> u64 {
    for number in 1.. {
        let part = format!("Look at part {number}: {}", "and at this ".repeat(40));
        let call = BeforeCall {
            model: MODEL,
            prompt_tokens: count::text(&part, MODEL).tokens,
            max_output_tokens: 200,
        };
        let admitted = match meter.admit_call(&call, now()) {
            Ok(admitted) => admitted,
            Err(NotAdmitted::UsedUp { .. }) => break,
            Err(other) => {
                println!("{other}");
                break;
            }
        };
        if let Some(level) = admitted.warning {
            println!("{} % of the budget are spent", level.percent());
        }
        let prompt = if admitted.is_closing { "Summarise what you found." } else { &part };
        let (reply, tokens) = ask(prompt, admitted.max_output_tokens);
        let closing = if admitted.is_closing { " (the last one)" } else { "" };
        let cost = meter.settle_call(admitted, &AfterCall::Reported(tokens), now());
        let usd = cost.nano_usd.map_or("no price".to_owned(), |cost| format!("${}", dollars(cost)));
        println!("call {number}: {} tokens, {usd}{closing}: {reply}", cost.tokens);
    }
    meter.usage().calls
}

fn main() {
    let mut meter = Meter::new(Models::builtin()).with_tokens(1_000);
    let calls = work(&mut meter);
    let usage = meter.usage();
    let all = usage.tokens.prompt + usage.tokens.completion;
    println!("{calls} calls, {all} tokens, ${}", dollars(usage.nano_usd));
}

#[test]
fn the_meter_admits_calls_until_its_budget_is_used_up() {
    let mut meter = Meter::new(Models::builtin()).with_tokens(1_000);
    let calls = work(&mut meter);
    let usage = *meter.usage();
    assert!((2..20).contains(&calls), "{usage:?}");
    assert!(usage.tokens.prompt + usage.tokens.completion <= 1_000 && usage.nano_usd > 0, "{usage:?}");
    assert_eq!((usage.unpriced_calls, usage.estimated_calls, meter.held_tokens()), (0, 0, 0));
}
