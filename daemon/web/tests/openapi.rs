//! The committed description of the API is the one that follows from the code.

use std::path::Path;

#[test]
fn the_committed_description_is_that_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let description = layerlab_web::description();
    if std::env::var_os("LAYERLAB_UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, &description).expect("room");
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == description,
        "{} is not what the code says; run this test with LAYERLAB_UPDATE_OPENAPI=1, and commit the file",
        file.display()
    );
}

/// Names of operations that are their own, descriptions of all answers, parameters where they are said to stand: the macros do
/// not see to that.
#[test]
fn programs_that_make_clients_find_what_they_rely_on() {
    let description: serde_json::Value =
        serde_json::from_str(&layerlab_web::description()).expect("JSON");
    let mut names = std::collections::BTreeSet::new();
    for (path, operations) in description["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let name = operation["operationId"].as_str().expect("a name");
            assert!(names.insert(name), "{method} {path}: {name} is another's");
            let answers = operation["responses"].as_object().expect("answers");
            for (status, answer) in answers {
                let says = answer["description"].as_str().unwrap_or_default();
                assert!(
                    !says.is_empty(),
                    "{method} {path}: {status} is not described"
                );
            }
            let parameters = operation["parameters"].as_array();
            for parameter in parameters.into_iter().flatten() {
                let name = parameter["name"].as_str().expect("a name");
                let is_in_path = path.contains(&format!("{{{name}}}"));
                assert_eq!(
                    parameter["in"] == "path",
                    is_in_path,
                    "{method} {path}: {parameter}"
                );
            }
        }
    }
    assert!(names.len() > 20, "{names:?}");
}
