//! COCO's format for detection: one JSON file with images, annotations and categories.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::error::{Entry, Place, SetError};
use super::listing::{Classes, Corners, Listed, Listing, Object, image_path};

#[derive(Deserialize)]
struct CocoFile {
    images: Vec<Image>,
    annotations: Vec<CocoAnnotation>,
    categories: Vec<Category>,
}

#[derive(Deserialize)]
struct Image {
    id: i64,
    file_name: String,
    width: u32,
    height: u32,
}

#[derive(Deserialize)]
struct CocoAnnotation {
    id: i64,
    image_id: i64,
    category_id: i64,
    /// Left, top, width and height in pixels.
    bbox: [f64; 4],
    /// 1 for a region with many objects of the category.
    #[serde(default)]
    iscrowd: u8,
}

#[derive(Deserialize)]
struct Category {
    id: i64,
    name: String,
}

/// Reads the file at `path`. Classes are the categories by their id, or `given`.
pub(super) fn read(path: &Path, given: Option<&[String]>) -> Result<Listing, SetError> {
    let bytes = fs::read(path).map_err(|reason| SetError::Read {
        path: path.to_owned(),
        reason,
    })?;
    let file: CocoFile = serde_json::from_slice(&bytes).map_err(|reason| SetError::Coco {
        path: path.to_owned(),
        reason,
    })?;
    let categories = categories(path, file.categories)?;
    let classes = match given {
        Some(names) => Classes::given(names)?,
        None => Classes::new(categories.values().cloned().collect()),
    };
    let (mut images, places) = images(path, file.images)?;
    for annotation in file.annotations {
        let place = Place::new(path, Entry::Annotation(annotation.id));
        let unknown = |what, id| SetError::UnknownId {
            place: place.clone(),
            what,
            id,
        };
        let image = places.get(&annotation.image_id);
        let image = image.ok_or_else(|| unknown("image", annotation.image_id))?;
        let category = categories.get(&annotation.category_id);
        let category = category.ok_or_else(|| unknown("category", annotation.category_id))?;
        let listed: &mut Listed = &mut images[*image];
        if annotation.iscrowd != 0 {
            listed.crowd += 1;
            continue;
        }
        let [left, top, width, height] = annotation.bbox;
        listed.objects.push(Object {
            class: classes.place(category, &place)?,
            corners: Some(Corners {
                left,
                top,
                right: left + width,
                bottom: top + height,
            }),
            place,
        });
    }
    Ok(Listing {
        classes: classes.into_names(),
        images,
    })
}

/// The names of the categories, by their ids; neither is there twice.
fn categories(path: &Path, categories: Vec<Category>) -> Result<BTreeMap<i64, String>, SetError> {
    let mut by_id = BTreeMap::new();
    let mut by_name = BTreeMap::new();
    for Category { id, name } in categories {
        let place = Place::new(path, Entry::Category(id));
        let earlier = by_name.insert(name.clone(), place.clone());
        let same_id = by_id.insert(id, name.clone()).map(|_| place.clone());
        if let Some(earlier) = earlier.or(same_id) {
            return Err(SetError::Twice {
                place,
                earlier,
                name,
            });
        }
    }
    Ok(by_id)
}

/// The images, and the place of each by its id.
fn images(
    path: &Path,
    images: Vec<Image>,
) -> Result<(Vec<Listed>, BTreeMap<i64, usize>), SetError> {
    let mut places = BTreeMap::new();
    let mut listed: Vec<Listed> = Vec::with_capacity(images.len());
    for image in images {
        let place = Place::new(path, Entry::Image(image.id));
        if let Some(earlier) = places.insert(image.id, listed.len()) {
            return Err(SetError::Twice {
                place,
                earlier: listed[earlier].place.clone(),
                name: image.file_name,
            });
        }
        listed.push(Listed {
            file: image_path(&image.file_name, &place)?,
            place,
            size: Some((image.width, image.height)),
            objects: Vec::new(),
            crowd: 0,
        });
    }
    Ok((listed, places))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use layerlab_profiles::accuracy::{Metric, ObjectBox, Resize, Truth};

    use super::super::fixture::{DETECTION, Folder, MULTI_LABEL, assert_refused, named, names};
    use super::super::{Annotations, Source};

    /// Categories 7 (dog) and 3 (cat); `b.jpg` shows both, `a.png` a cat and a crowd, `more/c.png` nothing.
    const GOOD: &str = r#"{
        "info": {"year": 2020},
        "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}],
        "images": [
            {"id": 2, "file_name": "b.jpg", "width": 40, "height": 20},
            {"id": 1, "file_name": "a.png", "width": 40, "height": 20},
            {"id": 5, "file_name": "more/c.png", "width": 40, "height": 20}
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 3, "bbox": [-4, 5, 14, 5], "iscrowd": 0},
            {"id": 2, "image_id": 2, "category_id": 7, "bbox": [10, 5, 20.0, 10.5], "segmentation": [[1, 2]]},
            {"id": 3, "image_id": 2, "category_id": 3, "bbox": [30, 10, 20, 20]},
            {"id": 4, "image_id": 1, "category_id": 7, "bbox": [0, 0, 40, 20], "iscrowd": 1,
             "segmentation": {"counts": [800], "size": [20, 40]}}
        ]}"#;

    fn source(folder: &Folder, text: &str, metric: Metric) -> (Source, PathBuf) {
        let path = folder.write("annotations.json", text);
        (folder.source(Annotations::Coco(path.clone()), metric), path)
    }

    fn object(class: u32, x: f32, y: f32, width: f32, height: f32) -> ObjectBox {
        ObjectBox {
            class,
            x,
            y,
            width,
            height,
        }
    }

    #[test]
    fn boxes_are_shares_of_the_image_and_end_at_its_edges() {
        let folder = Folder::new();
        let loaded = source(&folder, GOOD, DETECTION).0.load().expect("a set");
        assert_eq!(loaded.set.classes, ["cat", "dog"]);
        assert_eq!(
            loaded.set.truths,
            [
                Truth::Boxes(vec![
                    object(1, 0.25, 0.25, 0.5, 0.525),
                    object(0, 0.75, 0.5, 0.25, 0.5)
                ]),
                Truth::Boxes(vec![object(0, 0.0, 0.25, 0.25, 0.25)]),
                Truth::Boxes(vec![]),
            ]
        );
        assert_eq!(loaded.skipped_crowd, 1);
        assert_eq!(loaded.set.shape, [3, 10, 10]);
    }

    #[test]
    fn boxes_go_with_the_image_into_the_letterbox() {
        let folder = Folder::new();
        let mut source = source(&folder, GOOD, DETECTION).0;
        source.preprocessing.resize = Resize::Letterbox;
        let truths = source.load().expect("a set").set.truths;
        // The image is 10 x 5 of the 10 x 10, from row 2 on.
        let whole = object(0, 0.0, 0.2 + 0.125, 0.25, 0.125);
        assert_eq!(truths[1], Truth::Boxes(vec![whole]));
    }

    #[test]
    fn categories_become_labels() {
        let folder = Folder::new();
        let mut source = source(&folder, GOOD, MULTI_LABEL).0;
        let labels = |labels: &[u32]| Truth::Labels(labels.to_vec());
        let loaded = source.load().expect("a set");
        assert_eq!(
            loaded.set.truths,
            [labels(&[0, 1]), labels(&[0]), labels(&[])]
        );
        source.classes = Some(names(&["dog", "bird", "cat"]));
        let loaded = source.load().expect("a set");
        assert_eq!(loaded.set.classes, ["dog", "bird", "cat"]);
        assert_eq!(
            loaded.set.truths,
            [labels(&[0, 2]), labels(&[2]), labels(&[])]
        );
        source.limit = Some(1);
        let loaded = source.load().expect("a set");
        assert_eq!(loaded.set.truths, [labels(&[0, 2])]);
        assert_eq!(loaded.skipped_crowd, 0);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = Folder::new();
        folder.write("text.png", "no image");
        let cases: [(&str, &str, &[&str]); 13] = [
            (
                "\"category_id\": 3",
                "\"category_id\": 9",
                &["annotation 1", "category 9"],
            ),
            (
                "\"image_id\": 1",
                "\"image_id\": 9",
                &["annotation 1", "image 9"],
            ),
            (
                "14, 5]",
                "14, 0]",
                &["annotation 1", "no width or no height"],
            ),
            ("[-4, 5", "[-14, 5", &["annotation 1", "outside its image"]),
            (
                "[-4, 5, 14, 5]",
                "[-4, 5, 14]",
                &["line 10", "no COCO file"],
            ),
            (
                "\"a.png\"",
                "\"../a.png\"",
                &["image 1", "`../a.png`", "without `..`"],
            ),
            ("\"a.png\"", "\"/a.png\"", &["image 1", "`/a.png`"]),
            (
                "\"a.png\"",
                "\"b.jpg\"",
                &["image 1", "image 2", "`b.jpg`", "leave one"],
            ),
            ("\"a.png\"", "\"d.png\"", &["image 1", "d.png", "--images"]),
            (
                "\"a.png\"",
                "\"text.png\"",
                &["image 1", "text.png", "no sound JPEG or PNG"],
            ),
            (
                "\"width\": 40",
                "\"width\": 80",
                &["image 2", "80x20", "40x20"],
            ),
            (
                "\"id\": 3, \"name\": \"cat\"",
                "\"id\": 3, \"name\": \"dog\"",
                &["category 3", "category 7"],
            ),
            ("\"id\": 5,", "\"id\": 1,", &["image 1", "more/c.png"]),
        ];
        for (good, bad, words) in cases {
            let text = GOOD.replacen(good, bad, 1);
            assert_ne!(text, GOOD, "{good}");
            let (source, path) = source(&folder, &text, DETECTION);
            assert_refused(source.load(), words);
            assert_refused(source.load(), &[named(&path).as_str()]);
        }
    }

    #[test]
    fn a_set_that_would_say_nothing_is_refused() {
        let folder = Folder::new();
        let empty = r#"{"images": [], "annotations": [], "categories": []}"#;
        assert_refused(
            source(&folder, empty, DETECTION).0.load(),
            &["names no images"],
        );
        let mut source = source(&folder, GOOD, MULTI_LABEL).0;
        source.classes = Some(names(&["dog", "bird"]));
        assert_refused(
            source.load(),
            &["annotation 1", "`cat`", "2 classes", "--classes"],
        );
        source.classes = Some(names(&["dog", "cat", "dog"]));
        assert_refused(source.load(), &["`dog` more than once"]);
        source.classes = Some(names(&["dog", "cat", "bird"]));
        source.metric = Metric::TopK { k: 1 };
        assert_refused(
            source.load(),
            &["image 2", "`b.jpg` 2 classes", "multi-label"],
        );
        source.metric = Metric::TopK { k: 3 };
        assert_refused(source.load(), &["top-3 of 3", "--classes"]);
        source.metric = Metric::Verification { threshold: 0.5 };
        assert_refused(source.load(), &["pairs"]);
        source.annotations = Annotations::Coco(folder.path("absent.json"));
        assert_refused(source.load(), &["absent.json", "check the path"]);
    }
}
