//! What a request to answer a picture says.

use layerlab_profiles::accuracy::{Preprocessing, Resize};
use layerlab_profiles::video::FrameFormat;

use crate::fields::{Fields, HASH_BYTES, count};
use crate::frame::{MAX_FIELDS_BYTES, MAX_PAYLOAD_BYTES};

/// A picture to be decoded, brought to a network's size, and answered by the whole network.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureRequest {
    /// The SHA-256 of the model's file, as profiles give it.
    pub model: [u8; HASH_BYTES],
    /// The processor, as the server's profile calls it.
    pub processor: String,
    /// What the picture is encoded as.
    pub format: FrameFormat,
    /// The order of the colours in the network's input: `rgb`, `bgr` or `gray`.
    pub channels: String,
    /// Subtracted from each channel's pixels (0 to 255), one for each channel or none.
    pub mean: Vec<f32>,
    /// What is left is multiplied by this.
    pub scale: f32,
    /// How many bytes the picture has: the payload.
    pub bytes: u64,
}

impl PictureRequest {
    /// How pixels become the network's input.
    pub fn preprocessing(&self) -> Preprocessing {
        Preprocessing {
            resize: Resize::Stretch,
            channels: self.channels.clone(),
            mean: self.mean.clone(),
            scale: self.scale,
        }
    }

    /// Whether a frame holds it, and it reads back as it is.
    pub fn fits_a_frame(&self) -> bool {
        let fields = self.fields();
        self.bytes <= MAX_PAYLOAD_BYTES
            && fields.len() <= MAX_FIELDS_BYTES as usize
            && PictureRequest::parse(&fields, self.bytes).as_ref() == Some(self)
    }

    pub(crate) fn fields(&self) -> Vec<u8> {
        let mut fields = self.model.to_vec();
        for text in [&self.processor, &self.channels] {
            fields.extend(count(text.len()));
            fields.extend(text.as_bytes());
        }
        fields.push(match self.format {
            FrameFormat::Png => 1,
            FrameFormat::Jpeg => 2,
        });
        fields.extend(self.scale.to_be_bytes());
        fields.extend(count(self.mean.len()));
        fields.extend(self.mean.iter().flat_map(|mean| mean.to_be_bytes()));
        fields
    }

    /// The request of these fields and so many bytes of payload, if they are one.
    pub(crate) fn parse(fields: &[u8], bytes: u64) -> Option<PictureRequest> {
        let mut left = Fields(fields);
        let model = left.array()?;
        let [processor, channels] = [left.text()?, left.text()?];
        let format = match left.array()? {
            [1] => FrameFormat::Png,
            [2] => FrameFormat::Jpeg,
            _ => return None,
        };
        let scale = f32::from_be_bytes(left.array()?);
        let means = left.count()?;
        let (means, _) = left.take(means.checked_mul(4)?)?.as_chunks::<4>();
        let mean: Vec<f32> = means.iter().map(|mean| f32::from_be_bytes(*mean)).collect();
        let is_number = |value: &f32| value.is_finite();
        let is_sound = left.0.is_empty() && mean.iter().chain([&scale]).all(is_number);
        is_sound.then_some(PictureRequest {
            model,
            processor,
            format,
            channels,
            mean,
            scale,
            bytes,
        })
    }
}
