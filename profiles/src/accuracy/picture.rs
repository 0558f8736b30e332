//! A picture of an evaluation set as a camera would deliver it, and from such a picture to a network's input.

use super::{EvaluationSet, Preprocessing, Values};

/// Pixels from 0 to 255, row by row, the channels of a pixel side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// Red, green and blue, or grey.
    pub channels: u32,
    /// `width` x `height` x `channels` bytes.
    pub bytes: Vec<u8>,
}

/// A set whose values are no pictures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the images of the evaluation set `{name}` have the shape {shape:?} and the channels `{channels}`, from which no pictures can \
     be made; make it with `layerlab set`"
)]
pub struct NoPictures {
    name: String,
    shape: Vec<usize>,
    channels: String,
}

impl EvaluationSet {
    /// The width and the height of its pictures.
    ///
    /// # Errors
    /// When its values are no pictures.
    pub fn picture_size(&self) -> Result<(u32, u32), NoPictures> {
        let no_pictures = || NoPictures {
            name: self.name.clone(),
            shape: self.shape.clone(),
            channels: self.preprocessing.channels.clone(),
        };
        let &[channels, height, width] = self.shape.as_slice() else {
            return Err(no_pictures());
        };
        let order = channel_order(&self.preprocessing.channels).ok_or_else(no_pictures)?;
        let sides = (u32::try_from(width), u32::try_from(height));
        match sides {
            (Ok(width), Ok(height)) if width > 0 && height > 0 && channels == order.len() => {
                Ok((width, height))
            }
            _ => Err(no_pictures()),
        }
    }

    /// The picture of image number `image`, counted from 0: what the mean and the scale made of its pixels is undone.
    ///
    /// # Errors
    /// When its values are no pictures.
    ///
    /// # Panics
    /// When the set has no such image.
    pub fn picture(&self, image: usize) -> Result<Picture, NoPictures> {
        let (width, height) = self.picture_size()?;
        let order = channel_order(&self.preprocessing.channels).unwrap_or(&[]);
        let (area, length) = (width as usize * height as usize, self.image_len());
        let range = image * length..(image + 1) * length;
        let mean = |channel: usize| self.preprocessing.mean.get(channel).copied().unwrap_or(0.0);
        let mut bytes = vec![0; length];
        for (place, index) in range.enumerate() {
            let (channel, pixel) = (place / area, place % area);
            bytes[pixel * order.len() + order[channel]] = match &self.values {
                Values::U8(values) => values[index],
                // A float that is out of range becomes the nearest byte.
                Values::F32(values) => {
                    (values[index] / self.preprocessing.scale + mean(channel)).round() as u8
                }
            };
        }
        Ok(Picture {
            width,
            height,
            channels: order.len() as u32,
            bytes,
        })
    }
}

impl Preprocessing {
    /// What a network takes for this picture, which has its size: channels in the network's order, then height, then width.
    /// None where the picture has other channels.
    pub fn input(&self, picture: &Picture) -> Option<Vec<f32>> {
        let order = channel_order(&self.channels)?;
        if order.len() != picture.channels as usize {
            return None;
        }
        let mut values = Vec::with_capacity(picture.bytes.len());
        for (channel, &place) in order.iter().enumerate() {
            let mean = self.mean.get(channel).copied().unwrap_or(0.0);
            let pixels = picture.bytes.chunks_exact(order.len());
            values.extend(pixels.map(|pixel| (f32::from(pixel[place]) - mean) * self.scale));
        }
        Some(values)
    }
}

/// Which of red, green and blue comes when in a network's input.
fn channel_order(channels: &str) -> Option<&'static [usize]> {
    match channels {
        "rgb" => Some(&[0, 1, 2]),
        "bgr" => Some(&[2, 1, 0]),
        "gray" => Some(&[0]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Metric, Resize, Truth};
    use super::*;

    fn set(channels: &str, mean: Vec<f32>, scale: f32, values: Values) -> EvaluationSet {
        let planes = channel_order(channels).map_or(3, <[usize]>::len);
        EvaluationSet {
            name: "two".to_owned(),
            metric: Metric::TopK { k: 1 },
            classes: vec!["a".to_owned(), "b".to_owned()],
            preprocessing: Preprocessing {
                resize: Resize::Stretch,
                channels: channels.to_owned(),
                mean,
                scale,
            },
            shape: vec![planes, 1, 2],
            truths: vec![Truth::Labels(vec![0])],
            pairs: Vec::new(),
            values,
        }
    }

    #[test]
    fn pixels_come_back_and_lead_to_the_same_input() {
        let blue_first = set("bgr", Vec::new(), 1.0, Values::U8(vec![5, 6, 3, 4, 1, 2]));
        let picture = blue_first.picture(0).expect("a picture");
        assert_eq!((picture.width, picture.height), (2, 1));
        assert_eq!(picture.bytes, [1, 3, 5, 2, 4, 6]);
        let input = blue_first.preprocessing.input(&picture);
        assert_eq!(input, Some(blue_first.images(0).remove(0)));

        let values = Values::F32(vec![-2.5, 0.0, 122.5, 1.0, 2.0, 3.0]);
        let scaled = set("rgb", vec![10.0, 10.0, 0.0], 0.5, values);
        let picture = scaled.picture(0).expect("a picture");
        assert_eq!(picture.bytes, [5, 255, 4, 10, 12, 6]);
        let input = scaled.preprocessing.input(&picture);
        assert_eq!(input, Some(scaled.images(0).remove(0)));
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        let mut odd = set("gray", Vec::new(), 1.0, Values::U8(vec![7, 8]));
        assert_eq!(odd.picture(0).expect("grey").channels, 1);
        odd.shape = vec![2];
        assert!(odd.picture(0).is_err());
        odd.shape = vec![1, 1, 2];
        odd.preprocessing.channels = "yuv".to_owned();
        let said = odd.picture_size().expect_err("no channels").to_string();
        assert!(said.contains("`yuv`") && said.contains("`two`"), "{said}");
    }
}
