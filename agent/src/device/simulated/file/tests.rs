//! What a device file says, and in which sentence one is refused.

use super::*;

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
