//! Kinds of noise that machines make, each as the section of a device file that plants it.

/// One kind of noise.
#[derive(Clone, Copy, Debug)]
pub struct NoiseKind {
    /// What it is called in tables.
    pub name: &'static str,
    /// What the device file has more than [`BASE`].
    pub section: &'static str,
    /// The factors of time that the machine's states have: the numbers of a processor, which is measured in a part of the run,
    /// are right if they hold in any one of them.
    pub states: &'static [f64],
    /// By what share of the first time the machine gets slower each hour: right is what it takes halfway through the samples.
    pub drift_per_hour: f64,
}

/// A device whose moving costs the same both ways, with noise of 2 % that is independent from inference to inference. It has
/// the shape of no phone. It does not round as accelerators do: that would say nothing of times, and cost most of a run.
pub const BASE: &str = r#"
name = "machine noise (simulated)"
clock = "exact"

[[processor]]
name = "cpu"
kind = "cpu"
numerics = "f32"
convolution_flop_per_s = 1e9
fully_connected_flop_per_s = 5e8
pooling_flop_per_s = 2e8
other_flop_per_s = 3e8
noise_proportional_sigma = 0.02

[[processor]]
name = "npu"
kind = "accelerator"
numerics = "f32"
convolution_flop_per_s = 2e10
fully_connected_flop_per_s = 1e10
pooling_flop_per_s = 4e9
other_flop_per_s = 6e9
fixed_cost_ns = 120_000
input_bytes_per_s = 3e8
output_bytes_per_s = 3e8
noise_proportional_sigma = 0.02
"#;

const ONE: &[f64] = &[1.0];

/// All kinds, the independent one first.
pub const KINDS: [NoiseKind; 9] = [
    NoiseKind {
        name: "independent",
        section: "",
        states: ONE,
        drift_per_hour: 0.0,
    },
    NoiseKind {
        name: "loading offsets",
        section: "loading_sigma = 0.05",
        states: ONE,
        drift_per_hour: 0.0,
    },
    NoiseKind {
        name: "visit offsets",
        section: "visit_sigma = 0.05",
        states: ONE,
        drift_per_hour: 0.0,
    },
    NoiseKind {
        name: "AR(1)",
        section: "correlated_sigma = 0.03\ncorrelation_time_ns = 200_000_000",
        states: ONE,
        drift_per_hour: 0.0,
    },
    NoiseKind {
        name: "drift",
        section: "drift_per_hour = 3.0",
        states: ONE,
        drift_per_hour: 3.0,
    },
    NoiseKind {
        name: "cold after loading",
        section: "cold_slowdown = 1.3\ncold_decay_ns = 500_000_000",
        states: ONE,
        drift_per_hour: 0.0,
    },
    NoiseKind {
        name: "bursts",
        section: "[[machine_noise.switching]]\nslowdowns = [1.0, 1.8]\nmean_holds_ns = [2_000_000_000, 100_000_000]",
        states: ONE,
        drift_per_hour: 0.0,
    },
    NoiseKind {
        name: "governor steps",
        section: "[[machine_noise.switching]]\nslowdowns = [1.0, 1.15, 1.3]\n\
                  mean_holds_ns = [3_000_000_000, 3_000_000_000, 3_000_000_000]",
        states: &[1.0, 1.15, 1.3],
        drift_per_hour: 0.0,
    },
    NoiseKind {
        name: "two states",
        section: "[[machine_noise.switching]]\nslowdowns = [1.0, 1.5]\n\
                  mean_holds_ns = [30_000_000_000, 30_000_000_000]",
        states: &[1.0, 1.5],
        drift_per_hour: 0.0,
    },
];

impl NoiseKind {
    /// Whether inferences are independent: the machine adds nothing.
    pub fn is_independent(&self) -> bool {
        self.section.is_empty()
    }

    /// The text of a device file with this noise.
    pub fn device(&self) -> String {
        format!("{BASE}\n[machine_noise]\n{}\n", self.section)
    }
}
