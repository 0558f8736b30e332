//! Changes one number in a file of a published document, with or without making the hashes fit again.

use std::fs;
use std::path::Path;

use layerlab_profiles::document::DIGEST_FILE;
use layerlab_profiles::sha256;
use rand::Rng;
use rand::seq::IndexedRandom;
use serde_json::Value;

/// A document's files as they lie in a folder. Those that are no tables stay as they are.
pub(crate) struct Files {
    /// Each table by its name: its rows, the columns first.
    tables: Vec<(String, Vec<Vec<String>>)>,
    /// The file that has the hashes of the others.
    json_file: &'static str,
    json: Value,
}

/// One change.
#[derive(Debug)]
#[expect(dead_code, reason = "a failing test prints all of it")]
pub(crate) struct Change {
    /// The file that it is in.
    pub(crate) file: String,
    /// The column, or the fields on the way to a number in the JSON file with `.` between them.
    pub(crate) field: String,
    from: String,
    to: String,
}

impl Files {
    pub(crate) fn read(folder: &Path, json_file: &'static str) -> Files {
        let json = fs::read(folder.join(json_file)).expect("a document");
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        let names = json["files"].as_object().expect("tables").keys();
        let rows = |name: &String| {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .from_path(folder.join(name))
                .expect("a table");
            let rows = reader.records().map(|row| row.expect("a row"));
            rows.map(|row| row.iter().map(str::to_owned).collect())
                .collect()
        };
        let tables = names.filter(|name| name.ends_with(".csv"));
        let tables = tables.map(|name| (name.clone(), rows(name))).collect();
        Files {
            tables,
            json_file,
            json,
        }
    }

    /// Writes the document into `folder` with one of its numbers changed; the hashes fit if `hashed`. Each file with
    /// numbers is as probable.
    pub(crate) fn write_changed(
        &self,
        folder: &Path,
        hashed: bool,
        random: &mut impl Rng,
    ) -> Change {
        let (mut tables, mut json) = (self.tables.clone(), self.json.clone());
        let with_rows: Vec<usize> = (0..tables.len())
            .filter(|&one| tables[one].1.len() > 1)
            .collect();
        let change = match random.random_range(0..=with_rows.len()) {
            0 => change_json(self.json_file, &mut json, random),
            place => change_table(&mut tables[with_rows[place - 1]], random),
        };
        for (name, rows) in &tables {
            let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
            rows.iter()
                .for_each(|row| writer.write_record(row).expect("in memory"));
            let bytes = writer.into_inner().expect("in memory");
            if hashed {
                json["files"][name] = sha256(&bytes).into();
            }
            fs::write(folder.join(name), bytes).expect("room");
        }
        let digest = |json: &Value| {
            let bytes = serde_json::to_vec_pretty(json).expect("a document");
            (format!("{}  {}\n", sha256(&bytes), self.json_file), bytes)
        };
        let (line, bytes) = digest(&json);
        let line = if hashed { line } else { digest(&self.json).0 };
        fs::write(folder.join(self.json_file), bytes).expect("room");
        if folder.join(DIGEST_FILE).exists() {
            fs::write(folder.join(DIGEST_FILE), line).expect("room");
        }
        change
    }
}

fn change_table((file, rows): &mut (String, Vec<Vec<String>>), random: &mut impl Rng) -> Change {
    let columns = rows[0].clone();
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    loop {
        let row = random.random_range(1..rows.len());
        let column = random.random_range(0..columns.len());
        let cell = &mut rows[row][column];
        // A name may begin with a digit.
        if is_number(cell) && !["name", "processor", "cpu"].contains(&&*columns[column]) {
            let from = cell.clone();
            *cell = changed(&from, random);
            return Change {
                file: file.clone(),
                field: columns[column].clone(),
                to: cell.clone(),
                from,
            };
        }
    }
}

fn change_json(file: &str, json: &mut Value, random: &mut impl Rng) -> Change {
    let mut places = Vec::new();
    numbers(json, String::new(), &mut places);
    let place = places.choose(random).expect("numbers").clone();
    let value = json.pointer_mut(&place).expect("just found");
    let from = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let to = changed(&from, random);
    *value = match value {
        Value::String(_) => Value::String(to.clone()),
        _ => serde_json::from_str(&to).unwrap_or_else(|_| Value::String(to.clone())),
    };
    let parts = place
        .split('/')
        .filter(|part| part.parse::<usize>().is_err());
    let field: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    Change {
        file: file.to_owned(),
        field: field.join("."),
        from,
        to,
    }
}

/// The pointers of all numbers and instants.
fn numbers(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Number(_) => places.push(at),
        Value::String(text) if text.starts_with("20") && text.ends_with('Z') => places.push(at),
        Value::Array(all) => {
            let all = all.iter().enumerate();
            all.for_each(|(place, one)| numbers(one, format!("{at}/{place}"), places));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, one)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            numbers(one, format!("{at}/{name}"), places);
        }),
        _ => {}
    }
}

/// Another number: one more or less in its last digit, another digit anywhere, one digit more, or its negative.
fn changed(text: &str, random: &mut impl Rng) -> String {
    let digits: Vec<usize> = (0..text.len())
        .filter(|&place| text.as_bytes()[place].is_ascii_digit())
        .collect();
    let mut bytes = text.as_bytes().to_vec();
    let mut turn = |place: usize, by: u8| bytes[place] = b'0' + (bytes[place] - b'0' + by) % 10;
    match random.random_range(0..10) {
        0..5 => turn(
            *digits.last().expect("a number"),
            [1, 9][random.random_range(0..2)],
        ),
        5..8 => turn(
            *digits.choose(random).expect("a number"),
            random.random_range(1..10),
        ),
        8 => bytes.insert(digits[0], b'1'),
        _ => bytes.insert(0, b'-'),
    }
    let to = String::from_utf8(bytes).expect("ASCII");
    // -0 is 0.
    match to
        .parse::<f64>()
        .is_ok_and(|number| text.parse() == Ok(number))
    {
        true => changed(text, random),
        false => to,
    }
}
