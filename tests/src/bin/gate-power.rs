//! Does a gate cry wolf, and does it see one? `gate-power [PAIRS] [DEVICE] [OPTION]...` profiles a model on a simulated phone
//! twice for each pair (200 if not told otherwise), each time with another seed, by the real programs with these options of
//! `layerlab profile`. The first profile of a pair is the gate's good one. Pairs of which nothing changed give its false
//! alarms; then one layer after the other is made slower in the second profile's samples, and it is seen how often the gate
//! names it: by shares of its time, or of an average layer's where that takes longer, and by as much as the gate itself says
//! that it finds. Prints tables, and fails if there are more false alarms than alpha allows (binomially, once in a hundred
//! times).

#![expect(clippy::print_stdout, reason = "its tables are what it is for")]
#![expect(clippy::print_stderr, reason = "as is a wrong command line")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::{Truth, truth};
use layerlab_model::Network;
use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Method, Profile};
use layerlab_profiles::gate::{GateSettings, Gated, GatedNumber, gate};
use layerlab_tests::proof::table::markdown;
use layerlab_tests::{device, layerlab, model, output, stderr};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

const MODEL: &str = "vocnet-mini";
const PAIRS: usize = 200;
const DEVICE: &str = "oneplus7";
const ALPHAS: [f64; 2] = [0.01, 0.05];
/// Of a layer's own time, or of an average layer's where that takes longer.
const SLOWER: [f64; 6] = [0.01, 0.02, 0.03, 0.05, 0.07, 0.1];
/// At which every layer is tried, the others only with the layers that take longest.
const EVERY_LAYER_AT: f64 = 0.03;
/// Enough pairs for a power to 5 %.
const POWER_PAIRS: usize = 50;
const NO_TOLERANCE: f64 = 0.0;

/// The profile of one run; `None` where it was refused, as one whose parts contradict the whole is.
fn profile(name: &str, seed: usize, options: &[String]) -> Option<Profile> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let out = folder.path().join("profile");
    let mut command = layerlab();
    command.args(["profile", "--seed"]).arg(seed.to_string());
    command.arg("--model").arg(model(MODEL)).args(options);
    command
        .arg("--device")
        .arg(device(name))
        .arg("--out")
        .arg(&out);
    let ended = output(&mut command);
    if !ended.status.success() {
        eprintln!(
            "seed {seed}: {}",
            stderr(&ended).lines().last().unwrap_or_default()
        );
        return None;
    }
    Some(Profile::read(&out).expect("what was published can be read"))
}

/// The same run, had a layer taken so much longer wherever it ran on the processor.
fn with_slower_layer(profile: &Profile, processor: &str, layer: u32, more: Nanos) -> Profile {
    let mut changed = profile.clone();
    for sample in &mut changed.samples {
        let runs = (sample.segment.first()..=sample.segment.last()).contains(&layer);
        if sample.processor == processor && runs {
            sample.duration = sample.duration + more;
        }
    }
    // The whole model is timed at both ends of each block.
    for block in changed
        .blocks
        .iter_mut()
        .filter(|one| one.processor == processor)
    {
        for end in [&mut block.before, &mut block.after] {
            end.sentinel = end.sentinel + more;
        }
    }
    let methods = changed.header.measurements.iter().map(|one| one.method);
    let method = methods.rev().find(|method| method.is_least_squares());
    let derived = changed.rederive(method.unwrap_or(Method::Graph));
    derived.expect("what was derived before")
}

fn compute(truth: &Truth, processor: &str, layer: u32) -> Nanos {
    let mut processors = truth.processors.iter();
    let of = processors.find(|one| one.processor == processor);
    of.expect("a processor of the device").layers[layer as usize - 1].compute_ns
}

/// What an average layer of the whole model takes on a processor, moving data included, in ns, as these numbers of a gate have it.
fn average(numbers: &[Gated], processor: &str, layers: u32) -> f64 {
    let whole = GatedNumber::Whole {
        processor: processor.to_owned(),
    };
    let whole = numbers.iter().find(|gated| gated.number == whole);
    whole.expect("a whole").one / f64::from(layers)
}

/// How often the gate names a layer that became slower by so many ns, of so many pairs.
fn found(
    pairs: &[(Profile, Profile)],
    (processor, layer): (&str, u32),
    more: f64,
    settings: GateSettings,
) -> usize {
    let more = Nanos::from_nanos(more.round() as u64);
    let wanted = GatedNumber::Layer {
        processor: processor.to_owned(),
        layer,
    };
    let is_found = |(good, other): &&(Profile, Profile)| {
        let slower = with_slower_layer(other, processor, layer, more);
        let found = gate(&[good], &slower, settings).expect("of one model");
        found.worse().any(|gated| gated.number == wanted)
    };
    pairs.par_iter().filter(is_found).count()
}

/// By how many ns a layer must be slower to be found, as the gate says of the middle one of these pairs.
fn found_from(
    pairs: &[(Profile, Profile)],
    (processor, layer): (&str, u32),
    settings: GateSettings,
) -> f64 {
    let wanted = GatedNumber::Layer {
        processor: processor.to_owned(),
        layer,
    };
    let detectable = |(good, other): &(Profile, Profile)| {
        let found = gate(&[good], other, settings).expect("of one model");
        let gated = found.numbers.iter().find(|gated| gated.number == wanted);
        gated.expect("a layer that both have").detectable
    };
    let mut all: Vec<f64> = pairs.iter().map(detectable).collect();
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The most false alarms that a chance of `alpha` gives but once in a hundred times.
fn most_by_chance(pairs: usize, alpha: f64) -> usize {
    let mut probability = (1.0 - alpha).powi(pairs as i32);
    let (mut sum, mut count) = (probability, 0);
    while sum < 0.99 {
        probability *= (pairs - count) as f64 / (count + 1) as f64 * alpha / (1.0 - alpha);
        count += 1;
        sum += probability;
    }
    count
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let pairs = args.next().map_or(Ok(PAIRS), |text| text.parse::<usize>());
    let Ok(count) = pairs else {
        eprintln!("usage: gate-power [PAIRS] [DEVICE] [OPTION of layerlab profile]...");
        return ExitCode::from(2);
    };
    let name = args.next().unwrap_or_else(|| DEVICE.to_owned());
    let options: Vec<String> = args.collect();
    let network = Network::open(&model(MODEL), &BTreeMap::new()).expect("a model");
    let truth = truth(
        &DeviceFile::open(&device(&name)).expect("a device"),
        &network,
    );
    let pair = |place: usize| {
        let of = |seed| profile(&name, seed, &options);
        Some((of(2 * place + 1)?, of(2 * place + 2)?))
    };
    let pairs = (0..count).into_par_iter().filter_map(pair);
    let pairs: Vec<(Profile, Profile)> = pairs.collect();
    let (refused, count) = (count - pairs.len(), pairs.len());
    println!(
        "{MODEL} on {name}, {count} pairs of profiles, options {options:?}; {refused} more pairs had a profile that was refused\n"
    );

    let mut accepted = true;
    let alarms = ALPHAS.map(|alpha| {
        let settings = GateSettings {
            tolerance: NO_TOLERANCE,
            alpha,
        };
        let results = pairs
            .iter()
            .map(|(one, other)| gate(&[one], other, settings));
        let results: Vec<_> = results.map(|found| found.expect("of one model")).collect();
        let alarms = results.iter().filter(|found| found.fails()).count();
        let most = most_by_chance(count, alpha);
        accepted &= alarms <= most;
        let numbers = results.first().map_or(0, |found| found.numbers.len());
        vec![
            format!("{alpha}"),
            numbers.to_string(),
            alarms.to_string(),
            most.to_string(),
        ]
    });
    let heads = ["alpha", "numbers", "false alarms", "at most by chance"];
    println!("{}", markdown(&heads, &alarms));

    let settings = GateSettings {
        tolerance: NO_TOLERANCE,
        alpha: GateSettings::ALPHA,
    };
    let few = &pairs[..count.min(POWER_PAIRS)];
    let layers = 1..=network.layer_count();
    let first = gate(&[&few[0].0], &few[0].1, settings);
    let numbers = first.expect("of one model").numbers;
    let (mut rows, mut at_all, mut tried) = (Vec::new(), 0, 0);
    for processor in &truth.processors {
        let processor = processor.processor.as_str();
        let average = average(&numbers, processor, network.layer_count());
        let longest = layers
            .clone()
            .max_by_key(|layer| compute(&truth, processor, *layer));
        for layer in layers.clone() {
            let own = compute(&truth, processor, layer);
            let base = average.max(own.as_nanos() as f64);
            let mut row = vec![
                format!("{processor} {layer}"),
                own.to_string(),
                Nanos::from_nanos(base.round() as u64).to_string(),
            ];
            row.extend(SLOWER.iter().map(|&share| {
                if Some(layer) != longest && share != EVERY_LAYER_AT {
                    return String::new();
                }
                let found = found(few, (processor, layer), share * base, settings);
                if share == EVERY_LAYER_AT {
                    (at_all, tried) = (at_all + found, tried + few.len());
                }
                format!("{:.0} %", 100.0 * found as f64 / few.len() as f64)
            }));
            let place = (processor, layer);
            let from = found_from(few, place, settings);
            let found = found(few, place, from, settings);
            // Of Holm's first step, which divides by their number, what is left is the level itself.
            let alone = GateSettings {
                alpha: settings.alpha * numbers.len() as f64,
                ..settings
            };
            let alone = found_from(few, place, alone);
            row.push(format!("{:.1} %", 100.0 * alone / base));
            row.push(format!("{:.1} %", 100.0 * from / base));
            row.push(format!("{:.0} %", 100.0 * found as f64 / few.len() as f64));
            rows.push(row);
        }
    }
    let mut heads = ["layer", "computes in", "per cent of"]
        .map(str::to_owned)
        .to_vec();
    heads.extend(
        SLOWER
            .iter()
            .map(|share| format!("{:.0} % slower", 100.0 * share)),
    );
    let heads_of_sight = ["alone found from", "said to be found from", "found at that"];
    heads.extend(heads_of_sight.map(str::to_owned));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    println!(
        "How often the gate names a layer that became slower (nothing tolerated, alpha {}), of {} pairs:\n",
        settings.alpha,
        few.len()
    );
    println!("{}", markdown(&heads, &rows));
    println!(
        "Of all layers, {at_all} of {tried} that became {:.0} % slower were found: {:.1} %.",
        100.0 * EVERY_LAYER_AT,
        100.0 * at_all as f64 / tried.max(1) as f64
    );
    match accepted {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
