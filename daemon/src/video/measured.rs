//! What `layerlab video measure` published of a phone and of a server, and `video calibrate` of the phone's answers.

use std::path::Path;

use anyhow::anyhow;
use layerlab_planners::video::calibration::{CalibrationDocument, Calibrator};
use layerlab_planners::video::measured::{MeasuredSettings, MeasuredVideo};
use layerlab_planners::video::replay::{ReplayWorld, VideoPolicy};
use layerlab_profiles::video::{FrameFormat, VideoDocument};

use super::calibrate::read_calibration;
use super::check;
use crate::exit::{Code, ExitWith, Failure};

/// A format, and the quality of JPEG.
pub(super) type Encoding = (FrameFormat, Option<u8>);

/// An encoding as users write it.
pub(super) fn encoding(text: &str) -> Result<Encoding, String> {
    let quality = |text: &str| text.parse().ok().filter(|it| (1..=100).contains(it));
    let jpeg = text.strip_prefix("jpeg-").and_then(quality);
    match (text, jpeg) {
        ("png", _) => Ok((FrameFormat::Png, None)),
        (_, Some(quality)) => Ok((FrameFormat::Jpeg, Some(quality))),
        _ => Err("write png, or jpeg- and a quality from 1 to 100, such as jpeg-75".to_owned()),
    }
}

/// Both sides of a video.
pub(super) struct MeasuredSides {
    pub(super) phone: VideoDocument,
    pub(super) server: VideoDocument,
    calibration: Option<CalibrationDocument>,
    encoding: Encoding,
}

impl MeasuredSides {
    /// Reads what was published in these folders. The calibration must be of the phone's answers.
    pub(super) fn read(
        phone: &Path,
        server: &Path,
        calibration: Option<&Path>,
        encoding: Encoding,
    ) -> Result<MeasuredSides, Failure> {
        let phone = check::read(phone)?;
        let fitted = |folder: &Path| {
            let calibration = read_calibration(folder)?;
            if let Some(unlike) = calibration.unlike(&phone) {
                let error = anyhow!(
                    "the calibration in {} was fitted on {unlike}; calibrate what --phone measured",
                    folder.display()
                );
                return Err(Failure::new(Code::Input, error));
            }
            Ok(calibration)
        };
        Ok(MeasuredSides {
            calibration: calibration.map(fitted).transpose()?,
            server: check::read(server)?,
            phone,
            encoding,
        })
    }

    /// Both sides' measurements, in the encoding that was chosen.
    pub(super) fn video(&self) -> MeasuredVideo<'_> {
        self.beside(&self.phone)
    }

    fn beside<'a>(&'a self, phone: &'a VideoDocument) -> MeasuredVideo<'a> {
        let (format, quality) = self.encoding;
        MeasuredVideo {
            phone,
            server: &self.server,
            format,
            quality,
        }
    }

    /// What makes the phone's confidences what `policy` believes.
    pub(super) fn calibrator(&self, policy: VideoPolicy) -> &Calibrator {
        let best = self
            .calibration
            .as_ref()
            .and_then(CalibrationDocument::best);
        match (policy, best) {
            (VideoPolicy::CboUncalibrated, _) | (_, None) => &Calibrator::Uncalibrated,
            (_, Some(best)) => &best.calibrator,
        }
    }

    /// What `policy` meets in a replay.
    pub(super) fn world(
        &self,
        policy: VideoPolicy,
        settings: &MeasuredSettings,
    ) -> Result<ReplayWorld, Failure> {
        self.world_of(&self.phone, self.calibrator(policy), settings)
    }

    /// The same with another measurement of the phone.
    pub(super) fn world_of(
        &self,
        phone: &VideoDocument,
        calibrator: &Calibrator,
        settings: &MeasuredSettings,
    ) -> Result<ReplayWorld, Failure> {
        let world = self.beside(phone).world(calibrator, settings);
        world.exit_with(Code::Input)
    }

    /// What was done with which models on which devices, for people.
    pub(super) fn title(&self, done: &str) -> String {
        let said = |video: &VideoDocument| {
            let header = &video.header;
            format!("{} on {}", header.model.name, header.device.name)
        };
        let headers = [&self.phone, &self.server].map(|video| &video.header);
        let mark = layerlab_campaign::plot::title_mark(
            headers.iter().any(|header| header.device.simulated),
            headers.iter().any(|header| header.processor.emulated),
        );
        format!(
            "{} beside {}, {done}{mark}",
            said(&self.phone),
            said(&self.server)
        )
    }
}
