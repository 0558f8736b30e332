//! Every committed model, cut anywhere, gives the answers of the model that was never cut, bit for bit.

use crate::common;

use common::run::{self, Compared, Optimiser};
use layerlab_model::Network;
use layerlab_profiles::Segment;
use tract_onnx::prelude::Framework;

/// What tract cannot read by itself; tests/attention.rs compares it with its definition.
const NOT_READ_BY_TRACT: &str = "attention";

fn assert_layers_give_the_bits_of_the_model(compared: Compared) {
    let models = common::profiled().into_iter();
    for (name, path, dims) in models.filter(|(name, ..)| name != NOT_READ_BY_TRACT) {
        let network = Network::open(&path, &dims).unwrap();
        let inputs = run::inputs(network.inputs(), 1);
        let reader = tract_onnx::onnx().with_ignore_value_info(true);
        let file = reader.model_for_path(&path).unwrap();
        let answer = run::never_cut(file, network.inputs(), inputs.clone());
        let (chained, found) = run::chain(&network, inputs, compared, Optimiser::None);
        let all = Segment::whole(network.layer_count());
        assert!(run::difference(all, &chained, &answer).is_none(), "{name}");
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn chained_layers_give_the_bits_of_the_model_that_was_never_cut() {
    assert_layers_give_the_bits_of_the_model(Compared::EachThird);
}

#[test]
#[ignore = "takes a minute: make slow-test"]
fn wherever_it_is_cut_chained_layers_give_the_bits_of_the_model() {
    assert_layers_give_the_bits_of_the_model(Compared::AllUpTo(12));
}

fn assert_optimised_segments_give_the_bits_of_the_whole(compared: Compared) {
    for (name, path, dims) in common::profiled() {
        let network = Network::open(&path, &dims).unwrap();
        let inputs = run::inputs(network.inputs(), 1);
        let (_, found) = run::chain(&network, inputs, compared, Optimiser::Layerlab);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn chained_segments_give_the_bits_of_the_whole_when_optimised() {
    assert_optimised_segments_give_the_bits_of_the_whole(Compared::EachThird);
}

#[test]
#[ignore = "takes a minute: make slow-test"]
fn wherever_it_is_cut_chained_segments_give_the_bits_of_the_whole_when_optimised() {
    assert_optimised_segments_give_the_bits_of_the_whole(Compared::AllUpTo(12));
}

#[test]
#[ignore = "takes a minute, and is of tract alone: make slow-test"]
fn tracts_own_optimiser_differs_only_in_products_of_concatenations_and_little() {
    const MULTIPLY_A_CONCATENATION: [&str; 3] = ["inception", "newest-opset", "two-inputs"];
    // Sums of a few hundred products in another order: some units of the last place of the largest.
    const BOUND: f32 = 1e-6;
    for (name, path, dims) in common::profiled() {
        let network = Network::open(&path, &dims).unwrap();
        let inputs = run::inputs(network.inputs(), 1);
        let (_, found) = run::chain(&network, inputs, Compared::AllUpTo(12), Optimiser::Tract);
        assert!(
            found.iter().all(|difference| difference.relative <= BOUND),
            "{name}: {found:?}"
        );
        assert!(
            found.is_empty() || MULTIPLY_A_CONCATENATION.contains(&name.as_str()),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn a_network_is_the_same_after_a_journey_as_a_file() {
    for (name, path, dims) in common::profiled() {
        let network = Network::open(&path, &dims).unwrap();
        let file = network.to_onnx();
        let arrived = Network::from_onnx(&file).unwrap();
        assert_eq!(arrived.to_onnx(), file, "{name}");
        assert_eq!(arrived.name(), name);
        assert_eq!(arrived.opset(), network.opset());
        assert_eq!(arrived.layers(), network.layers(), "{name}");
        for cut in 0..=network.layer_count() {
            assert_eq!(arrived.frontier(cut), network.frontier(cut), "{name}");
            assert_eq!(arrived.alive(cut), network.alive(cut), "{name}");
        }
    }
}
