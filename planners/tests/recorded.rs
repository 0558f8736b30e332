//! The regressors against what scikit-learn made of the same rows (recorded by recorded/record.py).

use layerlab_planners::features::features;
use layerlab_planners::regress::scaling::Scaling;
use layerlab_planners::regress::{
    GbrtSettings, MlpSettings, Regressor, RidgeSettings, Rows, Score, Settings,
};
use network::{folder, network};
use serde_json::Value;

#[path = "recorded/network.rs"]
#[expect(
    dead_code,
    reason = "only the benchmark plans with the network's times"
)]
mod network;

/// The recorded rows: scaled by the training rows, with their losses.
struct Recorded {
    train: Rows,
    targets: Vec<f64>,
    test: Rows,
    truth: Vec<f64>,
    expected: Value,
}

fn recorded() -> Recorded {
    let folder = folder();
    let mut reader = csv::Reader::from_path(folder.join("rows.csv")).expect("committed");
    let (mut train, mut test) = (Rows::new(33), Rows::new(33));
    let (mut targets, mut truth) = (Vec::new(), Vec::new());
    for row in reader.records() {
        let row = row.expect("a row");
        let bits = row[1].chars().map(|bit| if bit == '1' { 1.0 } else { 0.0 });
        let number = |field: &str| field.parse::<f64>().expect("a number");
        let features: Vec<f64> = bits.chain(row.iter().skip(2).take(7).map(number)).collect();
        let (rows, losses) = if &row[0] == "train" {
            (&mut train, &mut targets)
        } else {
            (&mut test, &mut truth)
        };
        rows.push(&features);
        losses.push(number(&row[9]));
    }
    let scaling = Scaling::of(&train);
    let text = std::fs::read_to_string(folder.join("expected.json")).expect("committed");
    Recorded {
        train: scaling.scaled(train),
        targets,
        test: scaling.scaled(test),
        truth,
        expected: serde_json::from_str(&text).expect("a document"),
    }
}

impl Recorded {
    fn predictions(&self, settings: Settings) -> (Regressor, Vec<f64>) {
        let regressor = Regressor::train(&settings, &self.train, &self.targets).expect("trains");
        let predictions = regressor.predict(&self.test);
        (regressor, predictions)
    }

    fn r2(&self, settings: Settings) -> f64 {
        let (_, predictions) = self.predictions(settings);
        let score = Score::of(&self.truth, &predictions).expect("50 rows");
        score.r2.expect("losses differ")
    }

    fn cases(&self, kind: &str) -> &[Value] {
        let cases = self.expected[kind].as_array().expect("a list");
        assert!(!cases.is_empty(), "nothing is recorded of {kind}");
        cases
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter()
        .map(|value| value.as_f64().expect("a number"))
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

#[test]
fn ridge_has_the_same_coefficients_and_predictions() {
    let recorded = recorded();
    for case in recorded.cases("ridge") {
        let penalty = case["penalty"].as_f64().expect("a number");
        let settings = Settings::Ridge(RidgeSettings { penalty });
        let (Regressor::Ridge(ridge), predictions) = recorded.predictions(settings) else {
            panic!("a ridge regression");
        };
        let near = |ours: &[f64], theirs: &[f64]| {
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert!((ours - theirs).abs() < 1e-6, "{ours} {theirs}");
            }
        };
        near(ridge.coefficients(), &numbers(&case["coefficients"]));
        near(
            &[ridge.intercept()],
            &[case["intercept"].as_f64().expect("a number")],
        );
        near(&predictions, &numbers(&case["predictions"]));
    }
}

#[test]
fn boosted_trees_are_as_good() {
    let recorded = recorded();
    for case in recorded.cases("gbrt") {
        let whole = |name: &str| case[name].as_u64().expect("a number") as usize;
        let ours = recorded.r2(Settings::Gbrt(GbrtSettings {
            trees: whole("trees"),
            depth: whole("depth"),
            learning_rate: case["learning_rate"].as_f64().expect("a number"),
        }));
        // scikit-learn chooses among equally good splits by chance: the median of ten forests is compared.
        let theirs = median(numbers(&case["r2"]));
        assert!((ours - theirs).abs() < 0.002, "{ours} {theirs}");
    }
}

#[test]
fn networks_are_as_good() {
    let recorded = recorded();
    for case in recorded.cases("mlp") {
        let hidden = numbers(&case["hidden"]);
        let r2 = |seed| {
            recorded.r2(Settings::Mlp(MlpSettings {
                hidden: (hidden[0] as usize, hidden[1] as usize),
                penalty: case["penalty"].as_f64().expect("a number"),
                iterations: case["iterations"].as_u64().expect("a number") as usize,
                seed,
            }))
        };
        let ours: Vec<f64> = (0..10).map(r2).collect();
        let theirs = numbers(&case["r2"]);
        let (ours, theirs) = (median(ours), median(theirs));
        assert!((ours - theirs).abs() < 0.01, "{ours} {theirs}");
    }
}

#[test]
fn the_recorded_features_are_those_of_this_crate() {
    let network = network();
    let mut reader = csv::Reader::from_path(folder().join("rows.csv")).expect("committed");
    let mut rows = 0;
    for row in reader.records() {
        rows += 1;
        let row = row.expect("a row");
        let combination = row[1].parse().expect("zeros and ones");
        let losses = network.table.single_losses();
        let ours = features(&network.layers, losses, &combination).expect("26 layers");
        // The last column is the loss.
        assert_eq!(ours[26..].len(), row.len() - 3);
        for (ours, theirs) in ours[26..].iter().zip(row.iter().skip(2)) {
            let theirs: f64 = theirs.parse().expect("a number");
            assert!(
                (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0),
                "{ours} {theirs}"
            );
        }
    }
    assert!(rows > 0);
}
