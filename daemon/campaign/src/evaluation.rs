//! What placements lose of a model's accuracy, measured by answering labelled images (docs/method.md §6).

use std::collections::BTreeMap;

use layerlab_profiles::accuracy::{Part, references, sample, split};
use layerlab_profiles::document::{Evaluation, Judged};
use layerlab_profiles::{Bytes, Combination, Nanos};
use layerlab_protocol::{Hygiene, Order, WarmUp, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::answers::Answers;
use super::provenance::provenance;
use super::{CampaignError, Follower, KnownJournal, ModelFile, SetFile, drive, forget};
use layerlab_farm::Link;

/// How an evaluation is done, on which processors of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationSettings {
    /// The processor for layers marked 0, by its name.
    pub cpu: String,
    /// The processor for layers marked 1.
    pub accelerator: String,
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
}

/// Which placements to evaluate.
#[derive(Clone, Debug, PartialEq)]
pub enum Placements {
    /// All layers on either processor, each single layer on the accelerator, and so many random ones.
    Random(usize),
    /// These, and all layers on the CPU to compare with.
    These(Vec<Combination>),
}

/// What an evaluation gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// How it was done.
    pub evaluation: Evaluation,
    /// Every placement's answers, all layers on the CPU first.
    pub judged: Vec<Judged>,
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
    let journal = KnownJournal::fresh();
    let evaluated = evaluate_in(link, model, set, settings, &journal, follower).await?;
    forget(link, journal.id).await;
    Ok(evaluated)
}

/// The same, going on with `journal`, which stays on the device.
pub async fn evaluate_in<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    set: &SetFile,
    settings: &EvaluationSettings,
    journal: &KnownJournal,
    follower: &mut F,
) -> Result<Evaluated, CampaignError> {
    let hello = link.connect().await?.hello;
    let layers = model.network.layer_count();
    let (placements, parts) = placements(layers, settings);
    let all = set.set.answers();
    let mut answers: Vec<u64> = (0..all as u64).collect();
    answers.shuffle(&mut ChaCha8Rng::seed_from_u64(settings.seed));
    answers.truncate(settings.answers.unwrap_or(all));
    follower.planned(Some(answers.len() as u64));
    let template = Order {
        run: journal.id.clone(),
        number: 0,
        model_sha256: model.sha256.clone(),
        processor: settings.cpu.clone(),
        work: Work::Evaluate {
            set_sha256: set.sha256.clone(),
            accelerator: settings.accelerator.clone(),
            combinations: Vec::new(),
            answers: Vec::new(),
            memory_bytes: settings.memory,
        },
        samples_per_segment: 1,
        gap_ns: Nanos::ZERO,
        warm_up: WarmUp::default(),
        hygiene: Hygiene::default(),
        seed: settings.seed,
    };
    let mut given = Answers::new(template, &placements, &answers, settings.stop_at_half_width);
    let files = [model.file(), set.file()];
    drive(link, journal, &files, &mut given, follower).await?;
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
        cpu: settings.cpu.clone(),
        accelerator: settings.accelerator.clone(),
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
        executed_flop: flop,
        naive_flop: flop_per_answer * given as u64,
        provenance: Some(provenance(link, journal, hello)),
    };
    let judged = placements.into_iter().zip(parts).zip(tallies);
    Ok(Evaluated {
        evaluation,
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
fn placements(layers: u32, settings: &EvaluationSettings) -> (Vec<Combination>, Vec<Part>) {
    let mut parts: BTreeMap<Combination, Part> = BTreeMap::new();
    let mut order = Vec::new();
    let mut add = |combination: Combination, part| {
        if parts.insert(combination.clone(), part).is_none() {
            order.push(combination);
        }
    };
    let all_references = references(layers, 2);
    match &settings.placements {
        Placements::Random(samples) => {
            for reference in all_references {
                add(reference, Part::Reference);
            }
            let drawn = sample(layers, 2, *samples, settings.seed);
            let split = split(drawn.len(), settings.seed);
            for (combination, part) in drawn.into_iter().zip(split) {
                add(combination, part);
            }
        }
        Placements::These(these) => {
            for combination in all_references
                .into_iter()
                .take(1)
                .chain(these.iter().cloned())
            {
                add(combination, Part::Reference);
            }
        }
    }
    let parts = order.iter().map(|combination| parts[combination]).collect();
    (order, parts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn settings(placements: Placements) -> EvaluationSettings {
        EvaluationSettings {
            cpu: "cpu".to_owned(),
            accelerator: "npu".to_owned(),
            placements,
            seed: 1,
            answers: None,
            stop_at_half_width: None,
            memory: Bytes::from_bytes(1 << 20),
        }
    }

    #[test]
    fn the_baseline_comes_first_and_no_placement_twice() {
        let (drawn, parts) = placements(10, &settings(Placements::Random(300)));
        assert_eq!(drawn[0].to_string(), "0000000000");
        assert_eq!(drawn.len(), drawn.iter().collect::<BTreeSet<_>>().len());
        let of = |part| parts.iter().filter(|&&one| one == part).count();
        assert_eq!((of(Part::Train), of(Part::Test)), (250, 50));

        let asked = vec!["0110".parse().expect("bits"), "0000".parse().expect("bits")];
        let (asked, _) = placements(4, &settings(Placements::These(asked)));
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        assert_eq!(asked, ["0000", "0110"]);
    }
}
