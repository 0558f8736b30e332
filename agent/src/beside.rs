//! Runs a network split between this device and an edge server, while the daemon that asked for it listens.

use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use layerlab_edge::{
    Answer, Cancel, Client, InferRequest, PackedRequest, Stretch, TensorShape, hash_bytes,
};
use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::link::LinkDirection;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{
    EdgeAgreement, EdgeInference, EdgePacking, EdgePart, EdgePlan, EdgeSide, ProcessorKind,
    Response,
};

use crate::ModelWithTwin;
use crate::device::Invocation;
use crate::edge_models::crossing;
use crate::files::Files;
use crate::link::TakenTurn;
use crate::machine::Machine;
use crate::models::read_model;
use crate::reach::{Reached, reach, with_signs_of_life};
use crate::runtime::{MainMemory, Runtimes, Session, Tensor, timing_input};
use crate::set_images::SetImages;
use crate::wire_tensors::{from_wire, pack, to_wire, unpack};

/// More inferences than these do not fit into one message.
const MOST_INFERENCES: u32 = 2_000;

/// What is rested before each inference where the plan does not say.
const REST: Nanos = Nanos::from_millis(1);

/// Why a plan was not run to its end, in one sentence.
type Sentence = String;

/// Runs the plan, and says so by `send`, until it is done, fails, `cancel` ends it or nothing can be sent any more. Machine and
/// turn are free before the last of it is said: who hears that may ask again.
///
/// # Errors
/// When nothing can be sent any more.
pub fn run(
    plan: &EdgePlan,
    files: &Files,
    mut machine: MutexGuard<'_, Machine>,
    turn: TakenTurn<'_>,
    cancel: &Cancel,
    send: &(impl Fn(Response) -> io::Result<()> + Sync),
) -> io::Result<()> {
    let done = AtomicU64::new(0);
    let of = u64::from(plan.warm_up) + u64::from(plan.inferences);
    let progress = || (done.load(Ordering::Relaxed), of);
    let ran = with_signs_of_life(cancel, send, progress, || {
        PlanRun::prepare(plan, files, &mut machine, cancel, send)
            .and_then(|mut run| run.all(&mut machine, &done))
    });
    // Until now it kept the connection to the server open.
    cancel.release();
    drop(machine);
    drop(turn);
    send(ran.unwrap_or_else(|message| Response::LinkFailed { message }))
}

/// Layers that run without crossing the link.
enum Leg {
    /// On a processor of this device.
    Here(Segment, Box<dyn Session>),
    /// On the server.
    There(There),
}

/// Layers on the server.
struct There {
    segment: Segment,
    asked: InferRequest,
    answer: Vec<TensorShape>,
    /// What its tensors are packed by, to the server and back.
    codecs: [Option<TensorCodec>; 2],
}

/// What came of an exchange with the server.
struct Exchanged {
    given: Vec<Tensor>,
    answer: Answer,
    /// What packing and unpacking took here.
    packing: Duration,
}

impl There {
    /// A part of the plan, which says nothing of tensors yet.
    fn of(plan: &EdgePlan, part: &EdgePart) -> Result<There, Sentence> {
        let hash = hash_bytes(&plan.server_model_sha256);
        Ok(There {
            segment: part.segment,
            asked: InferRequest {
                model: hash.ok_or("what should be a model's SHA-256 is none")?,
                first: part.segment.first(),
                stretches: vec![stretch(part)],
                tensors: Vec::new(),
            },
            answer: Vec::new(),
            codecs: [None; 2],
        })
    }

    /// The part behind it as well.
    fn push(&mut self, part: &EdgePart) -> Result<(), Sentence> {
        let longer = Segment::new(self.segment.first(), part.segment.last());
        self.segment = longer.map_err(|error| error.to_string())?;
        self.asked.stretches.push(stretch(part));
        Ok(())
    }

    /// Says which tensors its layers, run as one, take and give.
    fn tell_tensors(&mut self, network: &Network) -> Result<(), Sentence> {
        self.asked.tensors = crossing(&network.takes(self.segment))?;
        self.answer = crossing(&network.gives(self.segment))?;
        Ok(())
    }

    /// Whether this is what crosses where its layers begin or end. Then it is packed from now on.
    fn is_packed(&mut self, packing: &EdgePacking) -> bool {
        let [upload, download] = &mut self.codecs;
        let (cut, codec) = match packing.direction {
            LinkDirection::Upload => (self.segment.first() - 1, upload),
            LinkDirection::Download => (self.segment.last(), download),
        };
        let is_here = cut == packing.after_layer;
        if is_here {
            *codec = Some(packing.codec);
        }
        is_here
    }

    /// Has the server run its layers on the tensors that they take, which gives tensors of these specs.
    fn exchange(
        &self,
        client: &mut Client,
        taken: &[Tensor],
        gives: &[TensorSpec],
    ) -> Result<Exchanged, Sentence> {
        let asked = self.asked.clone();
        if self.codecs == [None; 2] {
            let inferred = client.infer(asked, &to_wire(taken)?, &self.answer);
            let (inferred, answer) = inferred.map_err(|error| error.to_string())?;
            return Ok(Exchanged {
                given: from_wire(gives, &inferred.payload)?,
                answer,
                packing: Duration::ZERO,
            });
        }
        let [upload, download] = self.codecs;
        let began = Instant::now();
        let (tensors, payload) = pack(upload, taken)?;
        let packing = began.elapsed();
        let asked = PackedRequest {
            layers: asked,
            answer: download,
            tensors,
        };
        let inferred = client.infer_packed(asked, &payload, &self.answer);
        let (inferred, answer) = inferred.map_err(|error| error.to_string())?;
        let began = Instant::now();
        let given = unpack(gives, &inferred.packed, &inferred.payload)?;
        Ok(Exchanged {
            given,
            answer,
            packing: packing + began.elapsed(),
        })
    }
}

struct PlanRun<'a> {
    plan: &'a EdgePlan,
    model: ModelWithTwin,
    /// What the network answers in turn.
    inputs: Vec<Vec<Tensor>>,
    legs: Vec<Leg>,
    server: Reached,
    cancel: &'a Cancel,
}

impl<'a> PlanRun<'a> {
    /// Reaches the server, and loads what runs here.
    fn prepare(
        plan: &'a EdgePlan,
        files: &Files,
        machine: &mut Machine,
        cancel: &'a Cancel,
        send: &impl Fn(Response) -> io::Result<()>,
    ) -> Result<PlanRun<'a>, Sentence> {
        let model = read_model(files, &plan.model_sha256, plan.quantised_sha256.as_deref())?;
        refuse_unless_whole(plan, model.model().layer_count())?;
        let inputs = inputs(plan, files, model.model())?;
        let server = reach(&plan.server, &plan.token, plan.shape, cancel)?;
        let loopback = server.loopback;
        // Who is gone ends the connection, and so this.
        send(Response::LinkReached { loopback }).map_err(|error| error.to_string())?;
        let mut legs = Vec::new();
        for part in &plan.parts {
            match (part.side, legs.last_mut()) {
                (EdgeSide::Phone, _) => {
                    let loaded = machine.runtimes.load(&part.processor, &model, part.segment);
                    let session = loaded.map_err(|error| error.to_string())?;
                    legs.push(Leg::Here(part.segment, session));
                }
                (EdgeSide::Server, Some(Leg::There(there))) => there.push(part)?,
                (EdgeSide::Server, _) => legs.push(Leg::There(There::of(plan, part)?)),
            }
        }
        for leg in &mut legs {
            if let Leg::There(there) = leg {
                there.tell_tensors(model.model())?;
            }
        }
        pack_what_crosses(plan, &mut legs)?;
        Ok(PlanRun {
            plan,
            model,
            inputs,
            legs,
            server,
            cancel,
        })
    }

    fn all(&mut self, machine: &mut Machine, done: &AtomicU64) -> Result<Response, Sentence> {
        for run in 0..self.plan.warm_up {
            let name = Invocation::warm_up(self.plan.seed, 0, run);
            self.once(machine, name, run as usize)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        let mut inferences = Vec::new();
        let mut result = Vec::new();
        for index in 0..u64::from(self.plan.inferences) {
            let name = Invocation::sample(self.plan.seed, index);
            let (inference, given) = self.once(machine, name, index as usize)?;
            inferences.push(inference);
            result = given;
            done.fetch_add(1, Ordering::Relaxed);
        }
        // What is loaded may be all that the processors' memory holds.
        self.legs.clear();
        let last = self.input(self.plan.inferences as usize - 1);
        let (agreement, not_compared) =
            match alone(&mut machine.runtimes, &self.model, last, &result) {
                Ok(agreement) => (Some(agreement), None),
                Err(reason) => (None, Some(reason)),
            };
        Ok(Response::EdgePlanRan {
            inferences,
            agreement,
            not_compared,
            server_program: self.server.client.server_program().to_owned(),
        })
    }

    /// What the inference of this place answers, of those that are timed or of those before.
    fn input(&self, place: usize) -> &[Tensor] {
        &self.inputs[place % self.inputs.len()]
    }

    /// The inference of this place and its result.
    fn once(
        &mut self,
        machine: &mut Machine,
        name: Invocation,
        place: usize,
    ) -> Result<(EdgeInference, Vec<Tensor>), Sentence> {
        if self.cancel.is_cancelled() {
            return Err("running the plan was cancelled".to_owned());
        }
        let is_simulated = machine.device.identity().device.simulated;
        rest(machine, self.plan.rest_ns.unwrap_or(REST));
        let network = self.model.model();
        let [mut here, mut up, mut queue, mut compute, mut down] = [Nanos::ZERO; 5];
        let input = self.input(place).to_vec();
        let began = Instant::now();
        let mut memory = MainMemory::of(network.inputs(), input);
        for (step, leg) in self.legs.iter_mut().enumerate() {
            match leg {
                Leg::Here(segment, session) => {
                    let inputs = memory.taken(&network.takes(*segment));
                    machine.device.announce(name.step(step));
                    let run = session.run(&inputs).map_err(|error| error.to_string())?;
                    here = here + run.duration;
                    memory = memory.after(network, *segment, run.outputs);
                }
                Leg::There(there) => {
                    let taken = memory.taken(&network.takes(there.segment));
                    let gives = network.gives(there.segment);
                    let exchanged = there.exchange(&mut self.server.client, &taken, &gives)?;
                    let told = exchanged.answer;
                    memory = memory.after(network, there.segment, exchanged.given);
                    here = here + Nanos::from(exchanged.packing);
                    let at_server = told.server.receive + told.server.queue + told.server.compute;
                    up = up + told.server.receive;
                    queue = queue + told.server.queue;
                    compute = compute + told.server.compute;
                    // Nothing where a server claims more than the whole exchange took.
                    down = down + Nanos::from(told.duration.saturating_sub(at_server.into()));
                }
            }
        }
        let total = match is_simulated {
            true => here + up + queue + compute + down,
            false => began.elapsed().into(),
        };
        let inference = EdgeInference {
            total_ns: total,
            phone_ns: here,
            upload_ns: up,
            queue_ns: queue,
            server_ns: compute,
            download_ns: down,
        };
        Ok((inference, memory.tensors().to_vec()))
    }
}

/// What the network is to answer.
fn inputs(plan: &EdgePlan, files: &Files, network: &Network) -> Result<Vec<Vec<Tensor>>, Sentence> {
    let Some(images) = &plan.images else {
        return Ok(vec![timing_input(network.inputs(), plan.seed)]);
    };
    if !(1..=MOST_INFERENCES as usize).contains(&images.images.len()) {
        return Err(format!("a plan answers 1 to {MOST_INFERENCES} images"));
    }
    let set = files.set(&images.set_sha256);
    let set = set.map_err(|error| error.to_string())?;
    let pictures = SetImages::of(&set, &images.images, network)?;
    let tensors = images.images.iter().map(|&image| pictures.tensor(image));
    tensors.map(|tensor| Ok(vec![tensor?])).collect()
}

/// Has the tensors packed that the plan says.
fn pack_what_crosses(plan: &EdgePlan, legs: &mut [Leg]) -> Result<(), Sentence> {
    for packing in &plan.packings {
        let mut there = legs.iter_mut().filter_map(|leg| match leg {
            Leg::There(there) => Some(there),
            Leg::Here(..) => None,
        });
        if !there.any(|there| there.is_packed(packing)) {
            return Err(format!(
                "the plan packs the {} of what leaves layer {}, and nothing crosses the link there: plan again",
                packing.direction, packing.after_layer
            ));
        }
    }
    Ok(())
}

/// Lets `time` pass on the device and, where that does not take it because it is simulated, on the server.
fn rest(machine: &mut Machine, time: Nanos) {
    let began = Instant::now();
    machine.device.idle(time);
    thread::sleep(Duration::from(time).saturating_sub(began.elapsed()));
}

fn refuse_unless_whole(plan: &EdgePlan, layers: u32) -> Result<(), Sentence> {
    let parts = plan.parts.iter().map(|part| part.segment);
    if Segment::chained(parts) != Some(layers) {
        return Err(format!(
            "the parts of the plan are not layers 1 to {layers} one after the other: plan again with profiles of this model"
        ));
    }
    if !(1..=MOST_INFERENCES).contains(&plan.inferences) {
        return Err(format!("a plan is run once to {MOST_INFERENCES} times"));
    }
    Ok(())
}

fn stretch(part: &EdgePart) -> Stretch {
    Stretch {
        last: part.segment.last(),
        processor: part.processor.clone(),
    }
}

/// Runs the whole network here, on a CPU if there is one, and compares.
fn alone(
    runtimes: &mut Runtimes,
    model: &ModelWithTwin,
    input: &[Tensor],
    result: &[Tensor],
) -> Result<EdgeAgreement, Sentence> {
    let cpu = runtimes
        .processors()
        .find(|it| it.kind == ProcessorKind::Cpu);
    let processor = cpu.or_else(|| runtimes.processors().next());
    let processor = processor.ok_or("the device has no processor")?.name.clone();
    let whole = Segment::whole(model.model().layer_count());
    let session = runtimes.load(&processor, model, whole);
    let mut session = session.map_err(|error| error.to_string())?;
    let own = session.outputs(input).map_err(|error| error.to_string())?;
    let floats =
        |tensors: &[Tensor]| -> Vec<f32> { tensors.iter().flat_map(Tensor::to_floats).collect() };
    let (own, result) = (floats(&own), floats(result));
    Ok(EdgeAgreement {
        processor,
        elements: own.len() as u64,
        difference_ppb: difference_ppb(&own, &result),
    })
}

/// The largest difference, in billionths of the largest of `own`.
fn difference_ppb(own: &[f32], result: &[f32]) -> u64 {
    let is_number = |value: &f32| value.is_finite();
    if own.len() != result.len() || !own.iter().chain(result).all(is_number) {
        return u64::MAX;
    }
    let pairs = own.iter().zip(result);
    let largest = own
        .iter()
        .fold(0.0_f64, |most, it| most.max(f64::from(it.abs())));
    let difference = pairs.fold(0.0_f64, |most, (one, other)| {
        most.max((f64::from(*one) - f64::from(*other)).abs())
    });
    match difference {
        0.0 => 0,
        // Of an answer that is all zeros, any difference is infinitely large; a cast saturates.
        difference => (difference / largest * 1e9) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_of_the_largest_number() {
        assert_eq!(difference_ppb(&[1.0, -4.0], &[1.0, -4.0]), 0);
        assert_eq!(difference_ppb(&[1.0, -4.0], &[2.0, -4.0]), 250_000_000);
        assert_eq!(difference_ppb(&[0.0], &[0.0]), 0);
        for (own, result) in [
            (&[0.0][..], &[1.0][..]),
            (&[1.0], &[f32::NAN]),
            (&[f32::INFINITY], &[f32::INFINITY]),
            (&[1.0], &[1.0, 1.0]),
        ] {
            assert_eq!(difference_ppb(own, result), u64::MAX, "{own:?} {result:?}");
        }
    }
}
