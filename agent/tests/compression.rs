//! What is packed comes back, and what comes from elsewhere does no harm.

use layerlab_agent::compression::{Affine, CompressionError, Tiles, compress, decompress, rounded};
use layerlab_agent::runtime::Tensor;
use layerlab_model::ElementType;
use layerlab_profiles::tensors::TensorCodec;
use proptest::prelude::*;

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_floats(ElementType::F32, shape.to_vec(), values).expect("a tensor")
}

/// Numbers as they leave a layer: many zeros, many alike, and now and then any float that there is.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => Just(0.0_f32),
        3 => -4.0_f32..12.0,
        1 => prop::sample::select(vec![1.5_f32, -0.25, f32::MAX, f32::MIN, 1e-44, -0.0]),
        1 => any::<f32>().prop_filter("finite", |value| value.is_finite()),
    ]
}

/// A shape of one to four axes, with its numbers.
fn any_tensor() -> impl Strategy<Value = Tensor> {
    let shape = prop::collection::vec(1_usize..9, 1..=4);
    shape.prop_flat_map(|shape| {
        let length: usize = shape.iter().product();
        prop::collection::vec(number(), length).prop_map(move |values| floats(&shape, &values))
    })
}

fn codec() -> impl Strategy<Value = TensorCodec> {
    prop::sample::select(TensorCodec::ALL.to_vec())
}

proptest! {
    #[test]
    fn what_is_packed_comes_back_bit_for_bit(sent in any_tensor(), codec in codec()) {
        let packed = compress(codec, &sent).expect("finite floats");
        let came = decompress(codec, sent.shape(), &packed).expect("what was packed");
        if !codec.is_eight_bit() {
            prop_assert_eq!(&came, &sent);
            return Ok(());
        }
        let values = sent.to_floats();
        let affine = Affine::of(&values).expect("finite");
        let codes = affine.codes(&values);
        prop_assert_eq!(&came, &rounded(&sent).expect("finite"));
        prop_assert_eq!(&affine.codes(&came.to_floats()), &codes);
        let zeros = values.iter().zip(&codes).filter(|(value, _)| **value == 0.0);
        prop_assert!(zeros.into_iter().all(|(_, code)| *code == affine.zero_point()));
    }

    #[test]
    fn eight_bits_are_off_by_half_a_step_at_most(values in prop::collection::vec(number(), 1..200)) {
        let affine = Affine::of(&values).expect("finite");
        let came = affine.values(&affine.codes(&values));
        for (&sent, &came) in values.iter().zip(&came) {
            let off = (f64::from(sent) - f64::from(came)).abs();
            // What comes back is a float again, rounded at its own last bit.
            let last_bit = f64::from(came.abs().next_up()) - f64::from(came.abs());
            let half = f64::from(affine.step()) / 2.0 + last_bit.min(f64::from(came.abs()) * 1e-7);
            prop_assert!(off <= half * (1.0 + 1e-9), "{sent} came as {came}, a step is {}", affine.step());
        }
    }

    #[test]
    fn what_never_was_a_tensor_is_refused_or_is_one(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        codec in codec(),
    ) {
        if let Ok(tensor) = decompress(codec, &[1, 3, 5, 7], &bytes) {
            prop_assert_eq!(tensor.shape(), &[1, 3, 5, 7]);
        }
    }

    #[test]
    fn a_byte_that_changed_on_the_way_does_no_harm(
        sent in any_tensor(),
        codec in codec(),
        at in any::<prop::sample::Index>(),
        by in 1_u8..,
    ) {
        let mut packed = compress(codec, &sent).expect("finite floats");
        let at = at.index(packed.len());
        packed[at] ^= by;
        if let Ok(came) = decompress(codec, sent.shape(), &packed) {
            prop_assert_eq!(came.shape(), sent.shape());
        }
    }

    #[test]
    fn what_is_cut_off_or_goes_on_is_refused(sent in any_tensor(), codec in codec(), cut in any::<prop::sample::Index>()) {
        let packed = compress(codec, &sent).expect("finite floats");
        let cut = cut.index(packed.len());
        prop_assert!(decompress(codec, sent.shape(), &packed[..cut]).is_err());
        if codec != TensorCodec::U8Png {
            let longer = [packed.as_slice(), &[0]].concat();
            prop_assert!(decompress(codec, sent.shape(), &longer).is_err());
        }
    }
}

#[test]
fn every_number_of_channels_is_tiled_nearly_square_and_comes_back() {
    for channels in 1..=700 {
        let tiles = Tiles::of(&[1, channels, 3, 3]);
        let (width, height) = (tiles.picture_width() / 3, tiles.picture_height() / 3);
        assert!(width.abs_diff(height) <= 1, "{channels}: {width}x{height}");
        assert!(width * height >= channels && (height - 1) * width < channels);
        let values: Vec<u8> = (0..channels * 9).map(|place| (place % 251) as u8).collect();
        let picture = tiles.tiled(&values, 255);
        assert_eq!(picture.len(), width * height * 9);
        assert_eq!(tiles.untiled(&picture), values, "{channels}");
    }
}

#[test]
fn a_tall_channel_has_more_neighbours_beside_it_than_below() {
    let tiles = Tiles::of(&[1, 16, 8, 2]);
    assert_eq!((tiles.picture_width(), tiles.picture_height()), (16, 16));
    // The second channel is right of the first.
    let values: Vec<u8> = (0..=255).collect();
    let picture = tiles.tiled(&values, 0);
    assert_eq!(picture[..4], [0, 1, 16, 17]);
    let line = Tiles::of(&[40]);
    assert_eq!((line.picture_width(), line.picture_height()), (40, 1));
}

#[test]
fn what_has_no_eight_bits_is_refused_in_one_sentence() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let tensor = floats(&[1, 1, 1, 2], &[1.0, value]);
        for codec in TensorCodec::ALL {
            let packed = compress(codec, &tensor);
            if codec.is_eight_bit() {
                assert_eq!(packed, Err(CompressionError::NotFinite), "{codec}");
                continue;
            }
            let packed = packed.expect("any float");
            assert_eq!(
                decompress(codec, tensor.shape(), &packed),
                Ok(tensor.clone())
            );
        }
    }
    let doubles = Tensor::from_floats(ElementType::F64, vec![1], &[1.0]).expect("a tensor");
    let refused = compress(TensorCodec::U8Png, &doubles).expect_err("other elements");
    assert!(refused.to_string().contains("f64"), "{refused}");
}

#[test]
fn claims_of_more_than_the_tensor_has_are_refused_before_they_cost_anything() {
    let small = floats(&[1, 1, 2, 2], &[0.0, 1.0, 2.0, 3.0]);
    // A tensor of 64 MiB of zeros takes little room packed: whoever waits for four numbers must not unpack it.
    let huge = floats(&[1, 1, 4096, 4096], &vec![0.0; 4096 * 4096]);
    for codec in TensorCodec::ALL {
        let packed = compress(codec, &huge).expect("finite floats");
        let refused = decompress(codec, small.shape(), &packed);
        assert!(refused.is_err(), "{codec}");
    }
    // A frame that claims a window of a terabyte, and a picture of so many pixels that no memory holds them.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf0, 0x01, 0x00, 0x00];
    assert!(decompress(TensorCodec::F32Zstd, small.shape(), &window).is_err());
    let mut picture = compress(TensorCodec::U8Png, &small).expect("finite floats");
    // Behind scale and zero point: eight bytes of PNG's own, length and name of the header, then the width.
    picture[5 + 16..5 + 20].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    assert!(decompress(TensorCodec::U8Png, small.shape(), &picture).is_err());
    let shape = [usize::MAX, 2];
    assert_eq!(
        decompress(TensorCodec::U8, &shape, &[]),
        Err(CompressionError::TooLarge)
    );
    let scale = [0, 0, 0xc0, 0x7f, 0, 1, 2, 3, 4];
    assert_eq!(
        decompress(TensorCodec::U8, small.shape(), &scale),
        Err(CompressionError::Scale)
    );
}
