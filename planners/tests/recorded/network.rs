//! The simulated network of network.csv and rows.csv, which record.py made.

use std::path::{Path, PathBuf};

use layerlab_planners::{AccuracyRow, AccuracyTable, Set, TimeTable};
use layerlab_profiles::derive::{Includes, LayerTime};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Layer, Placement, SignedNanos};

/// A(all-CPU), which the rows do not say.
const BASELINE: f64 = 0.8;

pub(crate) struct Network {
    pub(crate) layers: Vec<Layer>,
    pub(crate) times: TimeTable,
    pub(crate) table: AccuracyTable,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

pub(crate) fn network() -> Network {
    let (mut layers, mut cpu, mut npu) = (Vec::new(), Vec::new(), Vec::new());
    let mut singles = Vec::new();
    let mut reader = csv::Reader::from_path(folder().join("network.csv")).expect("committed");
    for row in reader.records() {
        let row = row.expect("a row");
        let whole = |column: usize| row[column].parse::<i64>().expect("a whole number");
        let bytes = |column| Bytes::from_bytes(whole(column).unsigned_abs());
        cpu.push(time(whole(1), None));
        npu.push(time(whole(2), Some((whole(3), whole(4)))));
        singles.push(row[5].parse::<f64>().expect("a number"));
        layers.push(Layer {
            number: whole(0) as u32,
            name: format!("layer{}", whole(0)),
            operators: vec!["Conv".to_owned()],
            parameter_bytes: bytes(6),
            input_bytes: bytes(7),
            output_bytes: bytes(8),
            model_input_bytes: Bytes::ZERO,
            model_output_bytes: Bytes::ZERO,
            shortcuts: Vec::new(),
            additions: whole(9).unsigned_abs(),
            multiplications: whole(10).unsigned_abs(),
        });
    }
    let count = layers.len();
    let alone = |layer| Placement::new((0..count).map(|other| other == layer).collect());
    let mut rows = Vec::new();
    let mut reader = csv::Reader::from_path(folder().join("rows.csv")).expect("committed");
    for row in reader.records() {
        let row = row.expect("a row");
        rows.push(AccuracyRow {
            combination: row[1].parse().expect("zeros and ones"),
            set: if &row[0] == "train" {
                Set::Train
            } else {
                Set::Test
            },
            loss: row[9].parse().expect("a number"),
            loss_ci95: None,
        });
    }
    for (layer, loss) in singles.into_iter().enumerate() {
        let combination = alone(layer);
        // A sample that is a single layer has its own loss, with noise; one table has one.
        rows.retain(|row| row.combination != combination);
        rows.push(AccuracyRow {
            combination,
            set: Set::Reference,
            loss,
            loss_ci95: None,
        });
    }
    Network {
        layers,
        times: TimeTable::new(cpu, npu, None).expect("all transfers"),
        table: AccuracyTable::new(count, BASELINE, rows).expect("all single layers"),
    }
}

fn time(compute: i64, transfers: Option<(i64, i64)>) -> LayerTime {
    let estimate = |nanos| Estimate {
        value: SignedNanos::from_nanos(nanos),
        ci95: None,
    };
    LayerTime {
        compute: estimate(compute),
        compute_includes: Includes::default(),
        to_processor: transfers.map(|(entering, _)| estimate(entering)),
        from_processor: transfers.map(|(_, leaving)| estimate(leaving)),
    }
}
