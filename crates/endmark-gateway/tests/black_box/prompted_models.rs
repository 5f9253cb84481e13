//! Asks a model by prompt for the rest of its reply, as is necessary for OpenAI and current Claude models. Covers
//! documents × cuts × behaviours × formats, streamed or not (PC-3, PC-4).
//!
//! `ENDMARK_TEST_EXCHANGES` sets the number of exchanges. A seed makes them reproducible. `ENDMARK_TAU_BENCH` names a
//! file with recorded conversations of tau-bench, whose replies are then cut and resumed as well.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "figures are shown, and a failure is one of the test"
)]

mod behaviours;
mod cuts;
mod dice;
mod documents;
mod exchange;
mod tally;

use serde_json::Value;
use testkit::{Begins, Dialect, Manner, RepeatedReply, Style};

use crate::support::wire_replies::Wire;
use behaviours::Behaviour;
use dice::Dice;
use documents::Kind;
use exchange::{Exchange, Harm, play};
use tally::Tally;

/// Enough to see a behaviour go wrong; the long run has thousands.
const QUICK_EXCHANGES: usize = 200;
/// Percentage of restarts that are cut, too.
const RESTART_CUT_PERCENT: usize = 3;

fn exchanges(count: usize, seed: u64, hard: bool) -> Vec<(Behaviour, Exchange)> {
    random_exchanges(&Behaviour::ALL, count, seed, hard)
}

fn random_exchanges(all: &[Behaviour], count: usize, seed: u64, hard: bool) -> Vec<(Behaviour, Exchange)> {
    let mut dice = Dice::new(seed);
    let mut exchange = |number: usize| {
        let kinds: &[Kind] =
            if hard { &[Kind::Json, Kind::JsonLines, Kind::Json, Kind::Prose] } else { &Kind::ALL };
        let kind = dice.pick(kinds);
        let behaviours: Vec<Behaviour> =
            all.iter().copied().filter(|behaviour| behaviour.suits(kind)).collect();
        let behaviour = dice.pick(&behaviours);
        let document = kind.document(&mut dice);
        let cut = if hard { cuts::hard_cut(&document, &mut dice) } else { cuts::cut(&document, &mut dice) };
        let again = if dice.happens(RESTART_CUT_PERCENT) {
            RepeatedReply::Cut(cuts::cut(&document, &mut dice))
        } else {
            RepeatedReply::Whole
        };
        let again = behaviour.repeated_answer(&mut dice).unwrap_or(again);
        let wire = Wire::ALL[number % Wire::ALL.len()];
        // Messages has no word for JSON as such.
        let can_demand = kind == Kind::Json && wire != Wire::Other(Dialect::Messages);
        let exchange = Exchange {
            number,
            label: behaviour.name(),
            wire,
            stream: dice.happens(50),
            manner: behaviour.manner(kind, &mut dice),
            kind,
            document,
            cut,
            demands_json: can_demand && dice.happens(50),
            again,
        };
        (behaviour, exchange)
    };
    (0..count).map(&mut exchange).collect()
}

fn exchange_count(few: usize) -> usize {
    std::env::var("ENDMARK_TEST_EXCHANGES").map_or(few, |count| count.parse().unwrap())
}

/// The required results. These are the current figures, and may only become stricter.
struct Bars {
    /// Percentage of whole replies among those that are not streamed.
    whole: f64,
    /// Percentage of whole replies among the streamed ones whose behaviour keeps the bytes.
    streamed: f64,
    /// Silently wrong ones of all, in per cent.
    wrong: f64,
}

async fn are_joined_or_refused(exchanges: Vec<(Behaviour, Exchange)>, title: &str, bars: Bars) {
    let keeping: Vec<bool> = exchanges.iter().map(|(behaviour, _)| behaviour.keeps_the_bytes()).collect();
    let tally = Tally::new(play(exchanges.into_iter().map(|(_, exchange)| exchange).collect()).await);
    tally.print(title);
    let whole = tally.count(|exchange| !exchange.stream);
    let streamed = tally.count(|exchange| exchange.stream && keeping[exchange.number]);
    let all = tally.count(|_| true);
    println!(
        "\n{title}: not streamed {:.1} % whole, streamed {:.1} % of those that keep the bytes, {} silently wrong\n",
        whole.percent_whole(),
        streamed.percent_whole(),
        all.wrong,
    );
    assert!(all.percent_wrong() <= bars.wrong, "{:.1} % are silently wrong", all.percent_wrong());
    assert!(whole.percent_whole() >= bars.whole, "{:.1} % are whole", whole.percent_whole());
    assert!(streamed.percent_whole() >= bars.streamed, "{:.1} % are whole", streamed.percent_whole());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_continuation_style_is_joined_or_refused() {
    let bars = Bars { whole: 98.5, streamed: 97.0, wrong: 0.0 };
    are_joined_or_refused(exchanges(exchange_count(QUICK_EXCHANGES), 27, false), "asked in words", bars)
        .await;
}

/// Models that loop, that think aloud, or that answer with something short or with other values when all is asked for
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confused_model_silently_replaces_nothing() {
    let exchanges = random_exchanges(&Behaviour::ASTRAY, exchange_count(QUICK_EXCHANGES) / 2, 4_646, false);
    let thinking: Vec<bool> =
        exchanges.iter().map(|(behaviour, _)| *behaviour == Behaviour::Reasons).collect();
    let played = play(exchanges.into_iter().map(|(_, exchange)| exchange).collect()).await;
    let tally = Tally::new(played);
    tally.print("models that go astray");
    let all = tally.count(|_| true);
    let whole = tally.count(|exchange| thinking[exchange.number]).percent_whole();
    println!(
        "\nmodels that go astray: {} silently wrong; {whole:.1} % whole where the model thinks aloud\n",
        all.wrong
    );
    assert_eq!(all.wrong, 0);
    assert!(whole >= 95.0, "{whole:.1} % are whole where the model thinks aloud");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cuts_in_numbers_escapes_and_spaces_change_no_value() {
    let bars = Bars { whole: 99.0, streamed: 95.0, wrong: 0.0 };
    are_joined_or_refused(
        exchanges(exchange_count(QUICK_EXCHANGES) / 4, 1_927, true),
        "cut where values change",
        bars,
    )
    .await;
}

/// The longer replies of an assistant in recorded conversations.
fn recorded_replies(file: &str) -> Vec<String> {
    const SHORT_CHARS: usize = 200;
    let conversations: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let messages = conversations.as_array().unwrap().iter().flat_map(|one| one["traj"].as_array().unwrap());
    let texts = messages
        .filter(|message| message["role"] == "assistant")
        .filter_map(|message| message["content"].as_str());
    texts.filter(|text| text.chars().count() > SHORT_CHARS).map(str::to_owned).collect()
}

/// Replies of a real model with any cut. The rest follows exactly from the position that the model is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_recorded_replies_are_restored_exactly() {
    let Ok(file) = std::env::var("ENDMARK_TAU_BENCH") else {
        println!("ENDMARK_TAU_BENCH names no file: no recorded replies are cut");
        return;
    };
    let replies = recorded_replies(&file);
    let mut dice = Dice::new(4_000);
    let mut exchange = |number: usize| {
        let document = replies[dice.below(replies.len())].clone();
        let places: Vec<usize> = document.char_indices().map(|(at, _)| at).skip(1).collect();
        Exchange {
            number,
            label: "goes on behind what is shown",
            wire: Wire::ALL[number % Wire::ALL.len()],
            stream: dice.happens(50),
            kind: Kind::Prose,
            cut: dice.pick(&places),
            document,
            demands_json: false,
            manner: Manner::Continues(Style { start: Begins::Shown, ..Style::default() }),
            again: RepeatedReply::Whole,
        }
    };
    let tally = Tally::new(play((0..exchange_count(QUICK_EXCHANGES)).map(&mut exchange).collect()).await);
    tally.print("recorded replies");
    let (lost, changed) = (tally.count_harmed(Harm::EndLost), tally.count_harmed(Harm::Changed));
    println!("\nrecorded replies: {lost} without their end, {changed} changed inside\n");
    let all = tally.count(|_| true);
    assert!(all.percent_whole() >= 99.0, "{:.1} % are whole", all.percent_whole());
    assert_eq!(all.wrong, 0, "none loses its end, none changes inside");
}
