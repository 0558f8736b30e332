//! The tensors that cross cuts, each once.

use crate::common;

use layerlab_model::{Network, NotCompressed, TensorSpec};
use layerlab_profiles::{Bytes, Segment, Shortcuts};

#[test]
fn the_tensors_of_each_cut_are_those_that_are_alive_there() {
    for (name, path, dims) in common::profiled() {
        let network = Network::open(&path, &dims).unwrap();
        let tensors = network.crossing_tensors();
        for cut in 0..=network.layer_count() {
            let mut found: Vec<&str> = (tensors.iter().filter(|it| it.crosses(cut)))
                .map(|it| it.spec.name.as_str())
                .collect();
            let alive = network.alive(cut).iter();
            let mut alive: Vec<&str> = alive.map(|it| it.name.as_str()).collect();
            found.sort_unstable();
            alive.sort_unstable();
            assert_eq!(found, alive, "{name}, cut {cut}");
        }
        for tensor in &tensors {
            let of_name = tensors.iter().filter(|it| it.spec.name == tensor.spec.name);
            assert_eq!(of_name.count(), 1, "{name}: {}", tensor.spec.name);
            assert!(tensor.consumers.iter().all(|&it| it > tensor.producer));
        }
    }
}

#[test]
fn what_passes_through_a_segment_crosses_the_cuts_at_both_of_its_ends() {
    let mut passing = 0;
    for (name, path, dims) in common::profiled() {
        let network = Network::open(&path, &dims).unwrap();
        let (layers, shortcuts) = (network.layer_count(), Shortcuts::of(network.layers()));
        for (first, last) in (2..layers).flat_map(|first| (first..layers).map(move |l| (first, l)))
        {
            let taken = network.frontier(first - 1).iter();
            let through = taken.filter(|spec| network.frontier(last).contains(spec));
            let bytes: Bytes = through.map(TensorSpec::bytes).sum();
            let segment = Segment::new(first, last).unwrap();
            assert_eq!(shortcuts.passing(segment), bytes, "{name}, {segment}");
            passing += u32::from(bytes > Bytes::ZERO);
        }
        let ends = (1..=layers).flat_map(|l| [Segment::new(1, l), Segment::new(l, layers)]);
        assert!(
            ends.flatten()
                .all(|it| shortcuts.passing(it) == Bytes::ZERO)
        );
    }
    assert!(passing > 100, "{passing}");
}

#[test]
fn a_skip_is_one_tensor_of_several_consumers_and_scores_have_one_axis() {
    let path = common::models().join("resnet50.onnx");
    let network = Network::open(&path, &std::collections::BTreeMap::new()).unwrap();
    let tensors = network.crossing_tensors();
    assert!(tensors.iter().any(|it| it.consumers.len() > 1));
    let input = &tensors[0];
    assert_eq!((input.producer, input.not_compressed()), (0, None));
    let scores = tensors.last().unwrap();
    assert!(scores.is_output && scores.consumers.is_empty());
    assert_eq!(scores.not_compressed(), Some(NotCompressed::OneAxis));
}
