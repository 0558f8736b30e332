//! What a simulated device really costs: the planted truth that anything derived is compared with.

use std::fmt;

use layerlab_model::Network;
use layerlab_profiles::{Nanos, Placement, Segment};
use layerlab_protocol::ProcessorKind;
use serde::Serialize;

use crate::device::simulated::DeviceFile;
use crate::runtime::simulated::{LayerWork, PlantedTimes};

/// The planted times of a network on a simulated device, before noise and heat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Truth {
    /// The device's name.
    pub device: String,
    /// Always true: no real device tells its truth.
    pub simulated: bool,
    /// The device's processors, in the order of its file.
    pub processors: Vec<ProcessorTruth>,
    /// T(L) for each CPU and accelerator: nothing, everything, and each single layer on the accelerator.
    pub combinations: Vec<CombinationTruth>,
}

/// The planted times on one processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessorTruth {
    /// The processor's name.
    pub processor: String,
    /// What sort of processor it is.
    pub kind: ProcessorKind,
    /// Each layer's times, layer 1 first.
    pub layers: Vec<LayerTruth>,
    /// S(i,j) of every segment.
    pub segments: Vec<SegmentTruth>,
    #[serde(skip)]
    times: PlantedTimes,
}

/// The planted times of one layer on one processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerTruth {
    /// The layer's number, counted from 1.
    pub layer: u32,
    /// The layer's name.
    pub name: String,
    /// Computing it by itself: `t_p` on an accelerator, `t_q` on a CPU.
    pub compute_ns: Nanos,
    /// `t_d`: entering the processor before it. Absent on a CPU.
    pub to_processor_ns: Option<Nanos>,
    /// `t_r`: leaving the processor after it. Absent on a CPU.
    pub from_processor_ns: Option<Nanos>,
    /// What it and the next layer save when they run as one unit. Absent on a CPU and after the last.
    pub fusion_with_next_ns: Option<Nanos>,
}

/// The planted time of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentTruth {
    /// The layers that run as one unit.
    pub segment: Segment,
    /// S(i,j).
    pub duration_ns: Nanos,
}

/// The planted time of one combination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CombinationTruth {
    /// Runs the zeros.
    pub cpu: String,
    /// Runs the ones, each maximal run as one unit.
    pub accelerator: String,
    /// Zeros and ones, layer 1 first.
    pub combination: String,
    /// T(L).
    pub duration_ns: Nanos,
}

/// The planted truth of `network` on `device`.
pub fn truth(device: &DeviceFile, network: &Network) -> Truth {
    let names: Vec<&str> = network
        .layers()
        .iter()
        .map(|layer| layer.name.as_str())
        .collect();
    of_layers(device, &names, &LayerWork::of(network))
}

/// The planted truth of layers of these names and this work.
fn of_layers(device: &DeviceFile, names: &[&str], work: &[LayerWork]) -> Truth {
    let processors: Vec<ProcessorTruth> = device
        .processors
        .iter()
        .map(|processor| {
            let times = PlantedTimes::new(processor, work);
            let layers = names.iter().enumerate();
            ProcessorTruth {
                processor: processor.name.clone(),
                kind: processor.kind(),
                layers: layers
                    .map(|(index, name)| layer(index, name, &times))
                    .collect(),
                segments: segments(names.len() as u32)
                    .map(|segment| SegmentTruth {
                        segment,
                        duration_ns: times.segment(segment),
                    })
                    .collect(),
                times,
            }
        })
        .collect();
    let mut truth = Truth {
        device: device.name.clone(),
        simulated: true,
        processors,
        combinations: Vec::new(),
    };
    truth.combinations = truth.telling_combinations(names.len());
    truth
}

fn layer(index: usize, name: &str, times: &PlantedTimes) -> LayerTruth {
    let at = |list: Option<&[Nanos]>| list.and_then(|list| list.get(index).copied());
    LayerTruth {
        layer: index as u32 + 1,
        name: name.to_owned(),
        compute_ns: times.compute()[index],
        to_processor_ns: at(times.entering()),
        from_processor_ns: at(times.leaving()),
        fusion_with_next_ns: at(times.fusion()),
    }
}

fn segments(layers: u32) -> impl Iterator<Item = Segment> {
    (1..=layers).flat_map(move |first| {
        // A first layer from 1 that does not come after the last always makes a segment.
        (first..=layers).filter_map(move |last| Segment::new(first, last).ok())
    })
}

impl Truth {
    /// S(i,j) on the processor of that name; `None` if there is none.
    ///
    /// # Panics
    /// When the network has fewer layers than the segment.
    pub fn segment(&self, processor: &str, segment: Segment) -> Option<Nanos> {
        Some(self.processor(processor)?.times.segment(segment))
    }

    /// T(L) on the named processors, of which the placement's digits are indices; `None` if a processor is
    /// not there or the placement has a digit without a name.
    ///
    /// # Panics
    /// When the placement is of another network.
    pub fn placement(&self, processors: &[&str], placement: &Placement) -> Option<Nanos> {
        placement.refuse_beyond(processors.len()).ok()?;
        let times: Option<Vec<&PlantedTimes>> = processors
            .iter()
            .map(|name| Some(&self.processor(name)?.times))
            .collect();
        Some(PlantedTimes::of_placement(&times?, placement))
    }

    fn processor(&self, name: &str) -> Option<&ProcessorTruth> {
        self.processors.iter().find(|truth| truth.processor == name)
    }

    fn telling_combinations(&self, layers: usize) -> Vec<CombinationTruth> {
        let of_kind = |kind| {
            self.processors
                .iter()
                .filter(move |truth| truth.kind == kind)
        };
        let singles = (0..layers).map(|on| (0..layers).map(|layer| layer == on).collect());
        let telling: Vec<Vec<bool>> = [vec![false; layers], vec![true; layers]]
            .into_iter()
            .chain(singles)
            .collect();
        let mut rows = Vec::new();
        for cpu in of_kind(ProcessorKind::Cpu) {
            for accelerator in of_kind(ProcessorKind::Accelerator) {
                for on_npu in &telling {
                    let combination = Placement::new(on_npu.clone());
                    rows.push(CombinationTruth {
                        cpu: cpu.processor.clone(),
                        accelerator: accelerator.processor.clone(),
                        duration_ns: PlantedTimes::of_placement(
                            &[&cpu.times, &accelerator.times],
                            &combination,
                        ),
                        combination: combination.to_string(),
                    });
                }
            }
        }
        rows
    }
}

impl fmt::Display for Truth {
    /// A table per processor, and the time of the whole network on each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: planted times of a simulated device, before noise and heat",
            self.device
        )?;
        for truth in &self.processors {
            write!(f, "\n{truth}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ProcessorTruth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self
            .layers
            .iter()
            .map(|layer| layer.name.chars().count())
            .max()
            .unwrap_or(0);
        let width = width.max("layer".len());
        let whole = Segment::whole(self.layers.len() as u32);
        writeln!(
            f,
            "{}: whole network {}",
            self.processor,
            self.times.segment(whole)
        )?;
        let columns = match self.kind {
            ProcessorKind::Cpu => "",
            ProcessorKind::Accelerator => "   to processor  from processor  fused with next",
        };
        writeln!(f, "    #  {:width$}        compute{columns}", "layer")?;
        for layer in &self.layers {
            write!(
                f,
                "{:5}  {:width$}  {:>13}",
                layer.layer, layer.name, layer.compute_ns
            )?;
            if let (Some(to), Some(from)) = (layer.to_processor_ns, layer.from_processor_ns) {
                write!(f, "  {to:>13}  {from:>14}")?;
                if let Some(gain) = layer.fusion_with_next_ns {
                    write!(f, "  {gain:>15}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = include_str!("../../tests/devices/asymmetric-fusion.toml");

    fn device() -> DeviceFile {
        DeviceFile::parse("asymmetric-fusion.toml", DEVICE).expect("a device")
    }

    /// Two layers whose times can be worked out by hand.
    fn two_layers() -> Truth {
        use layerlab_profiles::Bytes;
        let work = |flop, input, output| LayerWork {
            convolution_flop: flop,
            input: Bytes::from_bytes(input),
            output: Bytes::from_bytes(output),
            ..LayerWork::default()
        };
        let layers = [
            work(20_000_000, 1_100_000, 470_000),
            work(40_000_000, 470_000, 940_000),
        ];
        of_layers(&device(), &["C1", "second"], &layers)
    }

    #[test]
    fn the_table_shows_every_planted_time() {
        let expected = "\
asymmetric, with fusion (simulated): planted times of a simulated device, before noise and heat

cpu: whole network 60.00 ms
    #  layer         compute
    1  C1           20.00 ms
    2  second       40.00 ms

npu: whole network 14.82 ms
    #  layer         compute   to processor  from processor  fused with next
    1  C1           1.000 ms       10.06 ms        1.062 ms         300.0 µs
    2  second       2.000 ms       4.334 ms        2.062 ms
";
        assert_eq!(two_layers().to_string(), expected);
    }

    #[test]
    fn the_json_names_every_unit_and_leaves_out_what_a_cpu_does_not_have() {
        let json = serde_json::to_value(two_layers()).expect("JSON");
        assert_eq!(json["simulated"], true);
        let npu = &json["processors"][1];
        assert_eq!(npu["layers"][0]["compute_ns"], 1_000_000);
        assert_eq!(npu["layers"][0]["to_processor_ns"], 10_061_729);
        assert_eq!(npu["layers"][0]["fusion_with_next_ns"], 300_000);
        assert_eq!(npu["segments"][1]["segment"], serde_json::json!([1, 2]));
        assert_eq!(npu["segments"][1]["duration_ns"], 14_823_458);
        assert!(json["processors"][0]["layers"][0]["to_processor_ns"].is_null());
        let told: Vec<(&str, u64)> = json["combinations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| {
                (
                    row["combination"].as_str().expect("bits"),
                    row["duration_ns"].as_u64().expect("ns"),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("00", 60_000_000),
                ("11", 14_823_458),
                ("10", 52_123_458),
                ("01", 28_396_185)
            ]
        );
    }

    #[test]
    fn a_placement_is_looked_up_by_its_processors() {
        let truth = two_layers();
        let both = Placement::all_on(1, 2);
        let whole = truth.segment("npu", Segment::whole(2));
        assert_eq!(truth.placement(&["cpu", "npu"], &both), whole);
        assert_eq!(
            truth.placement(&["npu", "cpu"], &both),
            truth.segment("cpu", Segment::whole(2))
        );
        assert_eq!(truth.placement(&["cpu", "gpu"], &both), None);
        assert_eq!(truth.placement(&["npu"], &both), None);
        assert_eq!(truth.segment("gpu", Segment::single(1)), None);
    }
}
