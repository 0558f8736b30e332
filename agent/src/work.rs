//! Works off the queue: each order by who can do it.

use layerlab_profiles::Segment;
use layerlab_protocol::{Event, FailureKind, TimingSettings, Work};

use crate::chain::refuse_unless_chain;
use crate::device::Device;
use crate::ended::{Ended, failed};
use crate::evaluate::Evaluation;
use crate::files::Files;
use crate::frames::Frames;
use crate::machine::{Machine, SharedMachine};
use crate::models::Models;
use crate::queue::{Queue, Task};
use crate::runtime::Runtimes;
use crate::survey::survey;
use crate::tensors::PackedCrossings;
use crate::timing;

/// Works off the queue until it stops.
pub fn run(queue: &Queue, files: &Files, machine: &SharedMachine) {
    let mut models = Models::of(files);
    while let Some(task) = queue.next() {
        let mut held = machine.wait();
        let Machine { device, runtimes } = &mut *held;
        let executed = execute(&task, files, &mut models, device.as_mut(), runtimes, queue);
        drop(held);
        let last = match executed {
            Ok(()) => Event::Finished,
            Err(Ended::Failed(failure)) => Event::Failed { failure },
            Err(Ended::Abandoned) => continue,
        };
        // Abandoned now means that nobody wants to know any more.
        let _ = queue.record(&task, last);
    }
}

fn execute(
    task: &Task,
    files: &Files,
    models: &mut Models<'_>,
    device: &mut dyn Device,
    runtimes: &mut Runtimes,
    queue: &Queue,
) -> Result<(), Ended> {
    let model = models.of_order(&task.order)?;
    let layers = model.model().layer_count();
    let (segments, settings): (Vec<Segment>, TimingSettings) = match &task.order.work {
        Work::Evaluate {
            set_sha256,
            processors,
            combinations,
            answers,
            memory_bytes,
            as_runs,
            keep_answers,
        } => {
            let evaluation = Evaluation {
                processors,
                set: files.set(set_sha256)?,
                answers,
                placements: combinations,
                as_runs: *as_runs,
                keep_answers: *keep_answers,
                budget: *memory_bytes,
            };
            return evaluation.run(task, queue, runtimes, &model);
        }
        Work::AnswerFrames {
            set_sha256,
            images,
            forms,
            parts,
        } => {
            let frames = Frames {
                set: files.set(set_sha256)?,
                images,
                forms,
                parts,
            };
            return frames.run(task, queue, device, runtimes, &model);
        }
        Work::PackTensors {
            set_sha256,
            images,
            codecs,
            judge,
        } => {
            let crossings = PackedCrossings {
                set: files.set(set_sha256)?,
                images,
                codecs,
                judge: *judge,
            };
            return crossings.run(task, queue, device, runtimes, &model);
        }
        Work::Survey { processors } => {
            return survey(task, queue, runtimes, &model, processors);
        }
        Work::TimeSegments { segments, timing }
        | Work::MeasureEnergy {
            segments, timing, ..
        } => (segments.clone(), *timing),
        Work::TimeBesideLong {
            segments,
            long,
            timing,
            ..
        } => {
            let all = segments.iter().chain([long]);
            (all.copied().collect(), *timing)
        }
        Work::Soak {
            passes: false,
            timing,
            ..
        } => (Vec::new(), *timing),
        Work::TimePasses { timing } | Work::Soak { timing, .. } => {
            ((1..=layers).map(Segment::single).collect(), *timing)
        }
        Work::TimePlacement { parts, timing, .. } => {
            (parts.iter().map(|part| part.segment).collect(), *timing)
        }
    };
    if let Some(beyond) = segments.iter().find(|segment| segment.last() > layers) {
        let message = format!("the order names layers {beyond}, but the model has {layers}");
        return Err(failed(FailureKind::Order, message));
    }
    if matches!(task.order.work, Work::TimePlacement { .. }) {
        refuse_unless_chain(&segments, layers)?;
    }
    timing::time(task, queue, device, runtimes, model, segments, settings)
}
