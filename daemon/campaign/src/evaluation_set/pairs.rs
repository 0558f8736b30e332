//! Pairs of images in the format of Labeled Faces in the Wild: a text file with tabs, and for each person a folder of
//! numbered images, `name/name_0001.jpg`.
//!
//! The first line says how many folds there are and how many pairs of each kind a fold has (`pairs.txt`), or of a single
//! fold only how many (`pairsDevTrain.txt`). Then `name 1 4` is a pair of images of one person, and `name 1 other 2` one of two.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Entry, Place, SetError};
use super::listing::{Listed, image_path};

/// What a file of pairs says.
#[derive(Debug)]
pub(super) struct PairListing {
    /// Each image once, in the order in which pairs name them.
    pub(super) images: Vec<Listed>,
    pub(super) pairs: Vec<ListedPair>,
}

/// Two images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedPair {
    /// Their places among the images.
    pub(super) images: [u32; 2],
    /// Whether they show the same person.
    pub(super) same: bool,
    /// Whether the pair is of the first half of the folds; of a single fold, of the first half of the pairs of its kind.
    pub(super) first_half: bool,
}

/// A line of the file.
struct PairLine {
    place: Place,
    files: [PathBuf; 2],
    same: bool,
}

/// Reads the file at `path`, and of its pairs the first `limit`.
pub(super) fn read(path: &Path, limit: Option<usize>) -> Result<PairListing, SetError> {
    let text = fs::read_to_string(path).map_err(|reason| SetError::Read {
        path: path.to_owned(),
        reason,
    })?;
    // Blank lines at the end are no pairs.
    let mut lines = (1..).zip(text.trim_end().lines());
    let header = lines.next().map_or("", |(_, line)| line);
    let Some((folds, each)) = counts(header) else {
        let place = Place::new(path, Entry::Line(1));
        return Err(SetError::PairsHeader { place });
    };
    let mut pairs = lines
        .map(|(number, line)| pair(line, Place::new(path, Entry::Line(number))))
        .collect::<Result<Vec<_>, _>>()?;
    let (said, found) = (folds.saturating_mul(each), pairs.len() as u64);
    if said != found {
        return Err(SetError::PairsCount {
            path: path.to_owned(),
            said,
            found,
        });
    }
    pairs.truncate(limit.unwrap_or(usize::MAX));
    if pairs.is_empty() {
        let path = path.to_owned();
        return Err(SetError::Empty { path });
    }
    let first_half = first_half(&pairs, usize::try_from(each).unwrap_or(usize::MAX));
    Ok(listing(pairs, first_half))
}

/// How many folds there are, and how many pairs of both kinds each has.
fn counts(header: &str) -> Option<(u64, u64)> {
    let mut numbers = Vec::new();
    for text in header.split_whitespace() {
        numbers.push(text.parse::<u64>().ok().filter(|number| *number > 0)?);
    }
    match numbers[..] {
        [pairs] => Some((1, pairs.checked_mul(2)?)),
        [folds, pairs] => Some((folds, pairs.checked_mul(2)?)),
        _ => None,
    }
}

fn pair(line: &str, place: Place) -> Result<PairLine, SetError> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let (one, other, same) = match fields[..] {
        [name, one, other] => ((name, one), (name, other), true),
        [one_name, one, other_name, other] => ((one_name, one), (other_name, other), false),
        _ => return Err(SetError::Pair { place }),
    };
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    let (Some(first), Some(second)) = (number(one.1), number(other.1)) else {
        return Err(SetError::Pair { place });
    };
    // An image beside itself says nothing of a network, and two people have two names.
    if (same && first == second) || (!same && one.0 == other.0) {
        return Err(SetError::Pair { place });
    }
    let file =
        |name: &str, number: u32| image_path(&format!("{name}/{name}_{number:04}.jpg"), &place);
    let files = [file(one.0, first)?, file(other.0, second)?];
    Ok(PairLine { place, files, same })
}

/// Which pairs are of the first half, of folds of `each` pairs.
fn first_half(pairs: &[PairLine], each: usize) -> Vec<bool> {
    let folds = pairs.len().div_ceil(each);
    if folds > 1 {
        let first = folds / 2 * each;
        return (0..pairs.len()).map(|pair| pair < first).collect();
    }
    let of_kind = |same| pairs.iter().filter(|pair| pair.same == same).count();
    let mut left = [false, true].map(|same| of_kind(same) / 2);
    let halves = pairs.iter().map(|pair| {
        let left = &mut left[usize::from(pair.same)];
        let first = *left > 0;
        *left = left.saturating_sub(1);
        first
    });
    halves.collect()
}

fn listing(lines: Vec<PairLine>, first_half: Vec<bool>) -> PairListing {
    let mut places: BTreeMap<PathBuf, u32> = BTreeMap::new();
    let mut images: Vec<Listed> = Vec::new();
    let mut pairs = Vec::with_capacity(lines.len());
    for (PairLine { place, files, same }, first_half) in lines.into_iter().zip(first_half) {
        let image = |file: PathBuf| {
            // More images than a `u32` counts do not fit in memory.
            let next = images.len() as u32;
            *places.entry(file.clone()).or_insert_with(|| {
                images.push(Listed {
                    place: place.clone(),
                    file,
                    size: None,
                    objects: Vec::new(),
                    crowd: 0,
                });
                next
            })
        };
        pairs.push(ListedPair {
            images: files.map(image),
            same,
            first_half,
        });
    }
    PairListing { images, pairs }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::accuracy::{Metric, Truth};

    use super::super::fixture::{Folder, MULTI_LABEL, assert_refused};
    use super::super::{Annotations, Loaded, Source};

    const VERIFICATION: Metric = Metric::Verification { threshold: 0.5 };

    /// Ada has three images, Bo two, Cy one.
    fn source(text: &str) -> (Folder, Source) {
        let folder = Folder::new();
        for (name, images) in [("Ada", 3), ("Bo", 2), ("Cy", 1)] {
            std::fs::create_dir(folder.path(name)).expect("a folder");
            for number in 1..=images {
                let image = image::RgbImage::new(10, 10);
                let file = format!("{name}/{name}_{number:04}.jpg");
                image.save(folder.path(&file)).expect("room");
            }
        }
        let path = folder.write("pairs.txt", text);
        let source = folder.source(Annotations::Pairs(path), VERIFICATION);
        (folder, source)
    }

    fn loaded(text: &str) -> Loaded {
        source(text).1.load().expect("a set")
    }

    const TWO_FOLDS: &str = "2\t1\nAda\t1\t2\nAda\t1\tBo\t1\nBo\t1\t2\nAda\t3\tCy\t1\n";

    #[test]
    fn each_image_is_there_once_however_many_pairs_it_is_in() {
        let Loaded {
            set, first_half, ..
        } = loaded(TWO_FOLDS);
        assert_eq!(set.pairs, [[0, 1], [0, 2], [2, 3], [4, 5]]);
        let same = [true, false, true, false].map(Truth::Same);
        assert_eq!(set.truths, same);
        assert_eq!((set.answers(), set.image_count()), (4, 6));
        assert!(set.classes.is_empty());
        assert_eq!(first_half, [true, true, false, false]);
        let bytes = set.to_bytes().expect("a set");
        let again = layerlab_profiles::accuracy::EvaluationSet::from_bytes(&bytes);
        assert_eq!(again.expect("a set"), set);
    }

    #[test]
    fn a_single_fold_is_halved_by_kind() {
        let text = "2\r\nAda\t1\t2\r\nBo\t1\t2\r\nAda\t1\tBo\t1\r\nAda\t3\tCy\t1\r\n\r\n";
        let halved = loaded(text);
        assert_eq!(halved.first_half, [true, false, true, false]);
        let (_folder, mut limited) = source(TWO_FOLDS);
        limited.limit = Some(2);
        let limited = limited.load().expect("a set");
        assert_eq!(limited.set.answers(), 2);
        // Half of one pair of a kind is none.
        assert_eq!(limited.first_half, [false, false]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&str, &[&str]); 13] = [
            ("", &["line 1", "how many pairs"]),
            ("ten\t300\n", &["line 1", "how many pairs"]),
            ("0\t300\n", &["line 1"]),
            ("1\t2\t3\nAda\t1\t2\n", &["line 1"]),
            (
                "1\nAda\t1\t2\n",
                &["says that it has 2 pairs, and it has 1"],
            ),
            (
                "1\nAda 1 2\nAda\t1\tBo\t1\n",
                &["line 2", "correct or remove"],
            ),
            ("1\nAda\t1\t2\nAda\tone\tBo\t1\n", &["line 3"]),
            ("1\nAda\t0\t2\nAda\t1\tBo\t1\n", &["line 2"]),
            ("1\nAda\t2\t2\nAda\t1\tBo\t1\n", &["line 2", "different"]),
            ("1\nAda\t1\t2\nAda\t1\tAda\t2\n", &["line 3"]),
            ("1\nAda\t1\t2\n\nAda\t1\tBo\t1\n", &["line 3"]),
            (
                "1\nAda\t1\t4\nAda\t1\tBo\t1\n",
                &["line 2", "Ada_0004.jpg", "--images"],
            ),
            ("1\n..\t1\t4\nAda\t1\tBo\t1\n", &["line 2", "without `..`"]),
        ];
        for (text, words) in cases {
            let (_folder, source) = source(text);
            assert_refused(source.load(), words);
            assert_refused(source.load(), &["pairs.txt"]);
        }
        let (_folder, mut other) = source(TWO_FOLDS);
        other.metric = MULTI_LABEL;
        assert_refused(other.load(), &["pairs.txt", "--metric verification"]);
        other.metric = VERIFICATION;
        other.limit = Some(0);
        assert_refused(other.load(), &["names no images"]);
    }
}
