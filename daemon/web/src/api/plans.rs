//! Plans: which layer to run on which processor, and what a placement of them takes.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use layerlab_lab::record::RunNumber;
use layerlab_planners::Goal;
use layerlab_planners::export::outcomes_json;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_profiles::{Nanos, Placement};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::curve::CurvePoint;
use crate::explorer::{Explored, Explorer};
use crate::extract::{InPath, WholeBody};
use crate::lab::WebState;
use crate::problem::Problem;

/// What a placement takes, and how accurate it is.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownPlacement {
    /// A digit for each layer, layer 1 first: its place in `processors`.
    placement: String,
    /// Whether the device is simulated: its times are then modelled, not measured.
    simulated: bool,
    /// Whether a processor was emulated: its times are then no device's.
    emulated: bool,
    /// How long one inference takes, T(L).
    time_ns: i64,
    /// The 95 % interval of that, where the profile's times have one.
    time_ci95_ns: Option<[i64; 2]>,
    /// The part of the time that goes into moving data between processors.
    transfer_ns: i64,
    /// The processors, in the order of the digits.
    processors: Vec<ProcessorShare>,
    /// How accurate it is, if that is known.
    accuracy: Option<ShownAccuracy>,
    /// Why the accuracy is not known, or not yet.
    accuracy_unknown: Option<String>,
}

/// What one processor has to do.
#[derive(Serialize, ToSchema)]
pub(super) struct ProcessorShare {
    /// Its name.
    name: String,
    /// The part of the time in which it computes.
    compute_ns: i64,
    /// How many layers run on it.
    layers: usize,
}

/// How accurate a placement is.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownAccuracy {
    /// A fraction.
    value: f64,
    /// Its 95 % interval, if that is known.
    ci95: Option<[f64; 2]>,
    /// Whether this placement was measured; else its accuracy is predicted.
    measured: bool,
}

impl ShownAccuracy {
    fn of(known: &PredictedAccuracy) -> ShownAccuracy {
        let possible = |(low, high): (f64, f64)| [low.max(0.0), high.min(1.0)];
        ShownAccuracy {
            value: known.value,
            ci95: known.interval.map(possible),
            measured: known.is_measured,
        }
    }
}

impl ShownPlacement {
    fn of(explorer: &Explorer, placement: &Placement, explored: &Explored) -> ShownPlacement {
        let header = &explorer.header;
        let on = |digit: usize| {
            let digits = placement.processors().iter();
            digits.filter(|one| usize::from(**one) == digit).count()
        };
        let processors = explorer.processors.iter().enumerate();
        let processors = processors.map(|(digit, name)| ProcessorShare {
            name: name.clone(),
            compute_ns: explored.time.on(digit).as_nanos(),
            layers: on(digit),
        });
        let known = explored.accuracy.as_ref();
        let accuracy_unknown = known.err().map(|why| why.words().to_owned());
        let accuracy = known.ok().map(ShownAccuracy::of);
        ShownPlacement {
            placement: placement.to_string(),
            simulated: header.simulated,
            emulated: explorer.is_emulated(),
            time_ns: explored.time.total().as_nanos(),
            time_ci95_ns: explored
                .interval
                .map(|(low, high)| [low.as_nanos(), high.as_nanos()]),
            transfer_ns: explored.time.transfer.as_nanos(),
            processors: processors.collect(),
            accuracy,
            accuracy_unknown,
        }
    }
}

/// What a placement of a profile's layers takes, and how accurate it is.
#[utoipa::path(
    get,
    path = "/api/v1/profiles/{run}/placements/{placement}",
    operation_id = "explore_placement",
    params(
        ("run" = i64, Path, description = "The number of the run that gave the profile"),
        ("placement" = String, Path, description = "A digit for each layer, layer 1 first: 0 is the CPU, the others are accelerators, in the order of `processors` of the answer"),
    ),
    responses(
        (status = OK, body = ShownPlacement),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn explore(
    State(state): State<WebState>,
    InPath((run, placement)): InPath<(RunNumber, String)>,
) -> Result<Json<ShownPlacement>, Problem> {
    let placement: Placement = placement
        .parse()
        .map_err(|error| Problem::unusable(format!("the placement cannot be read: {error}")))?;
    let explorer = state.explorers.of_run(&state.lab.reader, run).await?;
    let explored = explorer.explore(&placement)?;
    Ok(Json(ShownPlacement::of(&explorer, &placement, &explored)))
}

/// The placements of a profile's layers from which every limit is answered.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownCurve {
    /// Whether the device is simulated: its times are then modelled, not measured.
    simulated: bool,
    /// Whether a processor was emulated: its times are then no device's.
    emulated: bool,
    /// The processors' names, in the order of the digits.
    processors: Vec<String>,
    /// The placements, the fastest first, each more accurate than those before it.
    points: Vec<ShownCurvePoint>,
    /// Why there are none, or not yet.
    unknown: Option<String>,
}

/// A placement that no other is as fast and as accurate as, by estimates.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownCurvePoint {
    /// A digit for each layer, layer 1 first: its place in `processors`.
    placement: String,
    /// How long one inference takes, T(L).
    time_ns: i64,
    /// The 95 % interval of that, where the profile's times have one.
    time_ci95_ns: Option<[i64; 2]>,
    /// How accurate it is.
    accuracy: ShownAccuracy,
}

impl ShownCurvePoint {
    fn of(point: &CurvePoint) -> ShownCurvePoint {
        ShownCurvePoint {
            placement: point.placement.to_string(),
            time_ns: point.time.as_nanos(),
            time_ci95_ns: point
                .interval
                .map(|(low, high)| [low.as_nanos(), high.as_nanos()]),
            accuracy: ShownAccuracy::of(&point.accuracy),
        }
    }
}

/// The curve of all plans of a profile: for each time the most accurate placement, by estimates. Plans that must keep a limit with
/// confidence may be others.
#[utoipa::path(
    get,
    path = "/api/v1/profiles/{run}/curve",
    operation_id = "show_curve",
    params(("run" = i64, Path, description = "The number of the run that gave the profile")),
    responses(
        (status = OK, body = ShownCurve),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn curve(
    State(state): State<WebState>,
    InPath(run): InPath<RunNumber>,
) -> Result<Json<ShownCurve>, Problem> {
    let explorer = state.explorers.of_run(&state.lab.reader, run).await?;
    let known = explorer.curve();
    Ok(Json(ShownCurve {
        simulated: explorer.header.simulated,
        emulated: explorer.is_emulated(),
        processors: explorer.processors.clone(),
        unknown: known.as_ref().err().map(|why| why.words().to_owned()),
        points: known
            .unwrap_or_default()
            .iter()
            .map(ShownCurvePoint::of)
            .collect(),
    }))
}

/// What is to be planned.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewPlan {
    /// The number of the run that gave the profile.
    run: i64,
    /// What the plan is to achieve.
    #[serde(flatten)]
    goal: NewGoal,
}

/// What a plan is to achieve.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "goal", rename_all = "kebab-case")]
pub(super) enum NewGoal {
    /// The most accurate placement that takes no longer than a time.
    MaxAccuracy {
        /// The time that one inference may take.
        time_ns: u64,
    },
    /// The fastest placement that is at least so accurate.
    MinTime {
        /// The accuracy that is required, a fraction.
        accuracy: f64,
    },
}

impl From<NewGoal> for Goal {
    fn from(goal: NewGoal) -> Goal {
        match goal {
            NewGoal::MaxAccuracy { time_ns } => Goal::MaxAccuracy {
                within: Nanos::from_nanos(time_ns),
            },
            NewGoal::MinTime { accuracy } => Goal::MinTime { at_least: accuracy },
        }
    }
}

/// Plan which layers of a profile's model run where: the same as `layerlab plan --json` prints. The first plan of a profile
/// learns its accuracy first, which may take a minute.
#[utoipa::path(
    post,
    path = "/api/v1/plan",
    operation_id = "plan",
    request_body = NewPlan,
    responses(
        (status = OK, description = "The plan, or why there is none", body = serde_json::Value),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn plan(
    State(state): State<WebState>,
    body: WholeBody,
) -> Result<Response, Problem> {
    let NewPlan { run, goal } = body.json()?;
    let explorer = state.explorers.of_run(&state.lab.reader, run).await?;
    let (outcome, source) = explorer.plan(goal.into()).await?;
    let json = outcomes_json(&source, &[outcome]).map_err(Problem::internal)?;
    Ok((
        StatusCode::OK,
        [(header::CONTENT_TYPE, "application/json")],
        json,
    )
        .into_response())
}
