//! The key that phones know this host by, in the form in which adb keeps its own.

use std::io::{self, Write};
use std::path::Path;

use rsa::RsaPrivateKey;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};

/// The only length that adbd takes.
const BITS: usize = 2048;

/// Makes the key at `path` unless it is there.
pub(crate) fn ensure(path: &Path) -> io::Result<()> {
    if path.is_file() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let key = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, BITS).map_err(io::Error::other)?;
    let text = key.to_pkcs8_pem(LineEnding::LF).map_err(io::Error::other)?;
    // For its owner alone, and whole when it is seen. Whoever is first wins.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rsa::pkcs8::DecodePrivateKey;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state/adb-key");
        ensure(&path).expect("room");
        let text = std::fs::read_to_string(&path).expect("a file");
        RsaPrivateKey::from_pkcs8_pem(&text).expect("a key as adb writes it");
        let mode = std::fs::metadata(&path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        ensure(&path).expect("it is there");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
    }
}
