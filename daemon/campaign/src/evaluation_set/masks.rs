//! Label images, as in PASCAL VOC's `SegmentationClass`: a PNG for each image, of its name, in which each pixel's value is a
//! class by its place, and 255 is what nothing is said about.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use layerlab_profiles::accuracy::{PixelRun, pixel_runs};

use super::error::{Entry, Place, SetError};
use super::listing::Listed;
use super::preprocess::Frame;

/// The value of pixels that do not count.
const LEFT_OUT: u8 = 255;

/// What images may be called after their label image's name.
const ENDINGS: [&str; 3] = ["jpg", "jpeg", "png"];

/// A label image.
#[derive(Debug)]
pub(super) struct Mask {
    file: PathBuf,
    width: u32,
    height: u32,
    /// Row by row.
    values: Vec<u8>,
}

/// The label images in the folder at `path`, by their names.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, SetError> {
    let unreadable = |reason| SetError::Read {
        path: path.to_owned(),
        reason,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|extension| extension == "png") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

impl Mask {
    /// Reads the label image at `file`, of which each class must be one of so many.
    pub(super) fn read(file: &Path, classes: usize) -> Result<Mask, SetError> {
        let opened = File::open(file).map_err(|reason| SetError::Read {
            path: file.to_owned(),
            reason,
        })?;
        let no_png = |reason| SetError::Mask {
            path: file.to_owned(),
            reason,
        };
        let mut reader = png::Decoder::new(BufReader::new(opened))
            .read_info()
            .map_err(no_png)?;
        let (width, height) = (reader.info().width, reader.info().height);
        let depth = reader.info().bit_depth as usize;
        let one_value = matches!(
            reader.info().color_type,
            png::ColorType::Grayscale | png::ColorType::Indexed
        );
        if !one_value || depth > 8 {
            let path = file.to_owned();
            return Err(SetError::MaskColours { path });
        }
        let bytes = reader.output_buffer_size().unwrap_or(0);
        let mut packed = vec![0; bytes];
        let line = reader.next_frame(&mut packed).map_err(no_png)?.line_size;
        // Values of fewer than eight bits share bytes, the first in the highest bits.
        let value = |row: &[u8], column: usize| {
            let bit = column * depth;
            let shifted = row[bit / 8] >> (8 - depth - bit % 8);
            shifted & (u8::MAX >> (8 - depth))
        };
        let rows = packed.chunks_exact(line.max(1));
        let values: Vec<u8> = rows
            .flat_map(|row| (0..width as usize).map(move |column| value(row, column)))
            .collect();
        let unknown = |value: &u8| *value != LEFT_OUT && usize::from(*value) >= classes;
        if let Some(place) = values.iter().position(unknown) {
            return Err(SetError::MaskClass {
                path: file.to_owned(),
                class: values[place],
                x: place as u32 % width,
                y: place as u32 / width,
                classes,
            });
        }
        Ok(Mask {
            file: file.to_owned(),
            width,
            height,
            values,
        })
    }

    /// The image in the folder `images` that it is about.
    pub(super) fn listed(&self, images: &Path) -> Listed {
        let named = |ending: &str| {
            let file = self.file.with_extension(ending);
            PathBuf::from(file.file_name().unwrap_or_default())
        };
        let there = ENDINGS
            .into_iter()
            .map(named)
            .find(|name| images.join(name).is_file());
        Listed {
            place: Place::new(&self.file, Entry::Whole),
            // Whoever opens it says that it is not there.
            file: there.unwrap_or_else(|| named(ENDINGS[0])),
            size: Some((self.width, self.height)),
            objects: Vec::new(),
            crowd: 0,
        }
    }

    /// What each pixel of an answer of this width and height shows, where the image comes to lie in `frame`: the class of the
    /// pixel in the image at its middle; nothing around a letterboxed image.
    pub(super) fn runs(&self, (width, height): (u32, u32), frame: Frame) -> Vec<PixelRun> {
        let pixels = (0..height).flat_map(|row| (0..width).map(move |column| (column, row)));
        pixel_runs(pixels.map(|(column, row)| {
            let across = (frame.left, frame.width, frame.input.0, self.width);
            let down = (frame.top, frame.height, frame.input.1, self.height);
            let x = place(column, width, across)?;
            let y = place(row, height, down)?;
            let value = self.values[(y * self.width + x) as usize];
            (value != LEFT_OUT).then_some(u32::from(value))
        }))
    }
}

/// Where in an image the middle of one of `count` cells along an input lies; `None` beside the image.
fn place(
    cell: u32,
    count: u32,
    (start, length, input, image): (u32, u32, u32, u32),
) -> Option<u32> {
    let middle = (f64::from(cell) + 0.5) * f64::from(input) / f64::from(count);
    let share = (middle - f64::from(start)) / f64::from(length);
    let inside = (0.0..1.0).contains(&share);
    inside.then(|| ((share * f64::from(image)) as u32).min(image - 1))
}

#[cfg(test)]
mod tests {
    use image::GrayImage;
    use layerlab_profiles::accuracy::{Metric, Resize, Truth};

    use super::super::fixture::{Folder, MULTI_LABEL, assert_refused, names};
    use super::super::{Annotations, Source};
    use super::*;

    /// `a.png` is 40 x 20: its left half shows class 0, its right half class 1, its last row nothing.
    fn source(folder: &Folder) -> Source {
        std::fs::create_dir_all(folder.path("masks")).expect("a folder");
        mask(|x, y| if y == 19 { 255 } else { u8::from(x >= 20) })
            .save(folder.path("masks/a.png"))
            .expect("room");
        let metric = Metric::PixelAccuracy {
            width: 4,
            height: 4,
        };
        let mut source = folder.source(Annotations::Masks(folder.path("masks")), metric);
        source.classes = Some(names(&["sky", "road"]));
        source
    }

    fn mask(value: impl Fn(u32, u32) -> u8) -> GrayImage {
        GrayImage::from_fn(40, 20, |x, y| image::Luma([value(x, y)]))
    }

    fn runs(runs: &[(Option<u32>, u32)]) -> Truth {
        Truth::Pixels(runs.iter().map(|&run| run.into()).collect())
    }

    #[test]
    fn each_pixel_of_the_answer_has_the_class_at_its_middle() {
        let folder = Folder::new();
        let mut source = source(&folder);
        let set = source.load().expect("a set").set;
        let row = [(Some(0), 2), (Some(1), 2)];
        assert_eq!(set.truths, [runs(&[row, row, row, row].concat())]);
        assert_eq!(
            (set.shape.as_slice(), set.image_count()),
            (&[3, 10, 10][..], 1)
        );
        // Letterboxed, it is 10 x 5 of 10 x 10; the middles of the outer rows of cells lie beside it.
        source.preprocessing.resize = Resize::Letterbox;
        let set = source.load().expect("a set").set;
        let beside = [(None, 4)];
        let expected = [&beside[..], &row, &row, &beside].concat();
        assert_eq!(set.truths, [runs(&expected)]);
        let bytes = set.to_bytes().expect("a set");
        let again = layerlab_profiles::accuracy::EvaluationSet::from_bytes(&bytes);
        assert_eq!(again.expect("a set"), set);
    }

    #[test]
    fn palettes_of_few_bits_are_classes_too() {
        let folder = Folder::new();
        let source = source(&folder);
        let file = File::create(folder.path("masks/a.png")).expect("room");
        let mut encoder = png::Encoder::new(file, 40, 20);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Two);
        encoder.set_palette(vec![0; 12]);
        let mut writer = encoder.write_header().expect("room");
        // Four pixels in each byte, all of class 1.
        writer
            .write_image_data(&[0b0101_0101; 10 * 20])
            .expect("room");
        writer.finish().expect("room");
        let set = source.load().expect("a set").set;
        assert_eq!(set.truths, [runs(&[(Some(1), 16)])]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = Folder::new();
        let mut good = source(&folder);
        let path = folder.path("masks/a.png");
        mask(|x, _| if x == 7 { 2 } else { 0 })
            .save(&path)
            .expect("room");
        assert_refused(good.load(), &["a.png", "class 2 at (7, 0)", "--classes"]);
        image::RgbImage::new(40, 20).save(&path).expect("room");
        assert_refused(good.load(), &["a.png", "colours", "palette"]);
        std::fs::write(&path, "no image").expect("room");
        assert_refused(good.load(), &["a.png", "no sound PNG"]);
        GrayImage::new(20, 20).save(&path).expect("room");
        assert_refused(good.load(), &["a.png", "20x20", "40x20"]);
        mask(|_, _| 0)
            .save(folder.path("masks/z.png"))
            .expect("room");
        mask(|_, _| 0).save(&path).expect("room");
        assert_refused(good.load(), &["z.png", "z.jpg", "--images"]);
        let given = good.classes.take();
        assert_refused(good.load(), &["masks", "--classes"]);
        good.classes = given;
        good.metric = MULTI_LABEL;
        assert_refused(good.load(), &["masks", "--metric pixel-accuracy"]);
        let labels = folder.write("labels.csv", "image,label\na.png,x\n");
        good.metric = Metric::PixelAccuracy {
            width: 4,
            height: 4,
        };
        good.annotations = Annotations::Labels(labels);
        good.classes = None;
        assert_refused(good.load(), &["labels.csv", "--masks"]);
        good.annotations = Annotations::Masks(folder.path("more"));
        good.classes = Some(names(&["sky"]));
        assert_refused(good.load(), &["more"]);
    }
}
