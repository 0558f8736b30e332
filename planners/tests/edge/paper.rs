//! The paper's numbers from the paper's inputs, and the shapes of its schedules.

use layerlab_planners::edge::{
    BackwardPass, Direction, Energy, Group, PaperLink, PhoneCost, Power, Quantity, Side,
    SplitAlgorithm, SplitGoal, SplitLimits, SplitNetwork, SplitPlan, SplitProblem, chain_tensors,
    check_split, split, training_network,
};
use layerlab_profiles::{Bytes, Nanos, Segment};

/// AlexNet's input of 227 x 227 x 3 at 8 bits.
const ALEXNET_INPUT: Bytes = Bytes::from_bytes(227 * 227 * 3);

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[test]
fn uploading_alexnets_input_costs_what_table_3_gives() {
    for (paper, millis, milliwatts, millijoules) in [
        (PaperLink::ThreeG, 1124.3, 1773.8, 1994.2),
        (PaperLink::FourG, 211.4, 3852.6, 814.4),
        (PaperLink::WiFi, 65.5, 5479.1, 358.9),
    ] {
        let link = paper.link();
        let upload = link.transfer(Direction::Upload, ALEXNET_INPUT, Power::ZERO);
        let (time, energy) = upload.expect("a bandwidth");
        let power = link.power(Direction::Upload).as_microwatts() as f64 / 1e3;
        let found = [time.as_millis_f64(), power, energy.as_millijoules_f64()];
        assert_eq!(
            found.map(tenths),
            [millis, milliwatts, millijoules],
            "{paper:?}"
        );
    }
}

/// α_d t_d + β, computed by hand from Table 3.
#[test]
fn downloading_draws_what_table_3_gives() {
    let power = |paper: PaperLink| paper.link().power(Direction::Download).as_microwatts();
    assert_eq!(PaperLink::ALL.map(power), [1_065_478, 2_003_147, 7_664_300]);
}

fn segment(first: u32, last: u32) -> Segment {
    Segment::new(first, last).expect("ascending")
}

/// §4.1: 99, 93 and 81 % of AlexNet's latency on the server alone is communication.
#[test]
fn communication_dominates_alexnet_on_the_server() {
    let whole = Group {
        segment: Segment::whole(21),
        phone: None,
        server: Some(Nanos::from_micros(15_500)),
    };
    // The figure has no download: the thousand scores are not asked for.
    let mut tensors = chain_tensors(&[ALEXNET_INPUT], false);
    tensors[0].consumers = vec![1];
    let network = SplitNetwork::new(21, vec![whole], tensors).expect("a network");
    for (paper, percent) in PaperLink::ALL.into_iter().zip([98.6, 93.2, 80.9]) {
        let plan = best(&network, paper, SplitAlgorithm::ServerOnly);
        let share = plan.shares().communication();
        assert_eq!(tenths(share * 100.0), percent, "{paper:?}");
    }
}

/// The fastest split, checked.
fn best(network: &SplitNetwork, paper: PaperLink, algorithm: SplitAlgorithm) -> SplitPlan {
    let link = paper.link();
    let problem = SplitProblem::new(network.clone(), &link, Power::ZERO).expect("moderate");
    let goal = SplitGoal {
        minimise: Quantity::Latency,
        limits: SplitLimits::default(),
    };
    let outcome = split(&problem, goal, algorithm).expect("sensible");
    let plan = outcome.plan().expect("no limits").clone();
    assert_eq!(check_split(&plan, network, &link, Power::ZERO), []);
    plan
}

/// A chain whose layers take `millis` on the phone, a fifteenth of that on the server, and hand on `kilobytes`, the
/// input's first.
fn chain(millis: &[u64], kilobytes: &[u64]) -> SplitNetwork {
    let layers = millis.len() as u32;
    let sizes: Vec<Bytes> = kilobytes
        .iter()
        .map(|kb| Bytes::from_bytes(kb * 1000))
        .collect();
    let groups = groups(1, millis);
    SplitNetwork::new(layers, groups, chain_tensors(&sizes, true)).expect("a network")
}

/// All groups of layers from `first` on, which take as long as their layers.
fn groups(first: u32, millis: &[u64]) -> Vec<Group> {
    let layers = millis.len();
    let pairs = (0..layers).flat_map(|i| (i..layers).map(move |j| (i, j)));
    let group = |(i, j): (usize, usize)| {
        let time: u64 = millis[i..=j].iter().sum();
        Group {
            segment: segment(first + i as u32, first + j as u32),
            phone: Some(PhoneCost {
                time: Nanos::from_millis(time),
                energy: Energy::from_nanojoules(time * 5_000_000),
            }),
            server: Some(Nanos::from_micros(time * 1000 / 15)),
        }
    };
    pairs.map(group).collect()
}

/// Figure 11: the shapes of schedules on Wi-Fi for the least latency. The networks are of the paper's shapes (Figure
/// 2), their numbers are made for this test.
#[test]
fn schedules_have_the_shapes_of_figure_11() {
    use Side::{Phone, Server};
    let joint = |network: &SplitNetwork| best(network, PaperLink::WiFi, SplitAlgorithm::Joint);
    let discriminative = chain(&[20, 40, 60, 200], &[600, 300, 40, 20, 1]);
    assert_eq!(joint(&discriminative).pattern(), [Phone, Server]);
    let generative = chain(&[200, 60, 40, 20], &[1, 20, 60, 600, 2000]);
    assert_eq!(joint(&generative).pattern(), [Server, Phone]);
    let autoencoder = chain(
        &[20, 40, 300, 300, 40, 20],
        &[600, 300, 20, 4, 20, 600, 2000],
    );
    assert_eq!(joint(&autoencoder).pattern(), [Phone, Server, Phone]);
    let backward = BackwardPass {
        groups: groups(5, &[400, 120, 80, 40]),
        updated_weights: [400, 800, 1200, 200]
            .map(|kb| Bytes::from_bytes(kb * 1000))
            .to_vec(),
        is_result_wanted: false,
    };
    let training = training_network(&discriminative, backward).expect("a network");
    assert_eq!(joint(&training).pattern(), [Phone, Server, Phone]);
}

/// §5: where two cuts are best, Neurosurgeon's one is not.
#[test]
fn one_cut_is_not_enough_for_an_autoencoder() {
    let autoencoder = chain(
        &[20, 40, 300, 300, 40, 20],
        &[600, 300, 20, 4, 20, 600, 2000],
    );
    let latency = |algorithm| {
        best(&autoencoder, PaperLink::WiFi, algorithm)
            .cost()
            .latency
    };
    let joint = latency(SplitAlgorithm::Joint);
    assert!(joint < latency(SplitAlgorithm::Neurosurgeon));
    assert!(latency(SplitAlgorithm::Neurosurgeon) <= latency(SplitAlgorithm::PhoneOnly));
    assert!(latency(SplitAlgorithm::Neurosurgeon) <= latency(SplitAlgorithm::ServerOnly));
}
