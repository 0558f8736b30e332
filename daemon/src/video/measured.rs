//! What `layerlab video measure` published of a phone and of a server, and `video calibrate` of the phone's answers.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_farm::adb::Printable;
use layerlab_planners::video::calibration::{CalibrationDocument, Calibrator};
use layerlab_planners::video::measured::{MeasuredSettings, MeasuredVideo, OtherAnswers};
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
    /// What else on the phone can answer.
    others: Vec<VideoDocument>,
    calibrations: Vec<CalibrationDocument>,
    encoding: Encoding,
}

impl MeasuredSides {
    /// Reads what was published in these folders. The first calibration must be of the phone's answers, each further one of those
    /// or of what else the phone can answer with.
    pub(super) fn read(
        [phone, server]: [&Path; 2],
        others: &[PathBuf],
        calibrations: &[PathBuf],
        encoding: Encoding,
    ) -> Result<MeasuredSides, Failure> {
        let phone = check::read(phone)?;
        let read = |folder: &PathBuf| check::read(folder);
        let others: Vec<VideoDocument> = others.iter().map(read).collect::<Result<_, _>>()?;
        let elsewhere = |other: &&VideoDocument| other.header.device != phone.header.device;
        if let Some(other) = others.iter().find(elsewhere) {
            let [other, phone] = [other, &phone].map(|it| Printable(&it.header.device.name));
            let error = anyhow!(
                "--placement was measured on {other}, and --phone on {phone}; measure both on one phone"
            );
            return Err(Failure::new(Code::Input, error));
        }
        let fitted = |folder: &PathBuf| {
            let calibration = read_calibration(folder)?;
            let unlike = calibration.unlike(&phone);
            let other = others.iter().any(|one| calibration.unlike(one).is_none());
            match unlike {
                Some(unlike) if !other => {
                    let error = anyhow!(
                        "the calibration in {} was fitted on {unlike}; calibrate what --phone or --placement measured",
                        folder.display()
                    );
                    Err(Failure::new(Code::Input, error))
                }
                _ => Ok(calibration),
            }
        };
        Ok(MeasuredSides {
            calibrations: calibrations.iter().map(fitted).collect::<Result<_, _>>()?,
            server: check::read(server)?,
            phone,
            others,
            encoding,
        })
    }

    /// Both sides' measurements, in the encoding that was chosen, with the phone's first way of answering alone.
    pub(super) fn video(&self) -> MeasuredVideo<'_> {
        self.beside(&self.phone, &[])
    }

    fn beside<'a>(
        &'a self,
        phone: &'a VideoDocument,
        others: &'a [OtherAnswers<'a>],
    ) -> MeasuredVideo<'a> {
        let (format, quality) = self.encoding;
        MeasuredVideo {
            phone,
            server: &self.server,
            format,
            quality,
            others,
        }
    }

    /// What makes the phone's confidences what `policy` believes.
    pub(super) fn calibrator(&self, policy: VideoPolicy) -> &Calibrator {
        self.calibrator_of(&self.phone, policy)
    }

    fn calibrator_of(&self, video: &VideoDocument, policy: VideoPolicy) -> &Calibrator {
        let mut calibrations = self.calibrations.iter();
        let own = calibrations.find(|one| one.unlike(video).is_none());
        match (policy, own.and_then(CalibrationDocument::best)) {
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
        let of_other = |other| (other, self.calibrator_of(other, policy));
        let others: Vec<OtherAnswers<'_>> = self.others.iter().map(of_other).collect();
        let video = self.beside(&self.phone, &others);
        let world = video.world(self.calibrator(policy), settings);
        world.exit_with(Code::Input)
    }

    /// The same with another measurement in the place of the phone's.
    pub(super) fn world_of(
        &self,
        phone: &VideoDocument,
        calibrator: &Calibrator,
        settings: &MeasuredSettings,
    ) -> Result<ReplayWorld, Failure> {
        let world = self.beside(phone, &[]).world(calibrator, settings);
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
