//! T(L) of any number of processors is the written formula, and tables that do not fit are refused.

use std::collections::BTreeSet;
use std::path::Path;

use layerlab_profiles::accuracy::{Part, references, sample};
use layerlab_profiles::derive::{Includes, LayerTime};
use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::time_model::{ProcessorTimes, TimeModel, TimeModelError};
use layerlab_profiles::{Placement, SignedNanos};
use proptest::prelude::*;

/// What a layer costs on one processor, in ns: t_d, t_p, t_r.
type Costs = [i32; 3];

fn layer_time([enter, compute, leave]: Costs) -> LayerTime {
    let estimate = |nanos: i32| Estimate {
        value: SignedNanos::from_nanos(i64::from(nanos)),
        ci95: None,
    };
    LayerTime {
        compute: estimate(compute),
        compute_includes: Includes::default(),
        to_processor: Some(estimate(enter)),
        from_processor: Some(estimate(leave)),
    }
}

/// The formula of docs/method.md §2, term by term: each layer computes where it is; where a layer and the one
/// before it are on different processors, and at both ends of the model, main memory is between them.
fn formula(kinds: &[ProcessorKind], costs: &[Vec<Costs>], placement: &[u8]) -> i64 {
    let cost = |layer: usize, which: usize| -> i64 {
        let processor = usize::from(placement[layer]);
        let is_moved = kinds[processor] == ProcessorKind::Accelerator;
        match which {
            1 => i64::from(costs[processor][layer][1]),
            _ if is_moved => i64::from(costs[processor][layer][which]),
            _ => 0,
        }
    };
    let last = placement.len() - 1;
    let mut time = cost(0, 0) + cost(last, 2);
    for layer in 0..=last {
        time += cost(layer, 1);
        if layer > 0 && placement[layer] != placement[layer - 1] {
            time += cost(layer - 1, 2) + cost(layer, 0);
        }
    }
    time
}

fn model(kinds: &[ProcessorKind], tables: &[Vec<LayerTime>]) -> TimeModel {
    let processors = kinds
        .iter()
        .zip(tables)
        .map(|(&kind, times)| ProcessorTimes::new(kind, times));
    TimeModel::of(processors.collect()).expect("one model")
}

proptest! {
    #[test]
    fn the_time_is_the_formulas(
        rows in prop::collection::vec((any::<[Costs; 10]>(), 0..10_u8), 1..60),
        accelerators in any::<[bool; 10]>(),
        count in 1..=10_usize,
    ) {
        let kind = |&is: &bool| match is {
            true => ProcessorKind::Accelerator,
            false => ProcessorKind::Cpu,
        };
        let kinds: Vec<ProcessorKind> = accelerators[..count].iter().map(kind).collect();
        let costs: Vec<Vec<Costs>> = (0..count)
            .map(|processor| rows.iter().map(|row| row.0[processor]).collect())
            .collect();
        let tables: Vec<Vec<LayerTime>> = costs
            .iter()
            .map(|column| column.iter().map(|&row| layer_time(row)).collect())
            .collect();
        let digits: Vec<u8> = rows.iter().map(|row| row.1 % count as u8).collect();
        let placement = Placement::new(digits.clone());
        let time = model(&kinds, &tables).predict(&placement).expect("of that model");
        prop_assert_eq!(time.total().as_nanos(), formula(&kinds, &costs, &digits));
        for (processor, column) in costs.iter().enumerate() {
            let there = digits.iter().zip(column).filter(|(on, _)| usize::from(**on) == processor);
            let compute: i64 = there.map(|(_, cost)| i64::from(cost[1])).sum();
            prop_assert_eq!(time.on(processor).as_nanos(), compute);
        }
    }

    /// Two processors are the case of the papers.
    #[test]
    fn two_processors_are_the_papers_pair(
        rows in prop::collection::vec((any::<[Costs; 2]>(), any::<bool>()), 1..60),
    ) {
        let column = |place: usize| -> Vec<LayerTime> {
            rows.iter().map(|row| layer_time(row.0[place])).collect()
        };
        let tables = [column(0), column(1)];
        let kinds = [ProcessorKind::Cpu, ProcessorKind::Accelerator];
        let placement = Placement::new(rows.iter().map(|row| row.1).collect());
        let pair = TimeModel::new(&tables[0], &tables[1]).expect("one model");
        prop_assert_eq!(pair.predict(&placement), model(&kinds, &tables).predict(&placement));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let times = [layer_time([1, 2, 3]); 3];
    let of = |layers| ProcessorTimes::new(ProcessorKind::Accelerator, &times[..layers]);
    let error = TimeModel::of(vec![of(3), of(3), of(2)]).expect_err("2 of 3 layers");
    assert_eq!(
        error.to_string(),
        "the table of processor 2 has 2 layers and that of processor 0 3; all must be of one model"
    );
    let model = TimeModel::of(vec![of(3), of(3)]).expect("one model");
    let ask = |text: &str| model.predict(&text.parse().expect("digits"));
    assert_eq!(
        ask("020"),
        Err(TimeModelError::NoSuchProcessor { processor: 2 })
    );
    assert!(matches!(
        ask("01"),
        Err(TimeModelError::CombinationLength { .. })
    ));
    assert!(ask("010").is_ok());
}

#[test]
fn a_layer_has_no_time_on_a_processor_that_cannot_run_it() {
    let mut lacking = ProcessorTimes::new(ProcessorKind::Accelerator, &[layer_time([1, 2, 3]); 3]);
    lacking.times[1] = None;
    let cpu = ProcessorTimes::new(ProcessorKind::Cpu, &[layer_time([0, 9, 0]); 3]);
    let model = TimeModel::of(vec![cpu, lacking]).expect("one model");
    let ask = |text: &str| model.predict(&text.parse().expect("digits"));
    let error = ask("111").expect_err("layer 2 cannot run there");
    assert_eq!(
        error.to_string(),
        "the placement has layer 2 on processor 1, which cannot run it"
    );
    let possible = ask("101").expect("layer 2 is elsewhere");
    assert_eq!(possible.total().as_nanos(), 6 + 9 + 6);
}

/// The seeds of published profiles draw what they drew before a placement could have more processors.
#[test]
fn a_published_seed_draws_the_placements_that_were_published_with_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("published/oneplus7/vocnet-mini");
    let profile = Profile::read(&folder).expect("a published profile");
    let evaluation = &profile.evaluations[0];
    let drawn = sample(
        profile.header.model.layers,
        2,
        evaluation.samples as usize,
        evaluation.seed,
    );
    let rows = profile.combinations.iter();
    let random = rows.filter(|row| row.part != Part::Reference);
    let published: BTreeSet<Placement> = random.map(|row| row.combination.clone()).collect();
    // Profiles of version 3 counted a reference that was drawn as random; in its place another one is drawn now.
    let references: BTreeSet<Placement> = references(profile.header.model.layers, 2)
        .into_iter()
        .collect();
    let drawn: BTreeSet<Placement> = drawn.into_iter().collect();
    assert_eq!(drawn.len(), published.len());
    assert!(
        published
            .difference(&references)
            .all(|one| drawn.contains(one))
    );
    assert!(drawn.is_disjoint(&references));
}
