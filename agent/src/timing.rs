//! The timing loop: loads the segments of an order, warms them up and times them in turns.

use std::collections::HashSet;
use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Event, Failure, FailureKind, WarmUp, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use tract_onnx::prelude::Tensor;

use crate::engine::{Engine, EngineError, Inference, Invocation, Session, timing_input};
use crate::models::{Models, ModelsError};
use crate::queue::{Abandoned, Queue, Task};

/// Works off the queue until it stops.
pub fn work(queue: &Queue, models: &Models, engine: &mut dyn Engine) {
    while let Some(task) = queue.next() {
        let mut record = |event| queue.record(&task, event);
        let last = match execute(&task, models, engine, &mut record) {
            Ok(()) => Event::Finished,
            Err(Ended::Failed(failure)) => Event::Failed { failure },
            Err(Ended::Abandoned) => continue,
        };
        // Abandoned now means that nobody wants to know any more.
        let _ = queue.record(&task, last);
    }
}

/// Why an order ended before its last sample.
enum Ended {
    Failed(Failure),
    Abandoned,
}

impl From<Abandoned> for Ended {
    fn from(_: Abandoned) -> Self {
        Ended::Abandoned
    }
}

impl From<ModelsError> for Ended {
    fn from(error: ModelsError) -> Self {
        Ended::Failed(Failure {
            kind: FailureKind::Model,
            message: error.to_string(),
        })
    }
}

impl From<EngineError> for Ended {
    fn from(error: EngineError) -> Self {
        let kind = match error {
            EngineError::UnknownProcessor { .. } => FailureKind::Order,
            EngineError::OutOfMemory { .. } => FailureKind::OutOfMemory,
            EngineError::Load { .. } => FailureKind::Model,
            EngineError::Run { .. } => FailureKind::Device,
        };
        Ended::Failed(Failure {
            kind,
            message: error.to_string(),
        })
    }
}

type Record<'a> = &'a mut dyn FnMut(Event) -> Result<(), Abandoned>;

fn execute(
    task: &Task,
    models: &Models,
    engine: &mut dyn Engine,
    record: Record<'_>,
) -> Result<(), Ended> {
    let network = Arc::new(models.network(&task.order.model_sha256)?);
    let layers = network.layers().len() as u32;
    let segments = match &task.order.work {
        Work::TimeSegments { segments } => segments.clone(),
        Work::TimePasses => (1..=layers).map(Segment::single).collect(),
    };
    if let Some(beyond) = segments.iter().find(|segment| segment.last() > layers) {
        let message = format!("the order names layers {beyond}, but the model has {layers}");
        return Err(Ended::Failed(Failure {
            kind: FailureKind::Order,
            message,
        }));
    }
    let mut block = Block {
        task,
        network,
        segments,
        engine,
        record,
    };
    match task.order.work {
        Work::TimeSegments { .. } => block.time_segments(),
        Work::TimePasses => block.time_passes(),
    }
}

/// One order in progress.
struct Block<'a> {
    task: &'a Task,
    network: Arc<Network>,
    /// The order's segments; a sample's index counts by their places.
    segments: Vec<Segment>,
    engine: &'a mut dyn Engine,
    record: Record<'a>,
}

/// A segment that is loaded, with the input that it is timed with.
struct Loaded {
    place: usize,
    segment: Segment,
    session: Box<dyn Session>,
    inputs: Vec<Tensor>,
}

impl Block<'_> {
    /// Times the segments in groups that fit in memory together. In each round every segment of the
    /// group has one turn, in an order drawn anew, so that drift falls on all of them alike.
    fn time_segments(&mut self) -> Result<(), Ended> {
        let repetitions = self.task.order.samples_per_segment;
        let mut waiting: Vec<usize> = (0..self.segments.len())
            .filter(|&place| (0..repetitions).any(|r| !self.is_done(self.index(place, r))))
            .collect();
        while !waiting.is_empty() {
            let mut group = self.load_what_fits(&waiting)?;
            waiting.drain(..group.len());
            for loaded in &mut group {
                self.warm_up(std::slice::from_mut(loaded))?;
            }
            let mut turns: Vec<usize> = (0..group.len()).collect();
            for repetition in 0..repetitions {
                // Drawn from the first place and the round, so that an agent that was killed goes on
                // with the same turns.
                let stream = (group[0].place as u64) << 32 | repetition;
                turns.sort_unstable();
                turns.shuffle(&mut self.random(stream));
                for &turn in &turns {
                    let loaded = &mut group[turn];
                    let index = self.index(loaded.place, repetition);
                    if !self.is_done(index) {
                        self.engine.idle(self.task.order.gap_ns);
                        let inference =
                            self.infer(loaded, Invocation::sample(self.seed(), index))?;
                        self.record_sample(index, loaded.segment, &inference)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Times passes over the whole model, layer by layer, each layer fed by the one before.
    fn time_passes(&mut self) -> Result<(), Ended> {
        let repetitions = self.task.order.samples_per_segment;
        let places: Vec<usize> = (0..self.segments.len()).collect();
        let mut group = self.load_what_fits(&places)?;
        if group.len() < places.len() {
            let message = format!(
                "the memory of {} holds {} of the model's {} layers; passes need all of them loaded",
                self.task.order.processor,
                group.len(),
                places.len()
            );
            return Err(Ended::Failed(Failure {
                kind: FailureKind::OutOfMemory,
                message,
            }));
        }
        self.warm_up(&mut group)?;
        for repetition in 0..repetitions {
            if places
                .iter()
                .all(|&place| self.is_done(self.index(place, repetition)))
            {
                continue;
            }
            self.engine.idle(self.task.order.gap_ns);
            let first = self.index(0, repetition);
            for (place, inference) in self
                .pass(&mut group, Invocation::sample(self.seed(), first))?
                .iter()
                .enumerate()
            {
                let index = self.index(place, repetition);
                if !self.is_done(index) {
                    self.record_sample(index, self.segments[place], inference)?;
                }
            }
        }
        Ok(())
    }

    /// Loads segments at `places`, in order, until memory is full. At least one must fit.
    fn load_what_fits(&mut self, places: &[usize]) -> Result<Vec<Loaded>, Ended> {
        let mut group = Vec::new();
        for &place in places {
            let segment = self.segments[place];
            let session = match self
                .engine
                .load(&self.task.order.processor, &self.network, segment)
            {
                Ok(session) => session,
                Err(EngineError::OutOfMemory { .. }) if !group.is_empty() => break,
                Err(error) => return Err(error.into()),
            };
            (self.record)(Event::Loaded {
                segment,
                load_ns: session.load_time(),
                memory_bytes: session.memory(),
            })?;
            let inputs = timing_input(self.network.frontier(segment.first() - 1), self.seed());
            group.push(Loaded {
                place,
                segment,
                session,
                inputs,
            });
        }
        Ok(group)
    }

    /// Runs `group` as a chain until a fast and a slow exponential average of its time agree.
    fn warm_up(&mut self, group: &mut [Loaded]) -> Result<(), Ended> {
        let WarmUp {
            min_runs,
            max_runs,
            agreement_percent,
        } = self.task.order.warm_up;
        let agreement = f64::from(agreement_percent) / 100.0;
        let mut averages: Option<(f64, f64)> = None;
        let mut runs = 0;
        while runs < max_runs {
            self.engine.idle(self.task.order.gap_ns);
            let invocation = Invocation::warm_up(self.seed(), group[0].place, runs);
            let total: Nanos = self
                .pass(group, invocation)?
                .iter()
                .map(|inference| inference.duration)
                .sum();
            let time = total.as_nanos() as f64;
            let (fast, slow) = averages.unwrap_or((time, time));
            let (fast, slow) = (fast + (time - fast) / 2.0, slow + (time - slow) / 5.0);
            averages = Some((fast, slow));
            runs += 1;
            if runs >= min_runs && (fast - slow).abs() <= agreement * slow {
                break;
            }
        }
        for loaded in group {
            (self.record)(Event::Warm {
                segment: loaded.segment,
                runs,
            })?;
        }
        Ok(())
    }

    /// Runs `group` in order, the first from its timing input, each other from the outputs before it.
    fn pass(
        &mut self,
        group: &mut [Loaded],
        invocation: Invocation,
    ) -> Result<Vec<Inference>, Ended> {
        let mut inferences: Vec<Inference> = Vec::with_capacity(group.len());
        for (step, loaded) in group.iter_mut().enumerate() {
            let invocation = invocation.step(step);
            let inference = match inferences.last() {
                None => loaded.session.run(&loaded.inputs, invocation)?,
                Some(before) => loaded.session.run(&before.outputs, invocation)?,
            };
            inferences.push(inference);
        }
        Ok(inferences)
    }

    fn infer(&mut self, loaded: &mut Loaded, invocation: Invocation) -> Result<Inference, Ended> {
        Ok(loaded.session.run(&loaded.inputs, invocation)?)
    }

    fn record_sample(
        &mut self,
        index: u64,
        segment: Segment,
        inference: &Inference,
    ) -> Result<(), Ended> {
        let (started_ns, duration_ns) = (inference.started, inference.duration);
        Ok((self.record)(Event::Sample {
            index,
            segment,
            started_ns,
            duration_ns,
        })?)
    }

    fn index(&self, place: usize, repetition: u64) -> u64 {
        place as u64 * self.task.order.samples_per_segment + repetition
    }

    fn is_done(&self, index: u64) -> bool {
        self.done().contains(&index)
    }

    fn done(&self) -> &HashSet<u64> {
        &self.task.done
    }

    /// Different for each order of a run, the same whenever the order is worked on.
    fn seed(&self) -> u64 {
        self.task.order.seed ^ (u64::from(self.task.order.number) << 32)
    }

    fn random(&self, stream: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed());
        random.set_stream(stream);
        random
    }
}
