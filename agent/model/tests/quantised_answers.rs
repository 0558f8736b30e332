//! Quantised networks give what ONNX Runtime gives, whole and cut: a network of each operator between pairs, and the
//! committed quantised networks. `tests/models/pairs.py` recorded the answers.

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;

use common::run::{self, Optimiser};
use layerlab_model::Network;
use layerlab_profiles::Segment;
use serde::Deserialize;
use tract_onnx::prelude::{IntoTValue, TValue, TVec, Tensor, tvec};

/// Engines add up in different orders; the least step of an answer is 300 times larger.
const TOLERANCE: f32 = 1e-5;

/// How the numbers of an input are made of pixels.
#[derive(Deserialize)]
struct Image {
    minus: i16,
    divided_by: f32,
}

/// What one network answers.
#[derive(Deserialize)]
struct Recorded {
    image: Image,
    seeds: Vec<u64>,
    outputs: Vec<Vec<f32>>,
}

/// `pixels` of `pairs.py`.
fn pixel(index: u64, seed: u64) -> u8 {
    const MODULUS: u64 = 1 << 32;
    let mixed = (index * 2_654_435_761 + seed * 40_503) % MODULUS;
    let mixed = (mixed ^ (mixed >> 15)) * 2_246_822_519 % MODULUS;
    (mixed >> 24) as u8
}

fn input(network: &Network, image: &Image, seed: u64) -> TVec<TValue> {
    let spec = &network.inputs()[0];
    let shape: Vec<usize> = spec.shape.iter().map(|&length| length as usize).collect();
    let value = |index| f32::from(i16::from(pixel(index, seed)) - image.minus) / image.divided_by;
    let values: Vec<f32> = (0..spec.elements()).map(value).collect();
    tvec![Tensor::from_shape(&shape, &values).unwrap().into_tvalue()]
}

/// What the segments between `cuts` give, each fed by the one before it.
fn answer(network: &Network, cuts: &[u32], mut values: TVec<TValue>) -> Vec<f32> {
    for ends in cuts.windows(2) {
        let segment = Segment::try_from((ends[0] + 1, ends[1])).unwrap();
        values = run::segment(
            &network.segment(segment).unwrap(),
            values,
            Optimiser::Layerlab,
        );
    }
    let view = values[0].to_plain_array_view::<f32>().unwrap();
    view.iter().copied().collect()
}

#[test]
fn each_operator_between_pairs_and_each_quantised_network_answer_as_onnx_runtime_does() {
    let folder = common::models().join("quantised");
    let recorded = std::fs::read(folder.join("answers.json")).unwrap();
    let recorded: BTreeMap<String, Recorded> = serde_json::from_slice(&recorded).unwrap();
    let names = |folder: &Path, before: &str| -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap();
        files
            .map(|file| file.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "onnx")
            })
            .map(|path| format!("{before}{}", path.file_stem().unwrap().to_str().unwrap()))
            .collect()
    };
    let mut committed = names(&folder, "");
    committed.extend(names(&folder.join("operators"), "operators/"));
    committed.sort();
    assert!(
        recorded.keys().eq(&committed),
        "answers of all, and of no others"
    );
    let mut wrong = Vec::new();
    for (name, recorded) in &recorded {
        let network =
            Network::open(&folder.join(format!("{name}.onnx")), &BTreeMap::new()).unwrap();
        let layers = network.layer_count();
        assert_eq!(recorded.seeds.len(), recorded.outputs.len());
        for cuts in [vec![0, layers], (0..=layers).collect()] {
            for (&seed, expected) in recorded.seeds.iter().zip(&recorded.outputs) {
                let given = answer(&network, &cuts, input(&network, &recorded.image, seed));
                assert_eq!(given.len(), expected.len(), "{name}");
                let pairs = given.iter().zip(expected);
                let others = pairs.filter(|(one, other)| (*one - *other).abs() > TOLERANCE);
                let others = others.count();
                if others > 0 {
                    let of = expected.len();
                    wrong.push(format!(
                        "{name}, cut at {cuts:?}, input {seed}: {others} of {of}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
