//! What a plan is made of: a profile, what is learnt from its accuracy, and the front of its placements.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use layerlab_farm::folders::write_whole;
use layerlab_planners::export::Source;
use layerlab_planners::front::Front;
use layerlab_planners::measured_rows::MeasuredRows;
use layerlab_planners::profile::{
    ProfileError, Tables, energy_table, processors, tables, time_table_of,
};
use layerlab_planners::regress::Grid;
use layerlab_planners::solve::{PlanError, find_front};
use layerlab_planners::{AccuracyModel, AccuracyTable, Confidence, MemoryMode, Problem, TimeTable};
use layerlab_profiles::document::{Evaluation, Profile, ProfileDigest};
use layerlab_profiles::soak::Thermal;

use super::cache::{CacheKey, PlanCache};
use crate::exit::{Code, ExitWith, Failure};
use crate::percent::Percent;
use crate::processors::PlacedOnArgs;

#[derive(clap::Args)]
pub(crate) struct Input {
    /// The profile's folder; for plans that know of accuracy it must hold that of placements (`layerlab profile --set`)
    #[arg(value_name = "FOLDER")]
    profile: PathBuf,
    #[command(flatten)]
    placed_on: PlacedOnArgs,
    /// How sure plans are to be of their limits: the end of the time's or the accuracy's interval meets the limit.
    /// `none`: the estimate does
    #[arg(long, value_name = "PERCENT", default_value = "95%")]
    confidence: LimitConfidence,
    /// How the layers on an accelerator share its memory. `resident`: all runs of neighbouring layers stay loaded and have
    /// to fit together. `reload`: each run is loaded when it is needed, in every inference, and has to fit alone; loading is
    /// part of the time
    #[arg(long, value_enum, value_name = "MODE", default_value_t = MemoryArg::Resident)]
    memory: MemoryArg,
    /// Of what state of the device the times are to be: `cold`, or `steady`, of one that has been kept busy
    /// (`layerlab profile --steady`)
    #[arg(long, value_name = "STATE", default_value_t = Thermal::Cold)]
    thermal: Thermal,
    /// Placements that were measured after the profile was published, as --refine writes them; what --refine measures is
    /// added
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
    /// Learn anew, and keep nothing for the next plan
    #[arg(long)]
    no_cache: bool,
}

/// How layers share memory, as users write it.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum MemoryArg {
    #[value(help = "All runs stay loaded, and have to fit together")]
    Resident,
    #[value(help = "Each run is loaded when it is needed, and has to fit alone")]
    Reload,
}

impl From<MemoryArg> for MemoryMode {
    fn from(argument: MemoryArg) -> MemoryMode {
        match argument {
            MemoryArg::Resident => MemoryMode::Resident,
            MemoryArg::Reload => MemoryMode::Reload,
        }
    }
}

/// How sure plans are to be of their limits, as users write it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LimitConfidence(Option<Confidence>);

impl FromStr for LimitConfidence {
    type Err = String;

    fn from_str(text: &str) -> Result<LimitConfidence, String> {
        if text == "none" {
            return Ok(LimitConfidence(None));
        }
        let refuse = "write a percentage above 0 and below 100, such as 95%, or none".to_owned();
        let share = text.parse::<Percent>().map(Percent::share);
        match share.map(Confidence::of) {
            Ok(Ok(confidence)) => Ok(LimitConfidence(Some(confidence))),
            _ => Err(refuse),
        }
    }
}

/// A profile with what was learnt from it.
pub(crate) struct Learnt {
    pub(crate) profile: Profile,
    pub(crate) problem: Problem,
    pub(crate) evaluation: Evaluation,
    /// The processors of the digits, by their names.
    pub(crate) processors: Vec<String>,
    pub(crate) source: Source,
    pub(crate) model: AccuracyModel,
    /// What was measured of accuracy, also after the profile was published.
    pub(super) accuracy: AccuracyTable,
    digest: ProfileDigest,
    /// What was measured after the profile was published.
    pub(crate) rows: MeasuredRows,
}

/// A profile that does not say how accurate placements on the processors of a plan are.
pub(super) struct TimesAlone {
    pub(super) profile: Profile,
    pub(super) times: TimeTable,
    processors: Vec<String>,
    source: Source,
    confidence: Option<Confidence>,
    /// What the profile misses, and what can be done.
    pub(super) missing: ProfileError,
}

/// What a plan is about, whether its accuracy is known or not.
#[derive(Clone, Copy)]
pub(crate) struct PlanSubject<'a> {
    pub(super) profile: &'a Profile,
    pub(super) times: &'a TimeTable,
    /// The processors of the digits, by their names.
    pub(super) processors: &'a [String],
    pub(super) source: &'a Source,
    /// How sure plans are to be of their limits.
    pub(super) confidence: Option<Confidence>,
    /// How accuracy was measured; nothing where it was not.
    pub(super) evaluation: Option<&'a Evaluation>,
    /// How many placements were measured after the profile was published.
    pub(super) rows_since: usize,
}

impl PlanSubject<'_> {
    /// What each layer draws on the processors that the plan is about, in nJ.
    pub(super) fn energies(&self) -> Result<TimeTable, Failure> {
        let names: Vec<&str> = self.processors.iter().map(String::as_str).collect();
        energy_table(self.profile, &names, self.times).exit_with(Code::Input)
    }
}

impl TimesAlone {
    pub(super) fn subject(&self) -> PlanSubject<'_> {
        PlanSubject {
            profile: &self.profile,
            times: &self.times,
            processors: &self.processors,
            source: &self.source,
            confidence: self.confidence,
            evaluation: None,
            rows_since: 0,
        }
    }
}

impl Learnt {
    pub(crate) fn subject(&self) -> PlanSubject<'_> {
        PlanSubject {
            profile: &self.profile,
            times: self.problem.times(),
            processors: &self.processors,
            source: &self.source,
            confidence: self.problem.confidence(),
            evaluation: Some(&self.evaluation),
            rows_since: self.rows.rows().len(),
        }
    }
}

impl Input {
    /// The profile in a folder, with the defaults of the command line, learnt from anew.
    pub(crate) fn of_folder(profile: PathBuf) -> Result<Input, Failure> {
        let confidence = Confidence::of(0.95).exit_with(Code::Internal)?;
        Ok(Input {
            profile,
            placed_on: PlacedOnArgs::default(),
            confidence: LimitConfidence(Some(confidence)),
            memory: MemoryArg::Resident,
            thermal: Thermal::Cold,
            rows: None,
            no_cache: true,
        })
    }

    /// The profile in a folder, as plans beside a server learn its accuracy: on these processors, the CPU first.
    pub(super) fn beside_server(
        profile: PathBuf,
        processors: &[String],
        confidence: LimitConfidence,
        rows: Option<PathBuf>,
        no_cache: bool,
    ) -> Input {
        Input {
            profile,
            placed_on: PlacedOnArgs::listed(processors),
            confidence,
            memory: MemoryArg::Resident,
            thermal: Thermal::Cold,
            rows,
            no_cache,
        }
    }

    /// Learns accuracies alone, without the front of time and accuracy.
    pub(super) fn learn_accuracy(&self) -> Result<Learnt, Failure> {
        let profile = Profile::read(&self.profile).exit_with(Code::Input)?;
        let digest = ProfileDigest::of_folder(&self.profile).exit_with(Code::Input)?;
        let tables = self.tables(&profile)?;
        let rows = self.read_rows(&digest, tables.evaluation, false)?;
        Ok(self.learn_losses(profile, digest, rows)?.0)
    }

    /// What layers cost, where the profile does not say how accurate placements on the chosen processors are; nothing where it
    /// does.
    pub(super) fn times_alone(&self) -> Result<Option<TimesAlone>, Failure> {
        let profile = Profile::read(&self.profile).exit_with(Code::Input)?;
        let profile = profile.in_state(self.thermal).exit_with(Code::Input)?;
        let digest = ProfileDigest::of_folder(&self.profile).exit_with(Code::Input)?;
        let chosen = self.placed_on.by_digit().exit_with(Code::Input)?;
        let (cpu, accelerators) = (chosen.cpu.as_deref(), chosen.accelerators());
        let missing = match tables(&profile, cpu, &accelerators) {
            Ok(_) => return Ok(None),
            Err(error) if error.is_about_accuracy() => error,
            Err(error) => return Err(error).exit_with(Code::Input),
        };
        let names = processors(&profile, cpu, &accelerators).exit_with(Code::Input)?;
        let times = time_table_of(&profile, &names).exit_with(Code::Input)?;
        let times = times.in_memory(self.memory.into()).exit_with(Code::Input)?;
        let source = Source::of(&profile, names[0], &names[1..].join("+")).named(&digest);
        let LimitConfidence(confidence) = self.confidence;
        Ok(Some(TimesAlone {
            processors: names.into_iter().map(str::to_owned).collect(),
            profile,
            times,
            source,
            confidence,
            missing,
        }))
    }

    /// The option that names rows of accuracy, if it is given.
    pub(super) fn rows_option(&self) -> Option<&'static str> {
        self.rows.as_ref().map(|_| "--rows")
    }

    /// Learns, unless so many processors, or what is asked of a model of this accuracy on the CPU, are refused: learning takes
    /// its time. Where `begins_rows`, the file of rows may not be there yet.
    pub(crate) fn learn(
        &self,
        refuse: impl FnOnce(usize, f64) -> Result<(), PlanError>,
        begins_rows: bool,
    ) -> Result<Learnt, Failure> {
        let profile = Profile::read(&self.profile).exit_with(Code::Input)?;
        let profile = profile.in_state(self.thermal).exit_with(Code::Input)?;
        let digest = ProfileDigest::of_folder(&self.profile).exit_with(Code::Input)?;
        let tables = self.tables(&profile)?;
        refuse(tables.times.processors(), tables.accuracy.baseline()).exit_with(Code::Input)?;
        let rows = self.read_rows(&digest, tables.evaluation, begins_rows)?;
        self.learn_from(profile, digest, rows)
    }

    /// Learns from more rows.
    pub(crate) fn learn_again(
        &self,
        learnt: Learnt,
        rows: MeasuredRows,
    ) -> Result<Learnt, Failure> {
        self.learn_from(learnt.profile, learnt.digest, rows)
    }

    fn tables<'a>(&self, profile: &'a Profile) -> Result<Tables<'a>, Failure> {
        let chosen = self.placed_on.by_digit().exit_with(Code::Input)?;
        let (cpu, accelerators) = (chosen.cpu.as_deref(), chosen.accelerators());
        let tables = tables(profile, cpu, &accelerators).exit_with(Code::Input)?;
        let times = tables.times.in_memory(self.memory.into());
        Ok(Tables {
            times: times.exit_with(Code::Input)?,
            ..tables
        })
    }

    fn learn_from(
        &self,
        profile: Profile,
        digest: ProfileDigest,
        rows: MeasuredRows,
    ) -> Result<Learnt, Failure> {
        let (mut learnt, cache, key) = self.learn_losses(profile, digest, rows)?;
        let problem = &learnt.problem;
        if problem.processors() == 2 {
            let LimitConfidence(confidence) = self.confidence;
            let share = confidence.map(|confidence| confidence.share().to_bits());
            let key = key.with(format!("{share:?} {}", problem.times().mode()).as_bytes());
            let search = || Ok::<Front, Infallible>(find_front(problem));
            let Ok(front) = cache.recall_or("front", &key, search);
            learnt.problem = learnt.problem.with_front(front);
        }
        Ok(learnt)
    }

    /// The same without the front, and where the front is kept.
    fn learn_losses(
        &self,
        profile: Profile,
        digest: ProfileDigest,
        rows: MeasuredRows,
    ) -> Result<(Learnt, PlanCache, CacheKey), Failure> {
        let Tables {
            times,
            accuracy,
            evaluation,
        } = self.tables(&profile)?;
        let accuracy = accuracy.with_more(rows.lessons()).exit_with(Code::Input)?;
        let evaluation = evaluation.clone();
        let processors = evaluation.processors(&profile.header);
        let processors = processors.into_iter().map(str::to_owned).collect();
        let cache = match self.no_cache {
            true => PlanCache::none(),
            false => PlanCache::of_this_user(),
        };
        let names = format!(
            "{:?}",
            times
                .names()
                .chain([&*evaluation.cpu, &*evaluation.accelerator])
                .collect::<Vec<_>>()
        );
        let key = CacheKey::of_profile(&self.profile).exit_with(Code::Input)?;
        let key = key.with(names.as_bytes());
        let key = match self.thermal {
            Thermal::Cold => key,
            Thermal::Steady => key.with(b"steady"),
        };
        let key = match rows.rows() {
            [] => key,
            _ => key.with(rows.to_json().exit_with(Code::Internal)?.as_bytes()),
        };
        let train = || AccuracyModel::train(&profile.layers, &accuracy, &Grid::default());
        let model = cache
            .recall_or("losses", &key, train)
            .exit_with(Code::Input)?;
        let LimitConfidence(confidence) = self.confidence;
        let problem = Problem::new(&profile.layers, times, &accuracy, Box::new(model.clone()))
            .exit_with(Code::Input)?
            .with_confidence(confidence);
        let source = Source::of(&profile, &evaluation.cpu, &evaluation.accelerator).named(&digest);
        let learnt = Learnt {
            profile,
            problem,
            evaluation,
            processors,
            source,
            model,
            accuracy,
            digest,
            rows,
        };
        Ok((learnt, cache, key))
    }

    /// The rows that were measured after the profile was published, none if no file is named.
    fn read_rows(
        &self,
        digest: &ProfileDigest,
        evaluation: &Evaluation,
        may_begin: bool,
    ) -> Result<MeasuredRows, Failure> {
        let none = MeasuredRows::none_of(digest, evaluation);
        let Some(file) = &self.rows else {
            return Ok(none);
        };
        let said = |error: &dyn std::fmt::Display| {
            let message = format!("--rows {}: {error}", file.display());
            Failure::new(Code::Input, anyhow::anyhow!(message))
        };
        match std::fs::read_to_string(file) {
            Ok(text) => MeasuredRows::read(&text, digest, evaluation).map_err(|error| said(&error)),
            Err(error) if may_begin && error.kind() == std::io::ErrorKind::NotFound => Ok(none),
            Err(error) => Err(said(&error)),
        }
    }

    /// Writes the rows into the file that is named, if one is.
    pub(super) fn keep_rows(&self, rows: &MeasuredRows) -> Result<(), Failure> {
        let Some(file) = &self.rows else {
            return Ok(());
        };
        let text = rows.to_json().exit_with(Code::Internal)?;
        write_whole(file, text.as_bytes())
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", file.display()))
            .exit_with(Code::Output)
    }

    /// Where so many new rows are, in words; nothing if there are none.
    pub(super) fn where_rows_are(&self, new: usize) -> Option<String> {
        match (&self.rows, new) {
            (_, 0) => None,
            (Some(file), _) => Some(format!("New rows in {}: {new}.", file.display())),
            (None, _) => {
                Some("They are kept nowhere; --rows FILE keeps them for further plans.".to_owned())
            }
        }
    }
}
