//! Numbers rounded to 8 bits: one scale and one zero point for a whole tensor, of which zero stays zero.

use super::CompressionError;

/// The largest code.
const LARGEST: f64 = 255.0;

/// What codes mean: (code - zero point) · scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    scale: f32,
    zero_point: u8,
}

impl Affine {
    /// The bytes of one in front of its codes.
    pub(super) const BYTES: usize = 5;

    /// The finest meaning that has codes for all of `values` and for zero.
    ///
    /// # Errors
    /// When one of them is not finite.
    pub fn of(values: &[f32]) -> Result<Affine, CompressionError> {
        let (mut low, mut high) = (0.0_f32, 0.0_f32);
        for &value in values {
            if !value.is_finite() {
                return Err(CompressionError::NotFinite);
            }
            low = low.min(value);
            high = high.max(value);
        }
        let exact = (f64::from(high) - f64::from(low)) / LARGEST;
        if exact == 0.0 {
            return Ok(Affine {
                scale: 1.0,
                zero_point: 0,
            });
        }
        // Never too fine for the largest number, also where the next float is far.
        let mut scale = exact as f32;
        if f64::from(scale) < exact {
            scale = scale.next_up();
        }
        let zero_point = (-f64::from(low) / f64::from(scale)).round();
        Ok(Affine {
            scale,
            // Between 0 and 255, for the range holds zero.
            zero_point: zero_point as u8,
        })
    }

    /// How far two neighbouring codes are apart.
    pub fn step(self) -> f32 {
        self.scale
    }

    /// The code of zero.
    pub fn zero_point(self) -> u8 {
        self.zero_point
    }

    /// The codes of `values`: nearest ones, of those that the meaning was made for.
    pub fn codes(self, values: &[f32]) -> Vec<u8> {
        let zero_point = f64::from(self.zero_point);
        let code = |&value: &f32| {
            let steps = (f64::from(value) / f64::from(self.scale)).round();
            (steps + zero_point).clamp(0.0, LARGEST) as u8
        };
        values.iter().map(code).collect()
    }

    /// What `codes` mean.
    pub fn values(self, codes: &[u8]) -> Vec<f32> {
        // There are only so many.
        let meanings: Vec<f32> = (0..=u8::MAX).map(|code| self.value(code)).collect();
        let meaning = |&code: &u8| meanings[usize::from(code)];
        codes.iter().map(meaning).collect()
    }

    fn value(self, code: u8) -> f32 {
        let steps = f64::from(code) - f64::from(self.zero_point);
        let value = (steps * f64::from(self.scale)) as f32;
        // Half a step beyond the largest number there is may be none.
        value.clamp(f32::MIN, f32::MAX)
    }

    pub(super) fn to_bytes(self) -> [u8; Affine::BYTES] {
        let [a, b, c, d] = self.scale.to_le_bytes();
        [a, b, c, d, self.zero_point]
    }

    /// The meaning at the beginning of `bytes`, and what is behind it.
    pub(super) fn split_from(bytes: &[u8]) -> Result<(Affine, &[u8]), CompressionError> {
        let Some((&[a, b, c, d, zero_point], codes)) =
            bytes.split_first_chunk::<{ Affine::BYTES }>()
        else {
            return Err(CompressionError::CutOff);
        };
        let scale = f32::from_le_bytes([a, b, c, d]);
        if !(scale.is_finite() && scale > 0.0) {
            return Err(CompressionError::Scale);
        }
        Ok((Affine { scale, zero_point }, codes))
    }
}
