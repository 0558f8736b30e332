//! What the fields of requests are made of.

/// The bytes of a SHA-256.
pub(crate) const HASH_BYTES: usize = 32;

/// More than these two bytes say do not fit into a frame's fields.
pub(crate) fn count(of: usize) -> [u8; 2] {
    u16::try_from(of).unwrap_or(u16::MAX).to_be_bytes()
}

/// The fields that are still to be read.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(bytes)?;
        self.0 = left;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn count(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_be_bytes(self.array()?)))
    }

    /// A text without control characters.
    pub(crate) fn text(&mut self) -> Option<String> {
        let length = self.count()?;
        let text = std::str::from_utf8(self.take(length)?).ok()?;
        let is_line = !text.chars().any(char::is_control);
        is_line.then(|| text.to_owned())
    }
}
