//! Simulates four instances with one budget on a virtual clock.
//!
//! Requests and replies are lost, instances are killed, the database has outages, and clocks run at different
//! speeds.

use proptest::prelude::*;

use super::*;

const LIMIT: u64 = 1_000_000;
const INSTANCES: usize = 4;

/// A pseudo-random generator. The same seed gives the same simulation.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }
}

/// An instance, with the state of its journal.
#[derive(Default)]
struct Instance {
    granted: u64,
    spent: u64,
    /// The hold and the actual cost of each call in progress.
    calls: Vec<(u64, u64)>,
    /// The sum of these holds.
    held: u64,
    waiting: Vec<u64>,
    is_tight: bool,
    tenure: Tenure,
    /// Speed of its clock, in thousandths of the normal speed.
    speed: u64,
}

impl Instance {
    fn used_amount(&self) -> u64 {
        self.spent + self.held
    }

    fn hold(&mut self, now_ms: u64, amount: u64, cost: u64) -> bool {
        let fits =
            self.tenure.is_valid(now_ms * self.speed / 1_000) && self.used_amount() + amount <= self.granted;
        if fits {
            self.calls.push((amount, cost));
            self.held += amount;
        }
        fits
    }

    /// Lowers the share in the journal, and returns the report.
    fn prepare_report(&mut self, returns: bool, ahead: u64) -> ShareReport {
        let waiting = self.waiting.iter().sum();
        let wanted = WantedShare {
            limit: LIMIT,
            smallest_call: self.waiting.iter().copied().min().unwrap_or(0),
            waiting,
            expected: waiting * 8 + ahead,
            returns_unused: returns || self.is_tight,
        };
        let report = wanted.report(self.granted, self.spent, self.used_amount());
        self.granted = report.granted;
        report
    }
}

struct FleetSimulation {
    pool: Pool,
    shares: [Share; INSTANCES],
    instances: Vec<Instance>,
    dice: Dice,
    now_ms: u64,
    /// The database does not answer before this time.
    outage_until_ms: u64,
}

impl FleetSimulation {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let instance = |_| Instance { speed: 950 + dice.roll(100), ..Instance::default() };
        let instances = (0..INSTANCES).map(instance).collect();
        Self { pool: Pool::default(), shares: <_>::default(), instances, dice, now_ms: 0, outage_until_ms: 0 }
    }

    /// Exchanges one report with the database. Unless `is_calm`, the request or the reply may be lost.
    fn exchange(&mut self, index: usize, is_calm: bool) {
        let (returns, ahead) = (self.dice.roll(20) == 0, self.dice.roll(4_000));
        let sent_ms = self.now_ms * self.instances[index].speed / 1_000;
        let report = self.instances[index].prepare_report(returns, ahead);
        let luck = if is_calm { 9 } else { self.dice.roll(10) };
        if self.now_ms < self.outage_until_ms || luck == 0 {
            return;
        }
        self.pool.exchange(&mut self.shares[index], &report, INSTANCES as u64);
        if luck == 1 {
            return;
        }
        let instance = &mut self.instances[index];
        (instance.granted, instance.is_tight) = (self.shares[index].granted, self.pool.is_tight);
        instance.waiting.clear();
        instance.tenure.confirm(sent_ms);
    }

    fn settle(&mut self, index: usize) {
        let instance = &mut self.instances[index];
        if !instance.calls.is_empty() {
            let call = self.dice.roll(instance.calls.len() as u64);
            let (held, cost) = instance.calls.swap_remove(usize::try_from(call).unwrap());
            instance.held -= held;
            instance.spent += cost;
        }
    }

    fn step(&mut self, most_cost_percent: u64) {
        self.now_ms += self.dice.roll(40);
        let index = usize::try_from(self.dice.roll(INSTANCES as u64)).unwrap();
        match self.dice.roll(100) {
            0..45 => {
                let amount = 1 + self.dice.roll(400);
                let cost = amount * (1 + self.dice.roll(most_cost_percent)) / 100;
                if !self.instances[index].hold(self.now_ms, amount, cost) {
                    self.instances[index].waiting.push(amount);
                }
            }
            45..80 => self.settle(index),
            80..98 => self.exchange(index, false),
            98 => self.outage_until_ms = self.now_ms + self.dice.roll(3_000),
            _ => {
                // After a kill and a restart, calls in progress are charged their holds.
                let instance = &mut self.instances[index];
                let (spent, granted, speed) = (instance.used_amount(), instance.granted, instance.speed);
                *instance = Instance { granted, spent, speed, ..Instance::default() };
            }
        }
        let spent: u64 = self.instances.iter().map(|instance| instance.spent).sum();
        let committed: u64 = self.shares.iter().map(Share::committed).sum();
        assert_eq!(self.pool.committed, committed);
        assert_eq!(self.pool.spent, self.shares.iter().map(|share| share.spent).sum::<u64>());
        if most_cost_percent <= 100 {
            let used: u64 = self.instances.iter().map(Instance::used_amount).sum();
            assert!(used <= LIMIT && committed <= LIMIT && spent <= LIMIT);
        }
        for (instance, share) in self.instances.iter().zip(&self.shares) {
            assert!(
                instance.granted <= share.granted || most_cost_percent > 100,
                "a share that was not granted"
            );
        }
    }

    /// Uses up the rest of the budget with small calls, until no instance admits one.
    fn use_up(&mut self) {
        self.outage_until_ms = 0;
        let mut refused = 0;
        while refused < 12 * INSTANCES {
            self.now_ms += 1;
            let index = refused % INSTANCES;
            while !self.instances[index].calls.is_empty() {
                self.settle(index);
            }
            if self.instances[index].hold(self.now_ms, 300, 300) {
                refused = 0;
            } else {
                self.instances[index].waiting.push(300);
                self.exchange(index, true);
                refused += 1;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn calls_within_their_holds_never_exceed_the_limit(seed in any::<u64>()) {
        let mut story = FleetSimulation::new(seed);
        for _ in 0..1_000 * INSTANCES {
            story.step(100);
        }
        story.use_up();
        let spent: u64 = story.instances.iter().map(|instance| instance.spent).sum();
        prop_assert!(spent <= LIMIT);
        prop_assert!(spent * 100 >= LIMIT * 99, "{spent}");
    }

    #[test]
    fn calls_beyond_their_holds_are_charged_and_block_admission(seed in any::<u64>()) {
        let mut story = FleetSimulation::new(seed);
        for _ in 0..1_000 * INSTANCES {
            story.step(300);
        }
        story.use_up();
        for index in 0..INSTANCES {
            story.exchange(index, true);
        }
        let spent: u64 = story.instances.iter().map(|instance| instance.spent).sum();
        prop_assert_eq!(story.pool.spent, spent);
        for index in 0..INSTANCES {
            prop_assert!(!story.instances[index].hold(story.now_ms, 300, 300));
        }
    }
}

#[test]
fn a_silent_instance_stops_before_its_lease_expires() {
    let mut tenure = Tenure::default();
    assert!(!tenure.is_valid(0));
    tenure.confirm(1_000);
    assert!(tenure.is_valid(55_999));
    assert!(!tenure.is_valid(56_000));
    tenure.end();
    assert!(!tenure.is_valid(1_001));
}

#[test]
fn an_instance_cannot_report_more_than_its_grant() {
    let mut pool = Pool { spent: 10, committed: 70, is_tight: false };
    // In the meantime, 50 of the instance's share were freed and granted to another instance.
    let mut share = Share { granted: 10, spent: 10 };
    let report = ShareReport { limit: 100, granted: 60, spent: 10, used: 10, ..ShareReport::default() };
    pool.exchange(&mut share, &report, 2);
    assert_eq!((share.granted, pool.committed), (10, 70));
}

/// Names of the variables for the number of seeds, and for the number of concurrent calls per instance.
const SEEDS_VARIABLE: &str = "ENDMARK_TEST_SHARE_SEEDS";
const CALLS_VARIABLE: &str = "ENDMARK_TEST_SHARE_CALLS";

fn read_variable(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Makes this many concurrent calls on every instance until the budget is used up. Returns the total cost,
/// and by how much the calls in progress at the last admissions may exceed their holds.
fn spend_concurrently(seed: u64, calls: usize, most_cost_percent: u64) -> (u64, u64) {
    let mut story = FleetSimulation::new(seed);
    let mut excess = [0; INSTANCES];
    let mut quiet = 0;
    while quiet < 100 * INSTANCES {
        quiet += 1;
        story.now_ms += 1;
        let index = usize::try_from(story.dice.roll(INSTANCES as u64)).unwrap();
        while story.instances[index].calls.len() + story.instances[index].waiting.len() < calls {
            let amount = 1 + story.dice.roll(400);
            let cost = amount * (1 + story.dice.roll(most_cost_percent)) / 100;
            let instance = &mut story.instances[index];
            if instance.hold(story.now_ms, amount, cost) {
                let of_call = |(held, cost): &(u64, u64)| cost.saturating_sub(*held);
                excess[index] = instance.calls.iter().map(of_call).sum();
                quiet = 0;
            } else {
                instance.waiting.push(amount);
            }
        }
        story.exchange(index, true);
        for _ in 0..=calls / 20 {
            story.settle(index);
        }
        if most_cost_percent <= 100 {
            assert!(story.instances.iter().map(Instance::used_amount).sum::<u64>() <= LIMIT);
        }
    }
    story.use_up();
    for index in 0..INSTANCES {
        story.exchange(index, true);
        assert!(!story.instances[index].hold(story.now_ms, 300, 300), "nothing further is admitted");
    }
    let spent = story.instances.iter().map(|instance| instance.spent).sum();
    assert_eq!(story.pool.spent, spent, "charged in full");
    (spent, excess.iter().sum())
}

#[test]
fn four_instances_exceed_a_budget_only_by_costs_beyond_holds() {
    let calls = usize::try_from(read_variable(CALLS_VARIABLE, 100)).unwrap();
    let (mut least, mut over) = (LIMIT, 0);
    for seed in 0..read_variable(SEEDS_VARIABLE, 10) {
        let (spent, _) = spend_concurrently(seed, calls, 100);
        assert!(spent <= LIMIT && spent * 100 >= LIMIT * 99, "seed {seed}: {spent}");
        least = least.min(spent);
        let (spent, excess) = spend_concurrently(seed, calls, 300);
        assert!(spent <= LIMIT + excess, "seed {seed}: {spent} with {excess} under way");
        over = over.max(spent.saturating_sub(LIMIT));
    }
    println!("{calls} calls at once: at least {least} of {LIMIT} used; beyond their holds: {over} over");
}

#[test]
fn a_share_in_use_is_refilled_before_a_call_waits() {
    let (mut pool, mut share) = (Pool::default(), Share::default());
    let report = |granted, spent, ahead| ShareReport {
        limit: 1_000,
        granted,
        spent,
        used: spent,
        expected: ahead,
        ..ShareReport::default()
    };
    pool.exchange(&mut share, &ShareReport { smallest_call: 50, waiting: 50, ..report(0, 0, 150) }, 1);
    assert_eq!(share.granted, 200);
    pool.exchange(&mut share, &report(200, 100, 150), 1);
    assert_eq!((share.granted, pool.committed), (250, 250));
    // A report without an expected amount requests nothing. A tight budget grants nothing in advance.
    pool.exchange(&mut share, &report(250, 150, 0), 1);
    assert_eq!(share.granted, 250);
    pool.is_tight = true;
    pool.exchange(&mut share, &report(250, 200, 150), 1);
    assert_eq!(share.granted, 250);
}

#[test]
fn a_reconnected_instance_keeps_its_holds() {
    let mut pool = Pool { spent: 0, committed: 80, is_tight: false };
    let (mut share, mut other) = (Share { granted: 80, spent: 0 }, Share::default());
    // The instance has discarded its grant, because the database may have granted it to another instance.
    let report = ShareReport { limit: 100, granted: 0, spent: 0, used: 60, ..ShareReport::default() };
    pool.exchange(&mut share, &report, 2);
    assert_eq!((share.granted, pool.committed), (60, 60));
    let report = ShareReport { limit: 100, smallest_call: 50, waiting: 50, ..ShareReport::default() };
    pool.exchange(&mut other, &report, 2);
    assert_eq!((other.granted, pool.committed), (0, 60));
}
