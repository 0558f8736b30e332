//! PASCAL VOC's format: one XML file for each image.
//!
//! Corners are the first and the last pixel of the object, counted from 1. Objects that are marked as difficult or
//! truncated count like the others.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::{Entry, Place, SetError};
use super::listing::{Classes, Corners, Listed, Listing, Object, image_path};

#[derive(Deserialize)]
struct VocAnnotation {
    filename: String,
    size: Size,
    #[serde(default, rename = "object")]
    objects: Vec<Named>,
}

#[derive(Deserialize)]
struct Size {
    width: u32,
    height: u32,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    bndbox: Bounds,
}

#[derive(Deserialize)]
struct Bounds {
    xmin: f64,
    ymin: f64,
    xmax: f64,
    ymax: f64,
}

/// Reads the XML files in the folder at `path`, by their names. Classes are all names of objects in alphabetical
/// order, or `given`.
pub(super) fn read(path: &Path, given: Option<&[String]>) -> Result<Listing, SetError> {
    let mut annotations = Vec::new();
    for file in files(path)? {
        annotations.push((annotation(&file)?, file));
    }
    let names = annotations.iter().flat_map(|(annotation, _)| {
        let objects = annotation.objects.iter();
        objects.map(|object| object.name.trim())
    });
    let classes = Classes::given_or_sorted(given, names)?;
    let images = annotations
        .iter()
        .map(|(annotation, file)| listed(annotation, file, &classes))
        .collect::<Result<_, _>>()?;
    Ok(Listing {
        classes: classes.into_names(),
        images,
    })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, SetError> {
    let unreadable = |reason| SetError::Read {
        path: folder.to_owned(),
        reason,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|extension| extension == "xml") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn annotation(file: &Path) -> Result<VocAnnotation, SetError> {
    let text = fs::read_to_string(file).map_err(|reason| SetError::Read {
        path: file.to_owned(),
        reason,
    })?;
    quick_xml::de::from_str(&text).map_err(|reason| SetError::Voc {
        path: file.to_owned(),
        reason,
    })
}

fn listed(annotation: &VocAnnotation, file: &Path, classes: &Classes) -> Result<Listed, SetError> {
    let place = Place::new(file, Entry::Whole);
    let objects = (1..).zip(&annotation.objects).map(|(number, object)| {
        let place = Place::new(file, Entry::Object(number));
        let bounds = &object.bndbox;
        Ok(Object {
            class: classes.place(object.name.trim(), &place)?,
            corners: Some(Corners {
                left: bounds.xmin - 1.0,
                top: bounds.ymin - 1.0,
                right: bounds.xmax,
                bottom: bounds.ymax,
            }),
            place,
        })
    });
    Ok(Listed {
        file: image_path(annotation.filename.trim(), &place)?,
        size: Some((annotation.size.width, annotation.size.height)),
        objects: objects.collect::<Result<_, SetError>>()?,
        crowd: 0,
        place,
    })
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::accuracy::{ObjectBox, Truth};

    use super::super::fixture::{DETECTION, Folder, MULTI_LABEL, assert_refused, named, names};
    use super::super::{Annotations, Source};

    /// As in the archives of PASCAL VOC 2012, shortened: parts have boxes of their own.
    const GOOD: &str = "<annotation>
        <folder>VOC2012</folder>
        <filename>b.jpg</filename>
        <object>
            <name>person</name>
            <difficult>1</difficult>
            <bndbox><xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>15</ymax></bndbox>
            <part>
                <name>head</name>
                <bndbox><xmin>11</xmin><ymin>6</ymin><xmax>20</xmax><ymax>9</ymax></bndbox>
            </part>
            <part>
                <name>hand</name>
                <bndbox><xmin>21</xmin><ymin>9</ymin><xmax>22</xmax><ymax>10</ymax></bndbox>
            </part>
        </object>
        <segmented>0</segmented>
        <size><width>40</width><height>20</height><depth>3</depth></size>
        <object>
            <bndbox><xmax>40.0</xmax><xmin>31</xmin><ymax>25</ymax><ymin>1</ymin></bndbox>
            <name>chair</name>
        </object>
    </annotation>";

    const NOTHING: &str = "<annotation><filename>a.png</filename>
        <size><width>40</width><height>20</height></size></annotation>";

    fn source(folder: &Folder, text: &str) -> Source {
        folder.write("voc/1.xml", text);
        folder.write("voc/0.xml", NOTHING);
        folder.write("voc/readme.txt", "not of the set");
        folder.source(Annotations::Voc(folder.path("voc")), DETECTION)
    }

    #[test]
    fn corners_are_counted_from_1_and_belong_to_the_object() {
        let folder = Folder::new();
        let set = source(&folder, GOOD).load().expect("a set").set;
        assert_eq!(set.classes, ["chair", "person"]);
        let person = ObjectBox {
            class: 1,
            x: 0.25,
            y: 0.25,
            width: 0.5,
            height: 0.5,
        };
        let chair = ObjectBox {
            class: 0,
            x: 0.75,
            y: 0.0,
            width: 0.25,
            height: 1.0,
        };
        let both = Truth::Boxes(vec![person, chair]);
        assert_eq!(set.truths, [Truth::Boxes(Vec::new()), both]);
    }

    #[test]
    fn objects_become_labels() {
        let folder = Folder::new();
        let mut source = source(&folder, GOOD);
        source.metric = MULTI_LABEL;
        source.classes = Some(names(&["person", "chair"]));
        let set = source.load().expect("a set").set;
        let both = Truth::Labels(vec![0, 1]);
        assert_eq!(set.truths, [Truth::Labels(Vec::new()), both]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = Folder::new();
        let cases: [(&str, &str, &[&str]); 9] = [
            ("<xmax>30<", "<xmax>10<", &["object 1", "no width"]),
            ("<xmin>31<", "<xmin>41<", &["object 2", "no width"]),
            ("<xmax>30<", "<xmax>inf<", &["object 1", "finite"]),
            ("<xmax>30<", "<xmax>wide<", &["no PASCAL VOC"]),
            ("<filename>b.jpg</filename>", "", &["filename"]),
            ("b.jpg", "../b.jpg", &["without `..`"]),
            ("b.jpg", "a.png", &["0.xml", "leave one"]),
            ("<width>40<", "<width>41<", &["41x20", "40x20"]),
            ("</annotation>", "", &["no PASCAL VOC"]),
        ];
        for (good, bad, words) in cases {
            let text = GOOD.replacen(good, bad, 1);
            assert_ne!(text, GOOD, "{good}");
            let source = source(&folder, &text);
            assert_refused(source.load(), words);
            assert_refused(source.load(), &[named(&folder.path("voc/1.xml")).as_str()]);
        }
    }

    #[test]
    fn a_folder_without_annotations_is_refused() {
        let folder = Folder::new();
        let of = |name: &str| folder.source(Annotations::Voc(folder.path(name)), DETECTION);
        assert_refused(of("more").load(), &["more", "names no images"]);
        assert_refused(of("absent").load(), &["absent", "check the path"]);
        let mut classes = source(&folder, GOOD);
        classes.classes = Some(names(&["person"]));
        assert_refused(classes.load(), &["1.xml`, object 2", "`chair`"]);
    }
}
