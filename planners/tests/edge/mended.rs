//! Each equation that is wrong as printed, by numbers that can be added up in one's head. On the link of these tests a
//! byte takes 1 ms up and 2 ms down, at 1 W and 2 W.

use layerlab_planners::edge::{
    BackwardPass, Energy, Group, Link, PhoneCost, Power, Quantity, RadioPower, Side,
    SplitAlgorithm, SplitGoal, SplitLimits, SplitNetwork, SplitPlan, SplitProblem, Tensor, Wait,
    chain_tensors, check_split, mirrored_segment, split, training_network,
};
use layerlab_profiles::{Bytes, Nanos, Segment};

fn link() -> Link {
    Link {
        upload_bps: 8_000,
        download_bps: 4_000,
        upload_wait: Wait::ZERO,
        download_wait: Wait::ZERO,
        radio: RadioPower {
            upload_microwatts_per_mbps: 0,
            download_microwatts_per_mbps: 250_000_000,
            base: Power::from_microwatts(1_000_000),
        },
    }
}

/// A group that takes so many ms on each side, 10 mJ per ms on the phone; 0 is a side that cannot run it.
fn group(first: u32, last: u32, phone: u64, server: u64) -> Group {
    Group {
        segment: Segment::new(first, last).expect("ascending"),
        phone: (phone > 0).then_some(PhoneCost {
            time: Nanos::from_millis(phone),
            energy: Energy::from_nanojoules(phone * 10_000_000),
        }),
        server: (server > 0).then_some(Nanos::from_millis(server)),
    }
}

fn bytes(sizes: &[u64]) -> Vec<Bytes> {
    sizes.iter().copied().map(Bytes::from_bytes).collect()
}

fn tensor(producer: u32, consumers: &[u32], size: u64) -> Tensor {
    Tensor {
        producer,
        consumers: consumers.to_vec(),
        bytes: Bytes::from_bytes(size),
        is_result: false,
    }
}

fn fastest_idle(network: &SplitNetwork, link: &Link, idle: Power) -> SplitPlan {
    let problem = SplitProblem::new(network.clone(), link, idle).expect("moderate");
    let goal = SplitGoal {
        minimise: Quantity::Latency,
        limits: SplitLimits::default(),
    };
    let outcome = split(&problem, goal, SplitAlgorithm::Joint).expect("sensible");
    let plan = outcome.plan().expect("no limits").clone();
    assert_eq!(check_split(&plan, network, link, idle), []);
    plan
}

fn fastest(network: &SplitNetwork) -> SplitPlan {
    fastest_idle(network, &link(), Power::ZERO)
}

/// Latency, energy and server time in ms and mJ.
fn millis(plan: &SplitPlan) -> [u64; 3] {
    Quantity::ALL.map(|quantity| plan.cost().of(quantity) / 1_000_000)
}

/// Eq. 3 and 9: the input of 7 bytes goes up, the result of 3 bytes comes down, nothing else moves.
#[test]
fn a_network_on_the_server_uploads_its_input_and_downloads_its_result() {
    let network = |is_result_wanted| {
        let tensors = chain_tensors(&bytes(&[7, 100, 3]), is_result_wanted);
        let groups = vec![group(1, 1, 0, 5), group(2, 2, 0, 5)];
        SplitNetwork::new(2, groups, tensors).expect("a network")
    };
    assert_eq!(millis(&fastest(&network(true))), [7 + 10 + 6, 7 + 12, 10]);
    assert_eq!(millis(&fastest(&network(false))), [7 + 10, 7, 10]);
}

/// Eq. 9: neighbouring groups on the phone move nothing, and a group that follows the server downloads its input.
#[test]
fn only_a_change_of_side_moves_anything() {
    let tensors = chain_tensors(&bytes(&[7, 4, 50, 60]), true);
    let groups = vec![group(1, 1, 0, 5), group(2, 2, 3, 0), group(3, 3, 3, 0)];
    let network = SplitNetwork::new(3, groups, tensors).expect("a network");
    let plan = fastest(&network);
    assert_eq!(millis(&plan), [7 + 5 + 8 + 6, 7 + 16 + 60, 5]);
    assert_eq!(plan.transfers().len(), 2);
}

/// While the server computes for 5 ms, and in the waits of 4 ms and 2 ms, the phone idles at 1 W.
#[test]
fn an_idle_phone_spends_energy() {
    let tensors = chain_tensors(&bytes(&[7, 3]), true);
    let network = SplitNetwork::new(1, vec![group(1, 1, 0, 5)], tensors).expect("a network");
    let link = Link {
        upload_wait: Wait::always(Nanos::from_millis(4)),
        download_wait: Wait::always(Nanos::from_millis(2)),
        ..link()
    };
    let plan = fastest_idle(&network, &link, Power::from_microwatts(1_000_000));
    assert_eq!(millis(&plan), [7 + 5 + 6 + 6, 7 + 12 + 5 + 6, 5]);
}

/// Two layers on the server use one tensor of the phone, and a third on the phone does: it goes up once.
#[test]
fn a_tensor_with_several_users_crosses_once() {
    let tensors = vec![
        tensor(0, &[1], 1),
        tensor(1, &[2, 3, 4], 9),
        tensor(2, &[4], 1),
        tensor(3, &[4], 1),
    ];
    let groups = vec![
        group(1, 1, 2, 0),
        group(2, 2, 0, 1),
        group(3, 3, 0, 1),
        group(4, 4, 2, 0),
    ];
    let network = SplitNetwork::new(4, groups, tensors).expect("a network");
    let plan = fastest(&network);
    assert_eq!(
        millis(&plan),
        [2 + 9 + 1 + 1 + 2 + 2 + 2, 20 + 9 + 4 + 4 + 20, 2]
    );
    assert_eq!(plan.transfers().len(), 3);
}

/// Figure 7: layers 2 and 3 cannot run as one unit, because layer 4 needs what layer 2 makes; layers 1 to 4 can.
#[test]
fn a_group_that_straddles_the_source_of_a_skip_is_split() {
    let tensors = vec![
        tensor(0, &[1], 1),
        tensor(1, &[2], 1),
        tensor(2, &[3, 4], 1),
        tensor(3, &[4], 1),
    ];
    let single = (1..=4).map(|layer| group(layer, layer, 10, 0));
    let with = |more: Group| {
        let groups = single.clone().chain([more]).collect();
        let network = SplitNetwork::new(4, groups, tensors.clone()).expect("a network");
        millis(&fastest(&network))[0]
    };
    assert_eq!(with(group(2, 3, 1, 0)), 40);
    assert_eq!(with(group(1, 3, 1, 0)), 40);
    assert_eq!(with(group(1, 2, 1, 0)), 21);
    assert_eq!(with(group(3, 4, 1, 0)), 21);
    assert_eq!(with(group(2, 4, 1, 0)), 11);
    assert_eq!(with(group(1, 4, 1, 0)), 1);
}

/// Eq. 13 and 16: a backward group on the server returns the weights of both its layers, 5 and 6 bytes.
#[test]
fn training_returns_the_weights_of_each_backward_layer_on_the_server() {
    let forward = chain_tensors(&bytes(&[7, 4, 3]), true);
    let forward = SplitNetwork::new(2, vec![group(1, 2, 0, 1)], forward).expect("a network");
    let step = |is_result_wanted| {
        let backward = BackwardPass {
            groups: vec![group(3, 4, 0, 1)],
            updated_weights: bytes(&[5, 6]),
            is_result_wanted,
        };
        training_network(&forward, backward).expect("a network")
    };
    assert_eq!(
        millis(&fastest(&step(false))),
        [7 + 2 + 10 + 12, 7 + 20 + 24, 2]
    );
    assert_eq!(millis(&fastest(&step(true)))[0], 7 + 2 + 10 + 12 + 6);
}

/// Weights of 100 bytes are too much to return: backward layer 2 of that weight stays on the phone, where it takes
/// longer.
#[test]
fn training_keeps_heavy_backward_layers_on_the_phone() {
    let forward = chain_tensors(&bytes(&[20, 1, 1]), true);
    let groups = vec![group(1, 1, 1, 9), group(2, 2, 50, 1)];
    let forward = SplitNetwork::new(2, groups, forward).expect("a network");
    let backward = BackwardPass {
        groups: vec![group(3, 3, 90, 1), group(4, 4, 90, 1)],
        updated_weights: bytes(&[100, 0]),
        is_result_wanted: false,
    };
    let plan = fastest(&training_network(&forward, backward).expect("a network"));
    let sides: Vec<Side> = plan.groups().iter().map(|group| group.side).collect();
    assert_eq!(
        sides,
        [Side::Phone, Side::Server, Side::Server, Side::Phone]
    );
}

/// A skip from layer 1 to layer 3 has a gradient from backward layer 4 (of layer 3) to backward layer 6 (of layer 1).
#[test]
fn training_mirrors_tensors() {
    let tensors = vec![
        tensor(0, &[1, 2], 9),
        tensor(1, &[2, 3], 8),
        tensor(2, &[3], 7),
        Tensor {
            is_result: true,
            ..tensor(3, &[], 6)
        },
    ];
    let forward = SplitNetwork::new(3, Vec::new(), tensors).expect("a network");
    let backward = BackwardPass {
        groups: Vec::new(),
        updated_weights: bytes(&[1, 2, 3]),
        is_result_wanted: false,
    };
    let training = training_network(&forward, backward).expect("a network");
    let mut made = training.tensors().to_vec();
    made.sort_by_key(|one| (one.producer, one.consumers.clone()));
    assert_eq!(
        made,
        [
            tensor(0, &[1, 2], 9),
            tensor(1, &[2, 3], 8),
            tensor(2, &[3], 7),
            tensor(3, &[4], 6),
            tensor(4, &[5], 7),
            tensor(4, &[6], 8),
            tensor(5, &[6], 8),
        ]
    );
    assert_eq!(training.returned_weights(), bytes(&[0, 0, 0, 3, 2, 1]));
    let segment = |first, last| Segment::new(first, last).expect("ascending");
    assert_eq!(mirrored_segment(segment(1, 2), 3), Some(segment(5, 6)));
    assert_eq!(mirrored_segment(segment(2, 4), 3), None);
    assert_eq!(mirrored_segment(segment(1, 1), u32::MAX), None);
}
