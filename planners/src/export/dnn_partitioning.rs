//! The input format of msr-fiddle/dnn-partitioning (Tarnawski et al., "Efficient Algorithms for Device
//! Placement of DNN Graph Operators", NeurIPS 2020), whose "FPGA" is any accelerator.
//!
//! The network is a chain between a source and a sink that cost nothing and stay on the CPU, where inputs come
//! from and answers go to. There is one accelerator for each run of NPU layers that a placement may have:
//! each run pays its transfers. In that format's latency model T(L) comes out as here.

use layerlab_profiles::{Bytes, Layer};
use serde::Serialize;

use super::{ExportError, Source};
use crate::times::TimeTable;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Workload<'a> {
    #[serde(rename = "maxSizePerFPGA")]
    max_size_per_fpga: f64,
    #[serde(rename = "maxFPGAs")]
    max_fpgas: usize,
    #[serde(rename = "maxCPUs")]
    max_cpus: usize,
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge>,
    /// Not part of the format, which lets readers skip it: units and origin.
    layerlab: Remarks<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Node<'a> {
    id: usize,
    name: &'a str,
    supported_on_fpga: u8,
    cpu_latency: f64,
    fpga_latency: f64,
    is_backward_node: u8,
    size: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Edge {
    source_id: usize,
    dest_id: usize,
    cost: f64,
}

#[derive(Serialize)]
struct Remarks<'a> {
    time_unit: &'static str,
    size_unit: &'static str,
    accuracy: &'static str,
    source: &'a Source,
}

/// The profile as a latency workload of one CPU: times in milliseconds, sizes in bytes. A node's size is what the layer takes
/// of the accelerator's memory when it is loaded alone, or that of its parameters where nothing is known of a limit; `memory`
/// is the accelerator's, all parameters if it has no limit. As each run has an accelerator of its own there, memory limits
/// each run and not their sum.
///
/// A derived time that noise made negative stays negative. Layers that the accelerator cannot run are not supported on
/// the FPGA.
pub fn dnn_partitioning(
    layers: &[Layer],
    times: &TimeTable,
    memory: Option<Bytes>,
    source: &Source,
) -> Result<String, ExportError> {
    if layers.len() != times.layers() {
        return Err(ExportError::Layers {
            layers: layers.len(),
            times: times.layers(),
        });
    }
    if times.processors() != 2 {
        let processors = times.processors();
        return Err(ExportError::TwoProcessors { processors });
    }
    if let Some(together) = times
        .unsupported(1)
        .iter()
        .find(|one| one.segment.layers() > 1)
    {
        let segment = together.segment;
        return Err(ExportError::Together { segment });
    }
    let all: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
    let limit = times
        .limit(1)
        .map(|limit| Bytes::from_bytes(limit.capacity));
    let sink = layers.len() + 1;
    let mut nodes = vec![end(0, "source")];
    for (index, layer) in layers.iter().enumerate() {
        nodes.push(Node {
            id: index + 1,
            name: &layer.name,
            supported_on_fpga: u8::from(times.why_not(1, index).is_none()),
            cpu_latency: millis(times.cost(0, index).compute),
            fpga_latency: millis(times.cost(1, index).compute),
            is_backward_node: 0,
            size: size(layer, index, times) as f64,
        });
    }
    nodes.push(end(sink, "sink"));
    let workload = Workload {
        max_size_per_fpga: limit.or(memory).unwrap_or(all).as_bytes() as f64,
        max_fpgas: layers.len().div_ceil(2),
        max_cpus: 1,
        nodes,
        edges: edges(times)?,
        layerlab: Remarks {
            time_unit: "ms",
            size_unit: "bytes",
            accuracy: "not part of this format",
            source,
        },
    };
    let mut text = serde_json::to_string_pretty(&workload)?;
    text.push('\n');
    Ok(text)
}

/// What a layer takes of the accelerator's memory by itself, where the profile tells, and else the size of its parameters.
fn size(layer: &Layer, index: usize, times: &TimeTable) -> u64 {
    let runs = times.why_not(1, index).is_none();
    let limit = times.limit(1).filter(|_| runs);
    limit.map_or(layer.parameter_bytes.as_bytes(), |limit| {
        limit.need(index, index)
    })
}

/// From each node to the next: what moving the tensors between them costs, either way.
fn edges(times: &TimeTable) -> Result<Vec<Edge>, ExportError> {
    let layers = times.layers();
    let runs = |index: &usize| times.why_not(1, *index).is_none();
    (0..=layers)
        .map(|before| {
            let left = before.checked_sub(1).filter(runs);
            let leaving = left.map(|index| times.cost(1, index).leave);
            let entered = Some(before).filter(|&index| index < layers).filter(runs);
            let entering = entered.map(|index| times.cost(1, index).enter);
            let cost = match (leaving, entering) {
                (Some(leaving), Some(entering)) if leaving != entering => {
                    let after = before + 1;
                    return Err(ExportError::Asymmetric { before, after });
                }
                (leaving, entering) => leaving.or(entering).unwrap_or(0),
            };
            Ok(Edge {
                source_id: before,
                dest_id: before + 1,
                cost: millis(cost),
            })
        })
        .collect()
}

fn end(id: usize, name: &str) -> Node<'_> {
    Node {
        id,
        name,
        supported_on_fpga: 0,
        cpu_latency: 0.0,
        fpga_latency: 0.0,
        is_backward_node: 0,
        size: 0.0,
    }
}

fn millis(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}
