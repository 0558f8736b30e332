//! Orders of each design, for processors that run and hold all layers, and for those that do not.

use super::*;
use crate::orders::News;
use crate::orders::tests::done;
use layerlab_model::probe_network;
use layerlab_profiles::Bytes;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::document::Numerics;
use std::collections::{BTreeSet, VecDeque};

fn processor(name: &str, kind: ProcessorKind) -> Processor {
    Processor {
        name: name.to_owned(),
        kind,
        numerics: Numerics::F32,
        emulated: false,
        runtime: "test".to_owned(),
        runtime_version: "1".to_owned(),
        runtime_options: None,
        runtime_libraries: None,
        memory_bytes: None,
        threads: None,
        pinned_to_cores: None,
    }
}

fn settings(design: Design, seed: u64) -> TimesSettings {
    TimesSettings {
        design,
        samples_per_segment: 10,
        gap: Nanos::ZERO,
        seed,
        ..TimesSettings::default()
    }
}

fn plan(design: Design, seed: u64) -> Result<TimesPlan, TimesPlanError> {
    let processors = [
        processor("cpu", ProcessorKind::Cpu),
        processor("npu", ProcessorKind::Accelerator),
    ];
    TimesPlan::new(
        &RunId::new("r").expect("a name"),
        "ab",
        30,
        &processors,
        settings(design, seed),
    )
}

fn lacking(processor: &str, layer: u32) -> Unsupported {
    Unsupported {
        processor: processor.to_owned(),
        segment: Segment::single(layer),
        reason: "it has no Elu".to_owned(),
        needed: None,
    }
}

/// All orders that measure, as they come when each is done at once.
fn all_orders(plan: &TimesPlan) -> Vec<Order> {
    orders_after(plan, &[]).expect("a plan")
}

/// The same after this answer to the survey.
fn orders_after(plan: &TimesPlan, answer: &[Unsupported]) -> Result<Vec<Order>, PlannerError> {
    let mut source = plan.orders();
    let asked = source.next(&[])?;
    let [survey] = asked.as_slice() else {
        panic!("one order asks: {asked:?}")
    };
    let processors = ["cpu", "npu"].map(str::to_owned).to_vec();
    assert_eq!(survey.work, Work::Survey { processors });
    for one in answer {
        assert_eq!(
            source.next(&[News::Unsupported(one.clone())]),
            Ok(Vec::new())
        );
    }
    let mut all = source.next(&[News::Finished(survey.number)])?;
    let mut done = 0;
    while done < all.len() {
        let finished = News::Finished(all[done].number);
        all.extend(source.next(&[finished])?);
        done += 1;
    }
    Ok(all)
}

/// The segments that orders ask for, in their order.
fn segments(orders: &[Order]) -> Vec<Segment> {
    let segments = orders.iter().filter_map(|order| match &order.work {
        Work::TimeSegments { segments, .. } => Some(segments.clone()),
        _ => None,
    });
    segments.flatten().collect()
}

#[test]
fn every_segment_of_the_design_is_ordered_once_for_each_visit() {
    for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
        let plan = plan(design, 7).expect("processors");
        let ordered = segments(&all_orders(&plan));
        let once: BTreeSet<Segment> = ordered.iter().copied().collect();
        assert_eq!(ordered.len(), 5 * once.len());
        assert_eq!(once.into_iter().collect::<Vec<_>>(), design.segments(30));
    }
}

#[test]
fn each_stretch_that_an_accelerator_can_run_is_measured_as_a_model_of_its_own() {
    for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
        let plan = plan(design, 7).expect("processors");
        let answer = [lacking("npu", 1), lacking("npu", 12)];
        let mut ordered = segments(&orders_after(&plan, &answer).expect("a plan"));
        ordered.sort();
        ordered.dedup();
        let stretches = [(2, 11), (13, 30)].map(|one| Segment::try_from(one).expect("one"));
        let expected = stretches.iter().flat_map(|&stretch| {
            let segments = design.segments(stretch.layers()).into_iter();
            segments.map(move |segment| segment.moved_into(stretch))
        });
        assert_eq!(ordered, expected.collect::<Vec<_>>(), "{design}");
    }
}

#[test]
fn blocks_count_on_an_emulated_processor_however_busy_the_computer_is() {
    let mut emulated = processor("npu", ProcessorKind::Accelerator);
    emulated.emulated = true;
    let processors = [processor("cpu", ProcessorKind::Cpu), emulated];
    let run = RunId::new("r").expect("a name");
    let plan = TimesPlan::new(&run, "ab", 30, &processors, settings(Design::Local, 1));
    let orders = all_orders(&plan.expect("processors"));
    for order in &orders {
        let (Work::TimePasses { timing } | Work::TimeSegments { timing, .. }) = &order.work else {
            panic!("{order:?} times nothing");
        };
        let tolerance = timing.hygiene.sentinel_tolerance_percent;
        assert_eq!(tolerance == u32::MAX, order.processor == "npu", "{order:?}");
    }
}

#[test]
fn the_adaptive_design_begins_with_the_longest_segment_of_the_first_stretch() {
    let plan = plan(Design::Adaptive, 7).expect("processors");
    let answer = [lacking("npu", 4)];
    let mut source = plan.orders();
    source.next(&[]).expect("a survey");
    let answer = answer.map(News::Unsupported);
    source.next(&answer).expect("nothing yet");
    let first = source.next(&[News::Finished(0)]).expect("a plan");
    assert_eq!(
        segments(&first),
        [
            Segment::whole(3),
            Segment::new(5, 30).expect("layers in order")
        ]
    );
    let task = plan.task(Segment::whole(3), StretchLayers::held(3), 29);
    assert_eq!(task.budget.as_nanos(), {
        plan.settings.budget.as_nanos() * 3 / 29
    });
}

/// The answer to a survey of a memory that holds ten neighbouring layers and no more.
fn too_large() -> Vec<Unsupported> {
    let segments = (1..=20).map(|first| Segment::new(first, first + 10).expect("ascending"));
    let row = |segment| Unsupported {
        processor: "npu".to_owned(),
        segment,
        reason: "12 MiB of memory are needed, and there are 11 MiB".to_owned(),
        needed: Some(Bytes::from_bytes(12 << 20)),
    };
    segments.map(row).collect()
}

#[test]
fn what_memory_does_not_hold_is_never_asked_for_and_the_longest_that_it_holds_is() {
    let answer = too_large();
    for design in [Design::Local, Design::Grouped, Design::Adaptive] {
        let plan = plan(design, 7).expect("processors");
        let ordered: BTreeSet<Segment> = match design {
            Design::Adaptive => {
                let mut source = plan.orders();
                source.next(&[]).expect("a survey");
                let answer = answer.iter().cloned().map(News::Unsupported);
                let answer: Vec<News> = answer.collect();
                source.next(&answer).expect("nothing yet");
                let first = source.next(&[News::Finished(0)]).expect("a plan");
                segments(&first).into_iter().collect()
            }
            _ => {
                let orders = orders_after(&plan, &answer).expect("a plan");
                segments(&orders).into_iter().collect()
            }
        };
        assert!(ordered.contains(&Segment::whole(10)), "{design}");
        assert!(ordered.iter().all(|one| one.layers() <= 10), "{design}");
        let method = plan.processors[1].method(&supported(30, "npu", &answer));
        assert_eq!(method, Method::Graph, "{design}");
    }
    let grouped = plan(Design::Grouped, 7).expect("processors");
    let method = grouped.processors[1].method(&supported(30, "npu", &[]));
    assert_eq!(method, Method::Differencing);
    let error = orders_after(&plan(Design::PrefixSuffix, 7).expect("processors"), &answer);
    assert_eq!(
        error
            .expect_err("all differences have the whole in them")
            .to_string(),
        "the memory of `npu` does not hold layers 1..=30 as one segment, only layers 1..=10, and the design prefix-suffix \
         needs all of them; choose local, adaptive or grouped"
    );
}

#[test]
fn a_processor_that_runs_nothing_is_left_out_and_a_cpu_that_lacks_a_layer_is_refused() {
    let plan = plan(Design::Local, 7).expect("processors");
    let nothing: Vec<Unsupported> = (1..=30).map(|layer| lacking("npu", layer)).collect();
    let orders = orders_after(&plan, &nothing).expect("a plan");
    assert_eq!(orders.len(), 5);
    let is_pass = |order: &Order| matches!(order.work, Work::TimePasses { .. });
    assert!(orders.iter().all(is_pass), "{orders:?}");
    let error = orders_after(&plan, &[lacking("cpu", 3)]).expect_err("no pass");
    assert_eq!(
        error.to_string(),
        "`cpu` is measured in passes over all layers and cannot run layers 3..=3: it has no Elu; choose other \
         processors with --processors"
    );
}

#[test]
fn orders_are_numbered_once_and_the_seed_decides_their_content() {
    let orders = |seed| all_orders(&plan(Design::PrefixSuffix, seed).expect("processors"));
    let first = orders(1);
    let numbers: Vec<u32> = first.iter().map(|order| order.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    assert_eq!(first, orders(1));
    assert_ne!(first, orders(2));
}

/// The same plan with five probes.
fn with_probes(plan: TimesPlan) -> TimesPlan {
    let model = Probe {
        channels: 4,
        side: 16,
    };
    let model = probe_network(model).expect("a network");
    let probes = ProbeFiles::of(&model, false).expect("probes");
    assert_eq!(probes.count(), 5);
    plan.with_probes(probes)
}

#[test]
fn the_sample_count_is_that_of_the_orders() {
    for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
        let without = plan(design, 1).expect("processors");
        for plan in [without.clone(), with_probes(without)] {
            let orders = all_orders(&plan);
            let samples = orders.iter().map(|order| match &order.work {
                Work::TimePasses { timing } => 30 * timing.samples_per_segment,
                Work::TimeSegments { segments, timing } => {
                    segments.len() as u64 * timing.samples_per_segment
                }
                work => panic!("{work:?} times nothing"),
            });
            assert_eq!(plan.samples(), Some(samples.sum()), "{design}");
        }
    }
}

/// A plan for an accelerator alone that chooses as it goes, with probes.
fn probed(over_budget: OverBudget) -> TimesPlan {
    let settings = TimesSettings {
        target: 0.5,
        over_budget,
        ..settings(Design::Adaptive, 7)
    };
    let npu = [processor("npu", ProcessorKind::Accelerator)];
    let run = RunId::new("r").expect("a name");
    let plan = TimesPlan::new(&run, "ab", 30, &npu, settings).expect("a processor");
    with_probes(plan)
}

/// All orders of a plan for a device that cannot run layer 4, takes as long as `probe` for each sample of a probe, and
/// about a millisecond for each layer of the model.
fn worked_off(plan: &TimesPlan, probe: Nanos) -> Result<Vec<Order>, PlannerError> {
    let mut source = plan.orders();
    source.next(&[])?;
    source.next(&[News::Unsupported(lacking("npu", 4))])?;
    let mut open = VecDeque::from(source.next(&[News::Finished(0)])?);
    let (mut all, mut clock) = (Vec::new(), Nanos::ZERO);
    while let Some(order) = open.pop_front() {
        let duration = |segment: Segment, index: u64| match order.model_sha256.as_str() {
            "ab" => Nanos::from_micros(1_000 * u64::from(segment.layers()) + index * 3 % 5),
            _ => probe,
        };
        for news in done(&order, &mut clock, Nanos::from_millis(26), duration) {
            open.extend(source.next(&[news])?);
        }
        all.push(order);
    }
    Ok(all)
}

#[test]
fn probes_are_timed_before_the_model_and_each_stretch_bears_its_share_of_their_time() {
    let plan = probed(OverBudget::Refuse);
    // 15 orders of 3 layers and 4 samples take 90 s, more than the 62 s that are the share of layers 1 to 3.
    let orders = worked_off(&plan, Nanos::from_millis(500)).expect("budget enough");
    let is_probe = |order: &Order| order.model_sha256 != "ab";
    let probes = orders.iter().take_while(|order| is_probe(order)).count();
    assert_eq!(probes, 15);
    assert!(!orders[probes..].iter().any(is_probe));
    let measured: BTreeSet<Segment> = segments(&orders[probes..]).into_iter().collect();
    for stretch in [(1, 3), (5, 30)].map(|one| Segment::try_from(one).expect("one")) {
        for segment in Design::Local.iter(stretch.layers()) {
            assert!(measured.contains(&segment.moved_into(stretch)), "{segment}");
        }
    }
}

#[test]
fn probes_take_a_quarter_of_the_budget_at_most() {
    let plan = probed(OverBudget::Extend);
    let orders = worked_off(&plan, Nanos::from_millis(2_000)).expect("a plan");
    let probes = orders.iter().filter(|order| order.model_sha256 != "ab");
    // Each takes 24 s. In the seventh 150 s are over, and one more was sent.
    assert_eq!(probes.count(), 8);
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let run = RunId::new("r").expect("a name");
    let nothing = TimesPlan::new(&run, "ab", 3, &[], settings(Design::Grouped, 1));
    assert_eq!(nothing, Err(TimesPlanError::NoProcessor));
    assert_eq!(
        plan(Design::LayerPass, 1),
        Err(TimesPlanError::NotForAccelerators {
            design: Design::LayerPass
        })
    );
}
