use super::*;

fn run_simulation(plan: SimulationPlan) -> SimReport {
    let mut simulation = Simulation::new(plan).unwrap();
    while simulation.advance(100_000) {}
    simulation.report()
}

/// Returns a plan with calls that cost at most their holds.
fn small_plan() -> SimulationPlan {
    SimulationPlan { seconds: 20, held: 3_000, call_ms: 1_000, ..SimulationPlan::default() }
}

#[test]
fn a_simulation_is_reproducible_by_its_seed() {
    let first = run_simulation(small_plan());
    assert_eq!(first, run_simulation(small_plan()));
    assert_ne!(first, run_simulation(SimulationPlan { seed: 2, ..small_plan() }));
}

#[test]
fn calls_within_their_holds_use_a_budget_up_without_exceeding_it() {
    for seed in 0..8 {
        // An instance that reconnects requests its shares again while its calls are in progress.
        let outages = (1..6).map(|nth| Outage { at: nth * 3, seconds: 1 }).collect();
        let kills = vec![Kill { at: 9, back_after: Some(2) }];
        let report =
            run_simulation(SimulationPlan { seed, outages, kills, limit: Some(3_000_000), ..small_plan() });
        assert_eq!(report.most_over, 0, "seed {seed}: {report:?}");
        assert!(report.least_used_per_mille.unwrap() >= 980, "seed {seed}: {report:?}");
    }
}

#[test]
fn the_share_of_a_killed_instance_is_unavailable() {
    let killed =
        run_simulation(SimulationPlan { kills: vec![Kill { at: 5, back_after: None }], ..small_plan() });
    assert!(killed.most_silent_per_mille > 0);
    assert_eq!(run_simulation(small_plan()).most_silent_per_mille, 0);
}

#[test]
fn calls_continue_in_a_short_outage_and_fail_in_a_long_one() {
    let outage = |seconds| SimulationPlan {
        seconds: 100,
        limit: Some(1 << 50),
        requests_per_second: 20,
        outages: vec![Outage { at: 20, seconds }],
        ..small_plan()
    };
    let (short, long) = (run_simulation(outage(1)), run_simulation(outage(70)));
    assert!(short.refused_without_database < 20, "{short:?}");
    // The shares last until they are used up, but for at most 55 seconds.
    assert!(long.refused_without_database > 20 * 15, "{long:?}");
    assert!(long.most_rows_waiting > short.most_rows_waiting);
}

#[test]
fn a_longer_round_trip_makes_calls_wait_longer() {
    let slow = run_simulation(SimulationPlan { round_trip_us: 20_000, ..small_plan() });
    assert!(slow.wait_p50_us > run_simulation(small_plan()).wait_p50_us * 3, "{slow:?}");
}

#[test]
fn rows_of_all_requests_are_counted() {
    let report = run_simulation(SimulationPlan { limit: Some(1 << 50), ..small_plan() });
    assert_eq!(report.rows_per_day, 200 * 86_400);
    assert_eq!(report.table_bytes_per_day, 200 * 86_400 * ROW_BYTES);
    assert_eq!((report.refused_by_budget, report.least_used_per_mille), (0, None));
    // The first request is sent after one second.
    assert!((3_500..4_100).contains(&report.calls), "{}", report.calls);
}

#[test]
fn overlong_simulation_plans_are_rejected() {
    let error = |plan| Simulation::new(plan).unwrap_err().to_string();
    let long = SimulationPlan { requests_per_second: 1_000_000, seconds: 11, ..SimulationPlan::default() };
    assert!(error(long).starts_with("requests a second × seconds must be from 1 to 10000000"));
    assert!(error(SimulationPlan { instances: 0, ..SimulationPlan::default() }).contains("instances"));
    assert!(
        error(SimulationPlan { hot_budget_percent: Some(101), ..SimulationPlan::default() })
            .contains("percentage")
    );
    assert!(
        error(SimulationPlan { instances: 1_000, seconds: 201, ..SimulationPlan::default() })
            .contains("instances × seconds")
    );
    let kills = vec![Kill { at: 1, back_after: None }; 5];
    assert!(error(SimulationPlan { kills, ..SimulationPlan::default() }).contains("5 kills"));
}
