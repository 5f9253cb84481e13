//! Counts and prints the results of exchanges.

use std::collections::BTreeMap;

use testkit::ModelFormat;

use super::exchange::{Exchange, ExchangeOutcome, ExchangeResult, SilentError};
use crate::support::wire_replies::Wire;

/// Number of whole, refused and silently wrong replies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OutcomeCounts {
    pub(super) whole: usize,
    pub(super) refused: usize,
    pub(super) wrong: usize,
}

impl OutcomeCounts {
    fn add(&mut self, fate: &ExchangeOutcome) {
        match fate {
            ExchangeOutcome::Whole => self.whole += 1,
            ExchangeOutcome::Refused(_) => self.refused += 1,
            ExchangeOutcome::Wrong(..) => self.wrong += 1,
        }
    }

    /// Returns the share of whole replies in percent, or 100 without exchanges.
    pub(super) fn percent_whole(self) -> f64 {
        if self.total() == 0 { 100.0 } else { self.percent(self.whole) }
    }

    /// Returns the share of silently wrong replies in percent, or 0 without exchanges.
    pub(super) fn percent_wrong(self) -> f64 {
        if self.total() == 0 { 0.0 } else { self.percent(self.wrong) }
    }

    fn total(self) -> usize {
        self.whole + self.refused + self.wrong
    }

    fn percent(self, some: usize) -> f64 {
        let [some, all] = [some, self.total()].map(|count| f64::from(u32::try_from(count).unwrap()));
        100.0 * some / all
    }

    fn row(self) -> String {
        format!("{:>5} {:>7} {:>5} {:>6.1} %", self.whole, self.refused, self.wrong, self.percent_whole())
    }
}

fn wire_name(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "Chat Completions",
        Wire::Other(ModelFormat::Responses) => "Responses",
        Wire::Other(ModelFormat::Messages) => "Messages",
        Wire::Other(ModelFormat::Gemini) => "Gemini",
    }
}

/// The results of all exchanges.
pub(super) struct Tally {
    results: Vec<(Exchange, ExchangeResult)>,
}

impl Tally {
    pub(super) fn new(all: Vec<(Exchange, ExchangeResult)>) -> Self {
        Self { results: all }
    }

    /// Returns the results of the exchanges that meet this condition.
    pub(super) fn count(&self, is_so: impl Fn(&Exchange) -> bool) -> OutcomeCounts {
        let mut count = OutcomeCounts::default();
        for (_, played) in self.results.iter().filter(|(exchange, _)| is_so(exchange)) {
            count.add(&played.outcome);
        }
        count
    }

    /// Returns the number of exchanges with this type of silent error.
    pub(super) fn count_silent_errors(&self, harm: SilentError) -> usize {
        let wrong = |played: &ExchangeResult| matches!(&played.outcome, ExchangeOutcome::Wrong(how, _) if *how == harm);
        self.results.iter().filter(|(_, played)| wrong(played)).count()
    }

    /// Prints the table, the costs, and the first wrong and refused exchanges.
    pub(super) fn print(&self, title: &str) {
        println!("\n{title}: {} exchanges", self.results.len());
        println!("{:<34}{:<32}streamed", "", "not streamed");
        let heading = "whole refused wrong whole  ";
        println!("{:<34}{heading:<32}{heading}", "");
        self.rows(|exchange| exchange.label.to_owned());
        println!();
        self.rows(|exchange| wire_name(exchange.wire).to_owned());
        println!();
        self.rows(|exchange| format!("{:?}", exchange.kind));
        println!();
        self.rows(|_| "all".to_owned());
        let left_in = self.results.iter().filter(|(_, played)| played.remark_left_in).count();
        println!("\nof the whole ones {left_in} have a closing remark of the answer at their end");
        self.print_costs();
        self.print_some("silently wrong", 40, |fate| match fate {
            ExchangeOutcome::Wrong(_, why) => Some(why),
            ExchangeOutcome::Whole | ExchangeOutcome::Refused(_) => None,
        });
        self.print_some("refused", 6, |fate| match fate {
            ExchangeOutcome::Refused(why) => Some(why),
            ExchangeOutcome::Whole | ExchangeOutcome::Wrong(..) => None,
        });
    }

    fn rows(&self, name: impl Fn(&Exchange) -> String) {
        let mut rows: BTreeMap<String, [OutcomeCounts; 2]> = BTreeMap::new();
        for (exchange, played) in &self.results {
            rows.entry(name(exchange)).or_default()[usize::from(exchange.stream)].add(&played.outcome);
        }
        for (name, [whole, streamed]) in rows {
            println!("{name:<34}{:<32}{}", whole.row(), streamed.row());
        }
    }

    /// Prints the mean tokens of a recovery beyond the first call, for each sequence of strategies.
    fn print_costs(&self) {
        let mut costs: BTreeMap<String, Vec<(usize, usize, usize)>> = BTreeMap::new();
        for (_, played) in &self.results {
            costs.entry(played.strategies.clone()).or_default().push(played.extra_tokens);
        }
        println!("\n{:<34}recoveries  extra prompt  extra output  tokens of the reply (means)", "strategies");
        for (strategies, costs) in costs {
            let mean = |part: fn(&(usize, usize, usize)) -> usize| {
                costs.iter().map(part).sum::<usize>() / costs.len()
            };
            let [prompt, output, reply] = [mean(|cost| cost.0), mean(|cost| cost.1), mean(|cost| cost.2)];
            println!("{strategies:<34}{:>10} {prompt:>13} {output:>13} {reply:>14}", costs.len());
        }
    }

    fn print_some(&self, title: &str, most: usize, why: impl Fn(&ExchangeOutcome) -> Option<&String>) {
        let some =
            self.results.iter().filter_map(|(exchange, played)| Some((exchange, why(&played.outcome)?)));
        for (exchange, why) in some.take(most) {
            println!("\n{title}: {exchange}\n{why}");
        }
    }
}
