//! What a device file says, and in which sentence one is refused.

use super::*;
use crate::device::simulated::machine_noise::{Cold, Correlated};
use crate::device::simulated::switching::{Level, Switching};

const PROCESSOR: &str = r#"
name = "npu"
kind = "accelerator"
numerics = "f16"
convolution_flop_per_s = 1e9
fully_connected_flop_per_s = 1e9
pooling_flop_per_s = 1e9
other_flop_per_s = 1e9
fixed_cost_ns = 1000
input_bytes_per_s = 1e8
output_bytes_per_s = 2e8
memory_bytes = 200_000_000
"#;

const HEAT: &str = r#"
ambient_celsius = 25
kelvin_per_watt = 8
joules_per_kelvin = 60
throttle_start_celsius = 45
slowdown_per_kelvin = 0.04
minimum_speed = 0.5
"#;

fn text() -> String {
    format!("name = \"d\"\nclock = \"exact\"\n[heat]{HEAT}[[processor]]{PROCESSOR}")
}

/// The file with the line of `field` replaced by `line`.
fn with(field: &str, line: &str) -> String {
    let is_field = |candidate: &str| candidate.split(" = ").next() == Some(field);
    let text = text();
    // The device's name comes before the processor's; the last is meant.
    let lines: Vec<&str> = text.lines().collect();
    let last = lines
        .iter()
        .rposition(|line| is_field(line))
        .expect("the field");
    let lines = lines.into_iter().enumerate();
    lines
        .map(|(index, old)| if index == last { line } else { old }.to_owned() + "\n")
        .collect()
}

fn sentence(text: &str) -> String {
    DeviceFile::parse("d.toml", text)
        .expect_err("a bad file")
        .to_string()
}

#[test]
fn a_good_file_says_what_it_says() {
    let device = DeviceFile::parse("d.toml", &text()).expect("a good file");
    assert_eq!(
        (device.name.as_str(), device.clock),
        ("d", ClockKind::Exact)
    );
    assert_eq!(device.heat.expect("heat").throttle_start_celsius, 45.0);
    let [npu] = device.processors.as_slice() else {
        panic!("one processor")
    };
    assert_eq!(
        npu.arithmetic,
        Arithmetic::F16 {
            accumulate: Accumulate::F32
        }
    );
    assert_eq!(npu.memory, Some(Bytes::from_bytes(200_000_000)));
    let transfer = npu.transfer.expect("an accelerator");
    assert_eq!(
        (transfer.input_bytes_per_s, transfer.output_bytes_per_s),
        (1e8, 2e8)
    );
    assert_eq!(transfer.fusion_gain, 0.0);
    assert_eq!(
        npu.noise,
        Noise {
            spike_factor: 1.0,
            ..Noise::default()
        }
    );
}

#[test]
fn a_bad_field_gets_one_sentence_that_names_it_and_the_remedy() {
    for (field, line, expected) in [
        (
            "input_bytes_per_s",
            "",
            "d.toml: processor `npu` has no `input_bytes_per_s`: add a number above 0",
        ),
        (
            "input_bytes_per_s",
            "input_bytes_per_s = -1e8",
            "d.toml: `input_bytes_per_s` of processor `npu` is -100000000: write a number above 0",
        ),
        (
            "output_bytes_per_s",
            "output_bytes_per_s = 0",
            "d.toml: `output_bytes_per_s` of processor `npu` is 0: write a number above 0",
        ),
        (
            "convolution_flop_per_s",
            "convolution_flop_per_s = nan",
            "d.toml: `convolution_flop_per_s` of processor `npu` is NaN: write a number above 0",
        ),
        (
            "pooling_flop_per_s",
            "pooling_flop_per_s = inf",
            "d.toml: `pooling_flop_per_s` of processor `npu` is inf: write a number above 0",
        ),
        (
            "fixed_cost_ns",
            "fixed_cost_ns = -5",
            "d.toml: `fixed_cost_ns` of processor `npu` is -5: write 0 or a number above 0",
        ),
        (
            "memory_bytes",
            "memory_bytes = -1",
            "d.toml: `memory_bytes` of processor `npu` is -1: write 0 or a number above 0",
        ),
        (
            "memory_bytes",
            "fusion_gain = 1.0",
            "d.toml: `fusion_gain` of processor `npu` is 1: write a fraction from 0 to below 1",
        ),
        (
            "memory_bytes",
            "spike_probability = 1.5",
            "d.toml: `spike_probability` of processor `npu` is 1.5: write a probability from 0 to 1",
        ),
        (
            "memory_bytes",
            "spike_factor = 0.5",
            "d.toml: `spike_factor` of processor `npu` is 0.5: write 1 or a number above 1",
        ),
        (
            "name",
            "",
            "d.toml: processor 1 has no `name`: add a short name in quotes",
        ),
        (
            "name",
            "name = \" \"",
            "d.toml: `name` of processor 1 is \" \": write a short name in quotes",
        ),
        (
            "kind",
            "",
            "d.toml: processor `npu` has no `kind`: add \"cpu\" or \"accelerator\"",
        ),
        (
            "kind",
            "kind = \"cpu\"",
            "d.toml: processor `npu` has `fixed_cost_ns`, which means nothing for a CPU, which \
             computes in main memory: remove it",
        ),
        (
            "numerics",
            "numerics = \"i8\"\naccumulate = \"f16\"",
            "d.toml: processor `npu` has `accumulate`, which means nothing for numerics other than \
             f16: remove it",
        ),
        (
            "clock",
            "",
            "d.toml: the device has no `clock`: add \"exact\" or \"real\"",
        ),
        (
            "minimum_speed",
            "minimum_speed = 0",
            "d.toml: `minimum_speed` of [heat] is 0: write a fraction above 0, at most 1",
        ),
        (
            "joules_per_kelvin",
            "",
            "d.toml: [heat] has no `joules_per_kelvin`: add a number above 0",
        ),
        (
            "kind",
            "kind = \"gpu\"",
            "d.toml, line 12: unknown variant `gpu`, expected `cpu` or `accelerator`: correct it, or \
             compare with the files in tests/devices",
        ),
        (
            "input_bytes_per_s",
            "input_bytes_per_s = \"fast\"",
            "d.toml, line 19: invalid type: string \"fast\", expected f64: correct it, or compare \
             with the files in tests/devices",
        ),
    ] {
        assert_eq!(sentence(&with(field, line)), expected);
    }
}

/// The file with this section of machine noise.
fn with_machine_noise(lines: &str) -> String {
    text().replace("[heat]", &format!("[machine_noise]\n{lines}\n[heat]"))
}

#[test]
fn a_machine_has_the_noise_that_its_file_says_and_none_without() {
    let device = |text: &str| DeviceFile::parse("d.toml", text).expect("a good file");
    assert_eq!(device(&text()).machine_noise, MachineNoise::default());
    assert_eq!(
        device(&with_machine_noise("")).machine_noise,
        MachineNoise::default()
    );
    let all = with_machine_noise(
        "visit_sigma = 0.04\nloading_sigma = 0.05\ndrift_per_hour = 0.1\ncorrelated_sigma = 0.03\n\
         correlation_time_ns = 200_000_000\ncold_slowdown = 1.2\ncold_decay_ns = 2_000_000\n\
         [[machine_noise.switching]]\nslowdowns = [1, 1.5]\nmean_holds_ns = [30_000_000, 1_000_000]",
    );
    let level = |slowdown, millis| Level {
        slowdown,
        mean_hold: Nanos::from_millis(millis),
    };
    assert_eq!(
        device(&all).machine_noise,
        MachineNoise {
            visit_sigma: 0.04,
            loading_sigma: 0.05,
            drift_per_hour: 0.1,
            correlated: Some(Correlated {
                sigma: 0.03,
                correlation_time: Nanos::from_millis(200),
            }),
            cold: Some(Cold {
                slowdown: 1.2,
                decay: Nanos::from_millis(2),
            }),
            switching: vec![Switching {
                levels: vec![level(1.0, 30), level(1.5, 1)],
            }],
        }
    );
}

#[test]
fn noise_of_a_machine_that_makes_no_sense_is_refused() {
    let place = "of [machine_noise]";
    let switching = "[[machine_noise.switching]]\n";
    let holds = "as many whole numbers as there are `slowdowns`, each 1000000 or more";
    for (lines, expected) in [
        (
            "visit_sigma = -1".to_owned(),
            format!("`visit_sigma` {place} is -1: write 0 or a number above 0"),
        ),
        (
            "cold_slowdown = 0.5\ncold_decay_ns = 1".to_owned(),
            format!("`cold_slowdown` {place} is 0.5: write 1 or a number above 1"),
        ),
        (
            "cold_slowdown = 1.5".to_owned(),
            "[machine_noise] has no `cold_decay_ns`: add a whole number above 0".to_owned(),
        ),
        (
            "correlated_sigma = 0.1\ncorrelation_time_ns = 0".to_owned(),
            format!("`correlation_time_ns` {place} is 0: write a whole number above 0"),
        ),
        (
            "correlation_time_ns = 5".to_owned(),
            "[machine_noise] has `correlation_time_ns`, which means nothing for a machine without \
             `correlated_sigma`: remove it"
                .to_owned(),
        ),
        (
            format!("{switching}slowdowns = [1.0]\nmean_holds_ns = [1_000_000]"),
            format!(
                "`slowdowns` of switching 1 {place} is [1.0]: write a list of at least two numbers above 0"
            ),
        ),
        (
            format!("{switching}slowdowns = [1.0, 2.0]\nmean_holds_ns = [1_000_000]"),
            format!("`mean_holds_ns` of switching 1 {place} is [1000000]: write {holds}"),
        ),
        (
            format!("{switching}slowdowns = [1.0, 2.0]\nmean_holds_ns = [1_000_000, 5]"),
            format!("`mean_holds_ns` of switching 1 {place} is [1000000, 5]: write {holds}"),
        ),
    ] {
        assert_eq!(
            sentence(&with_machine_noise(&lines)),
            format!("d.toml: {expected}")
        );
    }
}

#[test]
fn an_unknown_field_is_named_with_its_line() {
    let text = with("memory_bytes", "memory_byte = 1");
    let sentence = sentence(&text);
    let start = "d.toml, line 21: unknown field `memory_byte`, expected one of `name`, `kind`, ";
    assert!(sentence.starts_with(start), "{sentence}");
    assert!(!sentence.contains('\n'), "{sentence}");
}

#[test]
fn what_is_no_device_at_all_is_said_in_one_line() {
    for (text, start) in [
        ("", "d.toml: the device has no `name`"),
        (
            "name = \"d\"\nclock = \"exact\"",
            "d.toml: the device has no `processor`: add at least one",
        ),
        ("name = \"d", "d.toml, line 1: "),
        ("\u{0}\u{1}", "d.toml, line 1: "),
    ] {
        let sentence = sentence(text);
        assert!(
            sentence.starts_with(start) && !sentence.contains('\n'),
            "{sentence}"
        );
    }
    let twins = format!("{}[[processor]]{PROCESSOR}", text());
    assert_eq!(
        sentence(&twins),
        "d.toml: `name` of processor `npu` is \"npu\": write a name that no other processor has"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = DeviceFile::open("/nowhere/d.toml".as_ref()).expect_err("no file");
    let sentence = error.to_string();
    assert!(
        sentence.starts_with("cannot read the device file /nowhere/d.toml (No such"),
        "{sentence}"
    );
}

#[test]
fn every_device_that_comes_with_layerlab_is_good() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/devices");
    let mut devices = 0;
    for entry in std::fs::read_dir(folder).expect("tests/devices") {
        let path = entry.expect("an entry").path();
        let device = DeviceFile::open(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            device.name.contains("simulated"),
            "{} must say so",
            path.display()
        );
        devices += 1;
    }
    assert!(devices >= 5);
}

#[test]
fn a_gauge_is_read_as_it_is_described_and_refused_by_the_field_that_is_wrong() {
    let with_gauge = |lines: &str| text().replace("[heat]", &format!("[gauge]\n{lines}\n[heat]"));
    let device = DeviceFile::parse(
        "d.toml",
        &with_gauge(
            "idle_watts = 0.8\nstep_watts = 0.005\nperiod_ms = 1000\ndelay_ms = 500\npowered = true",
        ),
    );
    let gauge = device.expect("a good file").gauge.expect("a gauge");
    assert_eq!((gauge.idle_watts, gauge.step_watts), (0.8, 0.005));
    assert_eq!(
        (gauge.period, gauge.delay),
        (Nanos::from_millis(1_000), Nanos::from_millis(500))
    );
    assert!(gauge.powered && gauge.offset_watts == 0.0 && gauge.noise_watts == 0.0);
    assert_eq!(
        DeviceFile::parse("d.toml", &text())
            .expect("a good file")
            .gauge,
        None
    );
    for (lines, field) in [
        ("step_watts = 0.005\nperiod_ms = 1000", "idle_watts"),
        (
            "idle_watts = 0.8\nstep_watts = 0\nperiod_ms = 1000",
            "step_watts",
        ),
        (
            "idle_watts = 0.8\nstep_watts = 0.005\nperiod_ms = 0",
            "period_ms",
        ),
        (
            "idle_watts = 0.8\nstep_watts = 0.005\nperiod_ms = 9\nnoise_watts = -1",
            "noise_watts",
        ),
    ] {
        let refused = sentence(&with_gauge(lines));
        assert!(
            refused.contains("[gauge]") && refused.contains(field),
            "{refused}"
        );
    }
}
