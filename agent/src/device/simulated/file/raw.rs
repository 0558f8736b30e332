//! A device file as it is written, and the checks that make it a [`DeviceFile`].

use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::{Numerics, ProcessorKind};
use serde::Deserialize;

use super::check::{
    ABOVE_ZERO, AT_LEAST_ONE, AT_LEAST_ZERO, GAIN, PROBABILITY, Place, Range, SPEED, TEMPERATURE,
};
use super::gauge::RawGauge;
use super::machine::RawMachineNoise;
use super::{
    Accumulate, Arithmetic, ClockKind, DeviceFile, DeviceFileError, OnChip, SimulatedProcessor,
    Throughput, Transfer,
};
use crate::device::simulated::heat::Heat;
use crate::device::simulated::noise::Noise;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDevice {
    /// A short name that a person recognises.
    name: Option<String>,
    /// "exact" or "real".
    clock: Option<ClockKind>,
    heat: Option<RawHeat>,
    /// Absent: nothing tells how much it draws.
    gauge: Option<RawGauge>,
    /// How the times of the whole machine move; absent: not at all.
    machine_noise: Option<RawMachineNoise>,
    #[serde(default)]
    processor: Vec<RawProcessor>,
}

/// How the device warms up and slows down. All fields or no `[heat]` at all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHeat {
    /// The temperature of the room, which the device has at the start.
    ambient_celsius: Option<f64>,
    /// How much warmer than the room it gets in the end for each watt.
    kelvin_per_watt: Option<f64>,
    /// The heat that warms it by one kelvin.
    joules_per_kelvin: Option<f64>,
    /// Above this temperature it slows down.
    throttle_start_celsius: Option<f64>,
    /// The fraction of its full speed that it loses for each kelvin above.
    slowdown_per_kelvin: Option<f64>,
    /// The fraction of its full speed that it keeps however hot it is.
    minimum_speed: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProcessor {
    /// The name that orders and tables use.
    name: Option<String>,
    /// "cpu" or "accelerator".
    kind: Option<ProcessorKind>,
    /// "f32", "f16" or "i8".
    numerics: Option<Numerics>,
    /// "f32" (if absent) or "f16"; for f16 numerics only.
    accumulate: Option<Accumulate>,
    /// ONNX operator types, such as "LRN"; absent: it has all.
    #[serde(default)]
    unsupported_operators: Vec<String>,
    convolution_flop_per_s: Option<f64>,
    fully_connected_flop_per_s: Option<f64>,
    pooling_flop_per_s: Option<f64>,
    other_flop_per_s: Option<f64>,
    /// Absent: reading weights takes no time.
    parameter_bytes_per_s: Option<f64>,
    /// Accelerators only, as the next three.
    fixed_cost_ns: Option<i64>,
    input_bytes_per_s: Option<f64>,
    output_bytes_per_s: Option<f64>,
    /// Absent: nothing is gained.
    fusion_gain: Option<f64>,
    /// Accelerators only; absent: the weights of any unit fit.
    on_chip_bytes: Option<i64>,
    /// With `on_chip_bytes` only.
    spill_bytes_per_s: Option<f64>,
    /// Absent: no limit.
    memory_bytes: Option<i64>,
    /// With `memory_bytes` only; absent: true.
    tells_memory: Option<bool>,
    /// Absent: nothing.
    load_fixed_ns: Option<i64>,
    /// Absent: moving weights takes no time.
    load_bytes_per_s: Option<f64>,
    /// The standard deviation of the logarithm of a time; absent: 0.
    noise_proportional_sigma: Option<f64>,
    /// The standard deviation of what is added to a time; absent: 0.
    noise_absolute_sigma_ns: Option<f64>,
    /// How probable it is that an inference is disturbed; absent: 0.
    spike_probability: Option<f64>,
    /// How many times as long a disturbed inference takes; absent: 1.
    spike_factor: Option<f64>,
    /// Absent: 0.
    power_watts: Option<f64>,
}

impl RawDevice {
    /// Checks every field, and the fields against each other. `file` is what errors call it.
    pub(super) fn check(self, file: &str) -> Result<DeviceFile, DeviceFileError> {
        let place = Place {
            file,
            place: "the device".to_owned(),
        };
        let name = place.name(self.name)?;
        let clock = place.required("clock", self.clock, "\"exact\" or \"real\"")?;
        let heat = self.heat.map(|heat| heat.check(file)).transpose()?;
        let gauge = self.gauge.map(|gauge| gauge.check(file)).transpose()?;
        let machine_noise = self
            .machine_noise
            .map(|noise| noise.check(file))
            .transpose()?;
        if self.processor.is_empty() {
            return Err(place.missing("processor", "at least one [[processor]]"));
        }
        let mut processors: Vec<SimulatedProcessor> = Vec::new();
        for (index, raw) in self.processor.into_iter().enumerate() {
            let (processor, place) = raw.check(file, index + 1)?;
            if processors.iter().any(|other| other.name == processor.name) {
                let expected = "a name that no other processor has";
                return Err(place.senseless("name", format!("{:?}", processor.name), expected));
            }
            processors.push(processor);
        }
        Ok(DeviceFile {
            name,
            clock,
            heat,
            gauge,
            machine_noise: machine_noise.unwrap_or_default(),
            processors,
        })
    }
}

impl RawHeat {
    fn check(self, file: &str) -> Result<Heat, DeviceFileError> {
        let place = Place {
            file,
            place: "[heat]".to_owned(),
        };
        let number = |field, value, range: &Range| place.number(field, value, range);
        Ok(Heat {
            ambient_celsius: number("ambient_celsius", self.ambient_celsius, &TEMPERATURE)?,
            kelvin_per_watt: number("kelvin_per_watt", self.kelvin_per_watt, &ABOVE_ZERO)?,
            joules_per_kelvin: number("joules_per_kelvin", self.joules_per_kelvin, &ABOVE_ZERO)?,
            throttle_start_celsius: number(
                "throttle_start_celsius",
                self.throttle_start_celsius,
                &TEMPERATURE,
            )?,
            slowdown_per_kelvin: number(
                "slowdown_per_kelvin",
                self.slowdown_per_kelvin,
                &AT_LEAST_ZERO,
            )?,
            minimum_speed: number("minimum_speed", self.minimum_speed, &SPEED)?,
        })
    }
}

impl RawProcessor {
    /// The processor, and how errors about it call it.
    fn check(
        self,
        file: &str,
        number: usize,
    ) -> Result<(SimulatedProcessor, Place<'_>), DeviceFileError> {
        let place = Place {
            file,
            place: format!("processor {number}"),
        };
        let name = place.name(self.name.clone())?;
        let place = Place {
            file,
            place: format!("processor `{name}`"),
        };
        let kind = place.required("kind", self.kind, "\"cpu\" or \"accelerator\"")?;
        let throughput = Throughput {
            convolution: place.number(
                "convolution_flop_per_s",
                self.convolution_flop_per_s,
                &ABOVE_ZERO,
            )?,
            fully_connected: place.number(
                "fully_connected_flop_per_s",
                self.fully_connected_flop_per_s,
                &ABOVE_ZERO,
            )?,
            pooling: place.number("pooling_flop_per_s", self.pooling_flop_per_s, &ABOVE_ZERO)?,
            other: place.number("other_flop_per_s", self.other_flop_per_s, &ABOVE_ZERO)?,
        };
        let bandwidth = |field, value| place.optional_number(field, value, &ABOVE_ZERO);
        let count = |field, value| place.optional_count(field, value);
        if self.memory_bytes.is_none() {
            let reason = "a processor without `memory_bytes`";
            place.absent("tells_memory", self.tells_memory, reason)?;
        }
        let processor = SimulatedProcessor {
            arithmetic: self.arithmetic(&place)?,
            unsupported_operators: self.unsupported_operators.clone(),
            throughput,
            parameter_bytes_per_s: bandwidth("parameter_bytes_per_s", self.parameter_bytes_per_s)?,
            transfer: match kind {
                ProcessorKind::Cpu => self.no_transfer(&place)?,
                ProcessorKind::Accelerator => Some(self.transfer(&place)?),
            },
            on_chip: self.on_chip(&place)?,
            memory: count("memory_bytes", self.memory_bytes)?.map(Bytes::from_bytes),
            tells_memory: self.tells_memory.unwrap_or(true),
            load_fixed: Nanos::from_nanos(count("load_fixed_ns", self.load_fixed_ns)?.unwrap_or(0)),
            load_bytes_per_s: bandwidth("load_bytes_per_s", self.load_bytes_per_s)?,
            noise: self.noise(&place)?,
            power_watts: place
                .optional_number("power_watts", self.power_watts, &AT_LEAST_ZERO)?
                .unwrap_or(0.0),
            name,
        };
        Ok((processor, place))
    }

    fn arithmetic(&self, place: &Place<'_>) -> Result<Arithmetic, DeviceFileError> {
        let numerics = place.required("numerics", self.numerics, "\"f32\", \"f16\" or \"i8\"")?;
        if numerics != Numerics::F16 {
            place.absent("accumulate", self.accumulate, "numerics other than f16")?;
        }
        Ok(match numerics {
            Numerics::F32 => Arithmetic::F32,
            Numerics::F16 => Arithmetic::F16 {
                accumulate: self.accumulate.unwrap_or(Accumulate::F32),
            },
            Numerics::I8 => Arithmetic::I8,
        })
    }

    fn transfer(&self, place: &Place<'_>) -> Result<Transfer, DeviceFileError> {
        let fixed = place.optional_count("fixed_cost_ns", self.fixed_cost_ns)?;
        let fixed = place.required("fixed_cost_ns", fixed, AT_LEAST_ZERO.expected)?;
        Ok(Transfer {
            fixed: Nanos::from_nanos(fixed),
            input_bytes_per_s: place.number(
                "input_bytes_per_s",
                self.input_bytes_per_s,
                &ABOVE_ZERO,
            )?,
            output_bytes_per_s: place.number(
                "output_bytes_per_s",
                self.output_bytes_per_s,
                &ABOVE_ZERO,
            )?,
            fusion_gain: place
                .optional_number("fusion_gain", self.fusion_gain, &GAIN)?
                .unwrap_or(0.0),
        })
    }

    fn no_transfer(&self, place: &Place<'_>) -> Result<Option<Transfer>, DeviceFileError> {
        let reason = "a CPU, which computes in main memory";
        place.absent("fixed_cost_ns", self.fixed_cost_ns, reason)?;
        place.absent("input_bytes_per_s", self.input_bytes_per_s, reason)?;
        place.absent("output_bytes_per_s", self.output_bytes_per_s, reason)?;
        place.absent("fusion_gain", self.fusion_gain, reason)?;
        place.absent("on_chip_bytes", self.on_chip_bytes, reason)?;
        Ok(None)
    }

    fn on_chip(&self, place: &Place<'_>) -> Result<Option<OnChip>, DeviceFileError> {
        let Some(bytes) = place.optional_count("on_chip_bytes", self.on_chip_bytes)? else {
            let reason = "a processor without `on_chip_bytes`";
            place.absent("spill_bytes_per_s", self.spill_bytes_per_s, reason)?;
            return Ok(None);
        };
        Ok(Some(OnChip {
            memory: Bytes::from_bytes(bytes),
            spill_bytes_per_s: place.number(
                "spill_bytes_per_s",
                self.spill_bytes_per_s,
                &ABOVE_ZERO,
            )?,
        }))
    }

    fn noise(&self, place: &Place<'_>) -> Result<Noise, DeviceFileError> {
        let number = |field, value, range| place.optional_number(field, value, range);
        Ok(Noise {
            proportional_sigma: number(
                "noise_proportional_sigma",
                self.noise_proportional_sigma,
                &AT_LEAST_ZERO,
            )?
            .unwrap_or(0.0),
            absolute_sigma_ns: number(
                "noise_absolute_sigma_ns",
                self.noise_absolute_sigma_ns,
                &AT_LEAST_ZERO,
            )?
            .unwrap_or(0.0),
            spike_probability: number("spike_probability", self.spike_probability, &PROBABILITY)?
                .unwrap_or(0.0),
            spike_factor: number("spike_factor", self.spike_factor, &AT_LEAST_ONE)?.unwrap_or(1.0),
        })
    }
}
