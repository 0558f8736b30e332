//! A small measurement of frames that was made up.

use layerlab_profiles::accuracy::{Metric, Preprocessing, Resize};
use layerlab_profiles::document::{
    Clock, Device, Host, Numerics, Processor, ProcessorKind, Program, Provenance,
};
use layerlab_profiles::video::{
    Coded, Confidence, FrameAnswer, FrameForm, FrameFormat, FrameRow, Half, VIDEO_FORMAT,
    VIDEO_VERSION, VideoDocument, VideoHeader, VideoModel, VideoPart, VideoSet, halves,
};
use layerlab_profiles::{Bytes, Nanos, Segment};

/// Of a simulated phone: forty images of two classes, five of them as frames in two forms.
pub(crate) fn document() -> VideoDocument {
    let program = Program {
        name: "test".to_owned(),
        version: "1".to_owned(),
    };
    let part = |first, last, processor: &str| VideoPart {
        segment: Segment::new(first, last).expect("ascending"),
        processor: processor.to_owned(),
    };
    let header = VideoHeader {
        format: VIDEO_FORMAT.to_owned(),
        version: VIDEO_VERSION,
        device: Device {
            name: "test".to_owned(),
            simulated: true,
            clock: Clock::SimulatedExact,
        },
        processor: Processor {
            name: "npu".to_owned(),
            kind: ProcessorKind::Accelerator,
            numerics: Numerics::I8,
            emulated: false,
            runtime: "simulated".to_owned(),
            runtime_version: "1".to_owned(),
            runtime_options: None,
            runtime_libraries: None,
            memory_bytes: None,
            threads: None,
            pinned_to_cores: None,
        },
        placement: vec![part(1, 4, "cpu"), part(5, 11, "npu")],
        coded: Coded::PlayingMachine,
        model: VideoModel {
            name: "model".to_owned(),
            sha256: "ab".repeat(32),
            quantised_sha256: None,
            width: 20,
            height: 20,
        },
        set: VideoSet {
            name: "set".to_owned(),
            sha256: "cd".repeat(32),
            images: 50,
            width: 20,
            height: 20,
            classes: vec!["a".to_owned(), "b".to_owned()],
            preprocessing: Preprocessing {
                resize: Resize::Stretch,
                channels: "rgb".to_owned(),
                mean: Vec::new(),
                scale: 1.0,
            },
            metric: Metric::TopK { k: 1 },
        },
        confidence: Confidence::AsAnswered,
        seed: 3,
        answers: 40,
        provenance: Provenance {
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            finished_at: "2026-01-01T00:00:01Z".to_owned(),
            host_program: program.clone(),
            device_program: program,
            run: "run".to_owned(),
            link: "local".to_owned(),
            device_system: "test".to_owned(),
            host: Host {
                system: "test".to_owned(),
                cpu: "test".to_owned(),
                logical_cores: 1,
                memory_bytes: Bytes::from_bytes(1 << 30),
            },
            phone: None,
            fitness: None,
        },
    };
    let (calibration, test) = halves(50, 40, 3);
    let both = [(Half::Calibration, calibration), (Half::Test, test)];
    let answers: Vec<FrameAnswer> = both
        .into_iter()
        .flat_map(|(half, images)| images.into_iter().map(move |image| (half, image)))
        .map(|(half, image)| FrameAnswer {
            image,
            half,
            labels: vec![u32::from(image % 3 == 0)],
            predicted: None,
            confidence: 0.0,
            infer: Nanos::from_micros(900 + image),
            scores: match image % 2 {
                0 => vec![0.125, 0.875],
                _ => vec![0.75, 0.25],
            },
        })
        .collect();
    let frames = answers[20..25].iter().flat_map(|answer| {
        let form = |side, format, quality| FrameForm {
            width: side,
            height: side,
            format,
            quality,
        };
        let forms = [
            form(10, FrameFormat::Png, None),
            form(20, FrameFormat::Jpeg, Some(75)),
        ];
        forms.map(|form| FrameRow {
            image: answer.image,
            form,
            bytes: Bytes::from_bytes(u64::from(form.width) * 30),
            resize: Nanos::from_micros(5),
            encode: Nanos::from_micros(20 + answer.image),
            decode: Nanos::from_micros(10),
            upscale: Nanos::from_micros(4),
            infer: Nanos::from_micros(900),
            predicted: Some((answer.image % 2) as u32),
            hit: false,
        })
    });
    let frames = frames.collect();
    VideoDocument::new(header, answers, frames)
}
