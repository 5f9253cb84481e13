//! Closes cut JSON with Endmark and with jiter, and judges each result by the complete document.
//!
//! Prints a table. Fails if a result of Endmark is untrue or drops a member, or if Endmark returns no value
//! more often than jiter.

mod closer;
mod judge;
mod small;
mod tool_calls;

use std::fmt::Write as _;
use std::process::ExitCode;

use closer::{CLOSERS, Closer};
use judge::{Judgement, judge};
use serde_json::Value;

/// Numbers of judgements.
#[derive(Debug, Default)]
struct Count {
    true_beginning: usize,
    dropped: usize,
    invented: usize,
    untrue: usize,
    nothing: usize,
    /// The last 60 characters of up to three cuts with an untrue or invented result.
    examples: Vec<String>,
}

impl Count {
    fn add(&mut self, judgement: Judgement, cut: &str) {
        match judgement {
            Judgement::TrueBeginning => self.true_beginning += 1,
            Judgement::Dropped => self.dropped += 1,
            Judgement::Invented => self.invented += 1,
            Judgement::Untrue => self.untrue += 1,
            Judgement::Nothing => self.nothing += 1,
        }
        if matches!(judgement, Judgement::Untrue | Judgement::Invented) && self.examples.len() < 3 {
            let last: String = cut.chars().rev().take(60).collect();
            self.examples.push(last.chars().rev().collect());
        }
    }
}

fn main() -> ExitCode {
    let calls = tool_calls::cuts();
    let small = small::cuts();
    let mut page = String::from(
        "| cuts | closer | true beginning | dropped | invented | untrue | nothing |\n|---|---|---|---|---|---|---|\n",
    );
    let mut passed = true;
    for (name, cuts) in [("code in tool calls", &calls), ("small documents", &small)] {
        let counts = CLOSERS.map(|closer| measure(closer, cuts));
        for (closer, count) in CLOSERS.iter().zip(&counts) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                page,
                "| {} {name} | {} | {} | {} | {} | {} | {} |",
                cuts.len(),
                closer.name,
                count.true_beginning,
                count.dropped,
                count.invented,
                count.untrue,
                count.nothing
            );
        }
        let [ours, theirs, ..] = &counts;
        passed &= ours.true_beginning + ours.nothing == cuts.len() && ours.nothing <= theirs.nothing;
        for example in &ours.examples {
            eprintln!("not true after …{example}");
        }
    }
    print!("{page}");
    if passed {
        return ExitCode::SUCCESS;
    }
    eprintln!("Endmark must return nothing untrue, drop no member, and return a value whenever jiter does");
    ExitCode::FAILURE
}

/// A prefix of a document, with the complete document.
struct Cut {
    beginning: Vec<u8>,
    document: Value,
    /// Name of a member that the result must contain, because it begins before the cut.
    must_have: Option<&'static str>,
}

fn measure(closer: Closer, cuts: &[Cut]) -> Count {
    let mut count = Count::default();
    for cut in cuts {
        let judgement = judge((closer.close)(&cut.beginning).as_ref(), cut);
        count.add(judgement, &String::from_utf8_lossy(&cut.beginning));
    }
    count
}
