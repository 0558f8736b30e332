//! The networks' profiles: on this machine, which is the server, and on a phone that is simulated.

use std::fs;
use std::path::Path;

use layerlab_profiles::document::Profile;
use layerlab_tests::{file, layerlab, succeed};

use crate::case::Case;
use crate::networks::NETWORKS;

/// The phone, among the simulated ones of the tests.
pub(crate) const PHONE: &str = "devices/mate10pro.toml";

/// What was measured.
pub(crate) struct Measured {
    /// Each network at each batch, in the order of [`NETWORKS`].
    pub(crate) cases: Vec<Case>,
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
    let device = folder.join("phone.toml");
    fs::write(&device, phone_file()).map_err(|error| error.to_string())?;
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

/// The phone, whose NPU computes in 32 bits, because what it answers is not looked at, and rounding takes most of an hour. Its
/// times are the same.
fn phone_file() -> String {
    const HALF: &str = "numerics = \"f16\"\naccumulate = \"f16\"\n";
    let phone = fs::read_to_string(file(PHONE)).expect("a committed file");
    assert!(phone.contains(HALF), "{PHONE} has no NPU of 16 bits");
    phone.replace(HALF, "numerics = \"f32\"\n")
}
