//! What all files of annotations say, in one form: which images there are, and what each shows.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::error::{BoxProblem, Entry, Place, SetError};

/// What a file or a folder of annotations says.
#[derive(Debug)]
pub(super) struct Listing {
    /// The names of the classes.
    pub(super) classes: Vec<String>,
    /// The images in their order.
    pub(super) images: Vec<Listed>,
}

/// One image, and what it shows.
#[derive(Debug)]
pub(super) struct Listed {
    /// Who names it.
    pub(super) place: Place,
    /// Its path below the folder of images.
    pub(super) file: PathBuf,
    /// Its width and height, where the annotations say.
    pub(super) size: Option<(u32, u32)>,
    /// What it shows.
    pub(super) objects: Vec<Object>,
    /// How many annotations of crowds were left out.
    pub(super) crowd: usize,
}

/// Something in an image.
#[derive(Debug)]
pub(super) struct Object {
    /// Who says so.
    pub(super) place: Place,
    /// Its class, by its place in the list of classes.
    pub(super) class: u32,
    /// Where it is, where that is known.
    pub(super) corners: Option<Corners>,
}

/// A box in pixels of its image, from the image's upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Corners {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Listing {
    /// Whether each image is listed once.
    pub(super) fn each_once(&self) -> Result<(), SetError> {
        let mut seen: BTreeMap<&Path, &Place> = BTreeMap::new();
        for listed in &self.images {
            if let Some(earlier) = seen.insert(&listed.file, &listed.place) {
                return Err(SetError::Twice {
                    place: listed.place.clone(),
                    earlier: earlier.clone(),
                    name: listed.name(),
                });
            }
        }
        Ok(())
    }
}

impl Listed {
    /// Its file, for people.
    pub(super) fn name(&self) -> String {
        self.file.display().to_string()
    }
}

impl Corners {
    /// The part of the box that lies in an image of this size.
    pub(super) fn clipped(self, (width, height): (u32, u32)) -> Result<Corners, BoxProblem> {
        let Corners {
            left,
            top,
            right,
            bottom,
        } = self;
        if [left, top, right, bottom].iter().any(|v| !v.is_finite()) {
            return Err(BoxProblem::NotFinite);
        }
        if left >= right || top >= bottom {
            return Err(BoxProblem::NoArea);
        }
        let (width, height) = (f64::from(width), f64::from(height));
        if left >= width || top >= height || right <= 0.0 || bottom <= 0.0 {
            return Err(BoxProblem::Outside);
        }
        Ok(Corners {
            left: left.max(0.0),
            top: top.max(0.0),
            right: right.min(width),
            bottom: bottom.min(height),
        })
    }
}

impl Place {
    pub(super) fn new(file: &Path, entry: Entry) -> Place {
        let file = file.to_owned();
        Place { file, entry }
    }
}

/// The path of an image that annotations name, which leads nowhere but below the folder of images.
pub(super) fn image_path(name: &str, place: &Place) -> Result<PathBuf, SetError> {
    let outside = || SetError::Outside {
        place: place.clone(),
        name: name.to_owned(),
    };
    let mut path = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    // What ends in a slash, or is nothing, names a folder; a path of another system's kind names nothing here.
    let usable = path.file_name().is_some() && !name.ends_with('/') && !name.contains(['\\', '\0']);
    if usable { Ok(path) } else { Err(outside()) }
}

/// The classes and their places.
#[derive(Debug)]
pub(super) struct Classes {
    names: Vec<String>,
    places: BTreeMap<String, u32>,
}

impl Classes {
    /// The user's classes in the user's order.
    pub(super) fn given(names: &[String]) -> Result<Classes, SetError> {
        let classes = Classes::new(names.to_vec());
        let doubtful = names.iter().enumerate().find(|(place, name)| {
            name.trim().is_empty() || classes.places[*name] as usize != *place
        });
        match doubtful {
            Some((_, name)) => Err(SetError::Classes(name.clone())),
            None => Ok(classes),
        }
    }

    /// The user's classes, or those that the annotations name, in alphabetical order.
    pub(super) fn given_or_sorted<'a>(
        given: Option<&[String]>,
        named: impl Iterator<Item = &'a str>,
    ) -> Result<Classes, SetError> {
        if let Some(names) = given {
            return Classes::given(names);
        }
        let named: std::collections::BTreeSet<&str> = named.collect();
        Ok(Classes::new(named.into_iter().map(str::to_owned).collect()))
    }

    pub(super) fn new(names: Vec<String>) -> Classes {
        let places = (0..).zip(&names).map(|(place, name)| (name.clone(), place));
        Classes {
            places: places.collect(),
            names,
        }
    }

    /// The place of a class.
    pub(super) fn place(&self, name: &str, place: &Place) -> Result<u32, SetError> {
        let class = self.places.get(name);
        class.copied().ok_or_else(|| SetError::UnknownClass {
            place: place.clone(),
            name: name.to_owned(),
            classes: self.names.len(),
        })
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_but_below_the_folder_of_images() {
        let place = Place::new(Path::new("labels.csv"), Entry::Line(3));
        let good = [
            ("a.jpg", "a.jpg"),
            ("./b//a.jpg", "b/a.jpg"),
            ("..a", "..a"),
        ];
        for (name, path) in good {
            assert_eq!(image_path(name, &place).expect(name), Path::new(path));
        }
        for name in [
            "../a.jpg",
            "b/../../a.jpg",
            "b/../a.jpg",
            "/etc/passwd",
            "",
            ".",
            "..",
            "b/",
            "..\\a.jpg",
            "a\0.jpg",
        ] {
            let said = image_path(name, &place).expect_err(name).to_string();
            assert!(said.starts_with("`labels.csv`, line 3 names"), "{said}");
        }
    }

    #[test]
    fn boxes_are_clipped_to_their_image() {
        let corners = |left, top, right, bottom| Corners {
            left,
            top,
            right,
            bottom,
        };
        let clipped = |corners: Corners| corners.clipped((40, 30));
        let inside = corners(1.0, 2.0, 3.5, 30.0);
        assert_eq!(clipped(inside), Ok(inside));
        let over = corners(-5.0, -1.0, 41.0, 99.0);
        assert_eq!(clipped(over), Ok(corners(0.0, 0.0, 40.0, 30.0)));
        for (bad, problem) in [
            (corners(5.0, 5.0, 5.0, 9.0), BoxProblem::NoArea),
            (corners(5.0, 9.0, 6.0, 5.0), BoxProblem::NoArea),
            (corners(40.0, 5.0, 50.0, 9.0), BoxProblem::Outside),
            (corners(-9.0, 5.0, 0.0, 9.0), BoxProblem::Outside),
            (corners(f64::NAN, 5.0, 6.0, 9.0), BoxProblem::NotFinite),
        ] {
            assert_eq!(clipped(bad), Err(problem));
        }
    }
}
