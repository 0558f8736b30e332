//! What is remembered of the phones that were used before, in a file for each.

use std::path::Path;

use serde::Deserialize;

use crate::adb::naming::is_of_network;

/// As much of a phone's file as is asked for here.
#[derive(Deserialize)]
struct Remembered {
    serial: String,
    address: Option<String>,
}

/// The serial of the phone that goes by `name`: that of the one that was last reached at `name` if this is an address, else
/// `name` itself.
pub fn serial_of(state: &Path, name: &str) -> String {
    if !is_of_network(name) {
        return name.to_owned();
    }
    let files = std::fs::read_dir(state.join("phones"));
    let files = files.into_iter().flatten().flatten();
    let remembered = files.filter_map(|file| {
        let text = std::fs::read(file.path()).ok()?;
        let phone: Remembered = serde_json::from_slice(&text).ok()?;
        let at = file.metadata().and_then(|about| about.modified()).ok()?;
        (phone.address.as_deref() == Some(name)).then_some((at, phone.serial))
    });
    let newest = remembered.max();
    newest.map_or_else(|| name.to_owned(), |(_, serial)| serial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_the_phone_that_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let phones = folder.path().join("phones");
        std::fs::create_dir(&phones).expect("room");
        let write = |name: &str, text: &str| std::fs::write(phones.join(name), text).expect("room");
        write(
            "a.json",
            r#"{"serial":"R58","address":"10.0.0.1:37001","abi":"x"}"#,
        );
        write("b.json", r#"{"serial":"10.0.0.1:37001"}"#);
        write("c.lock", "");
        for (name, serial) in [
            ("10.0.0.1:37001", "R58"),
            ("10.0.0.2:37001", "10.0.0.2:37001"),
            ("R59", "R59"),
        ] {
            assert_eq!(serial_of(folder.path(), name), serial);
        }
        assert_eq!(serial_of(&phones, "10.0.0.1:37001"), "10.0.0.1:37001");
    }
}
