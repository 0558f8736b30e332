//! A simulated device takes the times, the memory and the heat that its file plants.

use layerlab_model::ElementType;

use super::*;
use crate::ModelWithTwin;
use crate::device::simulated::{DeviceFile, MachineNoise};
use crate::device::{Device, Invocation};
use crate::runtime::{Inference, Runtimes, Tensor, timing_input};

/// A device that is switched on, with its runtime.
struct Played {
    device: SimulatedDevice,
    runtimes: Runtimes,
}

impl Played {
    fn new(file: DeviceFile) -> Self {
        let device = SimulatedDevice::new(file);
        let runtime = SimulatedRuntime::on(&device);
        let runtimes = Runtimes::new(vec![Box::new(runtime)]).expect("different names");
        Played { device, runtimes }
    }

    fn load(
        &mut self,
        processor: &str,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        self.runtimes.load(
            processor,
            &ModelWithTwin::alone(Arc::clone(network)),
            segment,
        )
    }

    fn run(
        &mut self,
        session: &mut dyn Session,
        network: &Network,
        first: u32,
        index: u64,
    ) -> Inference {
        let inputs = timing_input(network.frontier(first - 1), 1);
        self.device.announce(Invocation::sample(1, index));
        session.run(&inputs).expect("an inference")
    }
}

/// A device whose NPU lacks the lines that a test adds.
fn device(clock: &str, npu: &str) -> DeviceFile {
    let text = format!(
        r#"
        name = "d (simulated)"
        clock = "{clock}"
        [heat]
        ambient_celsius = 25
        kelvin_per_watt = 10
        joules_per_kelvin = 0.0005
        throttle_start_celsius = 45
        slowdown_per_kelvin = 0.05
        minimum_speed = 0.5
        [[processor]]
        name = "cpu"
        kind = "cpu"
        numerics = "f32"
        convolution_flop_per_s = 1e9
        fully_connected_flop_per_s = 1e9
        pooling_flop_per_s = 1e9
        other_flop_per_s = 1e9
        [[processor]]
        name = "npu"
        kind = "accelerator"
        numerics = "i8"
        convolution_flop_per_s = 2e10
        fully_connected_flop_per_s = 2e10
        pooling_flop_per_s = 2e10
        other_flop_per_s = 2e10
        fixed_cost_ns = 20001
        input_bytes_per_s = 2e8
        output_bytes_per_s = 3e8
        {npu}
        "#
    );
    DeviceFile::parse("d.toml", &text).expect("a device")
}

fn network() -> Arc<Network> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/models/vgg16.onnx");
    Arc::new(Network::open(path.as_ref(), &Default::default()).expect("a model"))
}

fn segment(first: u32, last: u32) -> Segment {
    Segment::new(first, last).expect("a segment")
}

const GAP: Nanos = Nanos::from_millis(100);

#[test]
fn without_noise_a_run_takes_the_planted_time_to_the_nanosecond() {
    let (device, network) = (device("exact", ""), network());
    let work = LayerWork::of(&network);
    let layers = work.len() as u32;
    let mut played = Played::new(device.clone());
    for processor in &device.processors {
        let planted = PlantedTimes::new(processor, &work);
        for segment in [
            segment(1, layers),
            segment(1, 3),
            segment(5, 5),
            segment(9, layers),
        ] {
            let mut session = played
                .load(&processor.name, &network, segment)
                .expect("loaded");
            played.device.idle(GAP);
            let before = played.device.now();
            let inference = played.run(session.as_mut(), &network, segment.first(), 0);
            assert_eq!(inference.duration, planted.segment(segment));
            assert_eq!(played.device.now(), before + inference.duration);
        }
    }
}

#[test]
fn the_same_inference_takes_the_same_time_on_a_device_that_was_switched_on_anew() {
    let noisy = device(
        "exact",
        "noise_proportional_sigma = 0.03\nspike_probability = 0.1",
    );
    let network = network();
    let durations = |indices: &mut dyn Iterator<Item = u64>| -> Vec<Nanos> {
        let mut played = Played::new(noisy.clone());
        let mut session = played.load("npu", &network, segment(2, 4)).expect("loaded");
        indices
            .map(|index| {
                played.device.idle(GAP);
                played.run(session.as_mut(), &network, 2, index).duration
            })
            .collect()
    };
    let uninterrupted = durations(&mut (0..20));
    let resumed = durations(&mut (12..20));
    assert_eq!(uninterrupted[12..], resumed);
    assert!(uninterrupted.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn memory_limits_what_is_loaded_together_until_a_session_is_dropped() {
    let network = network();
    let mut played = Played::new(device("exact", ""));
    let all = segment(1, network.layers().len() as u32);
    let needed = played
        .load("npu", &network, all)
        .expect("no limit")
        .memory();
    let limit = needed.as_bytes();
    let mut played = Played::new(device("exact", &format!("memory_bytes = {limit}")));
    let session = played.load("npu", &network, all).expect("fits exactly");
    let error = played
        .load("npu", &network, segment(1, 1))
        .err()
        .expect("no memory left");
    let sentence = error.to_string();
    assert!(
        matches!(
            error,
            RuntimeError::OutOfMemory {
                free: Some(Bytes::ZERO),
                ..
            }
        ),
        "{sentence}"
    );
    assert!(sentence.starts_with("layers 1..=1 need "), "{sentence}");
    assert!(
        sentence.ends_with(": use a smaller model or a device with more memory"),
        "{sentence}"
    );
    drop(session);
    assert!(played.load("npu", &network, segment(1, 1)).is_ok());

    let mut played = Played::new(device("exact", &format!("memory_bytes = {}", limit - 1)));
    assert!(matches!(
        played.load("npu", &network, all).err(),
        Some(RuntimeError::OutOfMemory { free: Some(free), .. }) if free.as_bytes() == limit - 1
    ));
    // Whether it fits does not depend on what is loaded, and where the device does not tell it is learnt by loading.
    for tells in ["", "\ntells_memory = false"] {
        let limits = format!("memory_bytes = {}{tells}", limit - 1);
        let mut played = Played::new(device("exact", &limits));
        let model = ModelWithTwin::alone(Arc::clone(&network));
        let mut fits = |segment| played.runtimes.fits("npu", &model, segment);
        let refused = fits(all).expect_err("too large");
        let RuntimeError::OutOfMemory {
            needed, capacity, ..
        } = refused
        else {
            panic!("{refused}");
        };
        assert_eq!(needed.as_bytes(), limit);
        assert_eq!(capacity.is_some(), tells.is_empty());
        fits(segment(1, 1)).expect("small");
    }
}

#[test]
fn a_processor_slows_down_when_it_is_hot_and_recovers_when_it_rests() {
    let network = network();
    let mut played = Played::new(device("exact", "power_watts = 5"));
    let mut session = played.load("npu", &network, segment(1, 3)).expect("loaded");
    let mut run = |index| played.run(session.as_mut(), &network, 1, index).duration;
    let cool = run(0);
    let hot = (1..200).map(&mut run).max();
    assert!(
        hot > Some(Nanos::from_nanos(cool.as_nanos() * 11 / 10)),
        "{hot:?} {cool}"
    );
    played.device.idle(GAP);
    let rested = played.run(session.as_mut(), &network, 1, 200).duration;
    assert_eq!(rested, cool);
}

#[test]
fn a_new_input_gets_its_own_outputs_and_an_old_one_the_same() {
    let network = network();
    let mut played = Played::new(device("exact", ""));
    let mut session = played.load("npu", &network, segment(1, 2)).expect("loaded");
    let mut outputs = |seed| {
        // Pixels are larger than what segments are timed with, which dies out after a layer or two.
        let pixels: Vec<f32> = (0..3 * 64 * 64)
            .map(|index| ((index * seed) % 256) as f32)
            .collect();
        let shape = vec![1, 3, 64, 64];
        let inputs = [Tensor::from_floats(ElementType::F32, shape, &pixels).expect("an image")];
        played.device.announce(Invocation::sample(1, 0));
        session.run(&inputs).expect("an inference").outputs
    };
    let (first, second) = (outputs(101), outputs(57));
    assert_ne!(first, second);
    assert_eq!(outputs(57), second);
    assert_eq!(outputs(101), first);
}

#[test]
fn on_the_real_clock_a_run_takes_at_least_its_modelled_time() {
    let network = network();
    let device = device("real", "");
    let planted = PlantedTimes::new(&device.processors[1], &LayerWork::of(&network));
    let mut played = Played::new(device);
    let mut session = played.load("npu", &network, segment(1, 3)).expect("loaded");
    for index in 0..3 {
        let before = played.device.now();
        let inference = played.run(session.as_mut(), &network, 1, index);
        assert!(inference.duration >= planted.segment(segment(1, 3)));
        assert!(played.device.now() >= before + inference.duration);
    }
}

#[test]
fn loading_takes_the_modelled_time() {
    let network = network();
    let mut played = Played::new(device(
        "exact",
        "load_fixed_ns = 1000\nload_bytes_per_s = 1e6",
    ));
    let session = played.load("npu", &network, segment(1, 1)).expect("loaded");
    // 8-bit weights take a quarter of the model's bytes, at a byte per microsecond.
    let stored = network.layers()[0].parameter_bytes.as_bytes().div_ceil(4);
    assert_eq!(session.load_time().as_nanos(), 1_000 + stored * 1_000);
    assert_eq!(played.device.now(), session.load_time());
}

#[test]
fn the_device_says_that_it_is_simulated_and_offers_the_processors_of_its_file() {
    let played = Played::new(device("exact", "memory_bytes = 5"));
    assert!(played.device.identity().device.simulated);
    let processors: Vec<_> = played.runtimes.processors().collect();
    let told = processors
        .iter()
        .map(|processor| (processor.name.as_str(), processor.runtime.as_str()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [("cpu", "simulated"), ("npu", "simulated")]
    );
    assert_eq!(processors[1].memory_bytes, Some(Bytes::from_bytes(5)));
}

#[test]
fn what_cannot_be_run_is_named() {
    let network = network();
    let mut played = Played::new(device("exact", ""));
    let mut session = played.load("npu", &network, segment(1, 1)).expect("loaded");
    played.device.announce(Invocation::sample(1, 0));
    let error = session.run(&[]).expect_err("no input").to_string();
    assert!(
        error.starts_with("cannot run layers 1..=1 on npu: "),
        "{error}"
    );
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn a_segment_with_an_operator_that_the_processor_lacks_is_not_loaded() {
    let network = network();
    let lacking = "unsupported_operators = [\"MaxPool\", \"Elu\"]";
    let mut played = Played::new(device("exact", lacking));
    let has_pooling = |layer: u32| {
        let operators = network.operators(layer);
        operators.iter().find(|one| one.op_type == "MaxPool")
    };
    for layer in 1..=network.layer_count() {
        let loaded = played.load("npu", &network, Segment::single(layer)).err();
        let reason = has_pooling(layer).map(|node| {
            format!(
                "npu cannot run layers {layer}..={layer}: it has no MaxPool, which node `{}` of layer \
                 {layer} is: place them on another processor",
                node.name
            )
        });
        assert_eq!(loaded.map(|error| error.to_string()), reason);
        played
            .load("cpu", &network, Segment::single(layer))
            .expect("the CPU has all operators");
    }
    let whole = Segment::whole(network.layer_count());
    assert!(matches!(
        played.load("npu", &network, whole).err(),
        Some(RuntimeError::Unsupported { .. })
    ));
}

#[test]
fn an_inference_that_nobody_announced_has_no_time() {
    let network = network();
    let mut played = Played::new(device("exact", ""));
    let mut session = played.load("npu", &network, segment(1, 1)).expect("loaded");
    let inputs = timing_input(network.inputs(), 1);
    for _ in 0..2 {
        let error = session.run(&inputs).expect_err("not announced").to_string();
        assert_eq!(
            error,
            "cannot run layers 1..=1 on npu: the simulated device was not told which inference it is"
        );
        played.run(session.as_mut(), &network, 1, 0);
    }
    session.outputs(&inputs).expect("answers need no name");
}

#[test]
fn what_is_loaded_anew_has_another_offset_and_an_empty_device_another_visit() {
    let network = network();
    let mut file = device("exact", "");
    file.machine_noise = MachineNoise {
        visit_sigma: 0.05,
        loading_sigma: 0.05,
        ..MachineNoise::default()
    };
    let mut played = Played::new(file);
    let mut load_and_time = |index| {
        let mut session = played.load("npu", &network, segment(1, 1)).expect("loaded");
        let mut time = || {
            // So long that the processor is cool again.
            played.device.idle(GAP);
            played.run(session.as_mut(), &network, 1, index).duration
        };
        let (first, again) = (time(), time());
        assert_eq!(first, again, "one loading has one offset");
        (session, first)
    };
    let (kept, first) = load_and_time(0);
    let (dropped, second) = load_and_time(0);
    assert_ne!(first, second, "each loading has its own offset");
    drop((kept, dropped));
    let (_, third) = load_and_time(0);
    assert!(third != first && third != second, "another visit");
}
