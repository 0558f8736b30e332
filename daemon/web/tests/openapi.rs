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
