//! In what form a frame is sent: its size and its encoding.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest side of a frame in pixels: of that size, one picture has 800 MB.
const LARGEST: u32 = 16_384;

/// What a frame is encoded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameFormat {
    /// Without loss.
    Png,
    /// With loss, in a quality from 1 to 100.
    Jpeg,
}

/// A form in which a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameForm {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// What it is encoded as.
    pub format: FrameFormat,
    /// From 1 to 100; absent of what is encoded without loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<u8>,
}

/// A form that no frame can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadForm {
    /// A side of nothing, or a huge one.
    #[error("a frame has sides from 1 to {LARGEST} pixels, not {width}x{height}")]
    Size {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// A quality where there is none, none where there must be one, or one out of range.
    #[error("a JPEG needs a quality from 1 to 100, and a PNG has none")]
    Quality,
}

impl FrameForm {
    /// Refuses a form that no frame can have.
    ///
    /// # Errors
    /// When it is one.
    pub fn refuse_unfit(&self) -> Result<(), BadForm> {
        let (width, height) = (self.width, self.height);
        if [width, height]
            .iter()
            .any(|side| !(1..=LARGEST).contains(side))
        {
            return Err(BadForm::Size { width, height });
        }
        match (self.format, self.quality) {
            (FrameFormat::Png, None) | (FrameFormat::Jpeg, Some(1..=100)) => Ok(()),
            _ => Err(BadForm::Quality),
        }
    }

    /// What it is encoded as: `png`, or `jpeg-75`.
    pub fn encoding(&self) -> String {
        match (self.format, self.quality) {
            (FrameFormat::Png, _) => "png".to_owned(),
            (FrameFormat::Jpeg, quality) => format!("jpeg-{}", quality.unwrap_or_default()),
        }
    }
}

impl fmt::Display for FrameForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} {}", self.width, self.height, self.encoding())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_forms_that_a_frame_can_have_are_taken() {
        let form = |width, format, quality| FrameForm {
            width,
            height: 45,
            format,
            quality,
        };
        assert!(form(45, FrameFormat::Png, None).refuse_unfit().is_ok());
        assert!(form(45, FrameFormat::Jpeg, Some(75)).refuse_unfit().is_ok());
        for bad in [
            form(0, FrameFormat::Png, None),
            form(20_000, FrameFormat::Png, None),
            form(45, FrameFormat::Png, Some(75)),
            form(45, FrameFormat::Jpeg, None),
            form(45, FrameFormat::Jpeg, Some(0)),
            form(45, FrameFormat::Jpeg, Some(101)),
        ] {
            assert!(bad.refuse_unfit().is_err(), "{bad:?}");
        }
        let jpeg = form(90, FrameFormat::Jpeg, Some(90));
        assert_eq!(jpeg.to_string(), "90x45 jpeg-90");
    }
}
