//! What was measured of a plan that was run, beside what was predicted.

use layerlab_planners::export::VerifiedPlacement;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_planners::{EnergyPlan, Plan, TimePlan};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{NanoJoules, Nanos, SignedNanos};

use layerlab_lab::text_table::{Cells, table};

/// The columns of [`beside`].
pub(crate) const BESIDE: [&str; 5] = ["", "predicted", "interval", "measured", "95 % interval"];

/// What is predicted of a plan.
pub(crate) struct Predicted {
    time: SignedNanos,
    time_ci95: Option<(SignedNanos, SignedNanos)>,
    accuracy: Option<PredictedAccuracy>,
    /// In nJ in the place of ns.
    energy: Option<Estimate>,
}

impl Predicted {
    /// The same with what an inference is predicted to draw.
    pub(super) fn with_energy(self, energy: Option<Estimate>) -> Predicted {
        Predicted { energy, ..self }
    }
}

impl From<&Plan> for Predicted {
    fn from(plan: &Plan) -> Predicted {
        Predicted {
            time: plan.time().total(),
            time_ci95: plan.time_ci95(),
            accuracy: Some(plan.accuracy()),
            energy: None,
        }
    }
}

impl From<&TimePlan> for Predicted {
    fn from(plan: &TimePlan) -> Predicted {
        Predicted {
            time: plan.time.total(),
            time_ci95: plan.time_ci95,
            accuracy: None,
            energy: None,
        }
    }
}

impl From<&EnergyPlan> for Predicted {
    fn from(plan: &EnergyPlan) -> Predicted {
        Predicted {
            time: plan.time,
            time_ci95: plan.time_ci95,
            accuracy: plan.accuracy,
            energy: None,
        }
    }
}

/// What was measured beside what was predicted.
pub(crate) fn beside(predicted: &Predicted, verified: &VerifiedPlacement) -> Vec<Cells> {
    let ends = |low: String, high: String| format!("{low} to {high}");
    let nanos = |nanos: u64| Nanos::from_nanos(nanos).to_string();
    let mut rows = vec![vec![
        "time".to_owned(),
        predicted.time.to_string(),
        predicted.time_ci95.map_or_else(String::new, |(low, high)| {
            ends(low.to_string(), high.to_string())
        }),
        nanos(verified.time_ns),
        verified
            .time_ci95_ns
            .map_or_else(String::new, |(low, high)| ends(nanos(low), nanos(high))),
    ]];
    if let (Some(predicted), Some((accuracy, (low, high)))) =
        (predicted.accuracy, verified.accuracy)
    {
        let share = |share: f64| format!("{share:.4}");
        let of_shares = |low: f64, high: f64| ends(share(low.max(0.0)), share(high.min(1.0)));
        rows.push(vec![
            "accuracy".to_owned(),
            share(predicted.value),
            predicted
                .interval
                .map_or_else(String::new, |(low, high)| of_shares(low, high)),
            share(accuracy),
            of_shares(low, high),
        ]);
    }
    if let (Some(predicted), Some(measured)) = (predicted.energy, verified.energy) {
        let joules =
            |number: SignedNanos| NanoJoules::from_nanojoules(number.as_nanos()).to_string();
        let [predicted, measured] = [predicted, measured].map(|energy| {
            let interval = energy
                .ci95
                .map(|(low, high)| ends(joules(low), joules(high)));
            [joules(energy.value), interval.unwrap_or_default()]
        });
        let row = std::iter::once("energy".to_owned()).chain(predicted);
        rows.push(row.chain(measured).collect());
    }
    rows
}

/// The same as a table.
pub(crate) fn beside_table(predicted: &Predicted, verified: &VerifiedPlacement) -> String {
    table(&BESIDE, &[1, 2, 3, 4], beside(predicted, verified))
}
