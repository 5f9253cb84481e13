//! Interleaved measurement. Every round runs each contender once, so that a temporary slowdown affects all of
//! them.

use std::time::{Duration, Instant};

/// A function to measure, with its name.
pub struct Contender<'a> {
    /// Name in the table.
    pub name: &'a str,
    /// Runs the function once.
    pub run: &'a dyn Fn(),
}

/// The measurements of one contender.
pub struct Measured {
    /// Name in the table.
    pub name: String,
    /// Median duration of a run.
    pub time: Duration,
    /// Duration relative to the first contender in the same round: lower quartile, median and upper quartile.
    pub ratio: [f64; 3],
}

/// Runs each contender once in each round, after a warm-up round that is not counted.
#[must_use]
pub fn measure(contenders: &[Contender<'_>], rounds: usize) -> Vec<Measured> {
    let mut times: Vec<Vec<Duration>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let started = Instant::now();
            (contender.run)();
            if round > 0 {
                times.push(started.elapsed());
            }
        }
    }
    let first = times[0].clone();
    contenders
        .iter()
        .zip(times)
        .map(|(contender, mut times)| {
            let mut ratios: Vec<f64> = times
                .iter()
                .zip(&first)
                .map(|(time, first)| time.as_secs_f64() / first.as_secs_f64())
                .collect();
            ratios.sort_by(f64::total_cmp);
            times.sort();
            let quarter = |part: usize| ratios[(ratios.len() - 1) * part / 4];
            Measured {
                name: contender.name.to_owned(),
                time: times[times.len() / 2],
                ratio: [quarter(1), quarter(2), quarter(3)],
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_first_contender_is_the_baseline_of_each_round() {
        let runs = Cell::new(0);
        let count = || runs.set(runs.get() + 1);
        let contenders = [Contender { name: "a", run: &count }, Contender { name: "b", run: &count }];
        let measured = measure(&contenders, 5);
        assert_eq!(runs.get(), 12);
        assert!(measured[0].ratio.iter().all(|ratio| (ratio - 1.0).abs() < 1e-9));
        assert!(measured[1].ratio[0] <= measured[1].ratio[2]);
    }
}
