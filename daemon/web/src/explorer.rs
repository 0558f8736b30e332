//! What a placement of a published profile's layers takes, and how accurate it is: the planners' arithmetic, kept in memory
//! for the profiles that are looked at.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use layerlab_lab::record::RunNumber;
use layerlab_lab::store::Reader;
use layerlab_planners::export::Source;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_planners::profile::{ProfileError, processors, tables, time_table_of};
use layerlab_planners::regress::Grid;
use layerlab_planners::solve::{fastest_placement, find_front};
use layerlab_planners::times::Refusal;
use layerlab_planners::{
    AccuracyModel, Algorithm, Confidence, Goal, MemoryMode, Outcome, Problem as PlanProblem,
    TimeTable, plan,
};
use layerlab_profiles::document::{Header, ProcessorKind, Profile, ProfileDigest};
use layerlab_profiles::time_model::PredictedTime;
use layerlab_profiles::{Layer, Placement, SignedNanos};
use tokio::sync::{OnceCell, Semaphore};

use crate::curve::{CurvePoint, curve_of};
use crate::problem::Problem;
use crate::published::PublishedProfile;

/// So many profiles are kept: each takes some megabytes.
const MOST_KEPT: usize = 8;

/// How sure plans are of their limits, as those of the command line are where nothing else is said.
const CONFIDENCE: f64 = 0.95;

/// The profiles that were looked at last.
#[derive(Debug)]
pub(crate) struct Explorers {
    kept: Mutex<VecDeque<Arc<Explorer>>>,
    /// Learning takes all that a host's cores give: one profile after the other.
    learning: Arc<Semaphore>,
}

impl Default for Explorers {
    fn default() -> Explorers {
        Explorers {
            kept: Mutex::default(),
            learning: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Explorers {
    /// That of a run's profile.
    pub(crate) async fn of_run(
        &self,
        reader: &Reader,
        run: RunNumber,
    ) -> Result<Arc<Explorer>, Problem> {
        if let Some(known) = self.kept(run) {
            return Ok(known);
        }
        let published = PublishedProfile::of_run(reader, run).await?;
        let learning = Arc::clone(&self.learning);
        let opened = tokio::task::spawn_blocking(move || Explorer::open(published, learning));
        let opened = Arc::new(opened.await.map_err(Problem::internal)??);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|one| one.published.run != run);
        kept.truncate(MOST_KEPT - 1);
        kept.push_front(Arc::clone(&opened));
        Ok(opened)
    }

    fn kept(&self, run: RunNumber) -> Option<Arc<Explorer>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|one| one.published.run == run)?;
        let known = kept.remove(place)?;
        kept.push_front(Arc::clone(&known));
        Some(known)
    }
}

/// What is known of placements of one profile's layers.
pub(crate) struct Explorer {
    published: PublishedProfile,
    /// What was measured.
    pub(crate) header: Header,
    /// The layers, layer 1 first.
    pub(crate) layers: Vec<Layer>,
    /// The processors of the digits, by their names.
    pub(crate) processors: Vec<String>,
    /// What each layer costs on each of them.
    pub(crate) times: TimeTable,
    /// The fastest placement.
    pub(crate) fastest: Placement,
    /// Why the accuracy of placements cannot be learnt, where it was not measured.
    missing: Option<ProfileError>,
    learnt: OnceCell<Result<Learnt, String>>,
    is_learning: AtomicBool,
    learning: Arc<Semaphore>,
}

impl std::fmt::Debug for Explorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Explorer")
            .field("run", &self.published.run)
            .finish_non_exhaustive()
    }
}

/// What was learnt of the accuracy of placements.
struct Learnt {
    problem: PlanProblem,
    source: Source,
    /// Planners find it for a CPU and one accelerator.
    curve: Option<Vec<CurvePoint>>,
}

/// What a placement takes, and how accurate it is.
pub(crate) struct Explored {
    /// Where its time goes.
    pub(crate) time: PredictedTime,
    /// The 95 % interval of its time, where the profile's times have one.
    pub(crate) interval: Option<(SignedNanos, SignedNanos)>,
    /// How accurate it is.
    pub(crate) accuracy: Result<PredictedAccuracy, NotKnown>,
}

/// Why something that follows from the accuracy of placements is not known.
pub(crate) enum NotKnown {
    /// It is known soon.
    BeingLearnt,
    /// It will not be known, and why.
    Because(String),
}

impl NotKnown {
    /// A sentence for those who ask once.
    pub(crate) fn words(&self) -> &str {
        match self {
            NotKnown::BeingLearnt => {
                "it is being learnt from what was measured; ask again in some seconds"
            }
            NotKnown::Because(why) => why,
        }
    }
}

impl Explorer {
    fn open(published: PublishedProfile, learning: Arc<Semaphore>) -> Result<Explorer, Problem> {
        let profile = published.read()?;
        let (names, missing) = match tables(&profile, None, &[]) {
            Ok(tables) => (tables.evaluation.processors(&profile.header), None),
            Err(missing @ ProfileError::NoCombinations(_)) => {
                (all_processors(&profile)?, Some(missing))
            }
            Err(error) => return Err(Problem::unusable(error)),
        };
        let times = time_table_of(&profile, &names).map_err(Problem::unusable)?;
        let times = times.in_memory(MemoryMode::Resident);
        let times = times.map_err(Problem::unusable)?;
        let fastest = fastest_placement(&times).map_err(Problem::unusable)?;
        let processors = names.into_iter().map(str::to_owned).collect();
        Ok(Explorer {
            processors,
            times,
            fastest: fastest.combination(),
            missing,
            header: profile.header,
            layers: profile.layers,
            published,
            learnt: OnceCell::new(),
            is_learning: AtomicBool::new(false),
            learning,
        })
    }

    /// The number of the run that gave the profile.
    pub(crate) fn run(&self) -> RunNumber {
        self.published.run
    }

    /// Whether one of the processors was emulated.
    pub(crate) fn is_emulated(&self) -> bool {
        let mut names = self.processors.iter();
        names.any(|name| self.header.is_emulated(name))
    }

    /// What `placement` takes, and how accurate it is. What is not learnt yet begins to be.
    pub(crate) fn explore(self: &Arc<Self>, placement: &Placement) -> Result<Explored, Problem> {
        let packed = self.packed(placement)?;
        if let Some(refusal) = self.times.refusal(&packed) {
            return Err(Problem::unusable(self.refused(&refusal)));
        }
        let accuracy = self.known().and_then(|learnt| {
            let accuracies = learnt.problem.accuracies(&[packed]);
            let none = || NotKnown::Because("nothing is predicted of it".to_owned());
            accuracies.first().copied().ok_or_else(none)
        });
        Ok(Explored {
            time: self.times.time(&packed),
            interval: self.times.interval(&packed),
            accuracy,
        })
    }

    /// What `placement` takes; none if it cannot be.
    pub(crate) fn time(&self, placement: &Placement) -> Option<SignedNanos> {
        let packed = self.packed(placement).ok()?;
        let is_possible = self.times.refusal(&packed).is_none();
        is_possible.then(|| self.times.time(&packed).total())
    }

    /// The curve of all plans, the fastest first.
    pub(crate) fn curve(self: &Arc<Self>) -> Result<&[CurvePoint], NotKnown> {
        let learnt = self.known()?;
        let of_more = || {
            let count = self.processors.len();
            NotKnown::Because(format!(
                "planners find it for a CPU and one accelerator, and accuracy was measured on {count} processors"
            ))
        };
        learnt.curve.as_deref().ok_or_else(of_more)
    }

    /// What was learnt; what is not learnt yet begins to be.
    fn known(self: &Arc<Self>) -> Result<&Learnt, NotKnown> {
        if self.missing.is_some() {
            let why = match self.header.model.takes_an_image() {
                Some(false) => {
                    "the accuracy of placements was not measured, and cannot be: evaluation sets hold images, and this model \
                     does not take one"
                }
                _ => {
                    "the accuracy of placements was not measured; a job with an evaluation set measures it"
                }
            };
            return Err(NotKnown::Because(why.to_owned()));
        }
        match self.learnt.get() {
            Some(Ok(learnt)) => Ok(learnt),
            Some(Err(error)) => Err(NotKnown::Because(error.clone())),
            None => {
                self.begin_to_learn();
                Err(NotKnown::BeingLearnt)
            }
        }
    }

    fn packed(&self, placement: &Placement) -> Result<PackedPlacement, Problem> {
        let (given, layers) = (placement.layers(), self.layers.len());
        if given != layers {
            let detail = format!("the placement has {given} digits, and the model {layers} layers");
            return Err(Problem::unusable(detail));
        }
        let known = self.processors.len();
        if let Some(unknown) = placement
            .processors()
            .iter()
            .find(|one| usize::from(**one) >= known)
        {
            let names = self.processors.join(", ");
            let detail =
                format!("there is no processor {unknown}; the digits from 0 on mean {names}");
            return Err(Problem::unusable(detail));
        }
        PackedPlacement::of(placement).map_err(Problem::unusable)
    }

    fn refused(&self, refusal: &Refusal<'_>) -> String {
        match refusal {
            Refusal::Unsupported(on, lacked) => format!(
                "{} cannot run layers {}: {}",
                self.processors[*on], lacked.segment, lacked.reason
            ),
            Refusal::Memory(needed) => needed.to_string(),
        }
    }

    fn begin_to_learn(self: &Arc<Self>) {
        if !self.is_learning.swap(true, Ordering::Relaxed) {
            let explorer = Arc::clone(self);
            tokio::spawn(async move {
                let _ = explorer.learnt().await;
            });
        }
    }

    async fn learnt(&self) -> &Result<Learnt, String> {
        let learn = || async {
            let _turn = self.learning.acquire().await;
            let folder = self.published.folder.clone();
            let learnt = tokio::task::spawn_blocking(move || {
                let profile = Profile::read(&folder).map_err(|error| error.to_string())?;
                let digest =
                    ProfileDigest::of_folder(&folder).map_err(|error| error.to_string())?;
                Learnt::of(&profile, &digest)
            });
            learnt.await.unwrap_or_else(|error| Err(error.to_string()))
        };
        self.learnt.get_or_init(learn).await
    }

    /// The plan for a goal, by the algorithm and with the confidence of `layerlab plan` where nothing else is said, and whom it
    /// is about.
    pub(crate) async fn plan(self: &Arc<Self>, goal: Goal) -> Result<(Outcome, Source), Problem> {
        let explorer = Arc::clone(self);
        if let Some(missing) = &self.missing {
            return Err(Problem::unusable(missing));
        }
        if let Err(error) = self.learnt().await {
            return Err(Problem::unusable(error));
        }
        let planned = tokio::task::spawn_blocking(move || {
            let Some(Ok(learnt)) = explorer.learnt.get() else {
                return Err(Problem::internal("what was learnt is gone"));
            };
            let outcome = plan(&learnt.problem, goal, Algorithm::Mlmp);
            let outcome = outcome.map_err(Problem::unusable)?;
            Ok((outcome, learnt.source.clone()))
        });
        planned.await.map_err(Problem::internal)?
    }
}

/// The profile's first CPU and its accelerators, as many as planners take.
fn all_processors(profile: &Profile) -> Result<Vec<&str>, Problem> {
    let known = profile.header.processors.iter();
    let accelerators = known.filter(|one| one.kind == ProcessorKind::Accelerator);
    let accelerators: Vec<&str> = accelerators.map(|one| one.name.as_str()).collect();
    let most = layerlab_planners::placement::MOST_PROCESSORS - 1;
    let accelerators = &accelerators[..accelerators.len().min(most)];
    processors(profile, None, accelerators).map_err(Problem::unusable)
}

impl Learnt {
    fn of(profile: &Profile, digest: &ProfileDigest) -> Result<Learnt, String> {
        fn said(error: impl std::fmt::Display) -> String {
            error.to_string()
        }
        let found = tables(profile, None, &[]).map_err(said)?;
        let times = found.times.in_memory(MemoryMode::Resident).map_err(said)?;
        let model = AccuracyModel::train(&profile.layers, &found.accuracy, &Grid::default());
        let model = model.map_err(said)?;
        let confidence = Confidence::of(CONFIDENCE).map_err(said)?;
        let problem = PlanProblem::new(&profile.layers, times, &found.accuracy, Box::new(model));
        let mut problem = problem.map_err(said)?.with_confidence(Some(confidence));
        let mut curve = None;
        if problem.processors() == 2 {
            let front = find_front(&problem);
            curve = Some(curve_of(&problem, &front));
            problem = problem.with_front(front);
        }
        let evaluation = found.evaluation;
        let source = Source::of(profile, &evaluation.cpu, &evaluation.accelerator).named(digest);
        Ok(Learnt {
            problem,
            source,
            curve,
        })
    }
}
