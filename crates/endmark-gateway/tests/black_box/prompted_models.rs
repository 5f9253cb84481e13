//! Asks models for the rest of a reply by prompt, as OpenAI and current Claude models require. Tests all
//! combinations of documents, cuts, behaviours and formats, streamed and unstreamed (PC-3, PC-4).
//!
//! `ENDMARK_TEST_EXCHANGES` sets the number of exchanges, and a seed makes them reproducible.
//! `ENDMARK_TAU_BENCH` names a file with recorded conversations of tau-bench. If it is set, their replies are
//! cut and resumed as well.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "figures are shown, and a failure is one of the test"
)]

mod behaviours;
mod cuts;
mod documents;
mod exchange;
mod random;
mod tally;

use serde_json::Value;
use testkit::{ContinuationStart, ContinuationStyle, ModelBehaviour, ModelFormat, RepeatedReply};

use crate::support::wire_replies::Wire;
use behaviours::Behaviour;
use documents::DocumentKind;
use exchange::{Exchange, SilentError, run_all};
use random::Random;
use tally::Tally;

/// Enough to detect a regression. Long runs use thousands.
const QUICK_EXCHANGES: usize = 200;
/// Percentage of restarted replies that are cut, too.
const RESTART_CUT_PERCENT: usize = 3;

fn exchanges(count: usize, seed: u64, hard: bool) -> Vec<(Behaviour, Exchange)> {
    exchanges_with_behaviours(&Behaviour::ALL, count, seed, hard)
}

fn exchanges_with_behaviours(
    all: &[Behaviour],
    count: usize,
    seed: u64,
    hard: bool,
) -> Vec<(Behaviour, Exchange)> {
    let mut dice = Random::new(seed);
    let mut exchange = |number: usize| {
        let kinds: &[DocumentKind] = if hard {
            &[DocumentKind::Json, DocumentKind::JsonLines, DocumentKind::Json, DocumentKind::Prose]
        } else {
            &DocumentKind::ALL
        };
        let kind = dice.pick(kinds);
        let behaviours: Vec<Behaviour> =
            all.iter().copied().filter(|behaviour| behaviour.suits(kind)).collect();
        let behaviour = dice.pick(&behaviours);
        let document = kind.document(&mut dice);
        let cut = if hard {
            cuts::random_hard_cut(&document, &mut dice)
        } else {
            cuts::random_cut(&document, &mut dice)
        };
        let again = if dice.chance(RESTART_CUT_PERCENT) {
            RepeatedReply::Cut(cuts::random_cut(&document, &mut dice))
        } else {
            RepeatedReply::Whole
        };
        let again = behaviour.repeated_answer(&mut dice).unwrap_or(again);
        let wire = Wire::ALL[number % Wire::ALL.len()];
        // A Messages request cannot demand JSON.
        let can_demand = kind == DocumentKind::Json && wire != Wire::Other(ModelFormat::Messages);
        let exchange = Exchange {
            number,
            label: behaviour.name(),
            wire,
            stream: dice.chance(50),
            manner: behaviour.manner(kind, &mut dice),
            kind,
            document,
            cut,
            demands_json: can_demand && dice.chance(50),
            again,
        };
        (behaviour, exchange)
    };
    (0..count).map(&mut exchange).collect()
}

fn configured_exchange_count(few: usize) -> usize {
    std::env::var("ENDMARK_TEST_EXCHANGES").map_or(few, |count| count.parse().unwrap())
}

/// The minimum results, in percent. They are the current results, and may only become stricter.
struct RequiredPercentages {
    /// Minimum share of whole replies among the unstreamed ones.
    whole: f64,
    /// Minimum share of whole replies among streamed ones whose behaviour keeps the bytes.
    streamed: f64,
    /// Maximum share of silently wrong replies among all.
    wrong: f64,
}

async fn assert_joined_or_refused(
    exchanges: Vec<(Behaviour, Exchange)>,
    title: &str,
    bars: RequiredPercentages,
) {
    let keeping: Vec<bool> = exchanges.iter().map(|(behaviour, _)| behaviour.keeps_the_bytes()).collect();
    let tally = Tally::new(run_all(exchanges.into_iter().map(|(_, exchange)| exchange).collect()).await);
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
    let bars = RequiredPercentages { whole: 98.5, streamed: 97.0, wrong: 0.0 };
    assert_joined_or_refused(
        exchanges(configured_exchange_count(QUICK_EXCHANGES), 27, false),
        "asked in words",
        bars,
    )
    .await;
}

/// Models that loop or think aloud, or whose second reply is very short or has other values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confused_model_never_silently_changes_a_reply() {
    let exchanges = exchanges_with_behaviours(
        &Behaviour::CONFUSED,
        configured_exchange_count(QUICK_EXCHANGES) / 2,
        4_646,
        false,
    );
    let thinking: Vec<bool> =
        exchanges.iter().map(|(behaviour, _)| *behaviour == Behaviour::ThinksAloud).collect();
    let played = run_all(exchanges.into_iter().map(|(_, exchange)| exchange).collect()).await;
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
    let bars = RequiredPercentages { whole: 99.0, streamed: 95.0, wrong: 0.0 };
    assert_joined_or_refused(
        exchanges(configured_exchange_count(QUICK_EXCHANGES) / 4, 1_927, true),
        "cut where values change",
        bars,
    )
    .await;
}

/// Returns the assistant's longer replies in recorded conversations.
fn recorded_replies(file: &str) -> Vec<String> {
    const SHORT_CHARS: usize = 200;
    let conversations: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let messages = conversations.as_array().unwrap().iter().flat_map(|one| one["traj"].as_array().unwrap());
    let texts = messages
        .filter(|message| message["role"] == "assistant")
        .filter_map(|message| message["content"].as_str());
    texts.filter(|text| text.chars().count() > SHORT_CHARS).map(str::to_owned).collect()
}

/// Cuts replies of a real model at random positions. The scripted model continues exactly after the quoted
/// part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_recorded_replies_are_restored_exactly() {
    let Ok(file) = std::env::var("ENDMARK_TAU_BENCH") else {
        println!("ENDMARK_TAU_BENCH names no file: no recorded replies are cut");
        return;
    };
    let replies = recorded_replies(&file);
    let mut dice = Random::new(4_000);
    let mut exchange = |number: usize| {
        let document = replies[dice.below(replies.len())].clone();
        let places: Vec<usize> = document.char_indices().map(|(at, _)| at).skip(1).collect();
        Exchange {
            number,
            label: "goes on behind what is shown",
            wire: Wire::ALL[number % Wire::ALL.len()],
            stream: dice.chance(50),
            kind: DocumentKind::Prose,
            cut: dice.pick(&places),
            document,
            demands_json: false,
            manner: ModelBehaviour::Continues(ContinuationStyle {
                start: ContinuationStart::Shown,
                ..ContinuationStyle::default()
            }),
            again: RepeatedReply::Whole,
        }
    };
    let tally = Tally::new(
        run_all((0..configured_exchange_count(QUICK_EXCHANGES)).map(&mut exchange).collect()).await,
    );
    tally.print("recorded replies");
    let (lost, changed) =
        (tally.count_silent_errors(SilentError::EndLost), tally.count_silent_errors(SilentError::Changed));
    println!("\nrecorded replies: {lost} without their end, {changed} changed inside\n");
    let all = tally.count(|_| true);
    assert!(all.percent_whole() >= 99.0, "{:.1} % are whole", all.percent_whole());
    assert_eq!(all.wrong, 0, "none loses its end, none changes inside");
}
