//! Counts and prints the results of exchanges.

use std::collections::BTreeMap;

use testkit::Dialect;

use super::exchange::{Exchange, Fate, Harm, Played};
use crate::support::wire_replies::Wire;

/// Whole, refused, and silently wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) whole: usize,
    pub(super) refused: usize,
    pub(super) wrong: usize,
}

impl Count {
    fn add(&mut self, fate: &Fate) {
        match fate {
            Fate::Whole => self.whole += 1,
            Fate::Refused(_) => self.refused += 1,
            Fate::Wrong(..) => self.wrong += 1,
        }
    }

    /// Whole ones of a hundred; a hundred where there are none at all.
    pub(super) fn percent_whole(self) -> f64 {
        if self.total() == 0 { 100.0 } else { self.percent(self.whole) }
    }

    /// Silently wrong ones of a hundred.
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
        Wire::Other(Dialect::Responses) => "Responses",
        Wire::Other(Dialect::Messages) => "Messages",
        Wire::Other(Dialect::Gemini) => "Gemini",
    }
}

/// The fates of exchanges.
pub(super) struct Tally {
    fates: Vec<(Exchange, Played)>,
}

impl Tally {
    pub(super) fn new(all: Vec<(Exchange, Played)>) -> Self {
        Self { fates: all }
    }

    /// Returns the number of exchanges for which this is true.
    pub(super) fn count(&self, is_so: impl Fn(&Exchange) -> bool) -> Count {
        let mut count = Count::default();
        for (_, played) in self.fates.iter().filter(|(exchange, _)| is_so(exchange)) {
            count.add(&played.fate);
        }
        count
    }

    /// Returns the number of exchanges that are wrong in this way.
    pub(super) fn count_harmed(&self, harm: Harm) -> usize {
        let wrong = |played: &Played| matches!(&played.fate, Fate::Wrong(how, _) if *how == harm);
        self.fates.iter().filter(|(_, played)| wrong(played)).count()
    }

    /// Prints the table, the cost, and the first exchanges that went wrong or were rejected.
    pub(super) fn print(&self, title: &str) {
        println!("\n{title}: {} exchanges", self.fates.len());
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
        let left_in = self.fates.iter().filter(|(_, played)| played.remark_left_in).count();
        println!("\nof the whole ones {left_in} have a closing remark of the answer at their end");
        self.print_costs();
        self.print_some("silently wrong", 40, |fate| match fate {
            Fate::Wrong(_, why) => Some(why),
            Fate::Whole | Fate::Refused(_) => None,
        });
        self.print_some("refused", 6, |fate| match fate {
            Fate::Refused(why) => Some(why),
            Fate::Whole | Fate::Wrong(..) => None,
        });
    }

    fn rows(&self, name: impl Fn(&Exchange) -> String) {
        let mut rows: BTreeMap<String, [Count; 2]> = BTreeMap::new();
        for (exchange, played) in &self.fates {
            rows.entry(name(exchange)).or_default()[usize::from(exchange.stream)].add(&played.fate);
        }
        for (name, [whole, streamed]) in rows {
            println!("{name:<34}{:<32}{}", whole.row(), streamed.row());
        }
    }

    /// Tokens that a recovery took beyond the first call, by how it was asked for.
    fn print_costs(&self) {
        let mut costs: BTreeMap<String, Vec<(usize, usize, usize)>> = BTreeMap::new();
        for (_, played) in &self.fates {
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

    fn print_some(&self, title: &str, most: usize, why: impl Fn(&Fate) -> Option<&String>) {
        let some = self.fates.iter().filter_map(|(exchange, played)| Some((exchange, why(&played.fate)?)));
        for (exchange, why) in some.take(most) {
            println!("\n{title}: {exchange}\n{why}");
        }
    }
}
