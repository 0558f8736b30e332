//! Do the 95 % intervals of energies hold the planted ones 95 times in 100, and is the power found? 200 runs of the real agent on
//! a simulated phone whose gauge is late, off, noisy and coarse. Prints a table, and fails unless the shares of layers lie between
//! 92 and 98 % and every power within 3 %. The intervals of all layers together hold somewhat less often: layers share the windows
//! in which the device idles, which their errors do not tell. `cargo tool energy-coverage [RUNS]`

#![expect(clippy::print_stdout, reason = "its table is what it is for")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::summary::Estimate;
use layerlab_tests::model;
use layerlab_tests::proof::energy::{MeteredPhone, PHONE};
use layerlab_tests::proof::table::markdown;

const RUNS: u64 = 200;
const ACCEPTED: std::ops::RangeInclusive<f64> = 0.92..=0.98;
const POWER_WITHIN: f64 = 0.03;

/// How often intervals held the truth, by what they are of.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, (usize, usize)>);

impl Tally {
    fn add(&mut self, of: &'static str, estimate: Option<Estimate>, truth: f64) {
        let ci95 = estimate.and_then(|estimate| estimate.ci95);
        let held = ci95.is_some_and(|(low, high)| {
            (low.as_nanos() as f64..=high.as_nanos() as f64).contains(&truth)
        });
        let (count, all) = self.0.entry(of).or_default();
        *count += usize::from(held);
        *all += 1;
    }
}

fn main() -> ExitCode {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok());
    let runs: u64 = runs.unwrap_or(RUNS);
    let phone = MeteredPhone::new(PHONE, &model("alexnet"));
    let planted = phone.planted_accelerator();
    let (cpu_watts, cpu_times) = phone.planted(ProcessorKind::Cpu);
    let (npu_watts, npu_times) = phone.planted(ProcessorKind::Accelerator);
    let last = planted.compute.len() as u32;
    let whole = layerlab_profiles::Segment::whole(last);
    let mut tally = Tally::default();
    let (mut furthest, mut p_values) = (0.0_f64, 0);
    for seed in 0..runs {
        let windows = phone.windows(seed, 3);
        let cpu = phone.derive(ProcessorKind::Cpu, &windows);
        let npu = phone.derive(ProcessorKind::Accelerator, &windows);
        for (power, planted) in [(cpu.power_uw, cpu_watts), (npu.power_uw, npu_watts)] {
            furthest = furthest.max((power / 1e6 / planted - 1.0).abs());
        }
        for (layer, cost) in &cpu.layers {
            let time = cpu_times.compute()[*layer as usize - 1].as_nanos() as f64;
            tally.add("a layer on the CPU", Some(cost.compute), time * cpu_watts);
        }
        for (layer, cost) in &npu.layers {
            let index = *layer as usize - 1;
            tally.add(
                "a layer on the NPU",
                Some(cost.compute),
                planted.compute[index],
            );
            if *layer < last {
                let half = planted.cuts[index] / 2.0;
                tally.add("moving out of the NPU", cost.from_processor, half);
            }
        }
        let of_whole = |times: &layerlab_agent::runtime::simulated::PlantedTimes, watts: f64| {
            times.segment(whole).as_nanos() as f64 * watts
        };
        tally.add(
            "all layers on the CPU",
            cpu.whole(),
            of_whole(&cpu_times, cpu_watts),
        );
        tally.add(
            "all layers on the NPU",
            npu.whole(),
            of_whole(&npu_times, npu_watts),
        );
        let p = npu.additivity.and_then(|tested| tested.p_value);
        p_values += u64::from(p.is_some_and(|p| p < 0.05));
    }
    let rows: Vec<Vec<String>> = tally
        .0
        .iter()
        .map(|(of, (held, all))| {
            let share = 100.0 * *held as f64 / *all as f64;
            vec![(*of).to_owned(), all.to_string(), format!("{share:.2} %")]
        })
        .collect();
    println!(
        "{}",
        markdown(
            &["interval of", "intervals", "hold the planted energy"],
            &rows
        )
    );
    println!("Furthest power of any run: {:.2} % off.", 100.0 * furthest);
    println!("Additivity rejected at 5 % in {p_values} of {runs} runs, where energies do add up.");
    let covers = |(held, all): &(usize, usize)| ACCEPTED.contains(&(*held as f64 / *all as f64));
    let of_layers = tally.0.iter().filter(|(of, _)| !of.starts_with("all"));
    match of_layers.map(|(_, counts)| counts).all(covers) && furthest <= POWER_WITHIN {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
