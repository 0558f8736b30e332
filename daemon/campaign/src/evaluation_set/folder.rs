//! A folder of images and a CSV file with their labels.

use std::fs::File;
use std::path::Path;

use super::error::{Entry, Place, SetError};
use super::listing::{Classes, Listed, Listing, Object, image_path};

/// One line of the file.
struct Row {
    place: Place,
    image: String,
    labels: Vec<String>,
}

/// Reads the file at `path`. Classes are all labels in alphabetical order, or `given`.
pub(super) fn read(path: &Path, given: Option<&[String]>) -> Result<Listing, SetError> {
    let rows = rows(path)?;
    let labels = rows.iter().flat_map(|row| &row.labels);
    let classes = Classes::given_or_sorted(given, labels.map(String::as_str))?;
    let images = rows
        .into_iter()
        .map(|row| listed(row, &classes))
        .collect::<Result<_, _>>()?;
    Ok(Listing {
        classes: classes.into_names(),
        images,
    })
}

fn rows(path: &Path) -> Result<Vec<Row>, SetError> {
    let no_csv = |reason| SetError::Csv {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|reason| SetError::Read {
        path: path.to_owned(),
        reason,
    })?;
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(file);
    let header = reader.headers().map_err(no_csv)?.clone();
    let column = |name| header.iter().position(|column| column == name);
    let missing = |column| SetError::Column {
        path: path.to_owned(),
        column,
    };
    let image = column("image").ok_or_else(|| missing("`image`"))?;
    // `label` is one label, whatever is in it; `labels` are any number.
    let (labels, many) = match (column("label"), column("labels")) {
        (Some(label), _) => (label, false),
        (None, Some(labels)) => (labels, true),
        (None, None) => return Err(missing("`label` or `labels`")),
    };
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(no_csv)?;
        let line = record.position().map_or(0, csv::Position::line);
        let text = record[labels].to_owned();
        rows.push(Row {
            place: Place::new(path, Entry::Line(line)),
            image: record[image].to_owned(),
            labels: match many {
                true => text
                    .split(';')
                    .map(|label| label.trim().to_owned())
                    .filter(|label| !label.is_empty())
                    .collect(),
                false => Some(text)
                    .filter(|label| !label.is_empty())
                    .into_iter()
                    .collect(),
            },
        });
    }
    Ok(rows)
}

fn listed(row: Row, classes: &Classes) -> Result<Listed, SetError> {
    let objects = row.labels.iter().map(|label| {
        Ok(Object {
            class: classes.place(label, &row.place)?,
            place: row.place.clone(),
            corners: None,
        })
    });
    Ok(Listed {
        file: image_path(&row.image, &row.place)?,
        size: None,
        objects: objects.collect::<Result<_, SetError>>()?,
        crowd: 0,
        place: row.place,
    })
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::accuracy::{Metric, Truth, Values};

    use super::super::fixture::{DETECTION, Folder, MULTI_LABEL, assert_refused, names};
    use super::super::{Annotations, Source};

    fn source(folder: &Folder, text: &str, metric: Metric) -> Source {
        let path = folder.write("labels.csv", text);
        folder.source(Annotations::Labels(path), metric)
    }

    fn labels(labels: &[u32]) -> Truth {
        Truth::Labels(labels.to_vec())
    }

    #[test]
    fn one_label_for_each_image() {
        let folder = Folder::new();
        let text = "label,image\ntea; green,b.jpg\n coffee , a.png\n";
        let mut source = source(&folder, text, MULTI_LABEL);
        let set = source.load().expect("a set").set;
        assert_eq!(set.classes, ["coffee", "tea; green"]);
        assert_eq!(set.truths, [labels(&[1]), labels(&[0])]);
        source.metric = Metric::TopK { k: 1 };
        let set = source.load().expect("a set").set;
        assert_eq!(set.truths, [labels(&[1]), labels(&[0])]);
    }

    #[test]
    fn many_labels_for_each_image() {
        let folder = Folder::new();
        let text = "image,labels\nmore/c.png,red; round;red\na.png,\nb.jpg,round\n";
        let mut source = source(&folder, text, MULTI_LABEL);
        let set = source.load().expect("a set").set;
        assert_eq!(set.classes, ["red", "round"]);
        assert_eq!(set.truths, [labels(&[0, 1]), labels(&[]), labels(&[1])]);
        let Values::U8(values) = &set.values else {
            panic!("pixels as they are");
        };
        assert_eq!((values.len(), values[0], values[300]), (900, 30, 10));
        source.classes = Some(names(&["round", "square", "red"]));
        source.limit = Some(2);
        let set = source.load().expect("a set").set;
        assert_eq!(set.truths, [labels(&[0, 2]), labels(&[])]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = Folder::new();
        let top_1 = Metric::TopK { k: 1 };
        let cases: [(&str, Metric, &[&str]); 10] = [
            ("image,labels\n", MULTI_LABEL, &["names no images"]),
            ("", MULTI_LABEL, &["no column `image`"]),
            ("file,label\na.png,x\n", MULTI_LABEL, &["no column `image`"]),
            (
                "image,class\na.png,x\n",
                MULTI_LABEL,
                &["no column `label` or `labels`"],
            ),
            ("image,labels\na.png,x\nb.jpg\n", MULTI_LABEL, &["line: 3"]),
            (
                "image,labels\na.png,x\n./a.png,y\n",
                MULTI_LABEL,
                &["line 3", "line 2", "leave one"],
            ),
            (
                "image,labels\n../a.png,x\n",
                MULTI_LABEL,
                &["line 2", "without `..`"],
            ),
            (
                "image,labels\na.png,x;y\n",
                top_1.clone(),
                &["line 2", "2 classes", "multi-label"],
            ),
            (
                "image,label\na.png,x\nb.jpg,\nmore/c.png,y\n",
                top_1,
                &["line 3", "`b.jpg` 0 classes"],
            ),
            ("image,label\na.png,x\n", DETECTION, &["--coco or --voc"]),
        ];
        for (text, metric, words) in cases {
            let source = source(&folder, text, metric);
            assert_refused(source.load(), words);
            assert_refused(source.load(), &["labels.csv"]);
        }
    }
}
