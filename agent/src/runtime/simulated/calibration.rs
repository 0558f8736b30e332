//! Holds the device files to the figures of the papers that they claim to reproduce. The networks are
//! written down as layer shapes, because at full scale they are too large to ship.

use layerlab_profiles::{Bytes, Nanos, Segment};

use super::{LayerWork, PlantedTimes};
use crate::device::simulated::DeviceFile;

/// The networks' shapes while they are being written down: channels and side of the last activation.
struct Layers {
    channels: u64,
    side: u64,
    work: Vec<LayerWork>,
}

impl Layers {
    fn of_image(side: u64) -> Self {
        Layers {
            channels: 3,
            side,
            work: Vec::new(),
        }
    }

    fn bytes(&self) -> Bytes {
        Bytes::from_bytes(4 * self.channels * self.side * self.side)
    }

    fn push(&mut self, channels: u64, side: u64, work: LayerWork) {
        let input = self.bytes();
        (self.channels, self.side) = (channels, side);
        self.work.push(LayerWork {
            input,
            output: self.bytes(),
            ..work
        });
    }

    /// A convolution that keeps the side but for its stride, `after` operations on each output.
    fn conv(&mut self, kernel: u64, channels: u64, stride: u64, groups: u64, after: u64) {
        let side = self.side.div_ceil(stride);
        let outputs = channels * side * side;
        let taps = kernel * kernel * self.channels / groups;
        let work = LayerWork {
            convolution_flop: 2 * outputs * taps,
            other_flop: after * outputs,
            parameters: Bytes::from_bytes(4 * channels * (taps + 1)),
            ..LayerWork::default()
        };
        self.push(channels, side, work);
    }

    fn pool(&mut self, kernel: u64) {
        let side = self.side / 2;
        let pooling_flop = self.channels * side * side * (kernel * kernel - 1);
        self.push(
            self.channels,
            side,
            LayerWork {
                pooling_flop,
                ..LayerWork::default()
            },
        );
    }

    fn fully_connected(&mut self, outputs: u64) {
        let inputs = self.channels * self.side * self.side;
        let work = LayerWork {
            fully_connected_flop: 2 * inputs * outputs,
            other_flop: 2 * outputs,
            parameters: Bytes::from_bytes(4 * outputs * (inputs + 1)),
            ..LayerWork::default()
        };
        self.push(outputs, 1, work);
    }
}

/// YOLO Small: 24 convolutions, 4 poolings, 2 fully connected layers, of which the first has 512.
fn yolo_small() -> Vec<LayerWork> {
    let mut layers = Layers::of_image(448);
    let conv = |layers: &mut Layers, kernel, channels, stride| {
        layers.conv(kernel, channels, stride, 1, 2);
    };
    conv(&mut layers, 7, 64, 2);
    layers.pool(2);
    conv(&mut layers, 3, 192, 1);
    layers.pool(2);
    for (kernel, channels) in [(1, 128), (3, 256), (1, 256), (3, 512)] {
        conv(&mut layers, kernel, channels, 1);
    }
    layers.pool(2);
    for (kernel, channels) in [[(1, 256), (3, 512)]; 4].concat() {
        conv(&mut layers, kernel, channels, 1);
    }
    conv(&mut layers, 1, 512, 1);
    conv(&mut layers, 3, 1024, 1);
    layers.pool(2);
    for (kernel, channels) in [[(1, 512), (3, 1024)]; 2].concat() {
        conv(&mut layers, kernel, channels, 1);
    }
    conv(&mut layers, 3, 1024, 1);
    conv(&mut layers, 3, 1024, 2);
    conv(&mut layers, 3, 1024, 1);
    conv(&mut layers, 3, 1024, 1);
    layers.fully_connected(512);
    layers.fully_connected(1470);
    layers.work
}

/// The place of YOLO Small's C6, counted from 0: two poolings come before it.
const C6: usize = 7;

/// VocNet, which has the structure of AlexNet (mlmp §6.1), with 20 answers.
fn voc_net() -> Vec<LayerWork> {
    /// ReLU and LRN over five channels: squares, sums, scale, bias, power, division.
    const RELU_LRN: u64 = 10;
    const RELU: u64 = 1;
    // The real 227 pixels without padding give 55 positions at a stride of 4, as 220 do with padding.
    let mut layers = Layers::of_image(220);
    layers.conv(11, 96, 4, 1, RELU_LRN);
    layers.pool(3);
    layers.conv(5, 256, 1, 2, RELU_LRN);
    layers.pool(3);
    layers.conv(3, 384, 1, 1, RELU);
    layers.conv(3, 384, 1, 2, RELU);
    layers.conv(3, 256, 1, 2, RELU);
    layers.pool(3);
    layers.fully_connected(4096);
    layers.fully_connected(4096);
    layers.fully_connected(20);
    layers.work
}

/// The planted times on the CPU and on the NPU of a device in tests/devices.
fn times(device: &str, network: &[LayerWork]) -> (PlantedTimes, PlantedTimes) {
    let path = format!(
        "{}/../tests/devices/{device}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let device = DeviceFile::open(path.as_ref()).expect("a device file");
    let times = |name| {
        let processor = device
            .processors
            .iter()
            .find(|processor| processor.name == name);
        PlantedTimes::new(processor.expect("the processor"), network)
    };
    (times("cpu"), times("npu"))
}

fn whole(times: &PlantedTimes) -> f64 {
    times
        .segment(Segment::whole(times.compute().len() as u32))
        .as_millis_f64()
}

/// Asserts that a time is what a paper says, give or take some per cent.
#[track_caller]
fn assert_about(millis: f64, paper: f64, per_cent: f64) {
    assert!(
        (millis / paper - 1.0).abs() < per_cent / 100.0,
        "{millis} ms, the paper has {paper} ms"
    );
}

#[test]
fn the_networks_have_their_known_operations_and_weights() {
    let totals = |network: &[LayerWork]| {
        let flop = |layer: &LayerWork| layer.convolution_flop + layer.fully_connected_flop;
        let weights: Bytes = network.iter().map(|layer| layer.parameters).sum();
        (
            network.iter().map(flop).sum::<u64>() as f64 / 1e9,
            weights.as_bytes() as f64 / 4e6,
        )
    };
    let (flop, weights) = totals(&yolo_small());
    assert!(
        (40.0..41.0).contains(&flop) && (82.0..90.0).contains(&weights),
        "{flop} {weights}"
    );
    let (flop, weights) = totals(&voc_net());
    assert!(
        (1.3..1.6).contains(&flop) && (56.0..58.0).contains(&weights),
        "{flop} {weights}"
    );
}

#[test]
fn the_mate_10_pro_has_the_times_of_the_papers() {
    let (cpu, npu) = times("mate10pro", &yolo_small());
    assert_about(whole(&cpu), 3_400.0, 3.0);
    assert!((110.0..200.0).contains(&whole(&npu)), "{}", whole(&npu));
    let entering = npu.entering().expect("an accelerator");
    assert_about(npu.compute()[C6].as_millis_f64(), 16.0, 5.0);
    assert_about(entering[C6].as_millis_f64(), 19.0, 5.0);

    let (cpu, npu) = times("mate10pro", &voc_net());
    assert_about(whole(&cpu), 650.0, 5.0);
    assert!(whole(&npu) < 0.06 * 650.0, "{}", whole(&npu));
}

#[test]
fn the_pixel_6_has_the_times_of_the_papers() {
    let (cpu, npu) = times("pixel6", &yolo_small());
    assert_about(whole(&cpu), 4_100.0, 3.0);
    assert_about(whole(&npu), 110.0, 5.0);
}

#[test]
fn the_oneplus_7_has_an_npu_about_twenty_times_as_fast_as_its_cpu() {
    let (cpu, npu) = times("oneplus7", &yolo_small());
    let ratio = whole(&cpu) / whole(&npu);
    assert!(
        (17.0..23.0).contains(&ratio),
        "{} / {}",
        whole(&cpu),
        whole(&npu)
    );
}

#[test]
fn on_every_phone_transfers_are_of_the_order_of_layer_times() {
    for device in ["mate10pro", "oneplus7", "pixel6"] {
        let (_, npu) = times(device, &yolo_small());
        let sum = |times: &[Nanos]| times.iter().copied().sum::<Nanos>().as_millis_f64();
        let moving = (sum(npu.entering().expect("in")) + sum(npu.leaving().expect("out"))) / 2.0;
        let ratio = moving / sum(npu.compute());
        assert!((0.3..4.0).contains(&ratio), "{device}: {ratio}");
    }
}
