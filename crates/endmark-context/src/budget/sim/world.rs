//! The events of a simulation: clients, the network, the database and its locks.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::super::{Pool, Share, TENURE_MS, pace};
use super::instance::{Call, Instance, Work};
use super::measures::{Measures, SimReport};
use super::{Plan, PlanError};

/// Round trips of a new connection until the instance is registered.
const CONNECT_ROUND_TRIPS: u64 = 8;

/// A running simulation.
///
/// ```
/// use endmark_context::budget::sim::{Plan, Simulation};
/// let plan = Plan { instances: 2, requests_per_second: 50, seconds: 10, ..Plan::default() };
/// let mut simulation = Simulation::new(plan)?;
/// while simulation.advance(10_000) {}
/// let report = simulation.report();
/// assert_eq!((report.most_over, report.rows_per_day), (0, 4_320_000));
/// # Ok::<(), endmark_context::budget::sim::PlanError>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    plan: Plan,
    limit: u64,
    dice: Dice,
    now_us: u64,
    events: BinaryHeap<Scheduled>,
    scheduled: u64,
    instances: Vec<Instance>,
    budgets: Vec<Budget>,
    /// Rows of all instances that the database does not have.
    rows_waiting: u64,
    measures: Measures,
}

/// A budget in the database.
#[derive(Debug)]
struct Budget {
    pool: Pool,
    shares: Vec<Share>,
    /// When the lock of its row is released.
    locked_until_us: u64,
    /// Cost and holds of the calls of all instances.
    used: u64,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A client sends the next request.
    Arrive,
    /// An instance is killed.
    Kill { index: usize },
    /// A killed instance is restarted.
    Recovery { index: usize },
    /// A step of an instance, ignored if the instance was killed since.
    Step { index: usize, life: u32, step: Step },
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A call that did not fit requests a share again.
    Retry(Call),
    /// A call ends.
    Settle(Call),
    /// The instance checks for something to report.
    Inspect { turn: u64 },
    /// The instance reports.
    Report,
    /// The instance's transaction requests the locks of its budgets.
    ReachDatabase,
    /// The pause after an answer ends.
    PauseOver,
    /// The answer arrives; `false` if the database failed.
    Answer { is_done: bool },
}

#[derive(Debug)]
struct Scheduled {
    at_us: u64,
    number: u64,
    event: Event,
}

impl Simulation {
    /// Prepares a simulation.
    ///
    /// # Errors
    /// [`PlanError`] if a value is outside its range, or the simulation would run too long.
    pub fn new(plan: Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let (count, budgets) = (plan.instances as usize, plan.budgets as usize);
        let seconds = usize::try_from(plan.seconds).unwrap_or(usize::MAX);
        let measures = Measures {
            transactions: vec![0; seconds],
            refusing: vec![false; budgets],
            ..Measures::default()
        };
        let budget = |_| Budget {
            pool: Pool::default(),
            shares: vec![Share::default(); count],
            locked_until_us: 0,
            used: 0,
        };
        let mut simulation = Self {
            limit: plan.limit(),
            dice: Dice(plan.seed),
            now_us: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            instances: (0..count).map(|_| Instance::new(budgets)).collect(),
            budgets: (0..budgets).map(budget).collect(),
            rows_waiting: 0,
            measures,
            plan,
        };
        for index in 0..count {
            // Instances do not all start at the same moment.
            let at_us = simulation.dice.roll(pace::HEARTBEAT_MS * 1_000);
            simulation.schedule_step(at_us, index, Step::Report);
        }
        for (nth, kill) in simulation.plan.kills.clone().into_iter().enumerate() {
            let index = count - 1 - nth;
            simulation.schedule(kill.at * 1_000_000, Event::Kill { index });
            if let Some(after) = kill.back_after {
                simulation.schedule((kill.at + after) * 1_000_000, Event::Recovery { index });
            }
        }
        // Instances have a second to register.
        simulation.schedule(1_000_000, Event::Arrive);
        Ok(simulation)
    }

    /// Handles at most this many events. Returns whether more are left.
    pub fn advance(&mut self, events: usize) -> bool {
        for _ in 0..events {
            let Some(next) = self.events.pop() else { return false };
            self.now_us = next.at_us;
            if self.is_over() {
                return false;
            }
            self.handle(next.event);
        }
        true
    }

    /// Returns the simulated part of the time, in percent.
    pub fn percent(&self) -> u64 {
        (self.now_us / 10_000 / self.plan.seconds.max(1)).min(100)
    }

    /// Returns the measurements.
    pub fn report(&self) -> SimReport {
        let spent = |index: usize| self.instances.iter().map(|instance| instance.budgets[index].spent).sum();
        let spent: Vec<u64> = (0..self.budgets.len()).map(spent).collect();
        self.measures.report(&self.plan, &spent)
    }

    /// Whether all requests were sent and all calls have ended. Heartbeats would continue forever.
    fn is_over(&self) -> bool {
        // A call that pauses before its next request is in no list.
        let patience_us = pace::RETURN_PATIENCE_MS * 2_000;
        let has_waiting = |instance: &Instance| {
            let in_flight = instance.flight.iter().any(|flight| !flight.calls.is_empty());
            in_flight || !instance.waiting.is_empty()
        };
        let is_busy =
            |instance: &Instance| instance.is_alive && (instance.in_progress > 0 || has_waiting(instance));
        self.now_us > self.plan.seconds * 1_000_000 + patience_us && !self.instances.iter().any(is_busy)
    }

    fn schedule(&mut self, at_us: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Scheduled { at_us, number: self.scheduled, event });
    }

    /// Schedules a step of an instance in its current life.
    fn schedule_step(&mut self, at_us: u64, index: usize, step: Step) {
        let life = self.instances[index].life;
        self.schedule(at_us, Event::Step { index, life, step });
    }

    fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    fn is_outage(&self, at_us: u64) -> bool {
        let second = at_us / 1_000_000;
        self.plan.outages.iter().any(|outage| (outage.at..outage.at + outage.seconds).contains(&second))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive => self.arrive(),
            Event::Kill { index } => self.kill(index),
            Event::Recovery { index } => self.recover(index),
            Event::Step { index, life, step } if life == self.instances[index].life => match step {
                Step::Retry(call) => self.ask(index, call),
                Step::Settle(call) => self.settle(index, call),
                Step::Inspect { turn } => self.inspect(index, turn),
                Step::Report => self.report_to_database(index),
                Step::PauseOver => self.wait(index),
                Step::ReachDatabase => self.reach(index),
                Step::Answer { is_done } => self.answer(index, is_done),
            },
            Event::Step { .. } => {}
        }
    }

    fn arrive(&mut self) {
        let next_us = self.now_us + self.dice.roll(2_000_000 / self.plan.requests_per_second + 1);
        if next_us < self.plan.seconds * 1_000_000 {
            self.schedule(next_us, Event::Arrive);
        }
        let budget = self.dice.pick(self.budgets.len(), self.plan.hot_budget_percent);
        let first = self.dice.pick(self.instances.len(), self.plan.hot_instance_percent);
        let call = Call {
            budget,
            held: self.plan.held,
            cost: self.dice.vary(self.plan.cost),
            duration_us: self.dice.vary(self.plan.call_ms * 1_000),
            arrival_us: self.now_us,
            has_asked: false,
        };
        // The load balancer avoids instances that do not answer.
        let mut others = (0..self.instances.len()).map(|nth| (first + nth) % self.instances.len());
        match others.find(|index| self.instances[*index].is_alive) {
            Some(index) => self.hold(index, call),
            None => self.measures.refused_without_database += 1,
        }
    }

    /// Holds a call within the share of its instance, or makes it request more.
    fn hold(&mut self, index: usize, call: Call) {
        let (moment_ms, now_us) = (self.now_ms(), self.now_us);
        let instance = &mut self.instances[index];
        let budget = &mut instance.budgets[call.budget];
        if !instance.tenure.is_valid(moment_ms) {
            if call.has_asked {
                self.measures.refused_without_database += 1;
            } else {
                self.ask(index, call);
            }
            return;
        }
        if budget.used_amount().saturating_add(call.held) <= budget.granted {
            budget.held += call.held;
            instance.demands.note_use(moment_ms, &call.budget);
            instance.in_progress += 1;
            self.budgets[call.budget].used += call.held;
            self.measures.calls += 1;
            if call.has_asked {
                let wait_us = u32::try_from(now_us - call.arrival_us).unwrap_or(u32::MAX);
                self.measures.waits_us.push(wait_us);
            }
            return self.schedule_step(now_us + call.duration_us, index, Step::Settle(call));
        }
        if !call.has_asked {
            return self.ask(index, call);
        }
        let spent = budget.spent.saturating_add(budget.spent_elsewhere);
        let is_tight = instance.demands.is_tight(&call.budget);
        let may_fit = spent.saturating_add(call.held) <= self.limit
            && now_us < call.arrival_us + pace::patience_ms(is_tight) * 1_000;
        match (may_fit, is_tight) {
            (true, true) => {
                self.schedule_step(now_us + pace::RETURN_PAUSE_MS * 1_000, index, Step::Retry(call));
            }
            (true, false) => self.ask(index, call),
            (false, _) => {
                self.measures.refused_by_budget += 1;
                self.measures.refusing[call.budget] = true;
            }
        }
    }

    fn ask(&mut self, index: usize, call: Call) {
        let (now_us, moment_ms, limit) = (self.now_us, self.now_ms(), self.limit);
        let instance = &mut self.instances[index];
        if instance.is_failing {
            self.measures.refused_without_database += 1;
            return;
        }
        instance.ask(moment_ms, limit, call);
        if let Work::Waiting { .. } = instance.work {
            instance.work = Work::Reporting;
            instance.turn += 1;
            self.schedule_step(now_us, index, Step::Report);
        }
    }

    fn settle(&mut self, index: usize, call: Call) {
        let instance = &mut self.instances[index];
        let budget = &mut instance.budgets[call.budget];
        budget.held -= call.held;
        budget.spent += call.cost;
        instance.changed.insert(call.budget);
        instance.in_progress -= 1;
        instance.rows += 1;
        instance.rows_made += 1;
        self.rows_waiting += 1;
        let used = &mut self.budgets[call.budget].used;
        *used = (*used + call.cost).saturating_sub(call.held);
    }

    /// Starts to wait for something to report.
    fn wait(&mut self, index: usize) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        if !instance.waiting.is_empty() {
            return self.schedule_step(now_us, index, Step::Report);
        }
        let delay_ms = if instance.demands.has_tight() { pace::TIGHT_DELAY_MS } else { pace::ROW_DELAY_MS };
        instance.work = Work::Waiting { since_us: now_us, delay_ms };
        instance.turn += 1;
        let turn = instance.turn;
        self.schedule_step(now_us + delay_ms * 1_000, index, Step::Inspect { turn });
    }

    fn inspect(&mut self, index: usize, turn: u64) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        let Work::Waiting { since_us, delay_ms } = instance.work else { return };
        if instance.turn != turn {
            return;
        }
        let has_rows = std::mem::replace(&mut instance.rows_seen, instance.rows_made) != instance.rows_made;
        let is_due = now_us >= since_us + pace::HEARTBEAT_MS * 1_000;
        if has_rows || is_due || delay_ms == pace::TIGHT_DELAY_MS {
            instance.work = Work::Reporting;
            self.schedule_step(now_us, index, Step::Report);
        } else {
            self.schedule_step(now_us + delay_ms * 1_000, index, Step::Inspect { turn });
        }
    }

    /// Sends a report, over a new connection if the last one failed.
    fn report_to_database(&mut self, index: usize) {
        let (now_us, moment_ms) = (self.now_us, self.now_ms());
        self.measures.most_rows_waiting = self.measures.most_rows_waiting.max(self.rows_waiting);
        let is_out = self.is_outage(now_us);
        let instance = &mut self.instances[index];
        let mut round_trips = 0;
        if !instance.is_registered && !is_out {
            instance.register();
            round_trips = CONNECT_ROUND_TRIPS;
        }
        instance.prepare(moment_ms);
        if is_out {
            let at_us = now_us + self.plan.round_trip_us;
            return self.schedule_step(at_us, index, Step::Answer { is_done: false });
        }
        // The statements up to the locks of the budgets follow each other without waiting.
        round_trips += 1;
        self.schedule_step(now_us + round_trips * self.plan.round_trip_us, index, Step::ReachDatabase);
    }

    /// Runs the transaction of an instance as soon as the rows of its budgets are free.
    fn reach(&mut self, index: usize) {
        let moment_ms = self.now_ms();
        let reporting =
            self.instances.iter().filter(|instance| instance.expires_ms > moment_ms).count().max(1);
        let instance = &mut self.instances[index];
        let Some(mut flight) = instance.flight.take() else { return };
        let locks = flight.reports.iter().map(|(budget, _)| self.budgets[*budget].locked_until_us);
        let locked_us = locks.fold(self.now_us, u64::max);
        // The new shares, and COMMIT with them.
        let done_us = locked_us + self.plan.round_trip_us + self.plan.commit_us;
        if self.is_outage(done_us) {
            self.instances[index].flight = Some(flight);
            return self.schedule_step(done_us, index, Step::Answer { is_done: false });
        }
        self.instances[index].expires_ms = moment_ms + TENURE_MS;
        for (budget, report) in &flight.reports {
            let budget = &mut self.budgets[*budget];
            budget.locked_until_us = done_us;
            let share = &mut budget.shares[index];
            budget.pool.exchange(share, report, reporting as u64);
            let elsewhere = budget.pool.spent.saturating_sub(share.spent);
            flight.answers.push((*share, elsewhere, budget.pool.is_tight));
            let idle = budget.pool.committed.saturating_sub(budget.used);
            self.measures.most_idle = self.measures.most_idle.max(idle);
        }
        self.measures.rows_written += flight.rows;
        self.instances[index].flight = Some(flight);
        self.measures.record_transaction(done_us);
        self.schedule_step(done_us, index, Step::Answer { is_done: true });
    }

    fn answer(&mut self, index: usize, is_done: bool) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        if !is_done {
            let lost = instance.flight.take().map_or(0, |flight| flight.calls.len());
            self.measures.refused_without_database += lost as u64;
            (instance.is_failing, instance.is_registered) = (true, false);
            return self.schedule_step(now_us + pace::RETRY_PAUSE_MS * 1_000, index, Step::Report);
        }
        self.rows_waiting -= instance.flight.as_ref().map_or(0, |flight| flight.rows);
        let (calls, is_more) = instance.apply();
        for call in calls {
            self.hold(index, call);
        }
        let next = if is_more { Step::Report } else { Step::PauseOver };
        self.schedule_step(now_us + pace::PAUSE_MS * 1_000, index, next);
    }

    fn kill(&mut self, index: usize) {
        let lost = self.instances[index].kill();
        self.measures.refused_without_database += lost as u64;
        for budget in &self.budgets {
            let kept = |(instance, share): (&Instance, &Share)| {
                if instance.is_alive { 0 } else { share.granted.saturating_sub(share.spent) }
            };
            let kept: u64 = self.instances.iter().zip(&budget.shares).map(kept).sum();
            self.measures.most_silent = self.measures.most_silent.max(kept);
        }
    }

    fn recover(&mut self, index: usize) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        self.rows_waiting += instance.in_progress;
        instance.revive();
        instance.work = Work::Reporting;
        self.schedule_step(now_us, index, Step::Report);
    }
}

/// A random generator (SplitMix64): the same seed gives the same numbers on every machine.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below.max(1)
    }

    /// Returns a value that differs from the average by at most half of it.
    fn vary(&mut self, average: u64) -> u64 {
        average - average / 2 + self.roll(average / 2 * 2 + 1)
    }

    /// Picks one of several items. The first one has this percentage.
    fn pick(&mut self, count: usize, hot_percent: Option<u64>) -> usize {
        let count = count as u64;
        let picked = match hot_percent {
            Some(percent) if count > 1 && self.roll(100) >= percent => 1 + self.roll(count - 1),
            Some(_) => 0,
            None => self.roll(count),
        };
        usize::try_from(picked).unwrap_or(0)
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap returns its greatest element first, so the order is reversed.
        (other.at_us, other.number).cmp(&(self.at_us, self.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}
