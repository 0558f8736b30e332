//! What placements lose of a model's accuracy, measured by answering labelled images (docs/method.md §6).

use std::collections::BTreeSet;

use layerlab_profiles::accuracy::{Part, chosen_placements, references_on};
use layerlab_profiles::document::{Evaluation, Judged, ProvedPlacement, Unsupported, supported};
use layerlab_profiles::supported::SupportedLayers;
use layerlab_profiles::{Bytes, Placement};
use layerlab_protocol::{Order, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::answers::Answers;
use super::drive::RunError;
use super::orders::PlannerError;
use super::provenance::provenance;
use super::survey::find_unsupported;
use super::{CampaignError, Follower, KnownJournal, ModelFile, SetFile, drive, forget};
use layerlab_farm::Link;

/// How an evaluation is done, on which processors of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationSettings {
    /// The processors of the placements' digits, by their names: the CPU that losses are measured against
    /// first.
    pub processors: Vec<String>,
    /// Which placements answer the images.
    pub placements: Placements,
    /// Of the random combinations, their parts, and the order of the answers.
    pub seed: u64,
    /// How many of the set's answers to give.
    pub answers: Option<usize>,
    /// No more answers of a placement when half the width of its loss's interval is at most this.
    pub stop_at_half_width: Option<f64>,
    /// What activations may take on the device while placements are walked together.
    pub memory: Bytes,
    /// Whether neighbours on one processor are loaded and run as one segment, as placements run them; else each layer is by
    /// itself.
    pub as_runs: bool,
    /// Whether followers are told the answers themselves, too.
    pub keep_answers: bool,
}

impl EvaluationSettings {
    /// The processor of the zeros.
    fn cpu(&self) -> &str {
        self.processors.first().map_or("", String::as_str)
    }

    /// The layers that each of the processors can run.
    fn supported(
        &self,
        layers: u32,
        unsupported: &[Unsupported],
    ) -> Result<Vec<SupportedLayers>, PlannerError> {
        let lacked_by = |name: &String| {
            let name = name.clone();
            unsupported.iter().filter(move |one| one.processor == name)
        };
        if let Some(lacked) = self
            .processors
            .first()
            .and_then(|name| lacked_by(name).next())
        {
            return Err(PlannerError::NoBaseline(lacked.clone()));
        }
        let supported = |name: &String| supported(layers, name, unsupported);
        let supported: Vec<SupportedLayers> = self.processors.iter().map(supported).collect();
        let nothing = |one: &SupportedLayers| one.stretches().is_empty();
        match supported[1..].iter().all(nothing) {
            true => Err(PlannerError::NothingElsewhere(self.accelerators())),
            false => Ok(supported),
        }
    }

    /// The processors of the other digits, as `combinations.csv` names them.
    fn accelerators(&self) -> String {
        self.processors.get(1..).unwrap_or_default().join("+")
    }
}

/// Why placements cannot be evaluated as they run, where memory does not hold a run of one.
fn run_too_large(
    placements: &[Placement],
    supported: &[SupportedLayers],
    settings: &EvaluationSettings,
) -> Option<PlannerError> {
    let placements = placements.iter().filter(|_| settings.as_runs);
    let mut runs = placements.flat_map(Placement::runs);
    let (segment, on) = runs.find(|(segment, on)| {
        let there = &supported[usize::from(*on)];
        let can_run = (segment.first()..=segment.last()).all(|layer| there.has(layer));
        can_run && !there.holds(*segment)
    })?;
    Some(PlannerError::RunTooLarge {
        processor: settings.processors[usize::from(on)].clone(),
        segment,
    })
}

/// Which placements to evaluate.
#[derive(Clone, Debug, PartialEq)]
pub enum Placements {
    /// All layers on each processor, each single layer on each but the first, and so many random ones.
    Random(usize),
    /// These, and all layers on the CPU to compare with.
    These(Vec<Placement>),
}

/// What an evaluation gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// How it was done.
    pub evaluation: Evaluation,
    /// Every placement's answers, all layers on the CPU first.
    pub judged: Vec<Judged>,
    /// Where runtimes placed the nodes of each layer that answered, of runtimes that tell.
    pub placements: Vec<ProvedPlacement>,
}

/// Answers the set's images on the device behind `link`, under each placement, in a journal that is forgotten after
/// it.
pub async fn evaluate<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    set: &SetFile,
    settings: &EvaluationSettings,
    follower: &mut F,
) -> Result<Evaluated, CampaignError> {
    let unsupported = match settings.placements {
        Placements::Random(_) => find_unsupported(link, model, &settings.processors).await?,
        // What was asked for and cannot run is refused by the agent.
        Placements::These(_) => Vec::new(),
    };
    let journal = KnownJournal::fresh();
    let evaluated =
        evaluate_in(link, model, set, settings, &unsupported, &journal, follower).await?;
    forget(link, journal.id).await;
    Ok(evaluated)
}

/// The same where it is known what the processors cannot run, going on with `journal`, which stays on the device.
pub async fn evaluate_in<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    set: &SetFile,
    settings: &EvaluationSettings,
    unsupported: &[Unsupported],
    journal: &KnownJournal,
    follower: &mut F,
) -> Result<Evaluated, CampaignError> {
    let hello = link.connect().await?.hello;
    let layers = model.network.layer_count();
    let supported = settings.supported(layers, unsupported);
    let supported = supported.map_err(RunError::from)?;
    let (placements, parts) = placements(&supported, settings);
    if let Some(error) = run_too_large(&placements, &supported, settings) {
        return Err(RunError::from(error).into());
    }
    let all = set.set.answers();
    let mut answers: Vec<u64> = (0..all as u64).collect();
    answers.shuffle(&mut ChaCha8Rng::seed_from_u64(settings.seed));
    answers.truncate(settings.answers.unwrap_or(all));
    follower.planned(Some(answers.len() as u64));
    let template = Order {
        run: journal.id.clone(),
        number: 0,
        model_sha256: model.sha256.clone(),
        quantised_sha256: model.quantised_sha256(),
        processor: settings.cpu().to_owned(),
        work: Work::Evaluate {
            set_sha256: set.sha256.clone(),
            processors: settings.processors.clone(),
            combinations: Vec::new(),
            answers: Vec::new(),
            memory_bytes: settings.memory,
            as_runs: settings.as_runs,
            keep_answers: settings.keep_answers,
        },
        seed: settings.seed,
    };
    let mut given = Answers::new(template, &placements, &answers, settings.stop_at_half_width);
    let files: Vec<_> = model.files().chain([set.file()]).collect();
    let measured = drive(link, journal, &files, &mut given, follower).await?;
    let Answers { tallies, flop, .. } = given;

    let each = set.set.metric.images_per_answer() as u64;
    let layers = model.network.layers().iter();
    let flop_per_answer: u64 = each
        * layers
            .map(|layer| layer.additions + layer.multiplications)
            .sum::<u64>();
    let given: usize = tallies.iter().map(Vec::len).sum();
    let baseline_answers = tallies.first().map_or(0, Vec::len);
    let evaluation = Evaluation {
        cpu: settings.cpu().to_owned(),
        accelerator: settings.accelerators(),
        set: set.set.name.clone(),
        set_sha256: set.sha256.clone(),
        preprocessing: set.set.preprocessing.clone(),
        metric: set.set.metric.clone(),
        answers: baseline_answers as u64,
        samples: match &settings.placements {
            Placements::Random(samples) => *samples as u64,
            Placements::These(_) => 0,
        },
        seed: settings.seed,
        stop_at_half_width: settings.stop_at_half_width,
        as_runs: settings.as_runs,
        executed_flop: flop,
        naive_flop: flop_per_answer * given as u64,
        provenance: Some(provenance(link, journal, hello)),
    };
    let judged = placements.into_iter().zip(parts).zip(tallies);
    Ok(Evaluated {
        evaluation,
        placements: measured.placements,
        judged: judged
            .map(|((combination, part), tallies)| Judged {
                combination,
                part,
                tallies,
            })
            .collect(),
    })
}

/// The distinct placements and what each is for, all layers on the CPU first.
fn placements(
    supported: &[SupportedLayers],
    settings: &EvaluationSettings,
) -> (Vec<Placement>, Vec<Part>) {
    let chosen: Vec<(Placement, Part)> = match &settings.placements {
        Placements::Random(samples) => chosen_placements(supported, *samples, settings.seed),
        Placements::These(these) => {
            let baseline = references_on(supported).into_iter().take(1);
            let mut seen = BTreeSet::new();
            let all = baseline.chain(these.iter().cloned());
            let distinct = all.filter(|one| seen.insert(one.clone()));
            distinct.map(|one| (one, Part::Reference)).collect()
        }
    };
    chosen.into_iter().unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_profiles::Segment;

    const TWO: [&str; 2] = ["cpu", "npu"];

    fn settings(processors: &[&str], placements: Placements) -> EvaluationSettings {
        EvaluationSettings {
            processors: processors.iter().map(ToString::to_string).collect(),
            placements,
            seed: 1,
            answers: None,
            stop_at_half_width: None,
            memory: Bytes::from_bytes(1 << 20),
            as_runs: false,
            keep_answers: false,
        }
    }

    #[test]
    fn the_baseline_comes_first_and_no_placement_twice() {
        let all = |layers| vec![SupportedLayers::all(layers); 2];
        let (drawn, parts) = placements(&all(10), &settings(&TWO, Placements::Random(300)));
        assert_eq!(drawn[0].to_string(), "0000000000");
        assert_eq!(drawn.len(), drawn.iter().collect::<BTreeSet<_>>().len());
        let of = |part| parts.iter().filter(|&&one| one == part).count();
        assert_eq!((of(Part::Train), of(Part::Test)), (250, 50));

        let asked = vec!["0110".parse().expect("bits"), "0000".parse().expect("bits")];
        let (asked, _) = placements(&all(4), &settings(&TWO, Placements::These(asked)));
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        assert_eq!(asked, ["0000", "0110"]);
    }

    #[test]
    fn no_placement_has_a_layer_on_a_processor_that_cannot_run_it() {
        let lacking = |processor: &str, layer| Unsupported {
            processor: processor.to_owned(),
            segment: Segment::single(layer),
            reason: "it has no Elu".to_owned(),
            needed: None,
        };
        let settings = settings(&TWO, Placements::Random(300));
        let supported = settings.supported(10, &[lacking("npu", 4)]).expect("some");
        let (drawn, _) = placements(&supported, &settings);
        assert!(drawn.iter().all(|one| one.processors()[3] == 0));
        assert!(drawn.contains(&"1110111111".parse().expect("digits")));

        let refused = |unsupported: &[Unsupported]| {
            let error = settings
                .supported(1, unsupported)
                .expect_err("nothing to place");
            error.to_string()
        };
        assert_eq!(
            refused(&[lacking("npu", 1)]),
            "npu can run no layer of the model, so that there are no placements to evaluate; choose other processors"
        );
        assert_eq!(
            refused(&[lacking("cpu", 1)]),
            "`cpu` cannot run layers 1..=1: it has no Elu; accuracy is compared with all layers on a processor that \
             runs every layer: choose another"
        );
    }

    #[test]
    fn on_three_processors_each_layer_is_alone_on_each_but_the_first() {
        let settings = settings(&["cpu", "gpu", "npu"], Placements::Random(20));
        assert_eq!(settings.accelerators(), "gpu+npu");
        let (drawn, _) = placements(&vec![SupportedLayers::all(9); 3], &settings);
        let all_on = |digit: &str| digit.repeat(9);
        let alone_on = |digit: &str, layer: usize| {
            let mut digits = "0".repeat(9);
            digits.replace_range(layer..=layer, digit);
            digits
        };
        let mut references = BTreeSet::from(["0", "1", "2"].map(all_on));
        for layer in 0..9 {
            references.extend(["1", "2"].map(|digit| alone_on(digit, layer)));
        }
        assert_eq!(references.len(), 3 + 2 * 9);
        let drawn: BTreeSet<String> = drawn.iter().map(ToString::to_string).collect();
        let missing: Vec<_> = references.difference(&drawn).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
