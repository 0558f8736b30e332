//! YOLO Small at full scale as layer shapes: the network itself would be too large to ship. The same
//! shapes as those that `agent/src/runtime/simulated/calibration.rs` holds the device files to.

use layerlab_agent::runtime::simulated::LayerWork;
use layerlab_profiles::Bytes;

/// Channels and side of the last activation, and the layers so far.
struct Shapes {
    channels: u64,
    side: u64,
    work: Vec<LayerWork>,
}

impl Shapes {
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

    fn conv(&mut self, kernel: u64, channels: u64, stride: u64) {
        let side = self.side.div_ceil(stride);
        let (outputs, taps) = (channels * side * side, kernel * kernel * self.channels);
        let work = LayerWork {
            convolution_flop: 2 * outputs * taps,
            other_flop: 2 * outputs,
            parameters: Bytes::from_bytes(4 * channels * (taps + 1)),
            ..LayerWork::default()
        };
        self.push(channels, side, work);
    }

    fn pool(&mut self) {
        let side = self.side / 2;
        let work = LayerWork {
            pooling_flop: self.channels * side * side * 3,
            ..LayerWork::default()
        };
        self.push(self.channels, side, work);
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

/// The work of its 24 convolutions, 4 poolings and 2 fully connected layers.
pub fn yolo_small() -> Vec<LayerWork> {
    let mut shapes = Shapes {
        channels: 3,
        side: 448,
        work: Vec::new(),
    };
    shapes.conv(7, 64, 2);
    shapes.pool();
    shapes.conv(3, 192, 1);
    shapes.pool();
    for (kernel, channels) in [(1, 128), (3, 256), (1, 256), (3, 512)] {
        shapes.conv(kernel, channels, 1);
    }
    shapes.pool();
    for (kernel, channels) in [[(1, 256), (3, 512)]; 4].concat() {
        shapes.conv(kernel, channels, 1);
    }
    shapes.conv(1, 512, 1);
    shapes.conv(3, 1024, 1);
    shapes.pool();
    for (kernel, channels) in [[(1, 512), (3, 1024)]; 2].concat() {
        shapes.conv(kernel, channels, 1);
    }
    shapes.conv(3, 1024, 1);
    shapes.conv(3, 1024, 2);
    shapes.conv(3, 1024, 1);
    shapes.conv(3, 1024, 1);
    shapes.fully_connected(512);
    shapes.fully_connected(1470);
    shapes.work
}
