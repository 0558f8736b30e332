//! Names and paths as parts of an address.

/// A path with its parameters, as a parameter of another.
pub(super) fn encoded(path: &str) -> String {
    escaped(path, b"/")
}

/// A name, such as a device's, as one part of a path.
pub(super) fn segment(name: &str) -> String {
    escaped(name, b"")
}

fn escaped(text: &str, kept: &[u8]) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        match is_plain || kept.contains(&byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_part_of_an_address_is_escaped() {
        assert_eq!(
            encoded("/jobs?page=2&all=true"),
            "/jobs%3Fpage%3D2%26all%3Dtrue"
        );
        assert_eq!(
            segment("R58@[::1]:5037/ä"),
            "R58%40%5B%3A%3A1%5D%3A5037%2F%C3%A4"
        );
    }
}
