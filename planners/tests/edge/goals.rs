//! Goals for a network that is too large for brute force, with limits that change what is best.

use layerlab_planners::edge::{Energy, Quantity, SplitCost, SplitGoal, SplitLimits};
use layerlab_profiles::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Eight goals: each quantity with and without limits on others, all three limits at once, and one that nothing keeps.
/// `least` is asked for what the best splits cost.
pub(crate) fn goals(seed: u64, least: impl Fn(SplitGoal) -> Option<SplitCost>) -> Vec<SplitGoal> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x90a1);
    let goal = |minimise, limits| SplitGoal { minimise, limits };
    let free = Quantity::ALL.map(|minimise| goal(minimise, SplitLimits::default()));
    let [fast, frugal, _] = free.map(|goal| least(goal).expect("nothing is limited"));
    let mut between = |one: u64, other: u64| {
        let (low, high) = (one.min(other), one.max(other));
        random.random_range(low..=high)
    };
    let energy = between(fast.energy.as_nanojoules(), frugal.energy.as_nanojoules());
    let by_energy = SplitLimits {
        energy: Some(Energy::from_nanojoules(energy)),
        ..SplitLimits::default()
    };
    let latency = between(fast.latency.as_nanos(), frugal.latency.as_nanos());
    let by_latency = SplitLimits {
        latency: Some(Nanos::from_nanos(latency)),
        ..SplitLimits::default()
    };
    let server_time = between(fast.server_time.as_nanos(), frugal.server_time.as_nanos());
    let by_server_time = SplitLimits {
        server_time: Some(Nanos::from_nanos(server_time)),
        ..SplitLimits::default()
    };
    // What the fastest split within the first limit costs, and a little more of it.
    let within = least(goal(Quantity::Latency, by_energy)).expect("the frugal split keeps it");
    let slack = within.latency.as_nanos() / 20;
    let by_all = SplitLimits {
        latency: Some(Nanos::from_nanos(
            within.latency.as_nanos() + between(0, slack),
        )),
        server_time: Some(within.server_time),
        ..by_energy
    };
    let too_fast = SplitLimits {
        latency: Some(Nanos::from_nanos(fast.latency.as_nanos() * 99 / 100)),
        ..SplitLimits::default()
    };
    vec![
        free[0],
        free[1],
        goal(Quantity::Latency, by_energy),
        goal(Quantity::Latency, by_server_time),
        goal(Quantity::Energy, by_latency),
        goal(Quantity::Energy, by_all),
        goal(Quantity::ServerTime, by_latency),
        goal(Quantity::Energy, too_fast),
    ]
}
