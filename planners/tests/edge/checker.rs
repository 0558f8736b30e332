//! The checker finds each number that is not the one that was planned with.

use layerlab_planners::edge::{
    Energy, Group, Power, Quantity, Side, SplitAlgorithm, SplitFault, SplitGoal, SplitLimits,
    SplitNetwork, SplitPlan, Tensor, Wait, check_split, split,
};
use layerlab_profiles::{Bytes, Nanos};

use crate::planted::Planted;

/// A plan that uses both sides and keeps a limit, of a network whose weights are returned.
fn planned() -> (Planted, SplitPlan) {
    let plans = (0..200).filter_map(|seed| {
        let mut planted = Planted::new(7, seed);
        let weights = vec![Bytes::from_bytes(1_000); 7];
        planted.network = planted
            .network
            .with_returned_weights(weights)
            .expect("one for each");
        planted.link.upload_wait = Wait::always(Nanos::from_millis(2));
        planted.link.download_wait = Wait::always(Nanos::from_millis(3));
        planted.idle = Power::from_microwatts(300_000);
        let limits = SplitLimits {
            latency: Some(Nanos::from_millis(10_000)),
            ..SplitLimits::default()
        };
        let goal = SplitGoal {
            minimise: Quantity::Latency,
            limits,
        };
        let outcome = split(&planted.problem(), goal, SplitAlgorithm::Joint).expect("sensible");
        let plan = planted.checked(&outcome)?.clone();
        let is_rich = plan.pattern() == [Side::Phone, Side::Server, Side::Phone];
        is_rich.then_some((planted, plan))
    });
    plans.into_iter().next().expect("some plan uses both sides")
}

fn faults(planted: &Planted, plan: &SplitPlan) -> Vec<SplitFault> {
    check_split(plan, &planted.network, &planted.link, planted.idle)
}

/// The network with changed groups and tensors.
fn changed(
    planted: &Planted,
    layers: u32,
    group: impl Fn(Group) -> Option<Group>,
    tensors: Vec<Tensor>,
) -> Planted {
    let groups = planted.network.groups().iter().copied().filter_map(group);
    let mut weights = planted.network.returned_weights().to_vec();
    weights.resize(layers as usize, Bytes::ZERO);
    let network = SplitNetwork::new(layers, groups.collect(), tensors).expect("a network");
    let network = network
        .with_returned_weights(weights)
        .expect("one for each");
    Planted {
        network,
        ..planted.clone()
    }
}

#[test]
fn every_number_of_the_link_counts() {
    let (planted, plan) = planned();
    let costs = |change: &dyn Fn(&mut Planted)| {
        let mut other = planted.clone();
        change(&mut other);
        let faults = faults(&other, &plan);
        let is_cost = |fault: &SplitFault| {
            matches!(fault, SplitFault::Cost { .. } | SplitFault::Shares { .. })
        };
        assert!(
            !faults.is_empty() && faults.iter().all(is_cost),
            "{faults:?}"
        );
    };
    costs(&|one| one.link.upload_bps += 1_000);
    costs(&|one| one.link.download_bps += 1_000);
    costs(&|one| one.link.upload_wait = Wait::ZERO);
    costs(&|one| one.link.download_wait = Wait::ZERO);
    costs(&|one| one.link.radio.upload_microwatts_per_mbps += 1_000);
    costs(&|one| one.link.radio.download_microwatts_per_mbps += 1_000);
    costs(&|one| one.link.radio.base = Power::from_microwatts(1));
    costs(&|one| one.idle = Power::ZERO);
    costs(&|one| {
        let weights = vec![Bytes::ZERO; 7];
        one.network = one
            .network
            .clone()
            .with_returned_weights(weights)
            .expect("one for each");
    });
}

#[test]
fn every_number_of_the_planned_groups_counts() {
    let (planted, plan) = planned();
    let tensors = planted.network.tensors().to_vec();
    for placed in plan.groups() {
        let with = |change: &dyn Fn(Group) -> Option<Group>| {
            let change = |group: Group| match group.segment == placed.segment {
                true => change(group),
                false => Some(group),
            };
            faults(&changed(&planted, 7, change, tensors.clone()), &plan)
        };
        let later = Nanos::from_nanos(7);
        let slower = with(&|mut group| {
            group.server = group.server.map(|time| time + later);
            group.phone = group.phone.map(|mut phone| {
                phone.time = phone.time + later;
                phone.energy = phone.energy + Energy::from_nanojoules(7);
                phone
            });
            Some(group)
        });
        assert!(matches!(slower[0], SplitFault::Cost { .. }), "{slower:?}");
        let (segment, side) = (placed.segment, placed.side);
        assert_eq!(with(&|_| None), [SplitFault::NoSuchGroup { segment, side }]);
    }
}

#[test]
fn tensors_that_move_in_vain_or_not_at_all_are_found() {
    let (planted, plan) = planned();
    let tensors = planted.network.tensors();
    for transfer in plan.transfers() {
        let mut larger = tensors.to_vec();
        larger[transfer.tensor].bytes = larger[transfer.tensor].bytes + Bytes::from_bytes(1_000);
        let found = faults(&changed(&planted, 7, Some, larger), &plan);
        assert!(matches!(found[0], SplitFault::Cost { .. }), "{found:?}");
        let mut unused = tensors.to_vec();
        unused[transfer.tensor].consumers.clear();
        unused[transfer.tensor].is_result = false;
        let found = faults(&changed(&planted, 7, Some, unused), &plan);
        let needed = SplitFault::Transfer {
            tensor: transfer.tensor,
            planned: vec![transfer.direction],
            needed: Vec::new(),
        };
        assert_eq!(found[0], needed);
    }
    let mut groups = plan.groups().iter();
    let used = groups
        .find(|group| group.side == Side::Server)
        .expect("both sides run");
    let mut more = tensors.to_vec();
    more.push(Tensor {
        producer: 0,
        consumers: vec![used.segment.first()],
        bytes: Bytes::from_bytes(8),
        is_result: false,
    });
    let found = faults(&changed(&planted, 7, Some, more), &plan);
    assert!(matches!(found[0], SplitFault::Transfer { .. }), "{found:?}");
}

#[test]
fn layers_that_do_not_run_and_groups_that_must_be_split_are_found() {
    let (planted, plan) = planned();
    let tensors = planted.network.tensors().to_vec();
    let longer = changed(&planted, 8, Some, tensors.clone());
    assert_eq!(
        faults(&longer, &plan),
        [SplitFault::Unfinished { after: 7 }]
    );
    let shorter = |group: Group| (group.segment.last() < 7).then_some(group);
    let short_tensors = vec![];
    let found = faults(&changed(&planted, 6, shorter, short_tensors), &plan);
    assert!(
        matches!(found[0], SplitFault::OutOfOrder { .. }),
        "{found:?}"
    );
    let grouped = plan
        .groups()
        .iter()
        .find(|placed| placed.segment.layers() > 1);
    let segment = grouped.expect("a group of several layers").segment;
    let mut straddled = tensors.clone();
    straddled.push(Tensor {
        producer: segment.first(),
        consumers: Vec::new(),
        bytes: Bytes::ZERO,
        is_result: true,
    });
    let tensor = straddled.len() - 1;
    let found = faults(&changed(&planted, 7, Some, straddled), &plan);
    assert_eq!(found, [SplitFault::NotSplit { segment, tensor }]);
}
