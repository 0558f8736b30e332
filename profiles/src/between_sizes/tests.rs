//! Times that are planted at each size.

use std::path::Path;

use super::*;
use crate::units::Bytes;

/// A published profile with so many times the operations, and bytes by the square of that. Computing takes 2 µs and 10 ns for
/// each operation that the published profile has times `grows` of the factor, moving 1 µs and 3 ns for each byte.
fn profile(factor: u64, grows: fn(f64) -> f64) -> Profile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("published/mate10pro/vocnet-mini");
    let mut profile = Profile::read(&folder).expect("a published profile");
    for layer in &mut profile.layers {
        layer.additions *= factor;
        layer.multiplications *= factor;
        layer.input_bytes = Bytes::from_bytes(layer.input_bytes.as_bytes() * factor.pow(2));
        layer.output_bytes = Bytes::from_bytes(layer.output_bytes.as_bytes() * factor.pow(2));
    }
    let exact = |nanos: f64| Estimate::around(nanos, Some(100.0));
    for row in &mut profile.times {
        let layer = &profile.layers[row.layer as usize - 1];
        let operations = (operations(layer) / factor) as f64;
        row.time.compute = exact(2000.0 + 10.0 * operations * grows(factor as f64));
        let moving = |bytes: Bytes| exact(1000.0 + 3.0 * bytes.as_bytes() as f64);
        let to = row.time.to_processor.is_some();
        row.time.to_processor = to.then(|| moving(layer.input_bytes));
        let from = row.time.from_processor.is_some();
        row.time.from_processor = from.then(|| moving(layer.output_bytes));
    }
    profile
}

#[test]
fn what_is_linear_in_operations_and_bytes_is_found_between_sizes() {
    let sizes = [4, 1, 16].map(|factor| profile(factor, |factor| factor));
    let sizes_of = Sizes::of(&sizes).expect("three sizes");
    let wanted = profile(10, |factor| factor);
    let found = sizes_of.at(&wanted.layers).expect("between 4 and 16");
    assert_eq!(found.times.len(), wanted.times.len());
    for (found, wanted) in found.times.iter().zip(&wanted.times) {
        // Twice 100 ns times √(0.5² + 0.5²) and √(0.65² + 0.35²): both intervals count, and are independent.
        let pairs = [
            (
                Some(found.time.compute),
                Some(wanted.time.compute),
                141..=144,
            ),
            (found.time.to_processor, wanted.time.to_processor, 147..=150),
            (
                found.time.from_processor,
                wanted.time.from_processor,
                147..=150,
            ),
        ];
        for (found, wanted, widths) in pairs {
            assert_eq!(found.map(|it| it.value), wanted.map(|it| it.value));
            let Some(found) = found else { continue };
            let (low, high) = found.ci95.expect("both have one");
            let width = (high - low).as_nanos();
            assert!(widths.contains(&width), "{width}");
        }
    }
    assert_eq!(found.whole_model_times(), wanted.whole_model_times());
    let left_out = sizes_of.left_out();
    assert_eq!(left_out.len(), 1);
    for left_out in left_out {
        assert_eq!(left_out.processors.len(), 2);
        assert_eq!(size(&left_out.profile.layers), size(&sizes[0].layers));
        for missed in left_out.processors {
            assert!(missed.whole.abs() < 1e-6, "{missed:?}");
            assert!(missed.of_layer.abs() < 1e-6, "{missed:?}");
        }
    }
}

/// A time that grows with the square of the operations lies below the line between two sizes.
#[test]
fn what_is_not_linear_is_seen_where_a_size_is_left_out() {
    let sizes = [1, 2, 4].map(|factor| profile(factor, |factor| factor * factor));
    let left_out = Sizes::of(&sizes).expect("three sizes").left_out();
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0].processors.len(), 2);
    // Between 1 and 16, a third of the way is 6 where 4 was measured.
    for missed in &left_out[0].processors {
        assert!((0.4..0.5).contains(&missed.whole), "{missed:?}");
        assert!((0.0..missed.whole).contains(&missed.of_layer), "{missed:?}");
    }
}

#[test]
fn what_does_not_belong_together_or_lies_outside_is_refused() {
    let [one, two, four] = [1, 2, 4].map(|factor| profile(factor, |factor| factor));
    let refused = |profiles: &[Profile]| Sizes::of(profiles).expect_err("unfit").to_string();
    let alone = refused(std::slice::from_ref(&one));
    assert!(alone.starts_with("one size has nothing"), "{alone}");
    let twice = refused(&[one.clone(), two.clone(), one.clone()]);
    assert!(twice.starts_with("two of the profiles"), "{twice}");
    let mut elsewhere = two.clone();
    elsewhere.header.device.name = "another".to_owned();
    let other = refused(&[one.clone(), elsewhere]);
    assert!(other.contains("in their device"), "{other}");
    let mut hot = two.clone();
    hot.header.thermal = crate::soak::Thermal::Steady;
    let other = refused(&[one.clone(), hot]);
    assert!(
        other.contains("in their state, simulated and simulated, steady"),
        "{other}"
    );
    let mut renamed = two.clone();
    renamed.layers[2].name = "other".to_owned();
    let other = refused(&[one.clone(), renamed]);
    assert!(other.contains("in their layers, C2 and other;"), "{other}");
    let mut without = two.clone();
    let row = without.times.pop().expect("a row");
    let other = refused(&[one.clone(), without]);
    assert!(
        other.contains(&format!("layer {} on `{}`", row.layer, row.processor)),
        "{other}"
    );
    let mut merged = two.clone();
    merged.times[0].time.compute_includes.to_processor ^= true;
    let other = refused(&[one.clone(), merged]);
    assert!(other.contains("the times of layer 1 on `cpu`"), "{other}");
    let sizes = [one, two.clone()];
    let sizes = Sizes::of(&sizes).expect("two sizes");
    let outside = sizes.at(&four.layers).expect_err("larger").to_string();
    assert!(outside.ends_with("profile a larger one"), "{outside}");
    let mut crossed = two.layers;
    crossed[3].additions *= 2;
    crossed[0].additions /= 2;
    let crossed = sizes
        .at(&crossed)
        .expect_err("layer 4 is larger")
        .to_string();
    assert!(crossed.starts_with("layer 4 would compute"), "{crossed}");
    let fewer = sizes.at(&four.layers[1..]).expect_err("fewer").to_string();
    assert!(fewer.starts_with("the model has 10 layers"), "{fewer}");
}
