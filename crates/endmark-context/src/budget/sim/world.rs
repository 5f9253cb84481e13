//! The events of a simulation: clients, the network, and the database with its locks.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::super::{Pool, Share, TENURE_MS, pace};
use super::instance::{ReportPhase, SimulatedCall, SimulatedInstance};
use super::measures::{Measurements, SimReport};
use super::{PlanError, SimulationPlan};

/// Number of round trips until a new connection is open and the instance is registered.
const CONNECT_ROUND_TRIPS: u64 = 8;

/// A running simulation of several gateways with one database.
///
/// ```
/// use endmark_context::budget::sim::{Simulation, SimulationPlan};
/// let plan =
///     SimulationPlan { instances: 2, requests_per_second: 50, seconds: 10, ..SimulationPlan::default() };
/// let mut simulation = Simulation::new(plan)?;
/// while simulation.advance(10_000) {}
/// let report = simulation.report();
/// assert_eq!((report.most_over, report.rows_per_day), (0, 4_320_000));
/// # Ok::<(), endmark_context::budget::sim::PlanError>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    plan: SimulationPlan,
    limit: u64,
    dice: Dice,
    now_us: u64,
    events: BinaryHeap<ScheduledEvent>,
    scheduled: u64,
    instances: Vec<SimulatedInstance>,
    budgets: Vec<SharedBudget>,
    /// Number of rows in the journals of all instances that the database does not have yet.
    rows_waiting: u64,
    measures: Measurements,
}

/// A budget in the database.
#[derive(Debug)]
struct SharedBudget {
    pool: Pool,
    shares: Vec<Share>,
    /// When the lock of the budget's row is released.
    locked_until_us: u64,
    /// Total cost and holds of the calls of all instances.
    used: u64,
}

#[derive(Debug, Clone, Copy)]
enum SimulationEvent {
    /// A client sends the next request.
    Arrive,
    /// An instance is killed.
    Kill { index: usize },
    /// A killed instance is restarted.
    Restart { index: usize },
    /// A step of an instance. It is ignored if the instance was killed after it was scheduled.
    Step { index: usize, life: u32, step: InstanceStep },
}

#[derive(Debug, Clone, Copy)]
enum InstanceStep {
    /// A call that did not fit requests a share again.
    Retry(SimulatedCall),
    /// A call has ended.
    Settle(SimulatedCall),
    /// The instance checks whether it has something to report.
    CheckForReports { turn: u64 },
    /// The instance sends a report.
    Report,
    /// The instance's transaction locks the rows of its budgets.
    ReachDatabase,
    /// The pause after an answer is over.
    PauseOver,
    /// The answer arrives. `is_done` is `false` if the database failed.
    Answer { is_done: bool },
}

#[derive(Debug)]
struct ScheduledEvent {
    at_us: u64,
    number: u64,
    event: SimulationEvent,
}

impl Simulation {
    /// Prepares a simulation with this plan.
    ///
    /// # Errors
    /// [`PlanError`] if a value is outside its range, or the simulation would run too long.
    pub fn new(plan: SimulationPlan) -> Result<Self, PlanError> {
        plan.check()?;
        let (count, budgets) = (plan.instances as usize, plan.budgets as usize);
        let seconds = usize::try_from(plan.seconds).unwrap_or(usize::MAX);
        let measures = Measurements {
            transactions: vec![0; seconds],
            refusing: vec![false; budgets],
            ..Measurements::default()
        };
        let budget = |_| SharedBudget {
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
            instances: (0..count).map(|_| SimulatedInstance::new(budgets)).collect(),
            budgets: (0..budgets).map(budget).collect(),
            rows_waiting: 0,
            measures,
            plan,
        };
        for index in 0..count {
            // Instances start at different moments.
            let at_us = simulation.dice.roll(pace::HEARTBEAT_MS * 1_000);
            simulation.schedule_step(at_us, index, InstanceStep::Report);
        }
        for (nth, kill) in simulation.plan.kills.clone().into_iter().enumerate() {
            let index = count - 1 - nth;
            simulation.schedule(kill.at * 1_000_000, SimulationEvent::Kill { index });
            if let Some(after) = kill.back_after {
                simulation.schedule((kill.at + after) * 1_000_000, SimulationEvent::Restart { index });
            }
        }
        // The first request arrives after a second, when all instances have registered.
        simulation.schedule(1_000_000, SimulationEvent::Arrive);
        Ok(simulation)
    }

    /// Handles at most this many events. Returns `false` if the simulation is finished.
    pub fn advance(&mut self, events: usize) -> bool {
        for _ in 0..events {
            let Some(next) = self.events.pop() else { return false };
            self.now_us = next.at_us;
            if self.is_over() {
                return false;
            }
            self.handle_event(next.event);
        }
        true
    }

    /// Returns the progress of the simulation, in percent of the simulated time.
    pub fn percent(&self) -> u64 {
        (self.now_us / 10_000 / self.plan.seconds.max(1)).min(100)
    }

    /// Returns the results so far.
    pub fn report(&self) -> SimReport {
        let spent = |index: usize| self.instances.iter().map(|instance| instance.budgets[index].spent).sum();
        let spent: Vec<u64> = (0..self.budgets.len()).map(spent).collect();
        self.measures.report(&self.plan, &spent)
    }

    /// Whether all requests were sent and all calls have ended. Heartbeats alone would continue forever.
    fn is_over(&self) -> bool {
        // A call in the pause before its next request is in no list, so wait until every pause is over.
        let patience_us = pace::MAX_RETURN_WAIT_MS * 2_000;
        let has_waiting = |instance: &SimulatedInstance| {
            let in_flight = instance.flight.iter().any(|flight| !flight.calls.is_empty());
            in_flight || !instance.waiting.is_empty()
        };
        let is_busy = |instance: &SimulatedInstance| {
            instance.is_alive && (instance.in_progress > 0 || has_waiting(instance))
        };
        self.now_us > self.plan.seconds * 1_000_000 + patience_us && !self.instances.iter().any(is_busy)
    }

    fn schedule(&mut self, at_us: u64, event: SimulationEvent) {
        self.scheduled += 1;
        self.events.push(ScheduledEvent { at_us, number: self.scheduled, event });
    }

    /// Schedules a step that is ignored if the instance is killed before it.
    fn schedule_step(&mut self, at_us: u64, index: usize, step: InstanceStep) {
        let life = self.instances[index].kill_count;
        self.schedule(at_us, SimulationEvent::Step { index, life, step });
    }

    fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    fn is_outage(&self, at_us: u64) -> bool {
        let second = at_us / 1_000_000;
        self.plan.outages.iter().any(|outage| (outage.at..outage.at + outage.seconds).contains(&second))
    }

    fn handle_event(&mut self, event: SimulationEvent) {
        match event {
            SimulationEvent::Arrive => self.send_request(),
            SimulationEvent::Kill { index } => self.kill(index),
            SimulationEvent::Restart { index } => self.restart(index),
            SimulationEvent::Step { index, life, step } if life == self.instances[index].kill_count => {
                match step {
                    InstanceStep::Retry(call) => self.request_share(index, call),
                    InstanceStep::Settle(call) => self.finish_call(index, call),
                    InstanceStep::CheckForReports { turn } => self.check_for_reports(index, turn),
                    InstanceStep::Report => self.report_to_database(index),
                    InstanceStep::PauseOver => self.wait_for_reports(index),
                    InstanceStep::ReachDatabase => self.run_transaction(index),
                    InstanceStep::Answer { is_done } => self.handle_answer(index, is_done),
                }
            }
            SimulationEvent::Step { .. } => {}
        }
    }

    fn send_request(&mut self) {
        let next_us = self.now_us + self.dice.roll(2_000_000 / self.plan.requests_per_second + 1);
        if next_us < self.plan.seconds * 1_000_000 {
            self.schedule(next_us, SimulationEvent::Arrive);
        }
        let budget = self.dice.pick(self.budgets.len(), self.plan.hot_budget_percent);
        let first = self.dice.pick(self.instances.len(), self.plan.hot_instance_percent);
        let call = SimulatedCall {
            budget,
            held: self.plan.held,
            cost: self.dice.vary_by_half(self.plan.cost),
            duration_us: self.dice.vary_by_half(self.plan.call_ms * 1_000),
            arrival_us: self.now_us,
            has_requested_share: false,
        };
        // The load balancer avoids instances that do not answer.
        let mut others = (0..self.instances.len()).map(|nth| (first + nth) % self.instances.len());
        match others.find(|index| self.instances[*index].is_alive) {
            Some(index) => self.admit_or_wait(index, call),
            None => self.measures.refused_without_database += 1,
        }
    }

    /// Admits a call within the share of its instance. If it does not fit, it waits, requests a share, or is
    /// refused.
    fn admit_or_wait(&mut self, index: usize, call: SimulatedCall) {
        let (moment_ms, now_us) = (self.now_ms(), self.now_us);
        let instance = &mut self.instances[index];
        let budget = &mut instance.budgets[call.budget];
        if !instance.tenure.is_valid(moment_ms) {
            if call.has_requested_share {
                self.measures.refused_without_database += 1;
            } else {
                self.request_share(index, call);
            }
            return;
        }
        if budget.used_amount().saturating_add(call.held) <= budget.granted {
            budget.held += call.held;
            instance.demands.record_use(moment_ms, &call.budget);
            instance.in_progress += 1;
            self.budgets[call.budget].used += call.held;
            self.measures.calls += 1;
            if call.has_requested_share {
                let wait_us = u32::try_from(now_us - call.arrival_us).unwrap_or(u32::MAX);
                self.measures.waits_us.push(wait_us);
            }
            return self.schedule_step(now_us + call.duration_us, index, InstanceStep::Settle(call));
        }
        if !call.has_requested_share {
            return self.request_share(index, call);
        }
        let spent = budget.spent.saturating_add(budget.spent_elsewhere);
        let is_tight = instance.demands.is_tight(&call.budget);
        let may_fit = spent.saturating_add(call.held) <= self.limit
            && now_us < call.arrival_us + pace::max_share_wait_ms(is_tight) * 1_000;
        match (may_fit, is_tight) {
            (true, true) => {
                self.schedule_step(
                    now_us + pace::RETURN_RETRY_PAUSE_MS * 1_000,
                    index,
                    InstanceStep::Retry(call),
                );
            }
            (true, false) => self.request_share(index, call),
            (false, _) => {
                self.measures.refused_by_budget += 1;
                self.measures.refusing[call.budget] = true;
            }
        }
    }

    fn request_share(&mut self, index: usize, call: SimulatedCall) {
        let (now_us, moment_ms, limit) = (self.now_us, self.now_ms(), self.limit);
        let instance = &mut self.instances[index];
        if instance.is_failing {
            self.measures.refused_without_database += 1;
            return;
        }
        instance.request_share(moment_ms, limit, call);
        if let ReportPhase::Waiting { .. } = instance.work {
            instance.work = ReportPhase::Reporting;
            instance.wait_count += 1;
            self.schedule_step(now_us, index, InstanceStep::Report);
        }
    }

    fn finish_call(&mut self, index: usize, call: SimulatedCall) {
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

    /// Waits until there is something to report, or reports at once if calls wait.
    fn wait_for_reports(&mut self, index: usize) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        if !instance.waiting.is_empty() {
            return self.schedule_step(now_us, index, InstanceStep::Report);
        }
        let delay_ms =
            if instance.demands.has_tight_budget() { pace::TIGHT_DELAY_MS } else { pace::ROW_DELAY_MS };
        instance.work = ReportPhase::Waiting { since_us: now_us, delay_ms };
        instance.wait_count += 1;
        let turn = instance.wait_count;
        self.schedule_step(now_us + delay_ms * 1_000, index, InstanceStep::CheckForReports { turn });
    }

    fn check_for_reports(&mut self, index: usize, turn: u64) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        let ReportPhase::Waiting { since_us, delay_ms } = instance.work else { return };
        if instance.wait_count != turn {
            return;
        }
        let has_rows =
            std::mem::replace(&mut instance.rows_made_at_check, instance.rows_made) != instance.rows_made;
        let is_due = now_us >= since_us + pace::HEARTBEAT_MS * 1_000;
        if has_rows || is_due || delay_ms == pace::TIGHT_DELAY_MS {
            instance.work = ReportPhase::Reporting;
            self.schedule_step(now_us, index, InstanceStep::Report);
        } else {
            self.schedule_step(now_us + delay_ms * 1_000, index, InstanceStep::CheckForReports { turn });
        }
    }

    /// Sends a report, over a new connection if the last report failed.
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
        instance.prepare_report(moment_ms);
        if is_out {
            let at_us = now_us + self.plan.round_trip_us;
            return self.schedule_step(at_us, index, InstanceStep::Answer { is_done: false });
        }
        // The statements before the locks are sent together, in one round trip.
        round_trips += 1;
        self.schedule_step(
            now_us + round_trips * self.plan.round_trip_us,
            index,
            InstanceStep::ReachDatabase,
        );
    }

    /// Runs the transaction of a report as soon as the rows of its budgets are not locked.
    fn run_transaction(&mut self, index: usize) {
        let moment_ms = self.now_ms();
        let reporting =
            self.instances.iter().filter(|instance| instance.expires_ms > moment_ms).count().max(1);
        let instance = &mut self.instances[index];
        let Some(mut flight) = instance.flight.take() else { return };
        let locks = flight.reports.iter().map(|(budget, _)| self.budgets[*budget].locked_until_us);
        let locked_us = locks.fold(self.now_us, u64::max);
        // The new shares and COMMIT are sent together, in one round trip.
        let done_us = locked_us + self.plan.round_trip_us + self.plan.commit_us;
        if self.is_outage(done_us) {
            self.instances[index].flight = Some(flight);
            return self.schedule_step(done_us, index, InstanceStep::Answer { is_done: false });
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
        self.schedule_step(done_us, index, InstanceStep::Answer { is_done: true });
    }

    fn handle_answer(&mut self, index: usize, is_done: bool) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        if !is_done {
            let lost = instance.flight.take().map_or(0, |flight| flight.calls.len());
            self.measures.refused_without_database += lost as u64;
            (instance.is_failing, instance.is_registered) = (true, false);
            return self.schedule_step(now_us + pace::RETRY_PAUSE_MS * 1_000, index, InstanceStep::Report);
        }
        self.rows_waiting -= instance.flight.as_ref().map_or(0, |flight| flight.rows);
        let (calls, is_more) = instance.apply_answer();
        for call in calls {
            self.admit_or_wait(index, call);
        }
        let next = if is_more { InstanceStep::Report } else { InstanceStep::PauseOver };
        self.schedule_step(now_us + pace::MIN_TRANSACTION_INTERVAL_MS * 1_000, index, next);
    }

    fn kill(&mut self, index: usize) {
        let lost = self.instances[index].kill();
        self.measures.refused_without_database += lost as u64;
        for budget in &self.budgets {
            let kept = |(instance, share): (&SimulatedInstance, &Share)| {
                if instance.is_alive { 0 } else { share.granted.saturating_sub(share.spent) }
            };
            let kept: u64 = self.instances.iter().zip(&budget.shares).map(kept).sum();
            self.measures.most_silent = self.measures.most_silent.max(kept);
        }
    }

    fn restart(&mut self, index: usize) {
        let now_us = self.now_us;
        let instance = &mut self.instances[index];
        self.rows_waiting += instance.in_progress;
        instance.restart();
        instance.work = ReportPhase::Reporting;
        self.schedule_step(now_us, index, InstanceStep::Report);
    }
}

/// A pseudo-random generator (`SplitMix64`). The same seed gives the same numbers on every machine.
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

    /// Returns a random value between half and one and a half times the average.
    fn vary_by_half(&mut self, average: u64) -> u64 {
        average - average / 2 + self.roll(average / 2 * 2 + 1)
    }

    /// Picks one of `count` items at random. The first item is picked with the given percentage, if there is
    /// one.
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

impl Ord for ScheduledEvent {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap returns its greatest element first, so the order is reversed.
        (other.at_us, other.number).cmp(&(self.at_us, self.number))
    }
}

impl PartialOrd for ScheduledEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ScheduledEvent {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for ScheduledEvent {}
