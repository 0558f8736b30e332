//! Wrong use is refused, in one sentence that says what to do; what has no plan says why.

use layerlab_planners::edge::{
    BackwardPass, Direction, Energy, Group, Link, PaperLink, PhoneCost, Power, Quantity,
    SplitAlgorithm, SplitError, SplitGoal, SplitLimits, SplitNetwork, SplitOutcome, SplitProblem,
    Tensor, Wait, chain_tensors, split, split_front, training_network,
};
use layerlab_profiles::{Bytes, Nanos, Segment};

use crate::planted::Planted;

fn group(first: u32, last: u32) -> Group {
    Group {
        segment: Segment::new(first, last).expect("ascending"),
        phone: Some(PhoneCost {
            time: Nanos::from_millis(1),
            energy: Energy::from_nanojoules(1),
        }),
        server: Some(Nanos::from_millis(1)),
    }
}

fn tensor(producer: u32, consumers: &[u32]) -> Tensor {
    Tensor {
        producer,
        consumers: consumers.to_vec(),
        bytes: Bytes::from_bytes(8),
        is_result: false,
    }
}

/// The sentence of an error.
fn sentence<T>(result: Result<T, SplitError>) -> String {
    let text = result.err().expect("refused").to_string();
    assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
    text
}

#[test]
fn networks_that_are_none_are_refused() {
    let network = |layers, groups: &[Group], tensors: &[Tensor]| {
        sentence(SplitNetwork::new(layers, groups.to_vec(), tensors.to_vec()))
    };
    for (sentence, part) in [
        (network(0, &[], &[]), "has no layers"),
        (network(1025, &[], &[]), "1025 layers; at most 1024"),
        (
            network(1, &[], &vec![tensor(0, &[1]); 4097]),
            "4097 tensors; at most 4096",
        ),
        (
            network(2, &[group(2, 3)], &[]),
            "2..=3 is beyond the network's 2 layers",
        ),
        (
            network(2, &[group(1, 2), group(1, 2)], &[]),
            "1..=2 is given twice",
        ),
        (network(2, &[], &[tensor(3, &[])]), "produced by layer 3"),
        (network(2, &[], &[tensor(1, &[1])]), "is used by layer 1"),
        (
            network(2, &[], &[tensor(0, &[1]), tensor(1, &[2, 3])]),
            "tensor 1 of layer 1 is used by layer 3",
        ),
    ] {
        assert!(sentence.contains(part), "{sentence}");
    }
    let two = SplitNetwork::new(2, vec![group(1, 2)], Vec::new()).expect("a network");
    let weights = "1 sizes of weights are given for 2 layers; give one for each";
    assert_eq!(
        sentence(two.clone().with_returned_weights(vec![Bytes::ZERO])),
        weights
    );
    let backward = BackwardPass {
        groups: Vec::new(),
        updated_weights: vec![Bytes::ZERO],
        is_result_wanted: false,
    };
    assert_eq!(sentence(training_network(&two, backward)), weights);
    assert_eq!(chain_tensors(&[], true), []);
}

#[test]
fn links_that_carry_nothing_and_costs_beyond_sums_are_refused() {
    let problem = |network: &SplitNetwork, link: Link| {
        sentence(SplitProblem::new(network.clone(), &link, Power::ZERO))
    };
    let tensors = chain_tensors(&[Bytes::from_bytes(8), Bytes::from_bytes(8)], true);
    let network = SplitNetwork::new(1, vec![group(1, 1)], tensors).expect("a network");
    let link = PaperLink::WiFi.link();
    let no_upload = Link {
        upload_bps: 0,
        ..link
    };
    assert_eq!(
        problem(&network, no_upload),
        "the upload bandwidth is 0 bit/s; give what the link carries"
    );
    let no_download = Link {
        download_bps: 0,
        ..link
    };
    assert_eq!(
        sentence(no_download.transfer(Direction::Download, Bytes::ZERO, Power::ZERO)),
        "the download bandwidth is 0 bit/s; give what the link carries"
    );
    let slow = Link {
        upload_wait: Wait::always(Nanos::from_nanos(u64::MAX)),
        ..link
    };
    assert!(problem(&network, slow).contains("more than 10^15 ns or nJ"));
    let tensors = chain_tensors(&[Bytes::from_bytes(u64::MAX)], true);
    let large = SplitNetwork::new(1, vec![group(1, 1)], tensors).expect("a network");
    assert!(problem(&large, link).contains("of 18446744073709551615 bytes costs more"));
    let mut long = group(1, 1);
    long.server = Some(Nanos::from_nanos(u64::MAX));
    let long = SplitNetwork::new(1, vec![long], Vec::new()).expect("a network");
    assert!(problem(&long, link).contains("group 1..=1 on the server costs more"));
    let idle = Power::from_microwatts(u64::MAX);
    let hot = sentence(SplitProblem::new(network, &link, idle));
    assert!(hot.contains("on the server costs more"), "{hot}");
}

#[test]
fn more_than_twelve_tensors_across_a_cut_are_refused() {
    let layers = 14;
    let to_the_end = (0..13).map(|producer| tensor(producer, &[layers]));
    let network = SplitNetwork::new(layers, Vec::new(), to_the_end.collect()).expect("a network");
    let problem = SplitProblem::new(network, &PaperLink::WiFi.link(), Power::ZERO);
    assert_eq!(
        sentence(problem),
        "13 tensors are alive after layer 12; at most 12 are planned for"
    );
}

#[test]
fn goals_that_make_no_sense_are_refused() {
    let problem = Planted::new(3, 1).problem();
    let ask = |limits, algorithm| {
        let minimise = Quantity::Latency;
        sentence(split(&problem, SplitGoal { minimise, limits }, algorithm))
    };
    let free = SplitLimits::default();
    let no_time = SplitLimits {
        latency: Some(Nanos::ZERO),
        ..free
    };
    let no_energy = SplitLimits {
        energy: Some(Energy::ZERO),
        ..free
    };
    let zero = |what| format!("the limit of {what} is 0; give a limit above 0, or none");
    assert_eq!(ask(no_time, SplitAlgorithm::Joint), zero("latency"));
    assert_eq!(ask(no_energy, SplitAlgorithm::PhoneOnly), zero("energy"));
    assert_eq!(sentence(split_front(&problem, no_time)), zero("latency"));
    assert_eq!(
        ask(free, SplitAlgorithm::Larac),
        "larac keeps exactly one limit, and there are 0; use joint for any others"
    );
    let error = "simplex"
        .parse::<SplitAlgorithm>()
        .expect_err("no algorithm");
    let said = error.to_string();
    for algorithm in SplitAlgorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        assert!(said.contains(algorithm.name()), "{said}");
    }
}

/// A server time of 0 is a limit that makes sense: it keeps everything on the phone.
#[test]
fn no_server_time_is_phone_only() {
    for seed in 0..50 {
        let planted = Planted::chain(8, seed);
        let problem = planted.problem();
        let limits = SplitLimits {
            server_time: Some(Nanos::ZERO),
            ..SplitLimits::default()
        };
        let goal = SplitGoal {
            minimise: Quantity::Energy,
            limits,
        };
        let ask = |algorithm| split(&problem, goal, algorithm).expect("sensible");
        let [joint, phone] = [SplitAlgorithm::Joint, SplitAlgorithm::PhoneOnly].map(ask);
        let cost = |outcome| planted.checked(outcome).expect("a plan").cost();
        assert_eq!(cost(&joint), cost(&phone), "seed {seed}");
    }
}

#[test]
fn a_network_that_no_groups_cover_has_no_plan_and_says_so() {
    let tensors = chain_tensors(&[Bytes::from_bytes(8); 4], true);
    let network = SplitNetwork::new(3, vec![group(1, 1), group(3, 3)], tensors).expect("a network");
    let problem = SplitProblem::new(network, &PaperLink::FourG.link(), Power::ZERO);
    let problem = problem.expect("moderate");
    for algorithm in SplitAlgorithm::ALL {
        let limits = SplitLimits {
            latency: Some(Nanos::from_millis(1)),
            ..SplitLimits::default()
        };
        let goal = SplitGoal {
            minimise: Quantity::Energy,
            limits,
        };
        let SplitOutcome::Infeasible(infeasible) =
            split(&problem, goal, algorithm).expect("sensible")
        else {
            panic!("{algorithm} has a plan");
        };
        let said = format!(
            "{algorithm} has no plan: no groups that may run where it runs them cover all layers"
        );
        assert_eq!(infeasible.to_string(), said);
    }
    assert_eq!(
        split_front(&problem, SplitLimits::default()),
        Ok(Vec::new())
    );
}
