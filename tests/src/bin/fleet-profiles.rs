//! Writes the profiles of a made-up fleet, each in a folder of its own, until they have so many samples.
//!
//!     fleet-profiles PROFILE FOLDER SAMPLES
//!
//! PROFILE is what they are drawn from. tests/analysis/report.py uses it.

use std::path::{Path, PathBuf};

use layerlab_profiles::document::Profile;
use layerlab_tests::fleet::Fleet;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [profile, folder, samples] = arguments.as_slice() else {
        panic!("fleet-profiles PROFILE FOLDER SAMPLES");
    };
    let template = Profile::read(Path::new(profile)).expect("a profile");
    let wanted: usize = samples.parse().expect("a number of samples");
    let profiles = wanted.div_ceil(template.samples.len());
    let nights = 24;
    let fleet = Fleet {
        phones: (profiles as u32).div_ceil(nights),
        nights,
        days_between: 3,
    };
    for place in 0..profiles as u32 {
        let profile = fleet.profile(&template, place % fleet.phones, place / fleet.phones);
        let folder = PathBuf::from(folder).join(format!("profile-{place:05}"));
        std::fs::create_dir_all(&folder).expect("room");
        profile.write(&folder).expect("room");
    }
}
