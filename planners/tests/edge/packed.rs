//! Tensors that cross packed where they arrive sooner so, against every split there is.

use layerlab_planners::edge::{
    Energy, Quantity, Side, SplitAlgorithm, SplitError, SplitFault, SplitGoal, SplitLimits,
    SplitNetwork, SplitPlan, check_split, split, split_front,
};
use layerlab_profiles::{Bytes, Nanos};

use crate::brute_force;
use crate::optimum::{costs, layers};
use crate::planted::Planted;

const INSTANCES: u64 = 400;

#[test]
fn plans_with_packed_tensors_are_the_fastest_of_all_splits() {
    let (mut packed, mut as_they_are, mut sooner) = (0, 0, 0);
    for seed in 0..INSTANCES {
        let plain = Planted::new(layers(seed), seed);
        let planted = plain.clone().with_packings(seed);
        let all = brute_force::all_costs(&planted, |_| true);
        let outcome = split(
            &planted.problem(),
            SplitGoal::FASTEST,
            SplitAlgorithm::Joint,
        )
        .expect("sensible");
        let Some(plan) = planted.checked(&outcome) else {
            assert!(all.is_empty(), "seed {seed}");
            continue;
        };
        let found = Some(costs(&plan.cost()));
        assert_eq!(
            found,
            brute_force::optimum(&all, SplitGoal::FASTEST),
            "seed {seed}"
        );
        let transfers = plan.transfers();
        packed += transfers.iter().filter(|one| one.codec.is_some()).count();
        as_they_are += transfers.iter().filter(|one| one.codec.is_none()).count();
        let shares = plan.shares();
        let parts = shares.phone + shares.server + shares.upload + shares.download;
        assert_eq!(parts, plan.cost().latency);

        let unpacked =
            split(&plain.problem(), SplitGoal::FASTEST, SplitAlgorithm::Joint).expect("sensible");
        let unpacked = unpacked.plan().expect("the same groups").cost().latency;
        assert!(plan.cost().latency <= unpacked, "seed {seed}");
        sooner += usize::from(plan.cost().latency < unpacked);

        let at_most = SplitLimits {
            latency: Some(plan.cost().latency),
            ..SplitLimits::default()
        };
        let kept = SplitGoal {
            limits: at_most,
            ..SplitGoal::FASTEST
        };
        let outcome = split(&planted.problem(), kept, SplitAlgorithm::Joint).expect("sensible");
        let kept = planted.checked(&outcome).expect("it is within reach");
        assert_eq!(kept.cost(), plan.cost());
    }
    assert!(
        packed > 100 && as_they_are > 100 && sooner > 100,
        "{packed}, {as_they_are}, {sooner}"
    );
}

/// A plan that moves a packed tensor each way.
fn planned() -> (Planted, SplitPlan) {
    let plans = (0..400).filter_map(|seed| {
        let planted = Planted::new(7, seed).with_packings(seed);
        let outcome = split(
            &planted.problem(),
            SplitGoal::FASTEST,
            SplitAlgorithm::Joint,
        )
        .expect("sensible");
        let plan = planted.checked(&outcome)?.clone();
        let packed = plan.transfers().iter().filter(|one| one.codec.is_some());
        let mut ways: Vec<_> = packed.map(|one| one.direction).collect();
        ways.sort_unstable();
        ways.dedup();
        (ways.len() == 2).then_some((planted, plan))
    });
    plans.into_iter().next().expect("some plan packs both ways")
}

#[test]
fn the_checker_finds_each_number_of_a_packing_that_is_not_the_planned_one() {
    let (planted, plan) = planned();
    let faults = |network: &SplitNetwork| check_split(&plan, network, &planted.link, planted.idle);
    assert_eq!(faults(&planted.network), []);
    for transfer in plan.transfers() {
        let Some(codec) = transfer.codec else {
            continue;
        };
        let changed = |change: &dyn Fn(&mut layerlab_planners::edge::Packed)| {
            let mut packings = planted.network.packings().to_vec();
            let of_tensor = packings[transfer.tensor].iter_mut();
            for packing in of_tensor.filter(|packing| packing.codec == codec) {
                change(&mut packing.upload);
                change(&mut packing.download);
            }
            let network = planted.network.clone().with_packings(packings);
            faults(&network.expect("a list for each"))
        };
        let is_sum = |fault: &SplitFault| {
            matches!(fault, SplitFault::Cost { .. } | SplitFault::Shares { .. })
        };
        let later = Nanos::from_nanos(7);
        for found in [
            changed(&|packed| packed.bytes = packed.bytes + Bytes::from_bytes(1_000)),
            changed(&|packed| packed.pack = packed.pack + later),
            changed(&|packed| packed.unpack = packed.unpack + later),
        ] {
            assert!(!found.is_empty() && found.iter().all(is_sum), "{found:?}");
        }
        let mut packings = planted.network.packings().to_vec();
        packings[transfer.tensor].retain(|packing| packing.codec != codec);
        let network = planted.network.clone().with_packings(packings);
        let found = faults(&network.expect("a list for each"));
        let tensor = transfer.tensor;
        assert_eq!(found[0], SplitFault::NoSuchPacking { tensor, codec });
    }
}

#[test]
fn packing_counts_as_computing_on_the_side_that_does_it() {
    let (planted, plan) = planned();
    let network = &planted.network;
    let on_groups = |side| {
        let groups = plan.groups().iter().filter(|placed| placed.side == side);
        let times = groups.map(|placed| {
            let mut all = network.groups().iter();
            let group = all.find(|group| group.segment == placed.segment);
            let group = group.expect("it was planned with");
            match side {
                Side::Phone => group.phone.map(|cost| cost.time),
                Side::Server => group.server,
            }
        });
        times.sum::<Option<Nanos>>().expect("they run there")
    };
    let packing = |side| {
        let packed = plan.transfers().iter().filter_map(|transfer| {
            let packed = network.packed(transfer)?;
            Some(packed.on(side, transfer.direction.to()))
        });
        packed.sum::<Nanos>()
    };
    let shares = plan.shares();
    assert_eq!(shares.phone, on_groups(Side::Phone) + packing(Side::Phone));
    assert_eq!(
        shares.server,
        on_groups(Side::Server) + packing(Side::Server)
    );
    assert_eq!(shares.server, plan.cost().server_time);
    assert!(packing(Side::Phone) > Nanos::ZERO && packing(Side::Server) > Nanos::ZERO);
}

#[test]
fn of_packed_tensors_the_latency_alone_is_planned_with() {
    let (planted, _) = planned();
    let problem = planted.problem();
    let limits = SplitLimits::default();
    let refused = [
        (Quantity::Energy, limits),
        (Quantity::ServerTime, limits),
        (
            Quantity::Latency,
            SplitLimits {
                energy: Some(Energy::from_nanojoules(1)),
                ..limits
            },
        ),
        (
            Quantity::Latency,
            SplitLimits {
                server_time: Some(Nanos::from_nanos(1)),
                ..limits
            },
        ),
    ];
    for (minimise, limits) in refused {
        let goal = SplitGoal { minimise, limits };
        let found = split(&problem, goal, SplitAlgorithm::Joint);
        assert!(matches!(found, Err(SplitError::PackedGoal(_))), "{goal:?}");
    }
    assert!(split_front(&problem, SplitLimits::default()).is_err());
    let too_few = planted.network.clone().with_packings(Vec::new());
    let said = too_few.expect_err("there are tensors").to_string();
    assert!(
        said.starts_with("packings are given for 0 tensors of "),
        "{said}"
    );
}
