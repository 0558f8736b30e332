//! The networks' profiles: on this machine, which is the server, and on a phone that is simulated.

use std::fs;
use std::path::Path;

use layerlab_planners::profile::layer_times;
use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_tests::{layerlab, succeed};

use crate::case::Case;
use crate::networks::NETWORKS;

/// "The computation capability of [the server] is more than one order of magnitude compared to our mobile device" (jointdnn
/// §3.2).
pub(crate) const TIMES_SLOWER: f64 = 12.0;

/// What the phone's processor draws above the idle phone. The paper measured its Jetson TX2 and prints no power; NVIDIA names 7.5 W
/// for that module in its economical mode.
pub(crate) const PHONE_WATTS: f64 = 7.5;

/// What was measured.
pub(crate) struct Measured {
    /// Each network at each batch, in the order of [`NETWORKS`].
    pub(crate) cases: Vec<Case>,
    /// The phone's file.
    pub(crate) phone: String,
    /// Profiles of this machine that say that other programs ran meanwhile, of all.
    pub(crate) disturbed: [usize; 2],
    /// How many of all profiles, of the phone, too, lay in the folder before.
    pub(crate) reused: usize,
}

#[expect(clippy::print_stderr, reason = "how far it has come")]
pub(crate) fn measure(folder: &Path) -> Result<Measured, String> {
    let mut made = Vec::new();
    let mut reused = 0;
    let mut profile = |model: &Path, device: &Path, name: &str| {
        reused += usize::from(folder.join(name).exists());
        profile(folder, model, device, name)
    };
    for network in &NETWORKS {
        for &batch in network.batches {
            let model = network.make(folder, batch)?;
            let name = format!("{}-b{batch}", network.name);
            eprintln!("{name} on this machine");
            let server = profile(&model, Path::new("host"), &format!("server-{name}"));
            made.push((network, batch, model, name, server));
        }
    }
    let servers = made.iter().filter(|it| it.1 == 1);
    let phone = phone_file(&servers.map(|it| (it.0.name, &it.4)).collect::<Vec<_>>());
    let device = folder.join("phone.toml");
    // Profiles of another phone are not this one's.
    if fs::read_to_string(&device).is_ok_and(|other| other != phone) {
        return Err(format!(
            "{} is of other profiles of this machine; remove it and the folders phone-* beside it",
            device.display()
        ));
    }
    fs::write(&device, &phone).map_err(|error| error.to_string())?;
    let mut cases = Vec::new();
    let is_disturbed = |server: &Profile| {
        let mut seen = server
            .blocks
            .iter()
            .filter_map(|it| it.disturbance.as_ref());
        seen.any(|disturbance| disturbance.crowded_samples > 0)
    };
    let disturbed = made.iter().filter(|it| is_disturbed(&it.4)).count();
    let all = made.len();
    for (network, batch, model, name, server) in made {
        eprintln!("{name} on the simulated phone");
        let phone = profile(&model, &device, &format!("phone-{name}"));
        cases.push(Case::new(network, batch, &model, &phone, &server)?);
    }
    Ok(Measured {
        cases,
        phone,
        disturbed: [disturbed, all],
        reused,
    })
}

/// The profile in the folder, which is made unless it is there; a simulated phone's with what it draws.
fn profile(folder: &Path, model: &Path, device: &Path, name: &str) -> Profile {
    let out = folder.join(name);
    if !out.exists() {
        let mut command = layerlab();
        command.args(["profile", "--samples", "3", "--visits", "3", "--model"]);
        command.arg(model).arg("--device").arg(device);
        if device != Path::new("host") {
            command.args(["--energy", "30s"]);
        }
        succeed(command.arg("--out").arg(&out));
    }
    Profile::read(&out).expect("just written")
}

/// A phone that is as many times as slow as this machine at each kind of work.
fn phone_file(servers: &[(&str, &Profile)]) -> String {
    let all: Vec<&Profile> = servers.iter().map(|(_, server)| *server).collect();
    let of = |name: &str| -> Vec<&Profile> {
        let named = servers.iter().filter(|(one, _)| *one == name);
        named.map(|(_, server)| *server).collect()
    };
    let flop = |layer: &layerlab_profiles::Layer| (layer.additions + layer.multiplications) as f64;
    let bytes = |layer: &layerlab_profiles::Layer| layer.parameter_bytes.as_bytes() as f64;
    let convolution = rate(&all, &["Conv", "ConvTranspose"], flop) / TIMES_SLOWER;
    let pooling = rate(&all, &["MaxPool", "GlobalAveragePool"], flop) / TIMES_SLOWER;
    // Many frames for each weight: this is arithmetic. AlexNet's take a picture for each, and wait for weights.
    let fully_connected = rate(&of("deep-speech"), &["MatMul"], flop) / TIMES_SLOWER;
    let weights = rate(&of("alexnet"), &["Gemm"], bytes) / TIMES_SLOWER;
    let recurrent = rate(&of("deep-speech"), &["LSTM"], flop) / TIMES_SLOWER;
    format!(
        r#"name = "a phone {TIMES_SLOWER} times as slow as the server (simulated)"
clock = "exact"

[gauge]
idle_watts = 1.0
step_watts = 0.005
period_ms = 100
noise_watts = 0.01

[[processor]]
name = "cpu"
kind = "cpu"
numerics = "f32"
convolution_flop_per_s = {convolution:.3e}
fully_connected_flop_per_s = {fully_connected:.3e}
pooling_flop_per_s = {pooling:.3e}
# An LSTM counts as this.
other_flop_per_s = {recurrent:.3e}
parameter_bytes_per_s = {weights:.3e}
power_watts = {PHONE_WATTS:.1}
"#
    )
}

/// How much of something these profiles' layers that begin with such an operator get done in a second.
fn rate(
    profiles: &[&Profile],
    operators: &[&str],
    amount: impl Fn(&layerlab_profiles::Layer) -> f64,
) -> f64 {
    let (mut done, mut seconds) = (0.0, 0.0);
    for profile in profiles {
        let mut processors = profile.header.processors.iter();
        let cpu = processors.find(|it| it.kind == ProcessorKind::Cpu);
        let times = layer_times(profile, &cpu.expect("a CPU").name).expect("whole tables");
        for (layer, time) in profile.layers.iter().zip(times) {
            if operators.contains(&layer.operators[0].as_str()) {
                done += amount(layer);
                seconds += time.expect("a CPU runs all").compute.value.as_nanos() as f64 / 1e9;
            }
        }
    }
    done / seconds
}
