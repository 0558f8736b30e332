//! From an image file to a network's input: decoded, brought to size, channels in the network's order, then height,
//! then width.
//!
//! Sizes are changed by a triangle filter (bilinear, and over all pixels that one is made of where an image gets
//! smaller). An image that has the network's size already keeps its pixels. What a file says of how a camera was held
//! (EXIF) is not followed, since boxes are drawn on pixels.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use image::imageops::{self, FilterType};
use image::{DynamicImage, ImageReader, Rgb, RgbImage};
use layerlab_profiles::accuracy::{Preprocessing, Resize, Values};

use super::error::{PreprocessingError, SetError};
use super::listing::Listed;

/// The middle of 0 to 255, around a letterboxed image.
const GREY: Rgb<u8> = Rgb([128; 3]);

/// Where in the network's input an image lies, in its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    /// The width and the height of the network's input.
    pub(super) input: (u32, u32),
}

/// Brings images into a network's form.
#[derive(Debug)]
pub(super) struct Preprocessor {
    resize: Resize,
    channels: Channels,
    /// For each channel.
    mean: Vec<f32>,
    scale: f32,
    size: (u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channels {
    Rgb,
    Bgr,
    Gray,
}

impl Preprocessor {
    /// A preprocessor to inputs of this width and height.
    pub(super) fn new(
        how: &Preprocessing,
        size: (u32, u32),
    ) -> Result<Preprocessor, PreprocessingError> {
        let channels = match how.channels.as_str() {
            "rgb" => Channels::Rgb,
            "bgr" => Channels::Bgr,
            "gray" => Channels::Gray,
            other => return Err(PreprocessingError::Channels(other.to_owned())),
        };
        let (count, means) = (channels.count(), how.mean.len());
        if means != 0 && means != count {
            return Err(PreprocessingError::Means {
                means,
                channels: how.channels.clone(),
                count,
            });
        }
        if let Some(mean) = how.mean.iter().find(|mean| !mean.is_finite()) {
            return Err(PreprocessingError::Mean(*mean));
        }
        if !how.scale.is_finite() || how.scale == 0.0 {
            return Err(PreprocessingError::Scale(how.scale));
        }
        if size.0 == 0 || size.1 == 0 {
            return Err(PreprocessingError::Size(size.0, size.1));
        }
        let mean = match means {
            0 => vec![0.0; count],
            _ => how.mean.clone(),
        };
        Ok(Preprocessor {
            resize: how.resize,
            channels,
            mean,
            scale: how.scale,
            size,
        })
    }

    /// Channels, height and width of an input.
    pub(super) fn shape(&self) -> Vec<usize> {
        let (width, height) = self.size;
        vec![self.channels.count(), height as usize, width as usize]
    }

    /// No values yet, of the type that holds them.
    pub(super) fn values(&self) -> Values {
        match self.scale == 1.0 && self.mean.iter().all(|&mean| mean == 0.0) {
            true => Values::U8(Vec::new()),
            false => Values::F32(Vec::new()),
        }
    }

    /// Where an image of this width and height comes to lie.
    pub(super) fn frame(&self, (width, height): (u32, u32)) -> Frame {
        let input = self.size;
        let (width, height) = match self.resize {
            Resize::Stretch => input,
            Resize::Letterbox => {
                let across = f64::from(input.0) / f64::from(width);
                let down = f64::from(input.1) / f64::from(height);
                let by = across.min(down);
                let scaled = |side: u32, most: u32| {
                    // A float that is out of range becomes the nearest integer that is not.
                    ((f64::from(side) * by).round() as u32).clamp(1, most)
                };
                (scaled(width, input.0), scaled(height, input.1))
            }
        };
        Frame {
            left: (input.0 - width) / 2,
            top: (input.1 - height) / 2,
            width,
            height,
            input,
        }
    }

    /// Appends an image's values.
    pub(super) fn push(&self, image: &DynamicImage, values: &mut Values) {
        let image = match self.channels {
            // Grey is made first, so that it is the grey of the file's own pixels.
            Channels::Gray => DynamicImage::ImageLuma8(image.to_luma8()).to_rgb8(),
            Channels::Rgb | Channels::Bgr => image.to_rgb8(),
        };
        let image = self.fitted(image);
        for (channel, mean) in self.channels.order().iter().zip(&self.mean) {
            let pixels = image.pixels().map(|pixel| pixel.0[*channel]);
            match values {
                Values::U8(values) => values.extend(pixels),
                Values::F32(values) => {
                    values.extend(pixels.map(|pixel| (f32::from(pixel) - mean) * self.scale));
                }
            }
        }
    }

    /// The image at the network's size.
    fn fitted(&self, image: RgbImage) -> RgbImage {
        let frame = self.frame(image.dimensions());
        let resized = match image.dimensions() == (frame.width, frame.height) {
            true => image,
            false => imageops::resize(&image, frame.width, frame.height, FilterType::Triangle),
        };
        if resized.dimensions() == self.size {
            return resized;
        }
        let mut fitted = RgbImage::from_pixel(self.size.0, self.size.1, GREY);
        imageops::replace(&mut fitted, &resized, frame.left.into(), frame.top.into());
        fitted
    }
}

impl Channels {
    fn count(self) -> usize {
        self.order().len()
    }

    /// Which of red, green and blue comes when.
    fn order(self) -> &'static [usize] {
        match self {
            Channels::Rgb => &[0, 1, 2],
            Channels::Bgr => &[2, 1, 0],
            // All three are alike then.
            Channels::Gray => &[0],
        }
    }
}

/// Decodes an image that is listed, and sees that it is the one that the annotations are about.
pub(super) fn open(folder: &Path, listed: &Listed) -> Result<DynamicImage, SetError> {
    let path = folder.join(&listed.file);
    let unreadable = |reason| SetError::Image {
        place: listed.place.clone(),
        path: path.clone(),
        reason,
    };
    let file = File::open(&path).map_err(unreadable)?;
    // What a file is called says nothing about what it is.
    let reader = ImageReader::new(BufReader::new(file)).with_guessed_format();
    let image = reader.map_err(unreadable)?.decode();
    let image = image.map_err(|reason| SetError::Undecodable {
        place: listed.place.clone(),
        path: path.clone(),
        reason: Box::new(reason),
    })?;
    let found = (image.width(), image.height());
    match listed.size {
        Some(said) if said != found => Err(SetError::Size {
            place: listed.place.clone(),
            name: listed.name(),
            said,
            found,
        }),
        _ => Ok(image),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(resize: Resize, channels: &str) -> Preprocessing {
        Preprocessing {
            resize,
            channels: channels.to_owned(),
            mean: Vec::new(),
            scale: 1.0,
        }
    }

    /// Two pixels side by side: red, then one that has something of everything.
    fn image() -> DynamicImage {
        let pixels = vec![255, 0, 0, 10, 20, 30];
        RgbImage::from_raw(2, 1, pixels).expect("two pixels").into()
    }

    fn values(how: &Preprocessing, size: (u32, u32), image: &DynamicImage) -> Values {
        let preprocessor = Preprocessor::new(how, size).expect("possible");
        let mut values = preprocessor.values();
        preprocessor.push(image, &mut values);
        values
    }

    #[test]
    fn pixels_stay_as_they_are_channel_by_channel() {
        let rgb = values(&how(Resize::Stretch, "rgb"), (2, 1), &image());
        assert_eq!(rgb, Values::U8(vec![255, 10, 0, 20, 0, 30]));
        let bgr = values(&how(Resize::Letterbox, "bgr"), (2, 1), &image());
        assert_eq!(bgr, Values::U8(vec![0, 30, 0, 20, 255, 10]));
    }

    #[test]
    fn grey_is_one_channel() {
        let grey = DynamicImage::from(RgbImage::from_pixel(1, 1, Rgb([77; 3])));
        let found = values(&how(Resize::Stretch, "gray"), (1, 1), &grey);
        assert_eq!(found, Values::U8(vec![77]));
        let preprocessor = Preprocessor::new(&how(Resize::Stretch, "gray"), (5, 4));
        assert_eq!(preprocessor.expect("possible").shape(), [1, 4, 5]);
    }

    #[test]
    fn a_mean_or_a_scale_makes_fractions() {
        let mut how = how(Resize::Stretch, "bgr");
        how.mean = vec![30.0, 20.0, 10.0];
        how.scale = 0.5;
        let found = values(&how, (2, 1), &image());
        let expected = vec![-15.0, 0.0, -10.0, 0.0, 122.5, 0.0];
        assert_eq!(found, Values::F32(expected));
    }

    #[test]
    fn stretching_averages_what_becomes_one_pixel() {
        let pixels = [[0_u8; 3], [0; 3], [200; 3], [200; 3]].concat();
        let image: DynamicImage = RgbImage::from_raw(4, 1, pixels).expect("pixels").into();
        let found = values(&how(Resize::Stretch, "gray"), (2, 1), &image);
        // By hand: a pixel of the two takes 3, 3, 1 and 0 eighths of what is around it, of which 7 are there.
        assert_eq!(found, Values::U8(vec![29, 171]));
    }

    #[test]
    fn letterboxing_keeps_the_ratio_and_centres_on_grey() {
        let wide: DynamicImage = RgbImage::from_pixel(8, 4, Rgb([9; 3])).into();
        let found = values(&how(Resize::Letterbox, "gray"), (4, 4), &wide);
        let (grey, own) = ([128; 4], [9; 8]);
        let expected = [grey.as_slice(), &own, &grey].concat();
        assert_eq!(found, Values::U8(expected));
        let preprocessor = Preprocessor::new(&how(Resize::Letterbox, "rgb"), (100, 50));
        let frame = preprocessor.expect("possible").frame((30, 60));
        let expected = Frame {
            left: 37,
            top: 0,
            width: 25,
            height: 50,
            input: (100, 50),
        };
        assert_eq!(frame, expected);
    }

    #[test]
    fn the_thinnest_image_keeps_a_pixel() {
        let preprocessor = Preprocessor::new(&how(Resize::Letterbox, "rgb"), (10, 10));
        let frame = preprocessor.expect("possible").frame((10_000, 1));
        assert_eq!((frame.width, frame.height), (10, 1));
    }

    #[test]
    fn preprocessing_that_cannot_be_done_is_refused_by_name() {
        let refused = |channels: &str, mean: &[f32], scale: f32, size: (u32, u32)| {
            let how = Preprocessing {
                mean: mean.to_vec(),
                scale,
                ..how(Resize::Stretch, channels)
            };
            let error = Preprocessor::new(&how, size).expect_err("refused");
            error.to_string()
        };
        assert!(refused("yuv", &[], 1.0, (1, 1)).contains("`yuv`"));
        assert!(refused("rgb", &[1.0], 1.0, (1, 1)).contains("1 values"));
        assert!(refused("gray", &[f32::NAN], 1.0, (1, 1)).contains("NaN"));
        assert!(refused("rgb", &[], 0.0, (1, 1)).contains("--scale"));
        assert!(refused("rgb", &[], 1.0, (0, 1)).contains("0x1"));
    }
}
