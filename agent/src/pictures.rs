//! Pictures: brought to another size, encoded and decoded, and made what a network takes. All on one thread of this machine's
//! CPU.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::{self, FilterType};
use image::{DynamicImage, GrayImage, ImageError, ImageFormat, RgbImage};
use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::accuracy::{Picture, Preprocessing};
use layerlab_profiles::video::{FrameForm, FrameFormat};

use crate::runtime::Tensor;

/// What a network takes that takes pictures.
pub(crate) struct PictureInput {
    spec: TensorSpec,
    pub(crate) channels: u64,
    width: u32,
    height: u32,
}

impl PictureInput {
    /// The input of `network`.
    ///
    /// # Errors
    /// When it takes no pictures, in a sentence.
    pub(crate) fn of(network: &Network) -> Result<PictureInput, String> {
        match network.inputs() {
            [spec] => match spec.shape[..] {
                [1, channels, height, width] => Ok(PictureInput {
                    spec: spec.clone(),
                    channels,
                    width: width as u32,
                    height: height as u32,
                }),
                _ => Err(format!(
                    "the model takes {:?}, which is no image",
                    spec.shape
                )),
            },
            inputs => Err(format!(
                "the model has {} inputs, and images go into one",
                inputs.len()
            )),
        }
    }

    /// `picture` in the network's size.
    pub(crate) fn resized(&self, picture: &DynamicImage) -> DynamicImage {
        resized(picture, self.width, self.height)
    }

    /// The network's input for a picture of its size.
    ///
    /// # Errors
    /// When the picture has other channels or another size, in a sentence.
    pub(crate) fn tensor(
        &self,
        picture: DynamicImage,
        preprocessing: &Preprocessing,
    ) -> Result<Tensor, String> {
        let values = preprocessing.input(&Picture {
            width: picture.width(),
            height: picture.height(),
            channels: u32::from(picture.color().channel_count()),
            bytes: picture.into_bytes(),
        });
        let values = values.ok_or("the set's channels are those of no picture")?;
        let shape = self.spec.shape.iter().map(|&length| length as usize);
        let tensor = Tensor::from_floats(self.spec.element, shape.collect(), &values);
        tensor.map_err(|reason| reason.to_string())
    }
}

/// Two pictures of one size are the same, pixel by pixel.
pub(crate) fn resized(picture: &DynamicImage, width: u32, height: u32) -> DynamicImage {
    if (picture.width(), picture.height()) == (width, height) {
        return picture.clone();
    }
    // As evaluation sets are made: bilinear, and over all pixels that one is made of where an image gets smaller.
    let filter = FilterType::Triangle;
    match picture {
        DynamicImage::ImageLuma8(grey) => imageops::resize(grey, width, height, filter).into(),
        other => imageops::resize(&other.to_rgb8(), width, height, filter).into(),
    }
}

/// A picture of an evaluation set.
///
/// # Errors
/// When it has too few bytes, in a sentence.
pub(crate) fn dynamic(picture: Picture) -> Result<DynamicImage, String> {
    let Picture {
        width,
        height,
        channels,
        bytes,
    } = picture;
    let made = match channels {
        1 => GrayImage::from_raw(width, height, bytes).map(DynamicImage::from),
        _ => RgbImage::from_raw(width, height, bytes).map(DynamicImage::from),
    };
    made.ok_or_else(|| "a picture of the set has too few bytes".to_owned())
}

pub(crate) fn encoded(picture: &DynamicImage, form: &FrameForm) -> Result<Vec<u8>, ImageError> {
    let mut file = Vec::new();
    match (form.format, form.quality) {
        (FrameFormat::Jpeg, Some(quality)) => {
            picture.write_with_encoder(JpegEncoder::new_with_quality(&mut file, quality))?;
        }
        _ => picture.write_with_encoder(PngEncoder::new(&mut file))?,
    }
    Ok(file)
}

pub(crate) fn decoded(file: &[u8], format: FrameFormat) -> Result<DynamicImage, ImageError> {
    let format = match format {
        FrameFormat::Png => ImageFormat::Png,
        FrameFormat::Jpeg => ImageFormat::Jpeg,
    };
    image::load(Cursor::new(file), format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(side: u32, format: FrameFormat, quality: Option<u8>) -> FrameForm {
        FrameForm {
            width: side,
            height: side,
            format,
            quality,
        }
    }

    /// A picture with an edge and a gradient.
    fn picture() -> DynamicImage {
        RgbImage::from_fn(40, 40, |x, y| {
            image::Rgb([(x * 6) as u8, (y * 6) as u8, if x > 20 { 200 } else { 30 }])
        })
        .into()
    }

    #[test]
    fn png_keeps_every_pixel_and_jpeg_loses_more_at_less_quality() {
        let picture = picture();
        let through = |form: FrameForm| {
            let file = encoded(&picture, &form).expect("encodes");
            let back = decoded(&file, form.format).expect("decodes");
            let differences = back.as_bytes().iter().zip(picture.as_bytes());
            let error: u64 = differences.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
            (file.len(), error)
        };
        let (_, png) = through(form(40, FrameFormat::Png, None));
        assert_eq!(png, 0);
        let (small, coarse) = through(form(40, FrameFormat::Jpeg, Some(20)));
        let (large, fine) = through(form(40, FrameFormat::Jpeg, Some(95)));
        assert!(
            small < large && coarse > fine && fine > 0,
            "{small} {large} {coarse} {fine}"
        );
    }

    #[test]
    fn a_picture_of_the_size_stays_as_it_is_and_grey_stays_grey() {
        let picture = picture();
        assert_eq!(resized(&picture, 40, 40), picture);
        assert_eq!(resized(&picture, 10, 20).width(), 10);
        let grey = DynamicImage::from(picture.to_luma8());
        let small = resized(&grey, 9, 9);
        assert_eq!(small.color().channel_count(), 1);
        let file = encoded(&small, &form(9, FrameFormat::Jpeg, Some(90))).expect("encodes");
        let back = decoded(&file, FrameFormat::Jpeg).expect("decodes");
        assert_eq!(back.color().channel_count(), 1);
    }
}
