//! Orders to evaluate: a network answers labelled images under many placements, and each answer is judged.

use std::collections::{BTreeSet, HashSet};

use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::accuracy::{EvaluationSet, Tally};
use layerlab_profiles::{Bytes, Placement};
use layerlab_protocol::{Event, FailureKind};

use crate::ModelWithTwin;
use crate::ended::{Ended, failed};
use crate::evaluation_sessions::EvaluationSessions;
use crate::queue::{Queue, Task};
use crate::runtime::{Runtimes, Tensor, TensorError};
use crate::walk::{self, Costs, WalkPart, walk};

/// What an order to evaluate asks for.
pub(crate) struct Evaluation<'a> {
    /// The processors of the placements' digits, processor 0 first.
    pub(crate) processors: &'a [String],
    /// The labelled images.
    pub(crate) set: EvaluationSet,
    /// Which answers to give, by their places in the set.
    pub(crate) answers: &'a [u64],
    pub(crate) placements: &'a [Placement],
    /// Whether neighbours on one processor are loaded and run as one segment.
    pub(crate) as_runs: bool,
    /// Whether the journal gets the answers themselves, too.
    pub(crate) keep_answers: bool,
    /// What activations may take.
    pub(crate) budget: Bytes,
}

/// So many numbers are one entry of the journal: a line of at most 1 MiB, with eleven characters for each.
const VALUES_PER_ENTRY: usize = 65_536;

/// What an answer is under each placement: the values of each of its images.
type AnswerValues = Vec<Vec<Vec<f32>>>;

impl Evaluation<'_> {
    /// Judges every answer that the journal does not have yet.
    pub(crate) fn run(
        &self,
        task: &Task,
        queue: &Queue,
        runtimes: &mut Runtimes,
        model: &ModelWithTwin,
    ) -> Result<(), Ended> {
        let input = self.fitting_input(model.model())?;
        let done: HashSet<u64> = task
            .history
            .iter()
            .filter_map(|event| match event {
                Event::Judged { answer, .. } => Some(*answer),
                _ => None,
            })
            .collect();
        let mut left = self.answers.iter().filter(|answer| !done.contains(answer));
        let Some(mut next) = left.next() else {
            return Ok(());
        };
        let parts = self.placements.iter();
        let parts: Vec<Vec<WalkPart>> = parts
            .map(|placement| walk::parts(placement, self.as_runs))
            .collect();
        let distinct: BTreeSet<WalkPart> = parts.iter().flatten().copied().collect();
        let journal = (task, queue);
        let mut sessions =
            EvaluationSessions::load(&distinct, journal, runtimes, model, self.processors)?;
        let costs = Costs::of(model.model());
        loop {
            let (outputs, flop) = self.answer(*next, input, &mut sessions, (&costs, &parts))?;
            let tallies = self.judge(*next, &outputs)?;
            if self.keep_answers {
                keep(journal, *next, &outputs)?;
            }
            queue.record(
                task,
                Event::Judged {
                    answer: *next,
                    tallies,
                    flop,
                },
            )?;
            match left.next() {
                Some(answer) => next = answer,
                None => return Ok(()),
            }
        }
    }

    /// One answer under each placement, and the operations that they cost.
    fn answer(
        &self,
        answer: u64,
        input: &TensorSpec,
        sessions: &mut EvaluationSessions<'_>,
        (costs, parts): (&Costs<'_>, &[Vec<WalkPart>]),
    ) -> Result<(AnswerValues, u64), Ended> {
        let mut flop = 0;
        let mut outputs: AnswerValues = vec![Vec::new(); self.placements.len()];
        for image in self.set.images(answer as usize) {
            let tensor = tensor(input, &image).map_err(|reason| order(&reason.to_string()))?;
            let run = |part, inputs: &[Tensor]| sessions.run(part, inputs);
            let answers = walk(run, costs, parts, &[tensor], self.budget)?;
            flop += answers.flop;
            for (all, output) in outputs.iter_mut().zip(answers.outputs) {
                all.push(output);
            }
        }
        Ok((outputs, flop))
    }

    /// The tallies of one answer under each placement.
    fn judge(&self, answer: u64, outputs: &AnswerValues) -> Result<Vec<Tally>, Ended> {
        let truth = &self.set.truths[answer as usize];
        let judge = |outputs: &Vec<Vec<f32>>| {
            let outputs: Vec<&[f32]> = outputs.iter().map(Vec::as_slice).collect();
            self.set
                .metric
                .judge(self.set.classes.len(), &outputs, truth)
                .map_err(|reason| order(&reason.to_string()))
        };
        outputs.iter().map(judge).collect()
    }

    /// The network's input, if the order makes sense for the network and the set.
    fn fitting_input<'n>(&self, network: &'n Network) -> Result<&'n TensorSpec, Ended> {
        let layers = network.layer_count() as usize;
        if let Some(other) = self.placements.iter().find(|one| one.layers() != layers) {
            return Err(order(&format!(
                "the order places {} layers, but the model has {layers}",
                other.layers()
            )));
        }
        let processors = self.processors.len();
        let mut placements = self.placements.iter();
        placements
            .try_for_each(|one| one.refuse_beyond(processors))
            .map_err(|reason| order(&reason.to_string()))?;
        let all = self.set.answers() as u64;
        if let Some(beyond) = self.answers.iter().find(|&&answer| answer >= all) {
            return Err(order(&format!(
                "the order asks for answer {beyond} of an evaluation set of {all}"
            )));
        }
        let [input] = network.inputs() else {
            let inputs = network.inputs().len();
            return Err(order(&format!(
                "the model has {inputs} inputs, and images go into one"
            )));
        };
        if input.elements() != self.set.image_len() as u64 {
            return Err(order(&format!(
                "the images of this evaluation set have the shape {:?} and the model takes {:?}",
                self.set.shape, input.shape
            )));
        }
        Ok(input)
    }
}

/// Records what one answer is under each placement.
fn keep((task, queue): (&Task, &Queue), answer: u64, outputs: &AnswerValues) -> Result<(), Ended> {
    for (placement, images) in (0..).zip(outputs) {
        let bits: Vec<u32> = images
            .iter()
            .flatten()
            .map(|value| value.to_bits())
            .collect();
        let mut first = 0;
        for values in bits.chunks(VALUES_PER_ENTRY) {
            let event = Event::Answered {
                answer,
                placement,
                first,
                value_bits: values.to_vec(),
            };
            queue.record(task, event)?;
            first += values.len() as u64;
        }
    }
    Ok(())
}

fn order(sentence: &str) -> Ended {
    failed(FailureKind::Order, sentence.to_owned())
}

fn tensor(spec: &TensorSpec, values: &[f32]) -> Result<Tensor, TensorError> {
    let shape = spec.shape.iter().map(|&length| length as usize).collect();
    Tensor::from_floats(spec.element, shape, values)
}
