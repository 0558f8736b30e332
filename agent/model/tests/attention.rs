//! `Attention` (operator set 23) against its definition, number by number, and cut anywhere.

use layerlab_model::{Network, OperatorClass};
use layerlab_profiles::Segment;
use tract_onnx::pb::AttributeProto;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::prelude::*;

use crate::common::build::{Builder, int};
use crate::common::run::{self, Compared, Optimiser};

const BATCH: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum Mask {
    None,
    /// Added to scores, the same for all heads.
    Numbers,
    /// One for each head of queries, of which the first query sees no key.
    Truth,
}

/// An attention, and what it attends to.
#[derive(Clone, Copy)]
struct Case {
    has_four_axes: bool,
    /// Of queries; of keys and values.
    heads: [usize; 2],
    queries: usize,
    keys: usize,
    /// How many keys come from earlier steps.
    past: usize,
    /// Of queries and keys; of values.
    widths: [usize; 2],
    is_causal: bool,
    scale: Option<f32>,
    softcap: f32,
    mask: Mask,
}

const PLAIN: Case = Case {
    has_four_axes: false,
    heads: [2, 2],
    queries: 3,
    keys: 5,
    past: 0,
    widths: [4, 4],
    is_causal: false,
    scale: None,
    softcap: 0.0,
    mask: Mask::None,
};

/// [batch][head][place][width].
type Heads = Vec<Vec<Vec<Vec<f64>>>>;

impl Case {
    /// The shape of a tensor of so many heads, places and so much width.
    fn shape(&self, heads: usize, places: usize, width: usize) -> Vec<i64> {
        let axes = match self.has_four_axes {
            true => vec![BATCH, heads, places, width],
            false => vec![BATCH, places, heads * width],
        };
        axes.into_iter().map(|length| length as i64).collect()
    }

    fn model(&self) -> Builder {
        let mut builder = Builder::default();
        let [heads, shared] = self.heads;
        let [width, value] = self.widths;
        builder.input("q", &self.shape(heads, self.queries, width));
        builder.input("k", &self.shape(shared, self.keys, width));
        builder.input("v", &self.shape(shared, self.keys, value));
        let mut inputs = vec!["q", "k", "v", "", "", ""];
        let all_keys = (self.past + self.keys) as i64;
        match self.mask {
            Mask::None => {}
            Mask::Numbers => {
                builder.input("mask", &[self.queries as i64, all_keys]);
                inputs[3] = "mask";
            }
            Mask::Truth => {
                let shape = [1, heads as i64, self.queries as i64, all_keys];
                builder.input("m", &shape);
                builder.node("Sub m,m zero", vec![]);
                builder.node("Greater m,zero mask", vec![]);
                inputs[3] = "mask";
            }
        }
        let mut outputs = vec!["y"];
        if self.past > 0 {
            let past = |width: usize| [BATCH, shared, self.past, width].map(|it| it as i64);
            builder.input("past.k", &past(width));
            builder.input("past.v", &past(value));
            inputs[4..].copy_from_slice(&["past.k", "past.v"]);
            outputs.extend(["all.k", "all.v"]);
        }
        let mut attributes = vec![int("is_causal", self.is_causal.into())];
        if !self.has_four_axes {
            attributes.push(int("q_num_heads", heads as i64));
            attributes.push(int("kv_num_heads", shared as i64));
        }
        attributes.extend(self.scale.map(|scale| float("scale", scale)));
        attributes.push(float("softcap", self.softcap));
        builder.node(&format!("Attention q {}", outputs.join(",")), attributes);
        let node = builder.graph.node.last_mut().unwrap();
        node.input = inputs.into_iter().map(str::to_owned).collect();
        while node.input.last().is_some_and(String::is_empty) {
            node.input.pop();
        }
        for output in outputs {
            builder.output(output);
        }
        builder
    }

    /// What the standard says comes out: the answer, and all keys and values.
    fn expected(&self, named: &[(&str, &Tensor)]) -> [Heads; 3] {
        let given = |name: &str| named.iter().find(|it| it.0 == name).map(|it| it.1);
        let split = |name: &str, heads: usize| -> Heads {
            let tensor = given(name).unwrap();
            let view = tensor.to_plain_array_view::<f32>().unwrap();
            let has_four_axes = tensor.rank() == 4;
            let places = tensor.shape()[tensor.rank() - 2];
            let width = tensor.shape()[tensor.rank() - 1] / if has_four_axes { 1 } else { heads };
            let at = |b: usize, h: usize, p: usize, w: usize| match has_four_axes {
                true => f64::from(view[[b, h, p, w]]),
                false => f64::from(view[[b, p, h * width + w]]),
            };
            (0..BATCH)
                .map(|b| {
                    (0..heads)
                        .map(|h| {
                            let places = 0..places;
                            places
                                .map(|p| (0..width).map(|w| at(b, h, p, w)).collect())
                                .collect()
                        })
                        .collect()
                })
                .collect()
        };
        let [heads, shared] = self.heads;
        let query = split("q", heads);
        let with_past = |name: &str, past: &str| {
            let mut all = split(name, shared);
            if self.past > 0 {
                for (heads, before) in all.iter_mut().zip(split(past, shared)) {
                    for (places, mut before) in heads.iter_mut().zip(before) {
                        before.append(places);
                        *places = before;
                    }
                }
            }
            all
        };
        let (key, value) = (with_past("k", "past.k"), with_past("v", "past.v"));
        let mask = given("mask").or(given("m"));
        let mask = mask.map(|it| it.to_plain_array_view::<f32>().unwrap());
        let bias = |head: usize, q: usize, k: usize| {
            let after = self.is_causal && k > q + self.past;
            let of_mask = match (self.mask, &mask) {
                (Mask::Numbers, Some(mask)) => f64::from(mask[[q, k]]),
                (Mask::Truth, Some(mask)) if mask[[0, head, q, k]] <= 0.0 => f64::NEG_INFINITY,
                _ => 0.0,
            };
            of_mask + if after { f64::NEG_INFINITY } else { 0.0 }
        };
        let scale = self.scale.map(f64::from);
        let scale = scale.unwrap_or_else(|| 1.0 / (self.widths[0] as f64).sqrt());
        let softcap = f64::from(self.softcap);
        let mut answer = query.clone();
        for (b, heads_of_answer) in answer.iter_mut().enumerate() {
            for (h, places) in heads_of_answer.iter_mut().enumerate() {
                let of = h / (heads / shared);
                for (p, place) in places.iter_mut().enumerate() {
                    let scores = key[b][of].iter().enumerate().map(|(k, key)| {
                        let product: f64 = key.iter().zip(&*place).map(|(k, q)| k * q).sum();
                        let score = match softcap == 0.0 {
                            true => product * scale,
                            false => softcap * (product * scale / softcap).tanh(),
                        };
                        (score + bias(h, p, k)).exp()
                    });
                    let weights: Vec<f64> = scores.collect();
                    let sum: f64 = weights.iter().sum();
                    let mut mean = vec![0.0; self.widths[1]];
                    for (weight, value) in weights.iter().zip(&value[b][of]) {
                        for (mean, value) in mean.iter_mut().zip(value) {
                            *mean += if sum > 0.0 { weight / sum * value } else { 0.0 };
                        }
                    }
                    *place = mean;
                }
            }
        }
        [answer, key, value]
    }

    fn check(&self) {
        let network = Network::from_onnx(&self.model().bytes()).unwrap();
        let mut inputs = run::inputs(network.inputs(), 3);
        if self.mask == Mask::Truth {
            let place = network
                .inputs()
                .iter()
                .position(|it| it.name == "m")
                .unwrap();
            let mut mask = inputs[place].clone().into_tensor();
            let mut view = mask.to_plain_array_view_mut::<f32>().unwrap();
            for key in 0..self.past + self.keys {
                view[[0, 0, 0, key]] = -1.0;
            }
            inputs[place] = mask.into_tvalue();
        }
        let whole = Segment::whole(network.layer_count());
        let whole = network.segment(whole).unwrap();
        let named = network.inputs().iter().map(|it| it.name.as_str());
        let tensors: Vec<Tensor> = inputs.iter().map(|it| it.clone().into_tensor()).collect();
        let named: Vec<(&str, &Tensor)> = named.zip(&tensors).collect();
        let expected = self.expected(&named);
        for optimiser in [Optimiser::None, Optimiser::Layerlab] {
            let outputs = run::segment(&whole, inputs.clone(), optimiser);
            for (place, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                let view = output.to_plain_array_view::<f32>().unwrap();
                // Keys and values have an axis for heads always.
                let has_four_axes = place > 0 || self.has_four_axes;
                for (b, heads) in expected.iter().enumerate() {
                    for (h, places) in heads.iter().enumerate() {
                        for (p, width) in places.iter().enumerate() {
                            for (w, &expected) in width.iter().enumerate() {
                                let found = match has_four_axes {
                                    true => view[[b, h, p, w]],
                                    false => view[[b, p, h * width.len() + w]],
                                };
                                assert!(
                                    (f64::from(found) - expected).abs() < 1e-5,
                                    "output {place} at {b} {h} {p} {w}: {found} instead of {expected}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Float as i32,
        f: value,
        ..AttributeProto::default()
    }
}

#[test]
fn attention_gives_what_the_standard_says() {
    let shared = Case {
        heads: [6, 2],
        widths: [4, 3],
        ..PLAIN
    };
    let decode = Case {
        queries: 2,
        keys: 2,
        past: 3,
        is_causal: true,
        ..shared
    };
    for case in [
        PLAIN,
        shared,
        decode,
        Case {
            has_four_axes: true,
            ..decode
        },
        Case {
            mask: Mask::Numbers,
            scale: Some(0.7),
            ..decode
        },
        Case {
            mask: Mask::Truth,
            softcap: 1.5,
            ..shared
        },
        Case {
            has_four_axes: true,
            mask: Mask::Truth,
            ..decode
        },
    ] {
        case.check();
    }
}

/// The three products before it and the one behind it are layers, and so is it.
#[test]
fn attention_is_a_layer_and_is_cut_like_others() {
    let mut builder = Builder::default();
    builder.input("x", &[1, 5, 8]);
    for (weights, product) in [("wq", "q"), ("wk", "k"), ("wv", "v")] {
        builder.weights(weights, &[8, 8]);
        builder.node(&format!("MatMul x,{weights} {product}"), vec![]);
    }
    let heads = ["q_num_heads", "kv_num_heads"].map(|name| int(name, 2));
    builder.node(
        "Attention q,k,v a",
        [&heads[..], &[int("is_causal", 1)]].concat(),
    );
    builder.weights("wo", &[8, 8]);
    builder.node("MatMul a,wo y", vec![]);
    builder.node("Add y,x z", vec![]);
    builder.output("z");
    let network = Network::from_onnx(&builder.bytes()).unwrap();
    assert_eq!(network.layer_count(), 5);
    let attention = network.operators(4);
    assert_eq!(attention[0].op_type, "Attention");
    assert_eq!(attention[0].class, OperatorClass::FullyConnected);
    // Of two heads 25 scores of 4 products, a scale, their softmax, and 40 sums of 5 products.
    assert_eq!(attention[0].multiplications, 2 * 25 * 7 + 40 * 5);
    for optimiser in [Optimiser::None, Optimiser::Layerlab] {
        let inputs = run::inputs(network.inputs(), 1);
        let (_, found) = run::chain(&network, inputs, Compared::AllUpTo(12), optimiser);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn attention_that_is_not_read_says_why() {
    let mut builder = PLAIN.model();
    builder.graph.node[0]
        .attribute
        .retain(|it| it.name != "q_num_heads");
    let error = Network::from_onnx(&builder.bytes())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("neither four axes nor three and a number of heads"),
        "{error}"
    );
    let mut builder = PLAIN.model();
    builder.graph.node[0].output = ["y", "", "", "scores"].map(str::to_owned).to_vec();
    let error = Network::from_onnx(&builder.bytes())
        .unwrap_err()
        .to_string();
    assert!(error.contains("qk_matmul_output"), "{error}");
    let uneven = Case {
        heads: [3, 2],
        ..PLAIN
    };
    let network = Network::from_onnx(&uneven.model().bytes());
    let error = network.unwrap_err().to_string();
    assert!(error.contains("no multiple"), "{error}");
    for (name, said) in [
        ("left_window_size", "`left_window_size`"),
        ("softmax_precision", "a softmax in"),
    ] {
        let mut builder = PLAIN.model();
        builder.graph.node[0].attribute.push(int(name, 16));
        let error = Network::from_onnx(&builder.bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    let mut short = Case {
        mask: Mask::Numbers,
        ..PLAIN
    }
    .model();
    short.graph.input.pop();
    short.input("mask", &[3, 1]);
    let error = Network::from_onnx(&short.bytes()).unwrap_err().to_string();
    assert!(error.contains("a number for each key"), "{error}");
    let mut decode = Case { past: 3, ..PLAIN }.model();
    decode.graph.input.pop();
    decode.input("past.v", &[2, 2, 4, 4]);
    let error = Network::from_onnx(&decode.bytes()).unwrap_err().to_string();
    assert!(error.contains("from earlier steps"), "{error}");
    let mut mixed = PLAIN.model();
    mixed.graph.input.pop();
    mixed.input("v", &[2, 2, 5, 4]);
    let error = Network::from_onnx(&mixed.bytes()).unwrap_err().to_string();
    assert!(error.contains("different numbers of axes"), "{error}");
    let mut other = PLAIN.model();
    other.graph.input.pop();
    other.input("v", &[2, 4, 8]);
    let error = Network::from_onnx(&other.bytes()).unwrap_err().to_string();
    assert!(error.contains("do not belong together"), "{error}");
}

/// In 16 bits a product of queries and keys is infinite where it is not scaled before: these would be 90,000.
#[test]
fn attention_in_16_bits_scales_before_it_multiplies() {
    let mut builder = Builder::default();
    builder.input("x", &[1, 1, 2, 4]);
    builder.node("Cast x half", vec![int("to", 10)]);
    let attributes = vec![float("scale", 1e-5), int("softmax_precision", 1)];
    builder.node("Attention half,half,half a", attributes);
    builder.node("Cast a y", vec![int("to", 1)]);
    builder.output("y");
    let network = Network::from_onnx(&builder.bytes()).unwrap();
    let whole = network.segment(Segment::whole(1)).unwrap();
    let x = [150.0_f32, 150.0, 150.0, 150.0, -150.0, 150.0, 150.0, 150.0];
    let input = Tensor::from_shape(&[1, 1, 2, 4], &x).unwrap().into_tvalue();
    // Scores are 0.9 and 0.45.
    let (first, second) = (0.9_f32.exp(), 0.45_f32.exp());
    let expected = 150.0 * (first - second) / (first + second);
    for optimiser in [Optimiser::None, Optimiser::Layerlab] {
        let outputs = run::segment(&whole, [input.clone()].into_iter().collect(), optimiser);
        let view = outputs[0].to_plain_array_view::<f32>().unwrap();
        let found = [view[[0, 0, 0, 0]], view[[0, 0, 1, 0]]];
        assert!(
            (found[0] - expected).abs() < 0.5,
            "{found:?} instead of {expected}"
        );
        assert!(
            (found[1] + expected).abs() < 0.5,
            "{found:?} instead of {expected}"
        );
    }
}
